"""What the largest load of a column is at least, by elementary reasoning in exact integers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from lbopt.model.reduced_loads import ReducedLoads
from lbopt.model.step_problem import StepProblem


def envelope_floors(problem: StepProblem, loads: ReducedLoads) -> list[int]:
    """Return, for each h, a lower bound on M_h in reduced units.

    A maximum M is at least

    * every base load, and the mean load with the lightest admissible set rounded up;
    * the least M with sum_g min(M, base[g,h] + the slots_g largest works) >= that load: a worker with few slots cannot
      get its share, so others carry more than the mean;
    * base[g,h] plus the smallest works that g must take because the slots elsewhere do not suffice, for each g;
    * the lightest worker with a free slot plus the largest work that has to be admitted.
    """
    admitted = problem.num_admitted
    slots = [min(c, admitted) for c in problem.slots.tolist()]
    must = [True] * problem.num_requests if admitted == problem.num_requests else problem.must_admit.tolist()
    floors = []
    for h in range(problem.horizon + 1):
        column = [row[h] for row in loads.base]
        work = [row[h] for row in loads.work]
        least = admitted_total(work, problem.must_admit.tolist(), problem.num_admitted, largest=False)
        floor = max(max(column), -(-(sum(column) + least) // len(column)))
        lightest, heaviest = prefix_sums(sorted(work)), prefix_sums(sorted(work, reverse=True))
        forced = (max(0, admitted - sum(slots) + c) for c in slots)
        floor = max(floor, *(load + lightest[c] for load, c in zip(column, forced, strict=True)))
        if any(must):
            largest = max(w for w, forced in zip(work, must, strict=True) if forced)
            floor = max(floor, largest + min(load for load, c in zip(column, slots, strict=True) if c > 0))
        most = [load + heaviest[c] for load, c in zip(column, slots, strict=True)]
        floors.append(_least_level(most, sum(column) + least, floor))
    return floors


def _least_level(most: Sequence[int], total: int, low: int) -> int:
    """Return the least level >= `low` at which loads of at most `most` hold `total`; there is one."""
    high = max(low, *most)
    while low < high:
        middle = (low + high) // 2
        if sum(min(middle, one) for one in most) >= total:
            high = middle
        else:
            low = middle + 1
    return low


def admitted_total(weights: Sequence[int], must_admit: Sequence[bool], count: int, *, largest: bool) -> int:
    """Return the largest (or least) total weight of `count` requests that include all of `must_admit`.

    Parameters
    ----------
    weights
        Weight of each request.
    must_admit
        Whether a request must be among them.
    count
        Requests to admit.
    largest
        Whether the largest total is asked for; else the least.
    """
    forced = [w for w, must in zip(weights, must_admit, strict=True) if must]
    free = sorted((w for w, must in zip(weights, must_admit, strict=True) if not must), reverse=largest)
    return sum(forced) + sum(free[: count - len(forced)])


def prefix_sums(values: Sequence[int]) -> list[int]:
    """Return the sums of the first 0, 1, ... values."""
    return list(accumulate(values, initial=0))
