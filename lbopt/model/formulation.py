"""The integer program of a step problem, once for all solvers, as plain arrays of exact Python integers.

Requests that nothing tells apart form a kind k of n_k members. With y[k,g] = members of kind k placed on worker g
(columns for workers that may take one), z[r] = whether running request r pauses, and M_h = largest load at h,

    min   sum_h G M_h - sum_{k,g} (sum_h w_k(g,h)) y[k,g] + sum_r (v_r + pause_cost_r) z[r]
          + sum_k waiting_cost_k (n_k - sum_g y[k,g]) + offset
    s.t.  sum_g y[k,g] <= n_k                     (= n_k where every member has to be admitted)
          sum_k y[k,g] <= slots_g                 (= slots_g where all slots get filled)
          sum_k need_k y[k,g] <= limit_g          for each resource
          sum_{k,g} y[k,g] = U                    where so many have to be admitted: always without conditions
          M_h - sum_k w_k(g,h) y[k,g] + (v_r z[r] of g's running requests, at h = 0) >= base[g,h]
          load at h = 0 of worker g >= that of g' for neighbours g, g' with equal base row and equal slots.

The last rows break the symmetry of equal workers; conditions tell most workers apart, so that they are left out there.
Loads and works are in tokens, or in units of pace and less credits. Base loads are shifted by the least one of their
column, which changes nothing in G max - sum, and everything is divided by the greatest common divisor of what remains;
the objective in tokens is `scale * (offset + cost . x)`. Goals that come before the objective have a cost of their own:
a solver minimises one after the other and holds what it reached by a row.

Source: BF-IO (arXiv 2601.17855), section 4, program (IO); kinds, conditions and the symmetry rows are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model.floors import Floors
from lbopt.model.objective import WAITS
from lbopt.model.paced_numbers import PacedNumbers, RequestKind, paced_numbers
from lbopt.model.step_problem import StepProblem


@dataclass(frozen=True, slots=True)
class Row:
    """One linear row, lower <= sum of coefficient * variable <= upper; None means no limit."""

    name: str
    columns: tuple[int, ...]
    coefficients: tuple[int, ...]
    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """Minimise ``cost . x`` over integers x within `lower`, `upper` and `rows`.

    The objective in tokens is `scale * (offset + cost . x)`. `total` is the largest value that G * sum_h M_h can take
    in reduced units, or a row where that is larger: the scale that decides which solvers can be trusted.
    """

    names: tuple[str, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    cost: tuple[int, ...]
    rows: tuple[Row, ...]
    offset: int
    scale: int
    total: int

    def tokens(self, value: int) -> int:
        """Turn a value of ``cost . x`` into the objective in tokens."""
        return self.scale * (self.offset + value)


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal before the objective: its value is `offset` plus ``cost . x``, where columns without an entry cost 0."""

    name: str
    cost: dict[int, int]
    offset: int


