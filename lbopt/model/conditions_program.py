"""The integer program of a problem under conditions, once for all solvers.

With y[k,g] = members of kind k placed on worker g (columns for workers that may take one), z[r] = whether running
request r pauses, and M_h = largest load at h,

    min   sum_h G M_h - sum_{k,g} (sum_h w_k(g,h)) y[k,g] + sum_r (v_r + pause_cost_r) z[r]
          + sum_k waiting_cost_k (n_k - sum_g y[k,g]) + offset
    s.t.  sum_g y[k,g] <= n_k                     (= n_k where every member has to be admitted)
          sum_k y[k,g] <= slots_g
          sum_k need_k y[k,g] <= limit_g          for each resource
          sum_{k,g} y[k,g] = admit                where that is a number
          M_h - sum_k w_k(g,h) y[k,g] + (v_r z[r] of g's running requests, at h = 0) >= base[g,h].

Loads, works w and v are in units of pace, less credits; they are shifted and divided as those of the plain program are.
Goals that come before the objective have a cost of their own: a solver minimises one after the other and holds what it
reached by a row. Workers that are alike are not put in order here, as conditions tell most of them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model.assignment import WAITS
from lbopt.model.floors import Floors
from lbopt.model.linear_program import LinearProgram, Row
from lbopt.model.paced_numbers import PacedNumbers, RequestKind


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal before the objective: its value is `offset` plus ``cost . x``, where columns without an entry cost 0."""

    name: str
    cost: dict[int, int]
    offset: int


@dataclass(frozen=True, slots=True)
class ConditionsProgram(LinearProgram):
    """The program of a problem under conditions; columns are y[k,g], then z[r], then M_h.

    `cells` names kind and worker of each y. `shift` is taken from each column of loads.
    """

    numbers: PacedNumbers
    cells: tuple[tuple[int, int], ...]
    goals: tuple[Goal, ...]
    shift: tuple[int, ...]

    def for_goal(self, place: int, held: Sequence[int]) -> LinearProgram:
        """Return the program of one goal, or of the objective after the last, with the goals before it held.

        Parameters
        ----------
        place
            Which goal.
        held
            Values of the goals before it, which are not to be exceeded.
        """
        rows = [
            Row(f"hold_{goal.name}", tuple(goal.cost), tuple(goal.cost.values()), None, value - goal.offset)
            for goal, value in zip(self.goals[:place], held, strict=True)
            if goal.cost
        ]
        program = replace(self, rows=self.rows + tuple(rows))
        if place == len(self.goals):
            return program
        goal = self.goals[place]
        cost = tuple(goal.cost.get(column, 0) for column in range(len(self.names)))
        return replace(program, cost=cost, offset=goal.offset, scale=1)

    def weighted(self) -> tuple[LinearProgram, dict[str, int]]:
        """Return the program in which goals weigh so much that they come first, and their weights in reduced units."""
        weights: dict[str, int] = {}
        cost, offset, weight = list(self.cost), self.offset, self.total + 1
        for goal in reversed(self.goals):
            weights[goal.name] = weight
            offset += weight * goal.offset
            for column, c in goal.cost.items():
                cost[column] += weight * c
            weight *= goal.offset + 1
        return replace(self, cost=tuple(cost), offset=offset), weights

    def encode(self, workers: Sequence[int], pauses: Sequence[bool]) -> list[int]:
        """Return the values of all columns for a feasible decision."""
        numbers = self.numbers
        column_of = {cell: column for column, cell in enumerate(self.cells)}
        values = [0] * len(self.names)
        loads = [list(row) for row in numbers.base]
        for k, kind in enumerate(numbers.kinds):
            for i in kind.members:
                g = workers[i]
                if g != WAITS:
                    values[column_of[k, g]] += 1
                    loads[g] = [a + b for a, b in zip(loads[g], kind.work[g], strict=True)]
        for r, (one, paused) in enumerate(zip(numbers.running, pauses, strict=True)):
            values[len(self.cells) + r] = int(paused)
            loads[one.worker][0] -= one.work * paused
        for h in numbers.columns:
            peak = (max(row[h] for row in loads) - self.shift[h]) // self.scale
            values[len(self.names) - len(numbers.columns) + h] = peak
        return values

    def decode(self, values: Sequence[int]) -> tuple[list[int], list[bool]]:
        """Return worker of each request and who pauses; in a kind the lowest request goes to the lowest worker first.

        Raises
        ------
        InputError
            Where a count is negative or a kind gives away more members than it has.
        """
        workers = [WAITS] * self.problem.num_requests
        left = [list(kind.members) for kind in self.numbers.kinds]
        for (k, g), count in zip(self.cells, values, strict=False):
            if not 0 <= count <= len(left[k]):
                raise InputError(f"y_k{k}_g{g} is {count}; kind {k} has no such number left")
            for i in left[k][:count]:
                workers[i] = g
            del left[k][:count]
        first = len(self.cells)
        return workers, [values[first + r] == 1 for r in range(len(self.numbers.running))]


