"""Tie-breaking: among optimal assignments the one whose loads, sorted from the largest down, are least.

Equal imbalance leaves many assignments to choose from; the leximax one evens out the loads below the maximum as well
and is what the gap lemmas of BF-IO speak of (symmetry (c) of its program). For j = 1, 2, ..., n the sum of the j
largest of the n = G (H+1) loads is minimised and then held: sum_j = min j t + sum_l max(0, L_l - t), a linear program
in t and one auxiliary variable a load (Ogryczak and Sliwinski 2003). A stage is skipped where the assignment at hand
already meets an elementary lower bound. Loads are in tokens, unshifted: a shift per column would change the order
between columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lbopt.model import StepProblem
from lbopt.model.formulation import Program, Row
from lbopt.solvers.backend import RawAnswer, Task, repaired, rounded_up
from lbopt.solvers.budget import Clock
from lbopt.solvers.registry import AUTO_ORDER, is_available

#: Each stage adds n + 1 columns and n + 2 rows, so the last program grows with n squared.
LARGEST_NUMBER_OF_LOADS = 48

Minimise = Callable[[Task], RawAnswer]


def has_stages(problem: StepProblem) -> bool:
    """Return whether the stages can be used: for few loads, and where a solver package is installed."""
    return problem.base.size <= LARGEST_NUMBER_OF_LOADS and any(is_available(name) for name in AUTO_ORDER)


def sorted_loads(program: Program, values: Sequence[int]) -> list[int]:
    """Return all loads in tokens (every worker, every h) that the counts in `values` lead to, largest first."""
    problem = program.problem
    assignment = np.array(program.decode(values[: program.num_core]))
    loads = problem.base.copy()
    admitted = np.flatnonzero(assignment >= 0)
    np.add.at(loads, assignment[admitted], problem.work[admitted])
    return sorted(map(int, loads.ravel()), reverse=True)


def break_ties(
    minimise: Minimise, program: Program, values: list[int], *, remaining: Clock, seed: int
) -> tuple[list[int], str]:
    """Return the leximax values among those with the cost of `values`, and how it ended: "done" if every stage closed.

    `values` are core columns of an optimum; `remaining` tells the seconds that are left, None for no limit. Where a
    stage is not closed the best values so far come back: they are optimal, but perhaps not leximax.

    Parameters
    ----------
    values
        Core columns of an optimum.
    remaining
        Returns the seconds that are left; None is without limit.
    """
    count = program.problem.num_workers * (program.problem.horizon + 1)
    if count > LARGEST_NUMBER_OF_LOADS:
        return values, "refused"
    cost = sum(c * v for c, v in zip(program.cost, values, strict=True))
    held = [(column, c) for column, c in enumerate(program.cost) if c]
    columns, coefficients = tuple(c for c, _ in held), tuple(c for _, c in held)
    grown = program.extended([], [], [], {}, [Row("optimal", columns, coefficients, cost, cost)])
    for j in range(1, count + 1):
        loads = sorted_loads(program, values)
        target = sum(loads[:j])
        if target > _stage_floor(program, loads, j):
            left = remaining()
            if left is not None and left <= 0:
                return values, "time"
            stage = _with_stage(grown, j, hold_at=None)
            answer = minimise(Task(program=stage, hint=_full_hint(stage, values), time_limit=left, seed=seed))
            found = repaired(program, answer.values) if answer.values is not None else None
            if found is not None and _at_least_as_good(program, found, cost, loads, j):
                values, target = found, sum(sorted_loads(program, found)[:j])
            if answer.stop != "done" or rounded_up(answer.bound) != target:
                return values, answer.stop if answer.stop != "done" else "failed"
        grown = _with_stage(grown, j, hold_at=target)
    return values, "done"


def _at_least_as_good(program: Program, found: list[int], cost: int, loads: list[int], j: int) -> bool:
    if sum(c * v for c, v in zip(program.cost, found, strict=True)) != cost:
        return False
    return sorted_loads(program, found)[:j] <= loads[:j]


def _stage_floor(program: Program, loads: list[int], j: int) -> int:
    """Lower bound on the sum of the j largest loads, given that the sums before are already least.

    It is at least the j largest base loads; and where everyone is admitted the total is fixed, so that the j-th load is
    at least the mean of what the first j - 1 leave over.
    """
    problem = program.problem
    base = sorted(map(int, problem.base.ravel()), reverse=True)
    floor = max(sum(base[:j]), sum(loads[: j - 1]))
    if problem.num_admitted == problem.num_requests:
        before = sum(loads[: j - 1])
        floor = max(floor, before - (-(sum(loads) - before) // (len(loads) - j + 1)))
    return floor


def _with_stage(program: Program, j: int, *, hold_at: int | None) -> Program:
    """Add t_j and d_j; minimise j t + sum d, or hold it at `hold_at`."""
    problem = program.problem
    first = len(program.names)
    scale, shift, kinds = program.scale, program.shift, program.numbers.kinds
    cells = [(g, h) for g in range(problem.num_workers) for h in range(problem.horizon + 1)]
    ceiling = max(scale * high + shift[h] for h, high in enumerate(_peaks(program)))
    names = [f"t_{j}", *(f"d_{j}_g{g}_h{h}" for g, h in cells)]
    rows = []
    for place, (g, h) in enumerate(cells, start=1):
        columns, coefficients = [first, first + place], [1, 1]  # d + t - load of requests >= base
        if problem.slots[g]:
            busy = [(k, kind.work[g][h]) for k, kind in enumerate(kinds) if kind.work[g][h]]
            columns += [program.cells[k, g] for k, _ in busy]
            coefficients += [-w for _, w in busy]
        rows.append(Row(f"above_{j}_g{g}_h{h}", tuple(columns), tuple(coefficients), int(problem.base[g, h]), None))
    cost = {first: j, **{first + place: 1 for place in range(1, len(cells) + 1)}}
    if hold_at is not None:
        rows.append(Row(f"held_{j}", tuple(cost), tuple(cost.values()), None, hold_at))
        cost = {}
    width = len(names)
    return program.extended(names, [0] * width, [ceiling] * width, cost, rows)


def _peaks(program: Program) -> Sequence[int]:
    return program.upper[program.num_core - program.problem.horizon - 1 : program.num_core]


def _full_hint(program: Program, values: Sequence[int]) -> list[int]:
    """Extend core values by the t and d of every stage: t is the j-th largest load, d what exceeds it."""
    loads = sorted_loads(program, values)
    assignment = program.decode(values)
    table = program.problem.base.tolist()
    for i, g in enumerate(assignment):
        if g >= 0:
            table[g] = [a + b for a, b in zip(table[g], program.problem.work[i].tolist(), strict=True)]
    hint = list(values)
    for name in program.names[program.num_core :]:
        if name.startswith("t_"):
            level = loads[int(name[2:]) - 1]
            hint.append(level)
            hint += [max(0, load - level) for row in table for load in row]
    return hint