@dataclass(frozen=True, slots=True)
class Program(LinearProgram):
    """The program of a step problem; columns are y[k,g], then z[r], then M_h.

    `cells` is the column of each y, by kind and worker. `shift` is taken from each column of loads; `twins` are open
    workers that nothing tells apart.
    """

    problem: StepProblem
    numbers: PacedNumbers
    cells: dict[tuple[int, int], int]
    goals: tuple[Goal, ...]
    shift: tuple[int, ...]
    twins: tuple[tuple[int, ...], ...]

    def for_goal(self, place: int, held: Sequence[int]) -> LinearProgram:
        """Return the program of one goal, or of the objective after the last, with the goals before it held.

        Parameters
        ----------
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

    def encode(self, workers: Sequence[int], pauses: Sequence[bool] = ()) -> list[int]:
        """Return the values of the core columns for a feasible decision, equal workers relabelled to fit the rows."""
        numbers = self.numbers
        counts = [[0] * len(numbers.kinds) for _ in numbers.slots]
        for k, kind in enumerate(numbers.kinds):
            for i in kind.members:
                if workers[i] != WAITS:
                    counts[workers[i]][k] += 1
        for twins in self.twins:
            first = [kind.work[twins[0]][0] for kind in numbers.kinds]
            ordered = sorted((counts[g] for g in twins), key=lambda own: -sum(map(int.__mul__, own, first)))
            for g, own in zip(twins, ordered, strict=True):
                counts[g] = own
        loads = [list(row) for row in numbers.base]
        for k, g in self.cells:
            if counts[g][k]:
                loads[g] = [a + counts[g][k] * w for a, w in zip(loads[g], numbers.kinds[k].work[g], strict=True)]
        for one, paused in zip(numbers.running, pauses, strict=True):
            loads[one.worker][0] -= one.work * paused
        peaks = [(max(row[h] for row in loads) - self.shift[h]) // self.scale for h in numbers.columns]
        return [*(counts[g][k] for k, g in self.cells), *map(int, pauses), *peaks]

    def decode(self, values: Sequence[int]) -> list[int]:
        """Return the canonical assignment: within a kind the lowest request goes to the lowest worker first.

        Raises
        ------
        InputError
            Where a count is negative or a kind gives away more members than it has.
        """
        workers = [WAITS] * self.problem.num_requests
        left = [list(kind.members) for kind in self.numbers.kinds]
        for ((k, g), column), count in zip(self.cells.items(), values, strict=False):
            if not 0 <= count <= len(left[k]):
                raise InputError(f"{self.names[column]} is {count}; kind {k} has no such number left")
            for i in left[k][:count]:
                workers[i] = g
            del left[k][:count]
        return workers

    def paused(self, values: Sequence[int]) -> list[bool]:
        """Return which of the running requests that may pause do."""
        first = len(self.cells)
        return [value == 1 for value in values[first : first + len(self.numbers.running)]]


def formulate(problem: StepProblem, numbers: PacedNumbers | None = None) -> Program:
    """Return the integer program of a problem, whose numbers may be there already.

    Raises
    ------
    InputError
        Where a plain problem has nothing to decide.
    InfeasibleDecisionError
        Where requests that must be admitted have no worker that may take them, so that a row would have no column.
    """
    if problem.conditions is None and problem.num_admitted == 0:
        raise InputError("there is nothing to decide: no request waits or no slot is free, so there is no program")
    numbers = numbers or paced_numbers(problem)
    return _Writer(numbers).program()


class _Writer:
    """Writes a program down, in reduced units."""

    def __init__(self, numbers: PacedNumbers) -> None:
        self.numbers, self.kinds, problem = numbers, numbers.kinds, numbers.problem
        pairs = [(k, g) for k, kind in enumerate(numbers.kinds) for g in kind.work]
        self.cells = {cell: column for column, cell in enumerate(pairs)}
        self._refuse_empty_rows()
        self.on: dict[int, list[tuple[int, int]]] = {}  # worker -> (column, kind)
        for (k, g), column in self.cells.items():
            self.on.setdefault(g, []).append((column, k))
        self.goals_waiting = "overdue" not in numbers.goals
        self.shift, self.scale = _reduction(numbers, with_waiting=self.goals_waiting)
        self.all_go = numbers.exactly == problem.num_requests
        self.base = [self._reduced(row) for row in numbers.base]
        rows = {row: [w // self.scale for w in row] for kind in self.kinds for row in set(kind.work.values())}
        self.work = [{g: rows[row] for g, row in kind.work.items()} for kind in self.kinds]
        floors = Floors(problem)
        self.floors = [-(-(peak - s) // self.scale) for peak, s in zip(floors.peaks(), self.shift, strict=True)]
        self.ceilings = [self._reduced(row) for row in floors.ceilings().tolist()]
        self.first_peak = len(self.cells) + len(numbers.running)
        alike: dict[tuple[object, ...], list[int]] = {}
        for g in self.on if problem.conditions is None else ():
            alike.setdefault((numbers.base[g], numbers.slots[g]), []).append(g)
        self.twins = tuple(tuple(group) for group in alike.values() if len(group) > 1)

    def program(self) -> Program:
        """Return it."""
        numbers, kinds, scale, cells = self.numbers, self.kinds, self.scale, self.cells
        G = numbers.problem.num_workers
        highest = [max(pair) for pair in zip(self.floors, map(max, zip(*self.ceilings, strict=True)), strict=True)]
        waiting = [kind.waiting_cost // scale if self.goals_waiting else 0 for kind in kinds]
        # Where all are admitted their total work is a constant, which belongs into the offset: smaller coefficients.
        constant = self.all_go and numbers.problem.conditions is None
        cost = [0 if constant else -sum(self.work[k][g]) - waiting[k] for k, g in cells]
        cost += [(one.work + one.cost) // scale for one in numbers.running] + [G] * len(highest)
        owed = sum(price * len(kind.members) for price, kind in zip(waiting, kinds, strict=True))
        moved = sum(w * len(kind.members) for kind in kinds for w in next(iter(kind.work.values()))) if constant else 0
        rows = [*self._placing_rows(), *self._peak_rows(), *self._order_rows()]
        goals = _goals(numbers, cells)
        of_rows = [sum(map(abs, row.coefficients)) for row in rows if row.name.startswith("holds")]
        pauses = sum(one.cost // scale for one in numbers.running)
        names = [f"y_k{k}_g{g}" for k, g in cells] + [f"z_r{r}" for r in range(len(numbers.running))]
        upper = [min(len(kinds[k].members), numbers.slots[g]) for k, g in cells] + [1] * len(numbers.running)
        return Program(
            problem=numbers.problem,
            names=(*names, *(f"M_h{h}" for h in numbers.columns)),
            lower=(0,) * self.first_peak + tuple(self.floors),
            upper=(*upper, *highest),
            cost=tuple(cost),
            rows=tuple(rows),
            offset=owed - sum(map(sum, self.base)) - moved // scale,
            scale=scale,
            total=max(G * sum(highest) + owed + pauses, *of_rows, *(goal.offset for goal in goals), 0),
            numbers=numbers,
            cells=cells,
            goals=goals,
            shift=self.shift,
            twins=self.twins,
        )

    def _refuse_empty_rows(self) -> None:
        for kind in self.kinds:
            if kind.must_admit and not kind.work:
                raise InfeasibleDecisionError(
                    f"request {kind.members[0]} must be admitted, and no worker that may take it has room"
                )
        if self.numbers.exactly and not self.cells:
            raise InfeasibleDecisionError(
                f"exactly {self.numbers.exactly} requests must be admitted, and no worker may take any of them"
            )

    def _reduced(self, row: Sequence[int]) -> list[int]:
        return [(a - s) // self.scale for a, s in zip(row, self.shift, strict=True)]

    def _placing_rows(self) -> list[Row]:
        """Return the rows on counts alone: kinds, slots, resources, and how many are admitted."""
        numbers, rows, first = self.numbers, [], 0
        for k, kind in enumerate(self.kinds):
            if kind.work:
                columns, count = tuple(range(first, first + len(kind.work))), len(kind.members)
                least = count if kind.must_admit or self.all_go else None
                rows.append(Row(f"kind_k{k}", columns, (1,) * len(columns), least, count))
                first += len(columns)
        filled = numbers.exactly == numbers.problem.num_free_slots
        for g, mine in sorted(self.on.items()):
            slots = numbers.slots[g]
            rows.append(Row(f"slots_g{g}", *_columns([(c, 1) for c, _ in mine]), slots if filled else None, slots))
            for place, limit in enumerate(numbers.limits):
                taken = [(c, self.kinds[k].needs[place]) for c, k in mine if self.kinds[k].needs[place]]
                if sum(self.kinds[k].needs[place] * len(self.kinds[k].members) for _, k in mine) > limit[g]:
                    unit = gcd(*(need for _, need in taken))
                    columns, needs = _columns([(c, need // unit) for c, need in taken])
                    rows.append(Row(f"holds_{place}_g{g}", columns, needs, None, limit[g] // unit))
        if numbers.exactly is not None and self.cells:
            columns = tuple(range(len(self.cells)))
            rows.append(Row("admitted", columns, (1,) * len(columns), numbers.exactly, numbers.exactly))
        return rows

    def _peak_rows(self) -> list[Row]:
        """Return the rows that keep M_h above the loads, but for workers that can never set the pace at h."""
        numbers, rows = self.numbers, []
        for h in numbers.columns:
            for g in range(len(self.base)):
                if self.ceilings[g][h] <= self.floors[h]:
                    continue
                terms = [(column, -self.work[k][g][h]) for column, k in self.on.get(g, ())]
                if h == 0:
                    running = enumerate(numbers.running, start=len(self.cells))
                    terms += [(column, one.work // self.scale) for column, one in running if one.worker == g]
                busy = [(self.first_peak + h, 1), *(term for term in terms if term[1])]
                rows.append(Row(f"peak_h{h}_g{g}", *_columns(busy), self.base[g][h], None))
        return rows

    def _order_rows(self) -> list[Row]:
        """Return the rows that put equal workers in order."""
        rows = []
        for twins in self.twins:
            for g, other in pairwise(twins):
                busy = [(k, self.work[k][g][0]) for k in range(len(self.kinds)) if self.work[k][g][0]]
                terms = [(self.cells[k, g], w) for k, w in busy] + [(self.cells[k, other], -w) for k, w in busy]
                if terms:
                    rows.append(Row(f"order_g{g}_g{other}", *_columns(terms), 0, None))
        return rows


def _columns(terms: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    columns, coefficients = zip(*terms, strict=True)
    return columns, coefficients


def _goals(numbers: PacedNumbers, cells: dict[tuple[int, int], int]) -> tuple[Goal, ...]:
    def price(kind: RequestKind, name: str) -> int:
        return 1 if name == "left_waiting" else kind.waiting_cost

    goals = []
    for name in numbers.goals:
        cost = {column: -price(numbers.kinds[k], name) for (k, _), column in cells.items()}
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
        works = {w for row in set(kind.work.values()) for w in row}
        scale = gcd(scale, kind.waiting_cost if with_waiting else 0, *works)
    return shift, scale or 1
