"""The clairvoyant optimum of a small run: the placement whose sum of barriers is least, or an interval that holds it.

A run is read as chains and windows (`lbopt.hindsight.chains`). Two kinds of engines are asked for the least sum of the
windows' largest token sums, each for a part of the time:

- *exhaustion* (`lbopt.kernels.hindsight.exhaustion`), which ends where there are few chains: few slots, and starts
  that do not coincide;
- a *solver* of integer programs (`clairvoyant_program`), which is good at bursts of short requests.

Every placement is counted again, step by step. A lower bound is the sum of the bounds of single steps, the word of the
exhaustion, which no second search checks, or the claim of a solver, used as far as `lbopt.solvers.registry` trusts it.

The placement of a run as an integer program over chains and windows, for HiGHS and CP-SAT.

Variables: x_ig = 1 where chain i runs on worker g, and M_c, the largest token sum of window c. Minimise sum_c M_c
subject to sum_g x_ig = 1 (i), sum of x_ig over the chains that run <= B (g, each crowded step), and sum of tokens times
x_ig <= M_c (c, g). Workers are identical: chain i runs on one of the first i + 1. M_c is at least what the bounds of
the window's steps say; the relaxation says nothing beyond them, since x = 1 / G levels all loads: solvers branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.hindsight.chains import Chains, chained, events, finer
from lbopt.hindsight.local_search import least_barriers, place_in_hindsight
from lbopt.hindsight.timetable import IntArray, Timetable
from lbopt.kernels.arrays import record
from lbopt.kernels.hindsight.exhaustion import LIMITS, Pieces, try_all
from lbopt.model.formulation import LinearProgram, Row
from lbopt.solvers.backend import Task, load, rounded_up, run_interruptible
from lbopt.solvers.budget import Budget, Limits
from lbopt.solvers.registry import capabilities, is_available, require


def program_of(chains: Chains, tokens: IntArray, floors: IntArray) -> LinearProgram:
    """Return the integer program.

    Parameters
    ----------
    chains
        The run, with at least one request.
    tokens, floors
        int64 (n, C) and (C,): what each chain shows in each window, and what the window's barriers are at least.
    """
    workers, slots = chains.timetable.num_workers, chains.timetable.slots_per_worker
    n, windows, totals = tokens.shape[0], range(tokens.shape[1]), tokens.sum(axis=0).tolist()
    own = [range(i * workers, (i + 1) * workers) for i in range(n)]
    rows = [Row(f"placed_{i}", tuple(own[i]), (1,) * workers, 1, 1) for i in range(n)]
    for k in chains.crowded.tolist():
        there = chains.running(k).tolist()
        ones = (1,) * len(there)
        rows += [Row(f"slots_{k}_{g}", tuple(own[i][g] for i in there), ones, None, slots) for g in range(workers)]
    for c in windows:
        there = np.flatnonzero(tokens[:, c]).tolist()
        shown = (*tokens[there, c].tolist(), -1)
        columns = [(*(own[i][g] for i in there), n * workers + c) for g in range(workers)]
        rows += [Row(f"load_{c}_{g}", columns[g], shown, None, 0) for g in range(workers)]
    names = [f"x_{i}_{g}" for i in range(n) for g in range(workers)] + [f"M_{c}" for c in windows]
    lower = [0] * (n * workers) + floors.tolist()
    upper = [int(g <= i) for i in range(n) for g in range(workers)] + totals
    cost = [0] * (n * workers) + [1] * len(windows)
    total = workers * sum(totals)
    return LinearProgram(tuple(names), tuple(lower), tuple(upper), tuple(cost), tuple(rows), 0, 1, total)


def values_of(chains: Chains, tokens: IntArray, worker: IntArray) -> list[int]:
    """Return the values of all variables of the program for a placement (N,) of the requests."""
    on = np.eye(chains.timetable.num_workers, dtype=np.int64)[chains.workers_of(worker)]
    return [*on.ravel().tolist(), *(on.T @ tokens).max(axis=0).tolist()]


def placement_of(chains: Chains, values: Sequence[float]) -> IntArray:
    """Return the worker of each request, (N,), by the values of the program's variables."""
    n = chains.start.size
    on = np.asarray(values[: n * chains.timetable.num_workers], dtype=np.float64).reshape(n, -1)
    worker: IntArray = on.argmax(axis=1).astype(np.int64)
    return worker[chains.of]


