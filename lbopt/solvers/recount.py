"""The verifier's own arithmetic: plain lists and Python integers, the standard library, nothing else of lbopt.

Written a second time on purpose. Where `objective.py`, `bounds.py` or `brute_force.py` had an error, this would have to
have the same one to hide it. The exhaustive search is another algorithm, too: it places request after request and keeps
the set of distinct states, a state being the sorted list of (free slots, loads) of all workers.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lbopt.model import StepProblem

Loads = tuple[int, ...]
State = tuple[tuple[Loads, ...], int]  # sorted (free slots, load h=0, load h=1, ...) of each worker; requests to admit


@dataclass(frozen=True, slots=True)
class Numbers:
    """A step problem as plain lists."""

    base: list[list[int]]
    slots: list[int]
    work: list[list[int]]
    must: list[bool]

    @classmethod
    def of(cls, problem: StepProblem) -> Numbers:
        """Return the numbers of a step problem."""
        return cls(problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit.tolist())

    @property
    def admitted(self) -> int:
        """U = min(N, free slots)."""
        return min(len(self.work), sum(self.slots))


def digest(p: Numbers) -> str:
    """SHA-256 of the content, as `StepProblem.digest` defines it."""
    width = len(p.base[0])
    sha = hashlib.sha256(f"lbopt-step-problem 1 {(len(p.base), width)} {(len(p.work), width)}".encode())
    for row in (*p.base, p.slots, *p.work):
        sha.update(struct.pack(f"<{len(row)}q", *row))
    sha.update(bytes(p.must))
    return sha.hexdigest()


def loads_with(p: Numbers, workers: list[int]) -> list[list[int]]:
    """Return the loads after placing request i on workers[i] (-1 waits)."""
    loads = [list(row) for row in p.base]
    for i, g in enumerate(workers):
        if g >= 0:
            loads[g] = [a + b for a, b in zip(loads[g], p.work[i], strict=True)]
    return loads


def idle_and_barrier(loads: list[list[int]]) -> tuple[int, int]:
    """Return the imbalance and G * sum_h M_h."""
    barrier = len(loads) * sum(max(column) for column in zip(*loads, strict=True))
    return barrier - sum(map(sum, loads)), barrier


def broken_rule(p: Numbers, workers: list[int]) -> str | None:
    """Name the first rule that the assignment breaks, or None."""
    if len(workers) != len(p.work):
        return f"it has {len(workers)} entries for {len(p.work)} requests"
    used = [0] * len(p.slots)
    for i, g in enumerate(workers):
        if type(g) is not int or not -1 <= g < len(p.slots):
            return f"request {i} is sent to worker {g!r}, which does not exist"
        if g >= 0:
            used[g] += 1
        elif p.must[i]:
            return f"request {i} waits but must be admitted"
    for g, (taken, free) in enumerate(zip(used, p.slots, strict=True)):
        if taken > free:
            return f"worker {g} gets {taken} requests for {free} free slots"
    if sum(used) != p.admitted:
        return f"{sum(used)} requests are admitted instead of {p.admitted}"
    return None


def lower_bound(p: Numbers) -> int:
    """Return the elementary lower bound; the proofs are in `bounds.elementary_bound`."""
    low: list[int] = [min(column) for column in zip(*p.base, strict=True)]
    base = [[a - b for a, b in zip(row, low, strict=True)] for row in p.base]
    unit = math.gcd(*(a for row in base for a in row), *(w for row in p.work for w in row)) or 1
    base = [[a // unit for a in row] for row in base]
    work = [[w // unit for w in row] for row in p.work]
    width, workers, admitted = len(low), len(base), p.admitted
    peaks: list[int] = []
    for h in range(width):
        column, sizes = [row[h] for row in base], [row[h] for row in work]
        mean = -((-sum(column) - _extreme(sizes, p.must, admitted, heaviest=False)) // workers)
        peaks.append(_least_peak(p, column, sizes, max(mean, *column)))

    def best_on(room: list[int]) -> int:
        sizes = [sum(row[h] for h in room) for row in work]
        level = sum(peaks[h] for h in room)
        area = [sum(row[h] for h in room) for row in base]
        together = workers * level - sum(area) - _extreme(sizes, p.must, admitted, heaviest=True)
        heavy = sorted(sizes, reverse=True)
        tops = {c: sum(heavy[:c]) for c in set(p.slots)}
        one_by_one = sum(max(0, level - a - tops[c]) for a, c in zip(area, p.slots, strict=True))
        return max(together, one_by_one)

    best = max(sum(best_on([h]) for h in range(width)), best_on(list(range(width))))
    return unit * best


def _least_peak(p: Numbers, column: list[int], sizes: list[int], peak: int) -> int:
    """Raise a bound on the largest load by what slots enforce; the proofs are in `floors.envelope_floors`."""
    places = [min(c, p.admitted) for c in p.slots]
    peak = _peak_with(p, column, sizes, peak, places)
    if p.admitted < len(sizes):
        return peak
    light = _sums(sorted(sizes))

    def impossible(level: int) -> bool:
        """Whether the slots that this level leaves a use for are too few, or enforce more."""
        used = [min(c, bisect_right(light, level - a) - 1) for a, c in zip(column, places, strict=True)]
        return sum(used) < p.admitted or _peak_with(p, column, sizes, peak, used) > level

    below, step = peak - 1, 1
    while impossible(below + step):
        below += step
        step *= 2
    top = below + step
    while top - below > 1:
        middle = (below + top) // 2
        if impossible(middle):
            below = middle
        else:
            top = middle
    return top


def _peak_with(p: Numbers, column: list[int], sizes: list[int], peak: int, places: list[int]) -> int:
    """Raise a bound on the largest load by what these slots enforce."""
    light = _sums(sorted(sizes))
    everything = light[-1]
    for load, c in zip(column, places, strict=True):
        elsewhere = sum(places) - c
        if p.admitted > elsewhere:  # the others cannot take them all
            peak = max(peak, load + light[p.admitted - elsewhere])
    bound_to_come = [s for s, m in zip(sizes, p.must, strict=True) if m or p.admitted == len(sizes)]
    if bound_to_come:
        peak = max(peak, max(bound_to_come) + min(a for a, c in zip(column, places, strict=True) if c))
        peak = max(peak, _counted_peak(column, places, bound_to_come))
    # each worker fills up to its ceiling; raise the water level until all fits
    ceilings = sorted(a + everything - light[len(sizes) - c] for a, c in zip(column, places, strict=True))
    missing = sum(column) + _extreme(sizes, p.must, p.admitted, heaviest=False)
    for done, ceiling in enumerate(ceilings):
        share = -(-missing // (len(ceilings) - done))
        if share <= ceiling:
            return max(peak, share)
        missing -= ceiling
    return peak


def _counted_peak(column: list[int], places: list[int], sizes: list[int]) -> int:
    """Count the largest requests among the workers; the proof is in `floors.counting_floor`."""
    heaviest_first = sorted(sizes, reverse=True)
    sums = _sums(heaviest_first)
    changes = {1, *places, *(c + 1 for c in places)}  # where other workers can hold so many
    peak = each = below = 0  # with one less than `each` at most, workers hold `below` at most
    holders: list[int] = []
    for n in range(1, len(sizes) + 1):
        while n > below + len(holders):
            below += len(holders)
            each += 1
            if each in changes:
                holders = sorted(a for a, c in zip(column, places, strict=True) if c >= each)
                light = _sums(holders)
                wider = min((a for a, c in zip(column, places, strict=True) if c > each), default=None)
        k = n - below
        found = -(-(sums[n] - sums[n - k * each] + light[k]) // k)
        if wider is not None and n > each:
            found = min(found, sums[n] - sums[n - each - 1] + wider)
        peak = max(peak, found)
    return peak


def _sums(values: list[int]) -> list[int]:
    sums = [0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _extreme(sizes: list[int], must: list[bool], count: int, *, heaviest: bool) -> int:
    free = sorted((s for s, m in zip(sizes, must, strict=True) if not m), reverse=heaviest)
    return sum(s for s, m in zip(sizes, must, strict=True) if m) + sum(free[: count - sum(must)])


def exhaust(p: Numbers, limit: int) -> tuple[int, list[int]] | None:
    """Return the true optimum and the leximax sorted loads among optima; None beyond `limit` steps of work."""
    width = len(p.base[0])
    start = tuple(sorted((c, *row) for c, row in zip(p.slots, p.base, strict=True)))
    states: set[State] = {(start, p.admitted)}
    steps = 0
    order = sorted(range(len(p.work)), key=lambda i: (not p.must[i], p.work[i]))
    for done, i in enumerate(order, start=1):
        following: set[State] = set()
        for workers, missing in states:
            if not p.must[i] and missing <= len(order) - done:
                following.add((workers, missing))
            if missing == 0:
                continue
            for place, (free, *loads) in enumerate(workers):
                if free == 0 or (place and workers[place - 1] == workers[place]):
                    continue
                heavier = (free - 1, *(loads[h] + p.work[i][h] for h in range(width)))
                following.add((tuple(sorted((*workers[:place], heavier, *workers[place + 1 :]))), missing - 1))
                steps += max(1, len(workers) // 4)  # a state of many workers takes longer to copy and sort
            if steps > limit:
                return None
        states = following
    ends = ([list(one[1:]) for one in workers] for workers, missing in states if missing == 0)
    value, shape = min(
        (idle_and_barrier(loads)[0], sorted((a for row in loads for a in row), reverse=True)) for loads in ends
    )
    return value, shape
