"""bf-io: the BF-IO program, solved exactly at every decision (arXiv 2601.17855, algorithm 1), now or over a window.

With lbopt's own search, the default, most decisions of a fleet of 16 take a fraction of a millisecond at H = 0, and a
few milliseconds over a window. What each was worth is in `ledger`: its imbalance summed over the window, the proved
bound, and so whether it is proved, claimed by a solver, or was left open at a limit. Overdue requests are constraints
of the program, not assigned beforehand: where the others go is decided with them.

Where workers differ in speed, or their memory can run out, the program of a step without a window has these conditions
(`lbopt.policies.bf_io`), and lbopt's own search under conditions solves it.

What an observation tells of memory and speed, as conditions of the step problem (`lbopt.model.Conditions`).

Speed: a worker that needs f times as long for its own part of a step has pace f, in hundredths; a common divisor goes.
Memory: worker g has room for

    capacity - (blocks that stay free) - committed - (requests that it runs or queues) * ceil(room / block)

blocks, and a request of s tokens needs what s + `room` tokens occupy: so whatever a worker runs can make `room` more
tokens before a request is pre-empted. An engine lets a request that is alone have the whole memory; a request that
exceeds what is left of an empty worker therefore needs just that. As many requests as possible are admitted, but at
most 16 to each worker in one decision, which is what lbopt's own search takes: an empty fleet is filled in a few steps.

Overdue requests are tried one after the other, the oldest first, each on the worker with most room left. Those that fit
are forced. The first one that does not keeps the worker with most room from all younger ones, until it fits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.model import Conditions, StepProblem, objective
from lbopt.model.paced_numbers import paced_numbers
from lbopt.policies.observation import Memory, Observation
from lbopt.policies.policy import LARGEST_OPTION, Admission, Ledger, check_age_bound, check_choice, check_option, named
from lbopt.policies.projection import Projection
from lbopt.predictors import Foresight, check_predictor
from lbopt.solvers import check_solver, solve
from lbopt.solvers.front import check_tie_order

#: Weights of a discounted window are whole multiples of 1/16; steps that weigh less than half of it are left out.
WEIGHT_UNIT = 16

#: What is assumed of requests that wait: that they outlive the window, or that they end when the forecast says so.
NEW = ("survives", "forecast")


@dataclass(frozen=True, slots=True)
class BfIo:
    """The exact rule.

    Parameters
    ----------
    solver
        Handed to `lbopt.solve`, but for "exact", which is asked directly.
    time_limit
        Seconds after which a decision is the best placement known; None = never.
    age_bound
        Steps after which a waiting request must be admitted, oldest first; None = never.
    tie
        Which of equal requests are admitted, and where: "oldest", "newest" or "random", see
        `lbopt.solvers.exact.tie_orders`. Other solvers have an order of their own.
    seed
        Feeds "random".
    effort
        Units of work of the search, about a microsecond each, after which a decision is the best placement known;
        a limit that, unlike `time_limit`, leaves a run the same on every machine. None = never.
    horizon
        H, steps; 0 needs no forecast.
    new
        What is assumed of the requests that wait: "survives", they outlive the window, or "forecast", they end when
        their forecast says so, which makes an oracle of both.
    gamma
        Discount in (0, 1]: step h of the window weighs gamma^h, in sixteenths. It is not known which requests arrive
        after the present decision, so the end of a window is a guess; 1 is the published objective.
    growth, departures, boundary
        How the running requests are projected, see `BrH`.
    predictor, refresh, gate, floor, hold_anchor
        The forecast, see `Foresight`.
    conditions
        Whether the program heeds the memory and the speed of workers where they are known, at H = 0; of equal requests
        the oldest start then. Otherwise it knows sizes, loads and free slots alone.
    room
        Tokens by which each request of a worker must be able to grow before memory runs out, with `conditions`.
    """

    solver: str = "exact"
    time_limit: float | None = 0.5
    age_bound: int | None = None
    tie: str = "oldest"
    seed: int = 0
    effort: int | None = None
    horizon: int = 0
    new: str = "survives"
    gamma: float = 1.0
    growth: int = 1
    departures: str = "cut"
    boundary: str = "alive"
    predictor: str = "survival"
    refresh: int | None = None
    gate: float = 0.5
    floor: float = 1.0
    hold_anchor: bool = False
    conditions: bool = True
    room: int = 16
    ledger: Ledger = field(default_factory=Ledger, init=False, compare=False)

    def __post_init__(self) -> None:
        check_age_bound("bf-io", self.age_bound)
        check_solver(self.solver, self.time_limit)
        check_tie_order(self.tie, "policy 'bf-io'")
        for option, least in (("seed", 0), ("effort", 1), ("room", 0)):
            value = getattr(self, option)
            if value is not None:
                check_option("bf-io", option, value, least, LARGEST_OPTION)
        if self.solver != "exact" and (self.tie, self.effort) != ("oldest", None):
            raise InputError(
                f"policy 'bf-io': tie and effort are for solver=exact, not for {self.solver}; leave them out"
            )
        check_choice("bf-io", "new", self.new, NEW)
        if not 0 < self.gamma <= 1:
            raise InputError(f"policy 'bf-io': gamma is {self.gamma}; expected a discount in (0, 1]")
        _ = self._projection  # refuses a growth, departures or boundary that cannot be
        check_predictor(self.predictor)
        if self.foresight is not None and self.tie != "oldest":
            raise InputError(f"policy 'bf-io': tie={self.tie} is for horizon=0; over a window the oldest come first")

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        return named("bf-io", self)

    @property
    def foresight(self) -> Foresight | None:
        """The forecast that it asks for; none without a window."""
        wanted = Foresight(self.horizon, self.predictor, self.refresh, self.gate, self.floor, self.hold_anchor)
        return wanted if self.horizon else None

    @property
    def admission(self) -> Admission:
        """Pooled: which requests are admitted is half of the decision."""
        return "pooled"

    @property
    def tally(self) -> Counter[str]:
        """How many decisions are of each of `STANDINGS`."""
        return self.ledger.tally()

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return an optimal placement, or the best known one at a limit."""
        begin = compile_time.clock()
        problem, unit = self._problem(observation), self._unit
        if self.conditions and not self.horizon:
            problem, unit = under_what_is_known(problem, observation, self.room)
        assignment, bound, standing = self._searched(problem, observation.step) or self._solved(problem)
        imbalance = objective(problem, assignment)
        assert bound <= imbalance, f"a bound of {bound} tokens is refuted by {imbalance}"
        tokens = -(-imbalance // unit)
        self.ledger.note(
            step=observation.step,
            imbalance=tokens,
            bound=tokens if bound == imbalance else bound // unit,  # else rounding would open a proved gap
            standing="open" if bound < imbalance else standing,
            seconds=compile_time.clock() - begin,
        )
        return assignment

    @property
    def _projection(self) -> Projection:
        return Projection("bf-io", self.horizon, self.growth, self.departures, self.boundary)

    @property
    def _unit(self) -> int:
        """What a token of the present step weighs in the program."""
        return WEIGHT_UNIT if self.gamma < 1 and self.horizon else 1

    def _problem(self, observation: Observation) -> StepProblem:
        """Return the program of this decision."""
        base = self._projection.of_workers(observation)
        if self.new == "forecast":
            work = self._projection.of_waiting(observation)
        else:
            work = observation.sizes[:, None] + np.arange(self.horizon + 1) * self.growth
        if self._unit > 1:
            weights = np.rint(self._unit * self.gamma ** np.arange(self.horizon + 1)).astype(np.int64)
            count = int(np.count_nonzero(weights))
            base, work = base[:, :count] * weights[:count], work[:, :count] * weights[:count]
        return StepProblem(base, observation.free_slots, work, overdue(observation, self.age_bound))

    def _searched(self, problem: StepProblem, step: int) -> tuple[NDArray[np.int64], int, str] | None:
        """Ask lbopt's own search without the formalities of `solve`; None where that cannot answer."""
        if problem.num_admitted == 0:
            none_chosen = np.full(problem.num_requests, -1, dtype=np.int64)
            return none_chosen, objective(problem, none_chosen), "proved"
        if self.solver != "exact":
            return None
        if problem.conditions is not None:
            return self._searched_under_conditions(problem)
        from lbopt.solvers.budget import Limits, countdown
        from lbopt.solvers.exact import search_problem

        limits = Limits(countdown(self.time_limit), self.effort)
        answer = search_problem(problem, None, limits, tie=self.tie, seed=(self.seed, step))
        if answer.stop == "interrupted":  # the search has caught Ctrl-C; the run has to hear of it
            raise KeyboardInterrupt
        by = "proved" if answer.proof == "elementary-bound" else "searched"
        return None if answer.assignment is None else (answer.assignment, answer.bound, by)

    def _searched_under_conditions(self, problem: StepProblem) -> tuple[NDArray[np.int64], int, str]:
        """Ask lbopt's own search under conditions, else place greedily."""
        from lbopt.solvers.budget import Budget
        from lbopt.solvers.conditions.priced_search import search_under_conditions

        answered = search_under_conditions(problem, None, Budget(self.time_limit, self.seed, effort=self.effort))
        outcome = None if answered is None else answered.outcome
        if outcome is not None and outcome.stop == "interrupted":
            raise KeyboardInterrupt
        if outcome is not None and outcome.best is not None:
            searched = any(bound.proof == "certificate" for bound in outcome.bounds)
            standing = "open" if not outcome.closed else "searched" if searched else "proved"
            return outcome.best.assignment, outcome.bounds[-1].value, standing
        return placed_greedily(problem)

    def _solved(self, problem: StepProblem) -> tuple[NDArray[np.int64], int, str]:
        result = solve(problem, solver=self.solver, time_limit=self.time_limit)
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        if result.assignment is None:  # a plain problem has a greedy placement, from which `solve` starts
            return placed_greedily(problem)
        word = "searched" if result.proof == "search" else "claimed"
        standing = "proved" if result.proved else word if result.status == "optimal" else "open"
        return result.assignment, result.bound, standing


def placed_greedily(problem: StepProblem) -> tuple[NDArray[np.int64], int, str]:
    """Return a greedy decision under conditions, an elementary bound on its objective, and "open".

    Greedy orders can leave no room for a request that must start. By age all of these fit, so that is the last resort.
    """
    from lbopt.solvers.elementary import elementary_bounds, greedy_decision
    from lbopt.solvers.engine import Decision

    numbers = paced_numbers(problem)
    placed = greedy_decision(numbers) or Decision(problem, placed_by_age(problem))
    return placed.assignment, elementary_bounds(problem, placed)[-1].value, "open"


def overdue(observation: Observation, age_bound: int | None) -> NDArray[np.bool_]:
    """Return bool (n,): the requests that have waited `age_bound` steps or more, oldest first, at most U of them."""
    flags = np.zeros(observation.sizes.size, dtype=np.bool_)
    if age_bound is not None:
        late = np.flatnonzero(observation.waited >= age_bound)
        flags[late[: observation.num_admissible]] = True  # order of revelation is order of age
    return flags


#: Paces are whole multiples of 1/100, within these ends.
PACE_UNIT = 100
_LEAST, _MOST = 1, 100_000

#: Requests that a worker gets in one decision at most: those that the search takes.
MOST_SLOTS = 16

Ints = NDArray[np.int64]


def under_what_is_known(problem: StepProblem, observation: Observation, room: int) -> tuple[StepProblem, int]:
    """Return the problem under the conditions that can change its decision, and what a token weighs in its objective.

    Parameters
    ----------
    problem
        The step problem of the observation, H = 0; its `must_admit` are the requests that are overdue.
    room
        Tokens by which every request of a worker must be able to grow.
    """
    pace, unit = paces_of(observation.slow)
    slots, capacity, need, allowed = problem.slots, None, None, None
    if observation.is_open is not None:
        slots = np.where(observation.is_open, slots, 0)
    if observation.memory is not None:
        capacity, need = memory_of(observation, observation.memory, room)
        slots = np.where(capacity >= need.min(initial=np.iinfo(np.int64).max), slots, 0)
        if not binds(capacity, need, slots):
            capacity = need = None
    if capacity is not None or pace is not None:
        slots = np.minimum(slots, MOST_SLOTS)
    must = problem.must_admit
    if capacity is not None and need is not None:
        must, allowed = _forced(must, capacity, need, slots)
    else:
        must = must & (np.cumsum(must) <= slots.sum())
    known = StepProblem(problem.base, slots, problem.work, must)
    if capacity is None and pace is None:
        return known, 1
    return known.under(Conditions(capacity=capacity, need=need, allowed=allowed, pace=pace)), unit


def paces_of(slow: NDArray[np.float64] | None) -> tuple[Ints | None, int]:
    """Return the pace of each worker, int64 (G,), None where all are alike; and the pace of a factor of 1."""
    if slow is None:
        return None, 1
    pace = np.clip(np.rint(slow * PACE_UNIT), _LEAST, _MOST).astype(np.int64)
    if (pace == pace[0]).all():
        return None, 1
    common = int(np.gcd.reduce(np.append(pace, PACE_UNIT)))
    return pace // common, PACE_UNIT // common


def memory_of(observation: Observation, memory: Memory, room: int) -> tuple[Ints, Ints]:
    """Return the blocks that each worker has for new requests, int64 (G,), and that each request needs, int64 (n,).

    Parameters
    ----------
    room
        Tokens by which every request must be able to grow.
    """
    present = observation.running + observation.queued
    empty = memory.capacity - memory.kept_free
    capacity = np.maximum(empty - memory.committed - present * -(-room // memory.block), 0)
    return capacity, np.minimum(memory.needed(observation.sizes + room), max(0, int(empty.max())))


def binds(capacity: Ints, need: Ints, slots: Ints) -> bool:
    """Return whether memory can keep a worker from filling its free slots with any of the waiting requests.

    Parameters
    ----------
    capacity, need
        int64 (G,) and (n,), blocks.
    slots
        int64 (G,), free slots.
    """
    largest = np.concatenate([[0], np.cumsum(np.sort(need)[::-1])])
    return bool((largest[np.minimum(slots, need.size)] > capacity).any())


def _forced(
    overdue: NDArray[np.bool_], capacity: Ints, need: Ints, slots: Ints
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return which requests have to be admitted, bool (n,), and who may go where, bool (n, G), None for everywhere.

    Parameters
    ----------
    overdue
        bool (n,): requests that have waited too long, in order of age.
    capacity, need
        int64 (G,) and (n,), blocks.
    slots
        int64 (G,), free slots.
    """
    must = np.zeros(overdue.size, dtype=np.bool_)
    left, free = capacity.copy(), slots.copy()
    for i in np.flatnonzero(overdue).tolist():
        if not free.any():
            break
        g = int(np.argmax(np.where(free > 0, left, -1)))
        if left[g] < need[i]:
            kept = int(np.argmax(left))
            allowed = np.ones((overdue.size, capacity.size), dtype=np.bool_)
            allowed[i + 1 :, kept] = False
            return must, allowed
        must[i] = True
        left[g] -= need[i]
        free[g] -= 1
    return must, None


def placed_by_age(problem: StepProblem) -> Ints:
    """Return a decision that keeps memory, int64 (n,): requests that must start, then the others, oldest first.

    Each goes to the worker with most room left, as `_forced` tried those that must start; so all of these fit.

    Parameters
    ----------
    problem
        What `under_what_is_known` has returned.
    """
    conditions, N = problem.conditions, problem.num_requests
    left, need = np.zeros(problem.num_workers, dtype=np.int64), np.zeros(N, dtype=np.int64)
    if conditions is not None and conditions.capacity is not None and conditions.need is not None:
        left, need = conditions.capacity.copy(), conditions.need
    placed, free = np.full(N, -1, dtype=np.int64), problem.slots.copy()
    for i in np.argsort(~problem.must_admit, kind="stable").tolist():
        fits = (free > 0) & (left >= need[i])
        if conditions is not None and conditions.allowed is not None:
            fits &= conditions.allowed[i]
        if fits.any():
            g = int(np.argmax(np.where(fits, left, -1)))
            placed[i] = g
            left[g] -= need[i]
            free[g] -= 1
    return placed
