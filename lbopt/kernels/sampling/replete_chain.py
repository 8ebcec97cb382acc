"""The chain under exact BF-IO (H = 0) with a replete pool: grow, end, admit the optimum, read (BF-IO, section 1).

One step k, in the order of the theory: every slot's size grows by delta_k; a slot whose lifetime is over leaves with
its grown size; all free slots are filled by `level_replete`; loads are read after admission. Lifetime number n of a
slot is the even number 2 n of its stream (`lbopt.kernels.sampling.draw`), so any policy that fills slots at once meets
the same ends on the same streams. The chain starts empty: step 0 fills every slot.

The optimum fixes only the sum of each worker. Which sizes make it up is a choice (`extreme`), and so is the level of
all sums together where that costs nothing (`peaks`): what depends on neither may be claimed of every optimum.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Records, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import Words, lifetime, word
from lbopt.kernels.sampling.replete import level_replete, rungs_of_slot

#: What is kept of a step; in tokens unless said otherwise.
STEP = integers(
    "gap_before",  # largest less smallest load, of the step before
    "gap_pre",  # the same before admission
    "gap",
    "fewest",  # free slots of a worker, a number
    "most",  # the same
    "imbalance",
    "envelope",  # largest size in a slot after growth
    "admitted",  # requests, a number
    "admitted_tokens",
    "heaviest",  # largest sum over a worker's slots of the squared size after growth, tokens squared
)


@kernel
def replete_chain(
    streams: Words,
    log_keep: float,
    growth: Ints,
    smallest: int,
    rung: int,
    rungs: int,
    extreme: bool,
    peaks: int,
    burn_in: int,
    steps: Records,
    square: Floats,
) -> None:
    """Run `burn_in` steps unseen, then one step for each record of `steps`.

    Parameters
    ----------
    streams
        uint64 (G, B): where the stream of each slot begins.
    log_keep
        log(1 - p), p the probability that a slot ends in a step.
    growth
        int64 (n,): delta_k in tokens, k mod n.
    smallest, rung, rungs, peaks
        See `level_replete`.
    extreme
        See `rungs_of_slot`.
    burn_in
        Steps, at least 1.
    steps
        STEP (n,), written.
    square
        float64 (n,), written: mean square of the sizes after growth and before ends, tokens squared.
    """
    G, B = streams.shape
    size = np.zeros((G, B), np.int64)
    left = np.ones((G, B), np.int64)
    drawn = np.zeros((G, B), np.int64)
    opened = np.empty((G, B), np.int64)
    before, free, load = np.zeros(G, np.int64), np.zeros(G, np.int64), np.zeros(G, np.int64)
    rising = np.zeros(rung, np.int64)
    for k in range(burn_in + steps.size):
        gap_before = load.max() - load.min()
        grown = growth[k % growth.size]
        largest, heaviest, squares = 0, 0, 0.0
        for g in range(G):
            total, ended, sum_of_squares = 0, 0, 0
            for b in range(B):
                a = size[g, b] + grown
                size[g, b] = a
                largest = max(largest, a)
                sum_of_squares += a * a
                left[g, b] -= 1
                if left[g, b] == 0:
                    opened[g, ended] = b
                    ended += 1
                else:
                    total += a
            before[g] = total
            free[g] = ended
            squares += float(sum_of_squares)
            heaviest = max(heaviest, sum_of_squares)
        imbalance = level_replete(before, free, smallest, rung, rungs, peaks, rising, load)
        tokens = 0
        for g in range(G):
            tokens += load[g] - before[g]
            climbs = (load[g] - before[g] - smallest * free[g]) // rung
            for j in range(free[g]):
                b = opened[g, j]
                size[g, b] = smallest + rung * rungs_of_slot(j, free[g], climbs, rungs, extreme)
                left[g, b] = lifetime(word(streams[g, b], 2 * drawn[g, b]), log_keep)
                drawn[g, b] += 1
        if k >= burn_in:
            kept = steps[k - burn_in]
            kept.gap_before = gap_before
            kept.gap_pre = before.max() - before.min()
            kept.gap = load.max() - load.min()
            kept.fewest = free.min()
            kept.most = free.max()
            kept.imbalance = imbalance
            kept.envelope = largest
            kept.admitted = free.sum()
            kept.admitted_tokens = tokens
            kept.heaviest = heaviest
            square[k - burn_in] = squares / (G * B)
