"""lbopt's own search under conditions as an engine: goal by goal, from the number admitted to the objective.

Each goal is searched for by the same compiled code (`lbopt.kernels.conditions`), which makes

    G M - (loads before) - (sum of values)

least. For the number, a request is worth 1 and no envelope counts; for the cost of waiting it is worth that. What a
goal has reached is held: blanks say how many are admitted, and the total cost of waiting by a weight on it in the
objective, so large that a unit more costs more than all that could be gained.

The search keeps its prices, the ranges that they close, and its trees; only the prices that closed something are
written. Nothing here has to be trusted: `lbopt.solvers.certificates.conditioned` believes none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.conditions.envelopes import advance, begin
from lbopt.kernels.conditions.state import OPEN, PROVED, Search, Step
from lbopt.kernels.deadline import ENDLESS
from lbopt.kernels.search.state import Master
from lbopt.model import StepProblem, objective
from lbopt.model.objective import overdue
from lbopt.solvers.budget import Budget, ended_by
from lbopt.solvers.certificates.format import Certificate
from lbopt.solvers.conditions.priced_step import Classes, Goal, classes_of, step_of
from lbopt.solvers.conditions.workspace import fits_memory, made
from lbopt.solvers.engine import Bound, Decision, Engine, Known

#: Work between two looks at the clock, about microseconds, and nodes of a tree between two looks at the work.
_SLICE, _NODES = 20_000, 20

#: A bound that says nothing.
_NO_FLOOR = -(1 << 61)


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """What a search of one goal ended with.

    Parameters
    ----------
    goal
        What was made least.
    found
        The best decision; None where none was found.
    value, bound
        What it reaches, None without one; what is proved.
    stop
        "done", "infeasible", "memory", "interrupted", or what `Limits.reached` says.
    search, scale
        The state of the search, with prices, ranges and trees; units of a price in a unit of value.
    """

    goal: Goal
    found: Decision | None
    value: int | None
    bound: int
    stop: str
    search: Search
    scale: int


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What the searches of all goals ended with, and the classes that their prices speak of."""

    outcome: Known
    classes: Classes
    goals: tuple[Searched, ...]


def search_under_conditions(problem: StepProblem, best: Decision | None, budget: Budget) -> Answered | None:
    """Return what the search finds and proves; None where it does not take the problem.

    Parameters
    ----------
    problem
        A step problem under conditions.
    best
        A decision that is known; None for none.
    budget
        Time, seed and what else ends a solve.
    """
    classes = classes_of(problem)
    if classes is None or not classes.fits[classes.must].any(axis=1).all():
        return None
    K, W = classes.fits.shape
    if not fits_memory(W, K + 1, int(classes.slots.max(initial=1))):
        return None
    return _Run(problem, classes, best, budget).answer()