def formulate_conditions(numbers: PacedNumbers) -> ConditionsProgram:
    """Return the integer program of a problem under conditions.

    Raises
    ------
    InfeasibleDecisionError
        Where requests that must be admitted have no worker that may take them, so that a row would have no column.
    """
    problem, conditions = numbers.problem, numbers.problem.conditions
    assert conditions is not None, "a plain problem has another program"
    G, kinds = problem.num_workers, numbers.kinds
    for kind in kinds:
        if kind.must_admit and not kind.work:
            raise InfeasibleDecisionError(
                f"request {kind.members[0]} must be admitted, and no worker that may take it has room"
            )
    cells = [(k, g) for k, kind in enumerate(kinds) for g in kind.work]
    if conditions.exactly and not cells:
        raise InfeasibleDecisionError(
            f"exactly {conditions.exactly} requests must be admitted, and no worker may take any of them"
        )
    shift, scale = _reduction(numbers, with_waiting=not conditions.overdue_first)
    base = [[(a - s) // scale for a, s in zip(row, shift, strict=True)] for row in numbers.base]
    work = [{g: [w // scale for w in row] for g, row in kind.work.items()} for kind in kinds]
    peaks = Floors(problem).peaks()
    floors = [-(-(peak - s) // scale) for peak, s in zip(peaks, shift, strict=True)]
    ceilings = [[_ceiling(numbers, g, base[g][h], h, scale) for h in numbers.columns] for g in range(G)]
    highest = [max(floor, *column) for floor, column in zip(floors, zip(*ceilings, strict=True), strict=True)]
    first_pause, first_peak = len(cells), len(cells) + len(numbers.running)

    waiting = [0 if conditions.overdue_first else kind.waiting_cost // scale for kind in kinds]
    cost = [-sum(work[k][g]) - waiting[k] for k, g in cells]
    cost += [(one.work + one.cost) // scale for one in numbers.running] + [G] * len(floors)
    owed = sum(price * len(kind.members) for price, kind in zip(waiting, kinds, strict=True))
    rows = _placing_rows(numbers, cells)
    for g in range(G):
        mine = [(column, k) for column, (k, worker) in enumerate(cells) if worker == g]
        pausing = [(first_pause + r, one.work // scale) for r, one in enumerate(numbers.running) if one.worker == g]
        for h in numbers.columns:
            if ceilings[g][h] <= floors[h]:
                continue  # this worker can never set the pace at h
            terms = [(column, -work[k][g][h]) for column, k in mine] + (pausing if h == 0 else [])
            busy = [(first_peak + h, 1), *((column, c) for column, c in terms if c)]
            rows.append(Row(f"peak_h{h}_g{g}", *_columns(busy), base[g][h], None))
    names = [f"y_k{k}_g{g}" for k, g in cells] + [f"z_r{r}" for r in range(len(numbers.running))]
    upper = [min(len(kinds[k].members), numbers.slots[g]) for k, g in cells] + [1] * len(numbers.running)
    goals = _goals(numbers, cells, conditions.goals)
    of_rows = [sum(map(abs, row.coefficients)) for row in rows if row.name.startswith("holds")]
    pauses = sum(one.cost // scale for one in numbers.running)
    return ConditionsProgram(
        problem=problem,
        names=(*names, *(f"M_h{h}" for h in numbers.columns)),
        lower=(0,) * first_peak + tuple(floors),
        upper=(*upper, *highest),
        cost=tuple(cost),
        rows=tuple(rows),
        offset=owed - sum(map(sum, base)),
        scale=scale,
        total=max(G * sum(highest) + owed + pauses, *of_rows, *(goal.offset for goal in goals), 0),
        numbers=numbers,
        cells=tuple(cells),
        goals=goals,
        shift=shift,
    )


def _placing_rows(numbers: PacedNumbers, cells: list[tuple[int, int]]) -> list[Row]:
    """Return the rows on counts alone: kinds, slots, resources, and how many are admitted."""
    problem, conditions, kinds = numbers.problem, numbers.problem.conditions, numbers.kinds
    assert conditions is not None, "the caller has asked"
    rows = []
    for k, kind in enumerate(kinds):
        columns = [(column, 1) for column, (other, _) in enumerate(cells) if other == k]
        if columns:
            count = len(kind.members)
            rows.append(Row(f"kind_k{k}", *_columns(columns), count if kind.must_admit else None, count))
    for g in range(problem.num_workers):
        mine = [(column, kinds[k]) for column, (k, worker) in enumerate(cells) if worker == g]
        if mine:
            rows.append(Row(f"slots_g{g}", *_columns([(c, 1) for c, _ in mine]), None, numbers.slots[g]))
        for place, limit in enumerate(numbers.limits):
            taken = [(column, kind.needs[place]) for column, kind in mine if kind.needs[place]]
            if sum(kind.needs[place] * len(kind.members) for _, kind in mine) > limit[g]:
                unit = gcd(*(need for _, need in taken))
                columns = [(column, need // unit) for column, need in taken]
                rows.append(Row(f"holds_{place}_g{g}", *_columns(columns), None, limit[g] // unit))
    if conditions.exactly is not None and cells:
        every = [(column, 1) for column in range(len(cells))]
        rows.append(Row("admitted", *_columns(every), conditions.exactly, conditions.exactly))
    return rows


def _columns(terms: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(column for column, _ in terms), tuple(c for _, c in terms)


def _goals(numbers: PacedNumbers, cells: list[tuple[int, int]], names: Sequence[str]) -> tuple[Goal, ...]:
    def price(kind: RequestKind, name: str) -> int:
        return 1 if name == "left_waiting" else kind.waiting_cost

    goals = []
    for name in names:
        cost = {column: -price(numbers.kinds[k], name) for column, (k, _) in enumerate(cells)}
        offset = sum(price(kind, name) * len(kind.members) for kind in numbers.kinds)
        goals.append(Goal(name, {column: c for column, c in cost.items() if c}, offset))
    return tuple(goals)


def _reduction(numbers: PacedNumbers, *, with_waiting: bool) -> tuple[tuple[int, ...], int]:
    """Return what all loads of a column share, and the common divisor of what remains and of all costs."""
    shift = tuple(map(min, zip(*numbers.lightest, strict=True)))
    scale = 0
    for row in numbers.lightest:
        scale = gcd(scale, *(a - s for a, s in zip(row, shift, strict=True)))
    for one in numbers.running:
        scale = gcd(scale, one.work, one.cost)
    for kind in numbers.kinds:
        scale = gcd(scale, kind.waiting_cost if with_waiting else 0, *(w for row in kind.work.values() for w in row))
    return shift, scale or 1


def _ceiling(numbers: PacedNumbers, g: int, base: int, h: int, scale: int) -> int:
    """Return the largest load that worker g can have at h, reduced."""
    heaviest = sorted(
        ((kind.work[g][h] // scale, len(kind.members)) for kind in numbers.kinds if g in kind.work), reverse=True
    )
    room = numbers.slots[g]
    for tokens, count in heaviest:
        taken = min(count, room)
        base, room = base + taken * tokens, room - taken
    return base
