"""One run of a race: a solver on a problem, and how long the solver proper took.

Writing the model down, starting the process and compiling are nobody's merit or fault, so they are not in `seconds`:
HiGHS, CP-SAT and CBC get the program of `lbopt.model.formulation` (workers with free slots alone, equal sizes as
integer counts, every bound on M) and the best greedy placement as a hint, and their clock starts when the model is
theirs. lbopt's own search is timed as `solve` is called, with everything it does.

A few small problems before each run bring the solver's code back into the processor's caches. A router decides every
few milliseconds and finds it there; a race reads problems and writes results between two runs, which drives it out, and
that costs 0.3 to 0.6 ms where whole decisions take 0.2.

What counts as an answer is the same for all: the placement is checked and scored in exact integers, and a bound that
somebody claims is rounded up, as `solve` does.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from typing import Any

from lbopt.model import StepProblem, barrier_total, objective
from lbopt.model.formulation import Program, formulate
from lbopt.model.integers import IntArray
from lbopt.solvers import elementary_bound, greedy_assignment, solve
from lbopt.solvers.backend import RawAnswer, Task, load, placement, rounded_up
from lbopt.solvers.registry import OWN, Capabilities, capabilities, compiled
from lbopt.solvers.warm_up import small_problems, warm

#: Seconds for each problem where it is only the caches that are to be filled.
_REFRESH = 0.02


def refresh(solver: str, window: bool) -> None:
    """Bring the solver's code back into the caches, in milliseconds, right before a run is timed."""
    warm(solver, window)
    for problem in small_problems(solver, window):
        solve(problem, solver=compiled(solver), time_limit=_REFRESH)


def warmed(*, solver: str, window: bool) -> None:
    """Warm a solver as a task of its own: what it compiles lies in the cache for the processes that are timed."""
    warm(solver, window)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTask(Task):
    """A task whose clock starts when the backend first asks for what is left: the model is written down by then."""

    asked: list[float] = field(default_factory=list, compare=False)

    def remaining(self) -> float | None:
        """Return the seconds that are left of those for the search alone."""
        now = time.perf_counter()
        self.asked.append(now)
        return None if self.time_limit is None else float(self.time_limit) - (now - self.asked[0])


def measure(*, problem: dict[str, Any], solver: str, time_limit: float, version: str, seed: int) -> dict[str, Any]:
    """Run `solver` on `problem` (as `StepProblem.to_dict` writes it) and return the fields of a `RaceRecord`.

    `version` is that of the solver's code; it is part of the task, so that another version runs anew.

    Parameters
    ----------
    problem
        The step problem as plain data.
    solver
        Name of the solver.
    time_limit
        Seconds for the solver proper.
    version
        Version of the code; it is part of the key of the task and not used otherwise.
    seed
        Seed of the draws.
    """
    chosen = StepProblem.from_dict(problem)
    gc.collect()  # what reading the problem left behind is not collected while the solver is timed
    refresh(solver, chosen.horizon > 0)
    if solver in (*OWN, "brute-force") or chosen.num_admitted == 0:
        return _by_solve(chosen, solver, time_limit, seed)
    return _by_backend(chosen, capabilities(solver), time_limit, seed)


def _by_solve(problem: StepProblem, solver: str, time_limit: float, seed: int) -> dict[str, Any]:
    begun = time.perf_counter()
    result = solve(problem, solver=compiled(solver), time_limit=time_limit, seed=seed)
    seconds = time.perf_counter() - begun
    assert result.assignment is not None, "solve starts from a greedy placement"
    return {
        "answered_by": result.solver,
        "status": "open"
        if result.status != "optimal"
        else "proved"
        if result.proved
        else "searched"
        if result.proof == "search"
        else "claimed",
        "value": result.objective,
        "bound": result.bound,
        "barrier": barrier_total(problem, result.assignment),
        "claim": result.bound,
        "seconds": seconds,
        "building_seconds": 0.0,
        "stop": result.stop_reason,
        "native_status": result.status,
        "trusted": True,
    }


def _by_backend(problem: StepProblem, chosen: Capabilities, time_limit: float, seed: int) -> dict[str, Any]:
    begun = time.perf_counter()
    program = formulate(problem)
    greedy = greedy_assignment(problem)
    trusted = chosen.largest_safe_total is None or program.total <= chosen.largest_safe_total
    task = SearchTask(program=program, hint=program.encode(greedy.tolist()), time_limit=time_limit, seed=seed)
    called = time.perf_counter()
    if chosen.largest_total is not None and program.total > chosen.largest_total:
        answer = RawAnswer(values=None, bound=None, stop="refused", native_status="not started")
    else:
        answer = load(chosen.name).minimise(task)
    ended = time.perf_counter()
    started = task.asked[0] if task.asked else called
    return {
        "answered_by": chosen.name,
        **_known(program, answer, greedy),
        "seconds": ended - started,
        "building_seconds": started - begun,
        "native_status": answer.native_status,
        "trusted": trusted,
    }


def _known(program: Program, answer: RawAnswer, greedy: IntArray) -> dict[str, Any]:
    """Join the answer with the greedy placement and the elementary bound, which every solver starts from.

    Closed is a run that the solver itself ended: where elementary reasoning is enough but the solver did not see it
    within its limit, or was not started, the run is open with a gap of zero.
    """
    problem = program.problem
    elementary = elementary_bound(problem)
    found = placement(program, answer.values)
    best = greedy if found is None or objective(problem, greedy) < objective(problem, found) else found
    value = objective(problem, best)
    claimed = rounded_up(answer.bound)
    claim = None if claimed is None else program.tokens(claimed)
    stop = "failed" if answer.stop == "infeasible" else answer.stop  # every plain problem has a solution
    if answer.values is not None and found is None:
        stop = "contradicted"  # an answer that breaks a rule of the problem
    if claim is not None and claim > value:
        stop = "contradicted"
    bound = elementary if claim is None or stop in ("contradicted", "failed") else max(elementary, claim)
    if stop != "done" or bound < value:
        status = "open"
    else:
        status = "proved" if elementary == value else "claimed"
    return {
        "status": status,
        "value": value,
        "bound": bound,
        "barrier": barrier_total(problem, best),
        "claim": claim,
        "stop": status if status != "open" else stop,
    }
