"""Optimal gates: the integer program of a gate problem, once for all solvers, a fast bound, and exhaustion.

With e[k] = T_k - base_k, z[i,k] = 1 where prompt i is completed by the end of step k, u[i,k] = what e[k] adds to the
wait of prompt i, and slack[k,g] = base_k - decode[k][g],

    min   per sum_k (base_k + e[k]) + price sum_{i, k >= released} (base_k (1 - z[i,k-1]) + u[i,k])
    s.t.  e[k] >= cost y[k,g] - slack[k,g],          u[i,k] >= e[k] - most_k z[i,k-1]
          sum_{j<=k} y[j,g] >= sum_i tokens_i z[i,k]  over the prompts of rank g,      <= what is released
          z[i,k] <= z[i,k+1],   z[i+1,k] <= z[i,k]    within a queue
          sum_k u[i,k] >= cost tokens_i - sum_k slack[k,g] (1 - z[i,k-1]).

The last rows are implied by integers and not by the relaxation: the rank of a prompt computes it while it waits.

The fast bound takes both terms apart. A rank's own work needs sum_k decode + cost * tokens, so that the steps take at
least the largest of these and of the base. A prompt is not completed before its chunks allow, and waits at least the
base of those steps, and at least its rank's own parts in them with the tokens up to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.model.formulation import LinearProgram, Row
from lbopt.model.gate_problem import GateProblem, Schedule
from lbopt.solvers.backend import Task, load, rounded_up
from lbopt.solvers.registry import capabilities

#: Vectors of times up to which exhaustion is started.
MOST_VECTORS = 1_000_000


@dataclass(frozen=True, slots=True)
class GateResult:
    """The best schedule found, its value and a lower bound on the value of every schedule.

    Parameters
    ----------
    schedule, value
        Tokens of prompts by step and rank; None where no feasible one was found.
    bound, bound_by
        "exhaustion", "parts" (the fast bound) or "claimed:SOLVER".
    """

    schedule: tuple[tuple[int, ...], ...] | None
    value: int | None
    bound: int
    bound_by: str

    @property
    def closed(self) -> bool:
        """Whether value and bound meet."""
        return self.value == self.bound


def fast_bound(problem: GateProblem) -> int:
    """Return a lower bound on the value of every schedule, in a moment; see the module."""
    whole: list[int] = [sum(own) for own in zip(*problem.decode, strict=True)]
    for prompt in problem.prompts:
        whole[prompt.rank] += problem.cost * prompt.tokens
    waits, earliest = 0, _earliest(problem)
    for i, prompt in enumerate(problem.prompts):
        tokens = _while_waiting(problem, i)
        steps = range(prompt.released, min(earliest[i] + 1, problem.num_steps))
        own = sum(problem.decode[k][prompt.rank] for k in steps) + problem.cost * tokens
        waits += max(own, sum(problem.base[k] for k in steps))
    return problem.per * max(sum(problem.base), *whole) + problem.price * waits


def _while_waiting(problem: GateProblem, i: int) -> int:
    """Return the least tokens that its rank computes while a prompt waits: those released with it, up to its end."""
    prompt = problem.prompts[i]
    before = problem.released(prompt.rank, prompt.released - 1)
    return problem.ends[i] - before


def _earliest(problem: GateProblem) -> list[int]:
    """Return the first step that can complete each prompt."""
    done, ends = [0] * len(problem.chunk), [problem.num_steps] * len(problem.prompts)
    for k, row in enumerate(problem.fill([max(own) + problem.cost * max(problem.chunk) for own in problem.decode])):
        done = [a + b for a, b in zip(done, row, strict=True)]
        for i, prompt in enumerate(problem.prompts):
            if done[prompt.rank] >= problem.ends[i] and prompt.released <= k:
                ends[i] = min(ends[i], k)
    return ends


def _plain_schedules(problem: GateProblem) -> Iterator[list[list[int]]]:
    """Yield schedules of plain gates: hold until a step, then compute under one envelope, large or small."""
    largest = [base + problem.cost * max(problem.chunk) for base in problem.base]
    for first in range(problem.num_steps):
        for tokens in sorted({prompt.tokens for prompt in problem.prompts} | {max(problem.chunk)}):
            times = [
                base if k < first else min(most, base + problem.cost * tokens)
                for k, (base, most) in enumerate(zip(problem.base, largest, strict=True))
            ]
            yield problem.fill(times)


def _feasible(problem: GateProblem, schedule: Schedule) -> int | None:
    try:
        return problem.value(schedule)
    except InfeasibleDecisionError:
        return None


def _best(problem: GateProblem, schedules: Iterator[list[list[int]]]) -> tuple[int, list[list[int]]] | None:
    """Return value and schedule of the best feasible one, if there is one."""
    valued = ((value, schedule) for schedule in schedules if (value := _feasible(problem, schedule)) is not None)
    return min(valued, default=None, key=lambda pair: pair[0])


def _descend(problem: GateProblem, best: tuple[int, list[list[int]]]) -> tuple[int, list[list[int]]]:
    """Change the time of one step, or of two, as long as that helps."""
    value, schedule = best
    times = problem.times(schedule)
    levels = [
        [base + problem.cost * y for y in range(max(problem.chunk) + 1)] for base in problem.base
    ]  # above the base: where ranks decode alike that is all that a rank can set
    improved = True
    while improved:
        improved = False
        for j, k in combinations_with_replacement(range(problem.num_steps), 2):
            for new in levels[k]:
                moved = list(times)
                moved[j] = max(problem.base[j], times[j] + times[k] - new)
                moved[k] = new
                filled = problem.fill(moved)
                found = _feasible(problem, filled)
                if found is not None and found < value:
                    value, schedule, times, improved = found, filled, problem.times(filled), True
    return value, schedule


def exhaust(problem: GateProblem) -> tuple[int, list[list[int]]] | None:
    """Return the optimum over all vectors of step times that some rank sets, each filled; None where none is feasible.

    Raises
    ------
    InputError
        If there are more than `MOST_VECTORS` of them.
    """
    choices = [
        sorted({max(base, own[g] + problem.cost * y) for g, most in enumerate(problem.chunk) for y in range(most + 1)})
        for base, own in zip(problem.base, problem.decode, strict=True)
    ]
    vectors = 1
    for times in choices:
        vectors *= len(times)
    if vectors > MOST_VECTORS:
        raise InputError(
            f"there are {vectors:,} vectors of step times; expected at most {MOST_VECTORS:,}: take a solver"
        )
    return _best(problem, (problem.fill(times) for times in product(*choices)))


def solve_gate(
    problem: GateProblem, solver: str = "cp-sat", time_limit: float | None = None, seed: int = 0
) -> GateResult:
    """Return the best schedule that a solver finds, counted anew, with a bound.

    Parameters
    ----------
    solver
        "cp-sat", "highs", "pulp" or "brute-force".
    time_limit, seed
        Seconds of the solver, and its seed.

    Raises
    ------
    InputError
        If the solver is unknown, or the problem too large for exhaustion.
    """
    floor = fast_bound(problem)
    if solver == "brute-force":
        best = exhaust(problem)
        return _result(best, floor if best is None else best[0], "exhaustion")
    known = capabilities(solver)
    best = _best(problem, _plain_schedules(problem))
    if best is not None and best[0] == floor:
        return _result(best, floor, "parts")
    if best is not None:
        best = _descend(problem, best)
    program = _GateProgram(problem)
    hint = None if best is None else program.encode(best[1])
    raw = load(solver).minimise(
        Task(program=program.linear, hint=hint, time_limit=time_limit, seed=seed, from_below=True)
    )
    if raw.values is not None:
        schedule = program.decode(raw.values)
        value = _feasible(problem, schedule)
        if value is not None and (best is None or value < best[0]):
            best = value, schedule
    claim = rounded_up(raw.bound)
    if claim is not None and known.trusts(program.linear.total):
        claim += program.linear.offset
        if claim > floor and (best is None or claim <= best[0]):
            return _result(best, claim, f"claimed:{solver}")
    return _result(best, floor, "parts")


def _result(best: tuple[int, list[list[int]]] | None, bound: int, bound_by: str) -> GateResult:
    if best is None:
        return GateResult(None, None, bound, bound_by)
    return GateResult(tuple(map(tuple, best[1])), best[0], bound, bound_by)


class _GateProgram:
    """The integer program, written down column by column and row by row."""

    def __init__(self, problem: GateProblem) -> None:
        self.problem = problem
        K, G, cost = problem.num_steps, len(problem.chunk), problem.cost
        self._columns: list[tuple[str, int, int, int]] = []
        self._rows: list[Row] = []
        self.most = [
            max(own[g] + cost * chunk for g, chunk in enumerate(problem.chunk)) - base
            for own, base in zip(problem.decode, problem.base, strict=True)
        ]
        self.y = [[self._column(f"y_{k}_{g}", problem.chunk[g]) for g in range(G)] for k in range(K)]
        self.e = [self._column(f"e_{k}", self.most[k], problem.per) for k in range(K)]
        self.offset = problem.per * sum(problem.base)
        self.earliest = _earliest(problem)
        self.z: dict[tuple[int, int], int] = {}
        self.u: dict[tuple[int, int], int] = {}
        for i in range(len(problem.prompts)):
            self._add_prompt(i)
        self._add_ranks()
        total = sum(base + most for base, most in zip(problem.base, self.most, strict=True))
        self.linear = LinearProgram(
            names=tuple(name for name, _, _, _ in self._columns),
            lower=(0,) * len(self._columns),
            upper=tuple(most for _, most, _, _ in self._columns),
            cost=tuple(one for _, _, one, _ in self._columns),
            rows=tuple(self._rows),
            offset=self.offset,
            scale=1,
            total=total * (problem.per + problem.price * len(problem.prompts)),
        )

    def _column(self, name: str, most: int, cost: int = 0) -> int:
        self._columns.append((name, most, cost, 0))
        return len(self._columns) - 1

    def _add_cost(self, column: int, cost: int) -> None:
        name, most, before, _ = self._columns[column]
        self._columns[column] = (name, most, before + cost, 0)

    def _row(self, terms: Sequence[tuple[int, int]], lower: int | None, upper: int | None = None) -> None:
        columns, coefficients = zip(*terms, strict=True)
        self._rows.append(Row(f"r{len(self._rows)}", columns, coefficients, lower, upper))

    def _add_prompt(self, i: int) -> None:
        """Add when prompt `i` is completed, and what it waits."""
        problem, prompt, K = self.problem, self.problem.prompts[i], self.problem.num_steps
        for k in range(self.earliest[i], K - 1):
            self.z[i, k] = self._column(f"z_{i}_{k}", 1)
            if (i, k - 1) in self.z:
                self._row([(self.z[i, k], 1), (self.z[i, k - 1], -1)], 0)
        waiting: list[tuple[int, int]] = []
        floor = problem.cost * _while_waiting(problem, i)
        clock: list[tuple[int, int]] = []
        before = prompt.waited
        for k in range(prompt.released, K):
            done = self.z.get((i, k - 1))
            slack = problem.base[k] - problem.decode[k][prompt.rank]
            self.offset += problem.price * problem.base[k]
            floor -= slack
            before += problem.base[k]
            clock.append((self.e[k], 1))
            if done is None:
                self._add_cost(self.e[k], problem.price)
                waiting.append((self.e[k], 1))
            else:
                self._add_cost(done, -problem.price * problem.base[k])
                u = self.u[i, k] = self._column(f"u_{i}_{k}", self.most[k], problem.price)
                self._row([(u, 1), (self.e[k], -1), (done, self.most[k])], 0)
                waiting += [(u, 1), (done, -slack)]
            if problem.longest is not None:
                spare = sum(self.most[j] for j in range(prompt.released, k + 1)) + before - problem.longest
                free = [] if done is None or spare <= 0 else [(done, -spare)]
                self._row([*clock, *free], None, problem.longest - before)
        self._row(waiting, floor)

    def _add_ranks(self) -> None:
        """Add what each rank computes, and in which order."""
        problem, K = self.problem, self.problem.num_steps
        for g in range(len(problem.chunk)):
            queue = [i for i, prompt in enumerate(problem.prompts) if prompt.rank == g]
            for k in range(K):
                slack = problem.base[k] - problem.decode[k][g]
                self._row([(self.e[k], 1), (self.y[k][g], -problem.cost)], -slack)
                done = [(self.y[j][g], 1) for j in range(k + 1)]
                released = problem.released(g, k)
                if k == K - 1:
                    self._row(done, released, released)
                    continue
                self._row(done, 0, released)
                completed = [(self.z[i, k], -problem.prompts[i].tokens) for i in queue if (i, k) in self.z]
                if completed:
                    self._row([*done, *completed], 0)
                for i, j in pairwise(queue):
                    if (j, k) in self.z:
                        self._row([(self.z[i, k], 1), (self.z[j, k], -1)], 0)

    def decode(self, values: Sequence[float]) -> list[list[int]]:
        """Return the schedule of a solver's values, rounded."""
        return [[round(values[column]) for column in row] for row in self.y]

    def encode(self, schedule: Schedule) -> list[int]:
        """Return the values of all columns for a feasible schedule."""
        problem, values, done = self.problem, [0] * len(self._columns), [0] * len(self.problem.chunk)
        for k, (row, time) in enumerate(zip(schedule, problem.times(schedule), strict=True)):
            values[self.e[k]] = time - problem.base[k]
            for g, tokens in enumerate(row):
                values[self.y[k][g]] = tokens
                done[g] += tokens
            for i, prompt in enumerate(problem.prompts):
                if (i, k) in self.u:
                    values[self.u[i, k]] = 0 if values[self.z[i, k - 1]] else time - problem.base[k]
                if (i, k) in self.z:
                    values[self.z[i, k]] = int(done[prompt.rank] >= problem.ends[i])
        return values
