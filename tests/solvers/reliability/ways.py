"""Ways to put one step to the solvers that must agree: forms of it, and engines that share little.

A form changes what cannot change the optimum: the seed, the order of workers and requests, the unit, slots beyond the
number of requests, conditions that bind nobody. Every limit is an effort, so that answers do not depend on the machine;
solvers of others know limits of time alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from solvers.reliability.mid_steps import MidStep

from lbopt import Conditions, Result, StepProblem, solve
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.known_ends_search import search_known_ends
from lbopt.solvers.exact.search import by_prices

SEEDS = 5

#: Seconds after which a solve is given up whatever its effort says; none should come near.
GUARD = 120.0

#: Seconds of a solver of others.
SHORT = 2.0

BEYOND = 10**9


@dataclass(frozen=True, slots=True)
class Said:
    """What an engine says: placement, bound in tokens of its problem, whether it calls that the optimum, and why."""

    assignment: list[int] | None
    bound: int
    optimal: bool
    stop: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask about a step.

    Its `problem` has worker ``workers[g]`` of the step as its worker g, request ``requests[i]`` as its request i, and
    `factor` times its imbalance; the step is taken with `slots`.
    """

    name: str
    problem: StepProblem
    slots: list[int]
    ask: Callable[[StepProblem], Said]
    factor: int = 1
    workers: list[int] = field(default_factory=list)  # as they are where empty
    requests: list[int] = field(default_factory=list)

    def assignment(self, said: Said) -> list[int] | None:
        """The placement in the step's own order."""
        if said.assignment is None or not self.workers:
            return said.assignment
        placed = [-1] * len(said.assignment)
        for i, g in zip(self.requests, said.assignment, strict=True):
            placed[i] = self.workers[g] if 0 <= g < len(self.workers) else g
        return placed


def forms(step: MidStep, rng: random.Random, effort: int) -> Iterator[Way]:
    """The forms of a step: five seeds, shuffled, three times as large, slots beyond all requests, under conditions.

    Parameters
    ----------
    step
        The step.
    rng
        Draws the orders, the worker with many slots and the conditions.
    effort
        Units of work of each solve.
    """
    slots, problem = step.slots, step.problem
    for seed in range(SEEDS):
        yield Way(f"seed {seed}", problem, slots, _solver("exact", effort, seed))
    own = _solver("search", effort)
    workers, requests = (rng.sample(range(n), n) for n in (len(slots), len(step.sizes)))
    shuffled = StepProblem.now(
        [step.loads[g] for g in workers], [slots[g] for g in workers], [step.sizes[i] for i in requests]
    )
    yield Way("shuffled", shuffled, slots, own, workers=workers, requests=requests)
    larger = StepProblem.now([3 * load for load in step.loads], slots, [3 * size for size in step.sizes])
    yield Way("times 3", larger, slots, own, factor=3)
    loose = rng.randrange(len(slots))
    as_many = [len(step.sizes) if g == loose else free for g, free in enumerate(slots)]
    for name, free in (("as many slots", len(step.sizes)), ("slots beyond", BEYOND)):
        more = [free if g == loose else other for g, other in enumerate(slots)]
        yield Way(name, StepProblem.now(step.loads, more, step.sizes), as_many, own)
    name, conditions, factor = _without_effect(step, rng)
    yield Way(f"under {name}", problem.under(conditions), slots, own, factor=factor)


def engines(step: MidStep, rng: random.Random, effort: int) -> Iterator[Way]:
    """The engines that can answer a step; arguments as for `forms`."""
    slots, problem = step.slots, step.problem
    yield Way("search", problem, slots, _solver("search", effort))
    yield Way("prices", problem, slots, lambda asked: _priced(asked, effort))
    flat = StepProblem(np.repeat(problem.base, 2, axis=1), problem.slots, np.repeat(problem.work, 2, axis=1))
    yield Way("flat window", flat, slots, _solver("search", effort), factor=2)
    yield Way("departures", flat, slots, lambda asked: _by_programs(asked, effort), factor=2)
    name, conditions, factor = _without_effect(step, rng)
    yield Way(f"under {name}", problem.under(conditions), slots, _solver("search", effort), factor=factor)
    for name in ("cp-sat", "highs", "pulp"):
        yield Way(name, problem, slots, _solver(name, None))


def _without_effect(step: MidStep, rng: random.Random) -> tuple[str, Conditions, int]:
    """Conditions that change nothing but the unit: their name, they, and the factor of the unit."""
    G, N = len(step.slots), len(step.sizes)
    return rng.choice(
        [
            ("capacity", Conditions(capacity=[min(free, N) for free in step.slots], need=[1] * N), 1),
            ("budget", Conditions(prefill_budget=[sum(step.sizes)] * G), 1),
            ("pace", Conditions(pace=[2] * G), 2),
        ]
    )


def _solver(name: str, effort: int | None, seed: int = 0) -> Callable[[StepProblem], Said]:
    limits = {"time_limit": SHORT} if effort is None else {"time_limit": GUARD, "effort": effort}

    def ask(problem: StepProblem) -> Said:
        result = solve(problem, name, seed=seed, **limits)
        placed = None if result.assignment is None else result.assignment.tolist()
        return Said(placed, _bound(problem, result), result.status == "optimal", result.stop_reason)

    return ask


def _bound(problem: StepProblem, result: Result) -> int:
    """The bound; none where conditions that bind nobody are not seen to leave as few waiting as there are slots for."""
    least = problem.num_requests - problem.num_admitted
    assert all(stage.bound <= least for stage in result.stages), "more can be admitted"
    return result.bound if all(stage.value == least for stage in result.stages) else 0


def _priced(problem: StepProblem, effort: int) -> Said:
    found = by_prices(problem, None, Limits(effort=effort))
    placed = None if found.assignment is None else found.assignment.tolist()
    return Said(placed, found.bound, found.stop == "done", found.stop)


def _by_programs(problem: StepProblem, effort: int) -> Said:
    found = search_known_ends(problem, None, Limits(effort=effort))
    placed = None if found.assignment is None else found.assignment.tolist()
    return Said(placed, found.bound, found.stop == "done", found.stop)
