"""The integer program of a step problem, once for all solvers, as plain arrays of exact Python integers.

Requests with equal work row and equal `must_admit` flag are interchangeable and form a class k of n_k members; only
workers with free slots get variables. With y[k,g] = members of class k sent to g and M_h = maximum load at h,

    min   sum_h G M_h - sum_{k,g} (sum_h w_k(h)) y[k,g]  + offset
    s.t.  sum_g y[k,g] <= n_k           (= n_k where every member has to be admitted)
          sum_k y[k,g] <= slots_g       (= slots_g where all slots get filled)
          sum_{k,g} y[k,g] = U
          M_h - sum_k w_k(h) y[k,g] >= base[g,h]
          load at h = 0 of worker g >= that of g'   for neighbours g, g' with equal base row and equal slots.

The last rows break the symmetry of equal workers. Base loads are shifted by the least one of their column, which
changes nothing in G max - sum, and everything is divided by the greatest common divisor of what remains; the
objective in tokens is `scale * (offset + cost . x)`.

Source: BF-IO (arXiv 2601.17855), section 4, program (IO); the class counts and the symmetry rows are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lbopt.exceptions import InputError
from lbopt.model.assignment import WAITS
from lbopt.model.floors import Floors, prefix_sums
from lbopt.model.linear_program import LinearProgram, Row
from lbopt.model.reduced_loads import ReducedLoads, reduce_loads
from lbopt.model.step_problem import StepProblem


@dataclass(frozen=True, slots=True)
class RequestClass:
    """Requests that nothing tells apart: equal work row (in reduced units) and equal `must_admit` flag."""

    members: tuple[int, ...]
    work: tuple[int, ...]
    must_admit: bool


@dataclass(frozen=True, slots=True)
class Program(LinearProgram):
    """The program of a plain problem; columns are y[k,g], then M_h.

    `num_core` counts the columns of the program proper; further ones come from `extended`, and `tokens` reads values
    of the core alone.
    """

    classes: tuple[RequestClass, ...]
    open_workers: tuple[int, ...]
    loads: ReducedLoads
    num_core: int

    def column(self, k: int, position: int) -> int:
        """Return the column of y[k, open_workers[position]]."""
        return k * len(self.open_workers) + position

    def extended(
        self,
        names: Sequence[str],
        lower: Sequence[int],
        upper: Sequence[int],
        cost: dict[int, int],
        rows: Sequence[Row],
    ) -> Program:
        """Return the program with more columns and rows and with `cost` (column to coefficient) as its objective.

        Parameters
        ----------
        names
            Names of the new columns.
        lower, upper
            Bounds of the new columns.
        cost
            Coefficients of the new objective, by column.
        rows
            New rows.
        """
        width = len(self.names) + len(names)
        return replace(
            self,
            names=self.names + tuple(names),
            lower=self.lower + tuple(lower),
            upper=self.upper + tuple(upper),
            cost=tuple(cost.get(column, 0) for column in range(width)),
            rows=self.rows + tuple(rows),
        )

    def encode(self, assignment: Sequence[int]) -> list[int]:
        """Return the values of the core columns for a feasible assignment, equal workers relabelled to fit the rows."""
        position_of = {g: position for position, g in enumerate(self.open_workers)}
        counts = [[0] * len(self.classes) for _ in self.open_workers]
        for k, group in enumerate(self.classes):
            for i in group.members:
                if assignment[i] != WAITS:
                    counts[position_of[int(assignment[i])]][k] += 1
        for twins in _equal_workers(self.loads.base, self.problem.slots.tolist(), self.open_workers):
            ordered = sorted((counts[position] for position in twins), key=lambda c: -self._load(c, 0))
            for position, column in zip(twins, ordered, strict=True):
                counts[position] = column
        values = [counts[position][k] for k in range(len(self.classes)) for position in range(len(counts))]
        for h in range(self.problem.horizon + 1):
            peak = max(row[h] for row in self.loads.base)
            for position, g in enumerate(self.open_workers):
                peak = max(peak, self.loads.base[g][h] + self._load(counts[position], h))
            values.append(peak)
        return values

    def decode(self, values: Sequence[int]) -> list[int]:
        """Return the canonical assignment: within a class the lowest request goes to the lowest worker first.

        Raises
        ------
        InputError
            Where a count is negative or a class gives away more members than it has.
        """
        assignment = [WAITS] * self.problem.num_requests
        for k, group in enumerate(self.classes):
            waiting = iter(group.members)
            for position, g in enumerate(self.open_workers):
                count = values[self.column(k, position)]
                taken = [i for _, i in zip(range(count), waiting, strict=False)]
                if len(taken) != count:
                    raise InputError(
                        f"{self.names[self.column(k, position)]} is {count}; class {k} has no such number left"
                    )
                for i in taken:
                    assignment[i] = g
        return assignment

    def _load(self, counts: Sequence[int], h: int) -> int:
        return sum(count * group.work[h] for count, group in zip(counts, self.classes, strict=True))


def formulate(problem: StepProblem) -> Program:
    """Return the integer program of `problem`; it needs at least one request to admit."""
    problem.refuse_conditions("the plain program")
    if problem.num_admitted == 0:
        raise InputError("there is nothing to decide: no request waits or no slot is free, so there is no program")
    loads = reduce_loads(problem)
    classes = request_classes(problem, loads)
    slots = problem.slots.tolist()
    open_workers = tuple(g for g in range(problem.num_workers) if slots[g] > 0)
    G, K, width = problem.num_workers, len(classes), problem.horizon + 1
    all_admitted = problem.num_admitted == problem.num_requests
    all_filled = problem.num_admitted == problem.num_free_slots

    def y(k: int, position: int) -> int:
        return k * len(open_workers) + position

    first_peak = K * len(open_workers)
    names = [f"y_k{k}_g{g}" for k in range(K) for g in open_workers] + [f"M_h{h}" for h in range(width)]
    floors = [(peak - s) // loads.scale for peak, s in zip(Floors(problem).peaks(), loads.shift, strict=True)]
    heaviest = [prefix_sums(sorted((row[h] for row in loads.work), reverse=True)) for h in range(width)]
    ceilings = [
        max(row[h] + heaviest[h][min(c, problem.num_requests)] for row, c in zip(loads.base, slots, strict=True))
        for h in range(width)
    ]
    upper = [min(len(group.members), slots[g]) for group in classes for g in open_workers] + ceilings
    # Where everyone is admitted the total work is a constant, which belongs into the offset: smaller coefficients.
    gain = [0 if all_admitted else sum(group.work) for group in classes]
    cost = [-gain[k] for k in range(K) for _ in open_workers] + [G] * width
    offset = -sum(map(sum, loads.base)) - (sum(map(sum, loads.work)) if all_admitted else 0)

    rows = []
    for k, group in enumerate(classes):
        columns = tuple(y(k, p) for p in range(len(open_workers)))
        count = len(group.members)
        least = count if all_admitted or group.must_admit else None
        rows.append(Row(f"class_k{k}", columns, (1,) * len(columns), least, count))
    for p, g in enumerate(open_workers):
        columns = tuple(y(k, p) for k in range(K))
        rows.append(Row(f"slots_g{g}", columns, (1,) * K, slots[g] if all_filled else None, slots[g]))
    every = tuple(range(first_peak))
    rows.append(Row("admitted", every, (1,) * len(every), problem.num_admitted, problem.num_admitted))
    for h in range(width):
        for p, g in enumerate(open_workers):
            if loads.base[g][h] + heaviest[h][min(slots[g], problem.num_requests)] <= floors[h]:
                continue  # this worker can never set the pace at h
            terms = [(y(k, p), -group.work[h]) for k, group in enumerate(classes) if group.work[h]]
            columns = (first_peak + h, *(column for column, _ in terms))
            rows.append(Row(f"peak_h{h}_g{g}", columns, (1, *(c for _, c in terms)), loads.base[g][h], None))
    for twins in _equal_workers(loads.base, slots, open_workers):
        for p, q in pairwise(twins):
            busy = [(k, group.work[0]) for k, group in enumerate(classes) if group.work[0]]
            columns = tuple(y(k, p) for k, _ in busy) + tuple(y(k, q) for k, _ in busy)
            signs = tuple(w for _, w in busy) + tuple(-w for _, w in busy)
            if columns:
                rows.append(Row(f"order_g{open_workers[p]}_g{open_workers[q]}", columns, signs, 0, None))
    return Program(
        problem=problem,
        classes=classes,
        open_workers=open_workers,
        names=tuple(names),
        lower=(0,) * first_peak + tuple(floors),
        upper=tuple(upper),
        cost=tuple(cost),
        rows=tuple(rows),
        offset=offset,
        scale=loads.scale,
        total=G * sum(ceilings),
        loads=loads,
        num_core=len(names),
    )


def request_classes(problem: StepProblem, loads: ReducedLoads) -> tuple[RequestClass, ...]:
    """Return the requests by work and whether they must be admitted, the heaviest class first."""
    members: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for i, (row, must) in enumerate(zip(loads.work, problem.must_admit.tolist(), strict=True)):
        members.setdefault((row, must), []).append(i)
    # Heaviest first: the order in which both people and searches like to decide.
    ordered = sorted(members.items(), key=lambda item: (-sum(item[0][0]), item[1]))
    return tuple(RequestClass(tuple(group), row, must) for (row, must), group in ordered)


def _equal_workers(base: Sequence[Sequence[int]], slots: Sequence[int], open_workers: Sequence[int]) -> list[list[int]]:
    """Return the positions (in `open_workers`) of workers that nothing tells apart, groups of two and more."""
    groups: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for position, g in enumerate(open_workers):
        groups.setdefault((tuple(base[g]), slots[g]), []).append(position)
    return [twins for twins in groups.values() if len(twins) > 1]