class _Run:
    """One problem, goal after goal."""

    def __init__(self, problem: StepProblem, classes: Classes, best: Decision | None, budget: Budget) -> None:
        self.problem, self.classes, self.best, self.budget = problem, classes, best, budget
        self.goals: list[Searched] = []
        self.work = 0

    def answer(self) -> Answered | None:
        conditions, all_slots = self.problem.conditions, int(self.classes.slots.sum())
        assert conditions is not None, "the caller has asked"
        forced, costs = self.classes.must, self.classes.costs
        goal = Goal("objective", all_slots, False, 0 if conditions.overdue_first else 1, forced)
        if conditions.exactly is not None:
            if conditions.exactly > all_slots:
                return None
            goal = replace(goal, blanks=all_slots - conditions.exactly, exactly=True)
        for name in (*conditions.goals, "objective"):
            if name == "left_waiting":
                held = replace(goal, name=name, weight=0)
            elif name == "overdue":
                held = replace(goal, name=name, weight=1)
            else:
                held = goal
            one = self.searched(held)
            if one is None:
                return None
            self.goals.append(one)
            if one.found is None:
                break
            self.best = one.found
            if one.stop == "interrupted":  # Ctrl-C ends the solve, not this goal alone
                break
            if name == "left_waiting":
                admitted = int((one.found.assignment >= 0).sum())
                goal = replace(goal, blanks=all_slots - admitted)
            elif name == "overdue":
                late = overdue(self.problem, one.found.assignment)
                if late == 0:
                    goal = replace(goal, forced=forced | (costs > 0))
                else:
                    reached = objective(self.problem, one.found.assignment, one.found.paused)
                    goal = replace(goal, weight=reached + 1)
        return Answered(self._outcome(conditions.goals), self.classes, tuple(self.goals))

    def _outcome(self, names: tuple[str, ...]) -> Known:
        stop = next((one.stop for one in self.goals if one.stop != "done"), "done")
        bounds = []
        for one in self.goals:
            by = "elementary-bound" if one.bound <= self._floor(one.goal) else "certificate"
            bounds.append(Bound(one.bound, by))
        bounds += [Bound(0, "elementary-bound")] * (len(names) + 1 - len(bounds))
        best = self.best if self.goals[-1].found is not None else None
        return Known(problem=self.problem, best=best, bounds=tuple(bounds), stop=stop, solver="exact")

    def _floor(self, goal: Goal) -> int:
        return self.problem.num_requests - self.classes.most if goal.name == "left_waiting" else 0

    def value(self, goal: Goal, decision: Decision) -> int:
        """Return what a decision reaches of a goal, as the search counts it."""
        late = overdue(self.problem, decision.assignment)
        if goal.name == "left_waiting":
            return int((decision.assignment < 0).sum())
        if goal.name == "overdue":
            return late
        conditions = self.problem.conditions
        counted = conditions is not None and not conditions.overdue_first
        return objective(self.problem, decision.assignment, decision.paused) + (0 if counted else goal.weight * late)

    def searched(self, goal: Goal) -> Searched | None:
        """Search one goal; None where its numbers are too large."""
        best = self.best
        if best is not None and not self._permits(goal, best):
            best = None
        W, K = self.classes.workers.size, len(self.classes.members) + 1
        search, master = made(W, K, max(1, int(self.classes.slots.max(initial=1))))
        planned = step_of(self.classes, goal)
        if planned is None:
            return None
        step, first, last = planned
        worst = step.workers * last - step.total + 1 - int(step.mode_value.sum())
        known = search.known
        known.most = self.budget.limits.effort or ENDLESS
        known.cost, known.found = (worst, 0) if best is None else (self.value(goal, best), 1)
        started = known.cost
        known.work, known.deadline = self.work, self.budget.limits.deadline()
        with ended_by(self.budget.limits.cancel, known):
            begin(step, search, master, first, last, self._floor(goal) if goal.name != "objective" else _NO_FLOOR)
        if known.found == 0:
            feasible = self._any(goal, known.work)
            if feasible is None or feasible.found is None:
                return feasible
            known.work = feasible.search.known.work
            best = feasible.found
            known.cost, known.found = self.value(goal, best), 1
            started = known.cost
        state, stop = self._run(step, search, master, partial(self._reached, goal, search))
        if state == PROVED:
            stop = "done"
        self.work = int(known.work)
        found = best if known.cost >= started and best is not None else self._handed_out(goal, search)
        value, bound = int(known.cost), min(int(known.bound), int(known.cost))
        if goal.name == "objective" and self._weighed(goal):
            late = goal.weight * overdue(self.problem, found.assignment)
            value, bound = value - late, bound - late
        return Searched(goal, found, value, max(bound, self._floor(goal)), stop or "memory", search, step.scale)

    def _run(
        self, step: Step, search: Search, master: Master, reached: Callable[[], str | None]
    ) -> tuple[int, str | None]:
        """Go on with a search slice by slice; return how it ends, and what `reached` says or cut it short."""
        known, limits = search.known, self.budget.limits
        state, stop = OPEN, None
        try:
            with ended_by(limits.cancel, known):
                while state == OPEN and stop is None:
                    stop = reached() or ("time" if known.expired else None)
                    if stop is None:
                        known.deadline = limits.deadline()
                        state = advance(step, search, master, _NODES, int(known.work) + _SLICE)
        except KeyboardInterrupt:
            stop = "interrupted"
        return state, stop

    def _weighed(self, goal: Goal) -> bool:
        conditions = self.problem.conditions
        return conditions is not None and conditions.overdue_first and goal.weight > 0

    def _permits(self, goal: Goal, decision: Decision) -> bool:
        """Return whether a decision keeps what the goals before have reached."""
        admitted = int((decision.assignment >= 0).sum())
        blanks = int(self.classes.slots.sum()) - admitted
        late = any(
            decision.assignment[i] < 0 for k in np.flatnonzero(goal.forced).tolist() for i in self.classes.members[k]
        )
        return not late and (blanks == goal.blanks if goal.exactly else blanks <= goal.blanks)

    def _reached(self, goal: Goal, search: Search) -> str | None:
        known = search.known
        if goal.name != "objective" or self._weighed(goal):
            return self.budget.limits.reached(int(known.work))
        return self.budget.limits.reached(
            int(known.work), int(known.cost) if known.found else None, max(0, min(int(known.bound), int(known.cost)))
        )

    def _any(self, goal: Goal, work: int) -> Searched | None:
        """Look for any decision, at the largest envelope; prices rule out that there is one."""
        W, K = self.classes.workers.size, len(self.classes.members) + 1
        planned = step_of(self.classes, goal, heavy=True)
        if planned is None:
            return None
        step, _, last = planned
        search, master = made(W, K, max(1, int(self.classes.slots.max(initial=1))))
        known = search.known
        known.most = self.budget.limits.effort or ENDLESS
        known.work, known.deadline = work, self.budget.limits.deadline()
        lost = -int(sum(step.mode_value[a:b].min() for a, b in zip(step.mode_first, step.mode_first[1:], strict=False)))
        known.cost = step.workers * last - step.total + lost + 1
        with ended_by(self.budget.limits.cancel, known):
            begin(step, search, master, last, last, _NO_FLOOR)

        def reached() -> str | None:
            return "found" if known.found else self.budget.limits.reached(int(known.work))

        state, stop = self._run(step, search, master, reached)
        found = self._handed_out(goal, search) if known.found else None
        stop = "infeasible" if state == PROVED and found is None else stop or "memory"
        return Searched(goal, found, None, 0, stop, search, step.scale)

    def _handed_out(self, goal: Goal, search: Search) -> Decision:
        """Return the best decision of a search: of each class the first requests are placed, worker by worker."""
        classes, problem = self.classes, self.problem
        workers = np.full(problem.num_requests, -1, dtype=np.int64)
        next_of = [iter(members) for members in classes.members]
        running = 0 if problem.conditions is None else problem.conditions.num_pausable
        pauses = np.zeros(running, dtype=np.bool_)
        blank, first = len(classes.members), 0
        for w, g in enumerate(classes.workers.tolist()):
            for k in search.answer[w, : classes.slots[w]].tolist():
                if k < blank:
                    workers[next(next_of[k])] = g
            if goal.name == "objective":
                for r in classes.modes[w][int(search.answer_mode[w]) - first][2]:
                    pauses[r] = True
                first += len(classes.modes[w])
        return Decision(problem, workers, pauses if running else None)


