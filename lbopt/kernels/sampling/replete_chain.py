"""The chain of the exact rule with a replete pool, and the optimum of its steps.

The optimum of one step (H = 0) when the pool is replete, without a search, in O(G + d).

A pool is replete when every class in it has at least U copies, U the number of free slots. Its prompt sizes are here
v, v + d, ..., v + m d: an arithmetic progression. All sizes 1 .. s_max are v = d = 1, m = s_max - 1; two sizes v < w
are d = w - v, m = 1. With c_g free slots, worker g can reach exactly the loads f_g + d n, n = 0 .. r_g, where
f_g = L_pre_g + v c_g is its floor and r_g = m c_g its room.

Fix a peak M that no load may pass: M >= M_0 = max_g f_g, and the least imbalance below it gives every worker the
largest load up to M, L_g(M) = f_g + d min(r_g, (M - f_g) div d), for a cost of I(M) = sum_g (M - L_g(M)). The least
I(M) over all M is the optimum: a placement of peak M costs I(M) at least, and L(M) costs I(M) at most.

Candidates. A peak higher by d lifts no load by more than d, so I(M + d) >= I(M): the d peaks M_0 .. M_0 + d - 1 are
enough. Among them, a worker that is full at M_0 costs 1 more with each unit of M; any other does too, but drops by d
once, at t_g = d - ((M_0 - f_g) mod d) where that is below d (its next rung is free, for it was not full at M_0). Hence
I(M_0 + t) = I(M_0) + G t - d * #{g not full at M_0 : t_g <= t}, which one pass over t counts.

Equal work. A peak higher by a whole rung costs nothing while no worker is full, so the optimum leaves open how much is
admitted: the level `MEAN` rises by the rungs that bring the mean admitted size nearest to that of the classes,
v + d m/2, which a rule without selection admits.

Source: BF-IO, section 4 (the two cases are lbopt's); the argument for progressions and the pass over t are ours.

The chain under exact BF-IO (H = 0) with a replete pool: grow, end, admit the optimum, read (BF-IO, section 1).

One step k, in the order of the theory: every slot's size grows by delta_k; a slot whose lifetime is over leaves with
its grown size; all free slots are filled by `level_replete`; loads are read after admission. Lifetime number n of a
slot is the even number 2 n of its stream (`lbopt.kernels.sampling.draw`), so any policy that fills slots at once meets
the same ends on the same streams. The chain starts empty: step 0 fills every slot.

The optimum fixes only the sum of each worker. Which sizes make it up is a choice (`extreme`), and so is the level of
all sums together where that costs nothing (`peaks`): what depends on neither may be claimed of every optimum.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record, Records, integers
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import Words, lifetime, word

#: Which of the optima is taken.
LOWEST, RAISED, MEAN = 0, 1, 2


#: The sizes v, v + d, ..., v + m d of a pool, d >= 1 and m >= 0, in tokens, and which of the optima is taken.
RULE = integers(
    "smallest",  # v
    "rung",  # d
    "rungs",  # m
    # LOWEST takes the lowest peak; RAISED the last of the d candidates that is optimal, and on from there as many whole
    # rungs as cost nothing (while no worker is full, all loads may rise by d); MEAN the lowest, and of those rungs as
    # many as bring the mean admitted size nearest to v + d m / 2
    "peaks",
    "extreme",  # 1: as many requests of a worker as fit get its largest size, see `rungs_of_slot`
)


@kernel
def level_replete(before: Ints, free: Ints, rule: Record, rising: Ints, load: Ints) -> int:
    """Return the least imbalance (tokens) of a replete pool; the loads after admission are written to `load`.

    Parameters
    ----------
    before
        int64 (G,): loads before admission, tokens.
    free
        int64 (G,): free slots, 0 allowed.
    rising
        int64, at least (d,): scratch.
    load
        int64 (G,): written.
    """
    smallest, rung, rungs, peaks = rule.smallest, rule.rung, rule.rungs, rule.peaks
    G = before.size
    peak = before[0] + smallest * free[0]
    for g in range(G):
        peak = max(peak, before[g] + smallest * free[g])
    rising[:rung] = 0
    cost = 0
    for g in range(G):
        under = peak - before[g] - smallest * free[g]
        steps = under // rung
        if steps < rungs * free[g]:
            rest = under - steps * rung
            cost += rest
            if rest > 0:
                rising[rung - rest] += 1
        else:
            cost += under - rung * rungs * free[g]
    best, chosen = cost, 0
    for t in range(1, rung):
        cost += G - rung * rising[t]
        if cost < best or (peaks == RAISED and cost == best):
            best, chosen = cost, t
    peak += chosen
    if peaks != LOWEST:
        spare, short = rungs * free[0], 0
        for g in range(G):
            climbed = (peak - before[g] - smallest * free[g]) // rung
            spare = min(spare, rungs * free[g] - climbed)
            short += rungs * free[g] - 2 * min(rungs * free[g], climbed)  # twice the rungs below the mean
        rise = max(spare, 0)
        if peaks == MEAN:
            rise = min(rise, max((short + G) // (2 * G), 0))
        peak += rung * rise
    for g in range(G):
        floor = before[g] + smallest * free[g]
        load[g] = floor + rung * min(rungs * free[g], (peak - floor) // rung)
    return best


@kernel
def rungs_of_slot(j: int, slots: int, total: int, rungs: int, extreme: bool) -> int:
    """Return how many rungs above the smallest size a request of a worker gets.

    Evenly (they differ by 1 at most), or with as many of the largest size as fit, then one between.

    Parameters
    ----------
    j, slots
        The request, and how many the worker gets.
    total, rungs
        Rungs of all of them together, and of the largest size.
    extreme
        Whether as many as fit get the largest size.
    """
    if extreme:
        return min(rungs, max(0, total - j * rungs))
    return total // slots + (1 if j < total % slots else 0)


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
    streams: Words, log_keep: float, growth: Ints, rule: Record, burn_in: int, steps: Records, square: Floats
) -> None:
    """Run `burn_in` steps unseen, at least one, then one step for each record of `steps`.

    Parameters
    ----------
    streams
        uint64 (G, B): where the stream of each slot begins.
    log_keep
        log(1 - p), p the probability that a slot ends in a step.
    growth
        int64 (n,): delta_k in tokens, k mod n.
    steps
        STEP (n,), written.
    square
        float64 (n,), written: mean square of the sizes after growth and before ends, tokens squared.
    """
    smallest, rung, rungs = rule.smallest, rule.rung, rule.rungs
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
        imbalance = level_replete(before, free, rule, rising, load)
        tokens = 0
        for g in range(G):
            tokens += load[g] - before[g]
            climbs = (load[g] - before[g] - smallest * free[g]) // rung
            for j in range(free[g]):
                b = opened[g, j]
                size[g, b] = smallest + rung * rungs_of_slot(j, free[g], climbs, rungs, rule.extreme == 1)
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
