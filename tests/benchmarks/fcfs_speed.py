"""How fast FCFS is sampled under overload: slot-steps a second on one core.

python -m tests.benchmarks.fcfs_speed

A slot-step is one slot in one step. The chain goes from end to end and not from step to step, so that its speed rises
with the length of outputs: each end costs two random numbers, and each step of a worker one addition. Drawing the
streams and the first compilation are not counted; the shortest of several warm runs is.
"""

import argparse
import math
import time

import numpy as np

from lbopt.kernels.sampling.fcfs_chain import Draws, Slots, begin_slots, run_slots
from lbopt.theory.chains.batch_means import slot_streams
from lbopt.theory.chains.fcfs_chain import _CHUNK
from lbopt.theory.laws.slot_law import PromptLaw

WORKERS, SLOTS, S_MAX = 16, 256, 100
#: What is asked for, in slot-steps a second, at each probability of an end.
TARGET, PROBABILITIES = 2e8, (0.2, 0.02)


def slot_steps_a_second(p, chunks=8, repeats=7, G=WORKERS, B=SLOTS):
    """Return the speed over `chunks` chunks of steps, the shortest of `repeats` runs."""
    table, keep = PromptLaw.uniform(S_MAX).aliases(), math.log1p(-p)
    stream = slot_streams(1, G, B)
    next_end, offset, ends = (np.empty((G, B), np.int64) for _ in range(3))
    peak, total = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
    best = math.inf
    for _ in range(repeats + 1):  # the first is cold
        slots, draws = Slots(stream, next_end, offset, ends), Draws(keep, *table)
        begin_slots(slots, draws, 1)
        begin = time.perf_counter()
        for place in range(chunks):
            first = 1 + place * _CHUNK
            grown = np.arange(first, first + _CHUNK, dtype=np.int64)
            run_slots(slots, draws, 1, grown, first, peak, total)
        best = min(best, time.perf_counter() - begin)
    return G * B * chunks * _CHUNK / best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    print("| chain | wanted, slot-steps a second | measured | of the target |")
    print("|---|--:|--:|--:|")
    for p in PROBABILITIES:
        speed = slot_steps_a_second(p)
        print(f"| G = {WORKERS}, B = {SLOTS}, p = {p} | {TARGET:.2g} | {speed:.3g} | {speed / TARGET:.2f} |")


if __name__ == "__main__":
    main()
