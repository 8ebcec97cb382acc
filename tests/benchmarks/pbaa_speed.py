"""How fast PBAA allocates one batch, on one core.

python -m tests.benchmarks.pbaa_speed

The floor is 50 microseconds for 512 requests on 64 units. Without a cache: to sort 512 numbers takes 512 * 9
comparisons (5 microseconds here), to scan the units for each request 512 * 64 = 32,768 steps; a heap needs at most
512 * 6 * 2 instead. With a cache there is a hit for each pair to be read, so 32,768 steps are the floor, 8 to 16
microseconds at 2 to 4 a nanosecond. The shortest of many warm calls of the kernel counts.
"""

import time

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.prefill import codes
from lbopt.kernels.prefill.allocation import RULE, Batch, in_order, pbaa

#: What is asked for, in microseconds: the floor, for REQUESTS on UNITS.
FLOOR = 50.0
REQUESTS, UNITS = 512, 64
RULES = {"no cache": (0, 0), "cache, mended": (0, 1), "cache, printed": (1, 1)}


def microseconds(rule, requests=REQUESTS, units=UNITS, repeats=300):
    """Return the time of a batch that finds room for everybody; of the sort alone where `rule` is None."""
    rng = np.random.default_rng(0)
    length = rng.integers(1, 3073, requests)
    hits = rng.integers(0, length[:, None, None] + 1, (requests, 1, units))
    deferred = np.zeros(requests, dtype=np.int64)
    batch, parameters = np.arange(requests), record(RULE)
    unit, key = np.empty((2, requests), dtype=np.int64)
    parameters.limit = -1
    if rule is not None:
        parameters.printed, parameters.cache = RULES[rule]
    shown = Batch(parameters, length, hits, deferred, batch, key, unit)
    best = np.inf
    for _ in range(repeats):
        load = np.zeros(units, dtype=np.int64)
        begin = time.perf_counter()
        if rule is None:
            in_order(length, deferred, batch, key)
        else:
            pbaa(shown, requests, 0, codes.NO_LIMIT, load)
        best = min(best, time.perf_counter() - begin)
    return 1e6 * best


def main():
    print(f"asked for: at most {FLOOR:g} us for {REQUESTS} requests on {UNITS} units\n")
    print("| | us |\n|---|--:|")
    for rule in (None, *RULES):
        print(f"| {rule or 'sort alone'} | {microseconds(rule):.1f} |")


if __name__ == "__main__":
    main()
