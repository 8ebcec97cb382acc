"""What every feasible decision under conditions costs at least, by elementary reasoning in exact integers.

Each statement has its one-line proof. `lbopt/solvers/recount.py` has them a second time, for
`verify`, and some of those of `floors` besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lbopt.model.paced_numbers import PacedNumbers


def most_admitted(numbers: PacedNumbers) -> int:
    """Return how many requests can be admitted at most.

    No more than have a worker that may take them, and on worker g no more than its slots, nor than those of its
    requests whose needs, taken from the least on, its resources hold.
    """
    placeable = sum(len(kind.members) for kind in numbers.kinds if kind.work)
    return min(placeable, sum(most_on(numbers, g) for g in range(len(numbers.slots))))


def most_on(numbers: PacedNumbers, g: int) -> int:
    """Return how many requests worker g can take at most."""
    takes = [kind for kind in numbers.kinds if g in kind.work]
    most = min(numbers.slots[g], sum(len(kind.members) for kind in takes))
    for place, limit in enumerate(numbers.limits):
        room, count = limit[g], 0
        for need, members in sorted((kind.needs[place], len(kind.members)) for kind in takes):
            fits = members if need == 0 else min(members, room // need)
            count, room = count + fits, room - fits * need
        most = min(most, count)
    return most


def least_overdue(numbers: PacedNumbers, most: int) -> int:
    """Return the least total cost of waiting where at most `most` requests are admitted."""
    lost = sum(kind.waiting_cost * len(kind.members) for kind in numbers.kinds if not kind.work)
    free = [(kind.waiting_cost, len(kind.members)) for kind in numbers.kinds if kind.work and not kind.must_admit]
    placeable = sum(len(kind.members) for kind in numbers.kinds if kind.work)
    return lost + _sum_of_first(sorted(free), max(0, placeable - most))


def least_objective(numbers: PacedNumbers, least: int, most: int) -> int:
    """Return a lower bound on the objective of decisions that admit from `least` to `most` requests.

    Let m_h be a lower bound on the largest load at h: the largest load before, with all paused that may pause; what
    a request that must be admitted leads to on its best worker; and the mean load with the least work that has to be
    admitted, rounded up. With loads before in which nothing is paused, and any set of columns taken together,

    * together: Z >= G sum m_h - sum of loads before - (the most work that `most` requests bring);
    * worker by worker: Z >= sum_g max(0, sum_h (m_h - load of g before) - (the most work that its slots take)).

    The sets are each single column, whose bounds add up, and the whole window. What must wait adds its cost.

    Parameters
    ----------
    numbers
        The problem.
    least, most
        Least and most requests that are admitted.
    """
    conditions = numbers.problem.conditions
    assert conditions is not None, "a plain problem has other bounds"
    levels = [largest_load(numbers, h, least) for h in numbers.columns]

    def idle(part: Sequence[int]) -> int:
        level = sum(levels[h] for h in part)
        before = [sum(row[h] for h in part) for row in numbers.base]
        together = len(before) * level - sum(before) - _heaviest(numbers, most, lambda kind: kind.most(part))
        one_by_one = 0
        for g, load in enumerate(before):
            if load < level:
                on_g = [(sum(k.work[g][h] for h in part), len(k.members)) for k in numbers.kinds if g in k.work]
                brought = _sum_of_first(sorted(on_g, reverse=True), min(numbers.slots[g], most))
                one_by_one += max(0, level - load - brought)
        return max(together, one_by_one)

    apart = sum(idle([h]) for h in numbers.columns)
    imbalance = apart if len(levels) == 1 else max(apart, idle(numbers.columns))
    return imbalance + (0 if conditions.overdue_first else least_overdue(numbers, most))


def largest_load(numbers: PacedNumbers, h: int, least: int) -> int:
    """Return a lower bound on the largest load at h where at least `least` requests are admitted, in units of pace."""
    column = [row[h] for row in numbers.lightest]
    level, total, missing = max(column), sum(column), least
    free = []
    for kind in numbers.kinds:
        if not kind.work:
            continue
        lightest, count = kind.least([h]), len(kind.members)
        if kind.must_admit:
            level = max(level, min(column[g] + row[h] for g, row in kind.work.items()))
            total, missing = total + count * lightest, missing - count
        else:
            free.append((lightest, count))
    total += _sum_of_first(sorted(free), max(0, missing))
    return max(level, -(-total // len(column)))


def _heaviest(numbers: PacedNumbers, most: int, weight: Callable[..., int]) -> int:
    weights = [(weight(kind), len(kind.members)) for kind in numbers.kinds if kind.work]
    return _sum_of_first(sorted(weights, reverse=True), most)


def _sum_of_first(values: Iterable[tuple[int, int]], count: int) -> int:
    """Return the sum of the first `count` of values that come with how often they are there; of all if fewer."""
    total = 0
    for value, times in values:
        taken = min(times, count)
        total, count = total + taken * value, count - taken
    return total
