"""The optimum of one step (H = 0) when the pool is replete, without a search, in O(G + d).

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
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

#: Which of the optima is taken.
LOWEST, RAISED, MEAN = 0, 1, 2


@kernel
def level_replete(
    before: Ints, free: Ints, smallest: int, rung: int, rungs: int, peaks: int, rising: Ints, load: Ints
) -> int:
    """Return the least imbalance (tokens) of a replete pool; the loads after admission are written to `load`.

    Parameters
    ----------
    before, free
        int64 (G,): loads before admission (tokens) and free slots (0 allowed).
    smallest, rung, rungs
        v, d >= 1 and m >= 0 of the sizes v, v + d, ..., v + m d (tokens).
    peaks
        Which of the optima: LOWEST takes the lowest peak; RAISED the last of the d candidates that is optimal, and on
        from there as many whole rungs as cost nothing (while no worker is full, all loads may rise by d); MEAN the
        lowest, and of those rungs as many as bring the mean admitted size nearest to v + d m / 2.
    rising
        int64, at least (d,): scratch.
    load
        int64 (G,): written.
    """
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