#: Solvers of integer programs that can be asked, the one that closes most runs first.
SOLVERS = ("cp-sat", "highs")

#: Parts of the time that is left for a first placement, and for exhaustion before a solver is asked.
_FIRST, _BRIEF = 0.2, 0.3

#: Chains of requests that the local search tries for each step, for the first placement.
_EFFORT = 50

#: A deadline that has passed, whatever the time is: 0 would be none.
_PASSED = 1


@dataclass(frozen=True, slots=True, eq=False)
class HindsightResult:
    """An interval that holds the least sum of barriers, and a placement that reaches its upper end.

    Parameters
    ----------
    lower, upper
        Sums of barriers over all steps, in tokens.
    worker
        int, (N,): worker of each request, in the order of the timetable.
    proof
        Where the lower end comes from, in the words of `lbopt.Result`: "elementary-bound" (single steps, which anyone
        can count), "search" (exhaustion, not checked) or "claimed:" and a solver.
    stop
        "done" where the ends meet; else "time", "interrupted", or what a solver ended with.
    seconds
        Time taken.
    """

    lower: int
    upper: int
    worker: IntArray
    proof: str
    stop: str
    seconds: float

    @property
    def is_proved(self) -> bool:
        """Return whether the placement is best, by what lbopt itself has found out."""
        return self.lower == self.upper and not self.proof.startswith("claimed")


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What an engine is asked: the chains, and the best placement so far with its sum of barriers.

    Windows lie between `cuts` (C + 1,); `floors` (C,) are what the barriers there are at least.
    """

    chains: Chains
    cuts: IntArray
    floors: IntArray
    worker: IntArray
    upper: int


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """What an engine says: a bound, None for none; a placement, None for none; and "done", or why it ended earlier."""

    bound: int | None
    worker: IntArray | None
    stop: str


_Engine = Callable[[_Question, Limits], _Answer]


def optimum(
    timetable: Timetable,
    time_limit: float | None = 60.0,
    *,
    seed: int = 0,
    known: IntArray | None = None,
    solver: str = "exact",
) -> HindsightResult:
    """Return the placement with the least sum of barriers, or an interval for it.

    Parameters
    ----------
    time_limit
        Seconds, above 0, and None for none; the time in which kernels are compiled or read from disk is not part of it.
    known
        int, (N,): a placement to improve on; None for one that the local search finds. It is checked.
    solver
        "exact": exhaustion, then CP-SAT or HiGHS, where it is installed and trusted with numbers as large as these.
        "search": exhaustion alone. One of `SOLVERS`: that one alone.

    Raises
    ------
    InputError
        Where `time_limit` is not above 0, the known placement needs more slots than there are, or there is no such
        solver.
    BackendUnavailableError
        Where the package of the solver is not installed.

    Examples
    --------
    >>> from lbopt.hindsight.optimum import optimum
    >>> from lbopt.hindsight.timetable import Timetable
    >>> result = optimum(Timetable(2, 2, [0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3]))
    >>> result.lower, result.upper, result.is_proved
    (36, 36, True)
    """
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit is {time_limit!r}; expected seconds, above 0")
    engines = _engines(timetable, solver, seed)
    compile_exact()
    budget, stop = Budget(time_limit), "done"
    if known is None:
        first = place_in_hindsight(timetable, effort=_EFFORT, time_limit=time_limit and _FIRST * time_limit, seed=seed)
        known, stop = first.worker, "interrupted" if first.interrupted else stop
    floors, chains, cuts = least_barriers(timetable), chained(timetable), events(timetable)
    worker, upper = np.asarray(known, dtype=np.int64), timetable.barriers(known)
    lower, proof = int(floors.sum()), "elementary-bound"
    for origin, share, ask in engines:
        if stop == "interrupted" or lower == upper:
            break
        limits = Limits(budget.remaining).leaving((1 - share) * (budget.remaining() or 0))
        stop = limits.stopped() or "done"
        while lower < upper and stop == "done":
            answer = ask(_Question(chains, cuts, np.add.reduceat(floors, cuts[:-1]), worker, upper), limits)
            stop = answer.stop
            if answer.worker is not None and (reached := timetable.barriers(answer.worker)) < upper:
                worker, upper = answer.worker, reached
            if answer.bound is not None and lower < answer.bound <= upper:
                lower, proof = answer.bound, origin
            if (
                stop == "done" and lower < upper
            ):  # the placement costs more than its windows say, or a claim is not used
                before, cuts = cuts, cuts if answer.worker is None else finer(timetable, cuts, answer.worker)
                stop = "done" if cuts.size > before.size else "refused"
            stop = (limits.stopped() or stop) if stop == "done" else stop
    return HindsightResult(lower, upper, worker, proof, "done" if lower == upper else stop, budget.seconds)


def _engines(timetable: Timetable, solver: str, seed: int) -> Sequence[tuple[str, float, _Engine]]:
    """Return the engines to ask, with the origin of their bounds and the part of the time that is left for each."""
    if solver not in ("exact", "search", *SOLVERS):
        raise InputError(f"solver is {solver!r}; expected one of exact, search, {', '.join(SOLVERS)}")
    if solver in SOLVERS:
        require(solver)
        return [(f"claimed:{solver}", 1.0, partial(_by_program, solver, seed))]
    total = timetable.num_workers * int(timetable.totals().sum())
    ready = [name for name in SOLVERS if is_available(name) and capabilities(name).trusts(total)]
    chosen = ready[:1] if solver == "exact" else []
    own: tuple[str, float, _Engine] = ("search", _BRIEF if chosen else 1.0, _by_exhaustion)
    return [own, *((f"claimed:{name}", 1.0, partial(_by_program, name, seed)) for name in chosen)]


def _by_exhaustion(asked: _Question, limits: Limits) -> _Answer:
    """Try all workers for the chains, those with most tokens first."""
    chains, table = asked.chains, asked.chains.timetable
    tokens = asked.chains.tokens(asked.cuts)
    order = np.argsort(-tokens.sum(axis=1), kind="stable")
    first, last = (np.searchsorted(asked.cuts, steps[order]) for steps in (chains.start, chains.end))
    fleet = (table.num_workers, table.slots_per_worker)
    pieces = Pieces(np.ascontiguousarray(tokens[order]), first, last, asked.floors, *fleet)
    state, found = record(LIMITS), []

    def stop() -> None:
        state.deadline = _PASSED

    state.deadline = limits.deadline()
    interrupted = run_interruptible(lambda: found.append(try_all(pieces, asked.upper, state)), stop)
    least, chosen = found[0]
    placed = np.empty_like(chosen)
    placed[order] = chosen
    ended = "interrupted" if interrupted else "time" if state.expired else "done"
    return _Answer(int(least) if ended == "done" else None, placed[chains.of] if chosen[0] >= 0 else None, ended)


def _by_program(solver: str, seed: int, asked: _Question, limits: Limits) -> _Answer:
    """Ask a solver of integer programs, from the best placement."""
    begun, chains, tokens = compile_time.clock(), asked.chains, asked.chains.tokens(asked.cuts)
    program, hint = program_of(chains, tokens, asked.floors), values_of(chains, tokens, asked.worker)
    task = Task(program=program, hint=hint, time_limit=limits.remaining(), seed=seed, begun=begun)
    raw = load(solver).minimise(task)
    claim = rounded_up(raw.bound) if capabilities(solver).trusts(program.total) else None
    if raw.values is None:
        return _Answer(claim, None, raw.stop)
    worker = placement_of(chains, raw.values)
    try:
        chains.timetable.barriers(worker)
    except InputError:  # it does not keep the slots
        return _Answer(None, None, "failed")
    return _Answer(claim, worker, raw.stop)


@cache
def compile_exact() -> None:
    """Compile the kernel of the exhaustion, or read it from disk, so that no search pays for it."""
    start, prompt, output = np.array([[0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3]])
    table = Timetable(2, 2, start, prompt, output)  # below the worst placement there is a better one
    worker, cuts, chains = np.array([0, 0, 1, 1]), events(table), chained(table)
    floors = np.add.reduceat(least_barriers(table), cuts[:-1])
    _by_exhaustion(_Question(chains, cuts, floors, worker, table.barriers(worker)), Limits())