#: Words of trees, and vectors of prices, up to which a proof is written.
_WORDS, _VECTORS = 60_000, 6_000


class UnderConditions(Engine):
    """Single steps under conditions; where it would take too much memory others go on."""

    def refusal(self) -> str | None:
        """Refuse plain problems, and windows."""
        if self.problem.conditions is None:
            return "no conditions"
        return "window" if self.problem.horizon > 0 else None

    def run(self, known: Known, budget: Budget) -> Known:
        """Search from the hint; a search that finds nothing says at most that there is nothing."""
        answered = search_under_conditions(self.problem, known.best, budget)
        if answered is None:
            return known
        found = answered.outcome
        if found.best is None:
            return replace(found, solver="search") if found.stop == "infeasible" else replace(known, stop=found.stop)
        evidence = partial(written_proof, self.problem, answered)
        return replace(found, evidence=evidence, final=found.stop != "memory")


def written_proof(problem: StepProblem, answered: Answered) -> Certificate:
    """Return the certificate of the bounds of all goals that the search proved by prices.

    Raises
    ------
    CertificateError
        Where the proof is too long to be written down.
    """
    bounds = answered.outcome.bounds
    goals = [
        _goal(one, answered.classes.workers.tolist())
        for one, bound in zip(answered.goals, bounds, strict=False)
        if bound.proof == "certificate"
    ]
    reached = {one.goal.name: one.value for one in answered.goals[:-1]}
    body = {"reached": reached, "goals": goals}
    return Certificate(problem_digest=problem.digest, kind="priced-conditions", bound=bounds[-1].value, body=body)


def _goal(one: Searched, workers: list[int]) -> dict[str, Any]:
    known = one.search.known
    if not known.written or known.records > _WORDS or known.prices > _VECTORS:
        raise CertificateError(
            f"the proof of {one.goal.name} is not written: it has {int(known.records)} words of trees and "
            f"{int(known.prices)} vectors of prices or more"
        )
    blank = one.search.price.size - 1
    used: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    least = 0
    ranges, records = one.search.ranges, one.search.records
    for i in range(int(known.ranges)):
        part = ranges[i]
        node: dict[str, Any] = {"envelopes": [int(part.first), int(part.last)]}
        least = min(least, int(part.first)) if i else int(part.first)
        if part.tree >= 0:
            words = records[part.tree : part.tree + part.length].tolist()
            node["tree"] = _tree(words, workers, used)
        else:
            node["prices"] = used.setdefault(int(part.priced), len(used))
        nodes.append(node)
    if least > 0:  # no worker can have a load as small
        nodes.append({"envelopes": [0, least - 1], "prices": used.setdefault(0, len(used))})
    prices = one.search.prices
    rows = [prices[row, : blank + 1].tolist() for row in used]
    return {
        "goal": one.goal.name,
        "bound": one.bound,
        "weight": one.goal.weight,
        "scale": one.scale,
        "prices": [[[k, price] for k, price in enumerate(row) if price] for row in rows],
        "nodes": nodes,
    }


def _tree(words: list[int], workers: list[int], used: dict[int, int]) -> list[list[int]]:
    """Return a tree as records in preorder: [row of prices] for a leaf, [class, worker, first case] for a branch."""
    records: list[list[int]] = []
    place = 0
    while place < len(words):
        if words[place] < 0:
            records.append([used.setdefault(words[place + 1], len(used))])
            place += 2
        else:
            k, w, first = words[place : place + 3]
            records.append([k, workers[w], first])
            place += 3
    return records
