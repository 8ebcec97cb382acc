"""What one more slot, or more of a resource, on a worker is worth: from the prices of a proof, or by solving again.

Let z be the objective of a proved result, and U the number of requests that it admits. Give worker g one more free
slot, or `tokens` more of a resource. Prices that are valid stay so, because they belong to requests, while the patterns
of worker g become more. So the certificate's prices, evaluated with these patterns at each of its leaves, prove a lower
bound z' on the objective of all decisions that still admit U requests, and

    gain(g) <= z - z'.

That is what `at_most` states: an upper bound on the gain by weak duality, in units of the objective, exact in integers.
It is 0 where the prices show that more is worth nothing. It can be far above the gain where the prices are of no use to
the changed problem, in particular where no slot could stay empty before. `exact` is the gain itself, z minus the
objective of the changed problem with exactly U admitted, found by solving again: one solve for each worker and thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kinds import typed
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.certificates.choice import TooLongError, rough
from lbopt.solvers.certificates.conditioned import ConditionedGoal, CountedFleet
from lbopt.solvers.certificates.format import Node, Prices, Record, Refuted
from lbopt.solvers.certificates.tree import Case, walk
from lbopt.solvers.recount import Numbers
from lbopt.solvers.result import Result

#: What can be given to a worker: its name here, and the field of `Conditions`.
_RESOURCES = {"capacity": "capacity", "prefill_budget": "prefill_budget"}


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """What more of one thing is worth on each worker.

    Parameters
    ----------
    what
        "slot", "capacity" or "prefill_budget".
    amount
        How much more of it.
    at_most
        int64 (G,): no gain in the objective is larger.
    exact
        int64 (G,): the gain, from solving again; None where that was not asked for.
    """

    what: str
    amount: int
    at_most: IntArray
    exact: IntArray | None


@typed
def sensitivity(
    problem: StepProblem, result: Result, *, tokens: int = 1, again: bool = False, time_limit: float = 10.0
) -> tuple[Sensitivity, ...]:
    """Return what one more slot, and `tokens` more of each resource, on each worker is worth.

    The meaning is in the module's docstring: decisions have to admit as many requests as the result does.

    Parameters
    ----------
    problem, result
        A step problem under conditions at H = 0, and its proved result with a certificate.
    tokens
        How much more of a resource, in its unit.
    again
        Whether each changed problem is solved, for the exact gain.
    time_limit
        Seconds for each of these solves; one that is not proved by then is an error.

    Raises
    ------
    InputError
        Where the result is not proved by a certificate of prices under conditions, or is of another problem, or a solve
        is not proved in time.

    Examples
    --------
    >>> import lbopt
    >>> problem = lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    >>> small = problem.under(lbopt.Conditions(capacity=[200, 400, 300]))
    >>> slot, capacity = lbopt.sensitivity(small, lbopt.solve(small, "search"), tokens=50, again=True)
    >>> slot.exact.tolist(), capacity.at_most.tolist(), capacity.exact.tolist()
    ([0, 0, 0], [0, 0, 190], [0, 0, 50])
    """
    certificate = result.certificate() if result.proved else None
    conditions = problem.conditions
    if conditions is None or certificate is None or certificate.kind != "priced-conditions":
        raise InputError(
            "sensitivity needs a result under conditions that a certificate of prices proves; solve the problem with "
            'solver="search", under `Conditions(capacity=...)` large enough for all where it has none'
        )
    if certificate.problem_digest != problem.digest:
        raise InputError("sensitivity needs the result of this problem; it is of another one")
    found = []
    for what in ("slot", *(name for name, field in _RESOURCES.items() if getattr(conditions, field) is not None)):
        amount = 1 if what == "slot" else tokens
        at_most = _by_prices(problem, result, certificate.body, what, amount)
        exact = None
        if again:
            exact = np.array([_solved(problem, result, what, amount, g, time_limit) for g in range(at_most.size)])
        found.append(Sensitivity(what, amount, at_most, exact))
    return tuple(found)


def _changed(problem: StepProblem, what: str, amount: int, g: int, admit: int) -> StepProblem:
    """Return the problem with more of something on worker g, and exactly `admit` requests admitted."""
    assert problem.conditions is not None, "the caller has asked"
    slots, conditions = problem.slots.copy(), replace(problem.conditions, admit=admit)
    if what == "slot":
        slots[g] += amount
    else:
        free = getattr(conditions, _RESOURCES[what]).copy()
        free[g] += amount
        conditions = replace(conditions, **{_RESOURCES[what]: free})
    return StepProblem(problem.base, slots, problem.work, problem.must_admit, conditions)


def _solved(problem: StepProblem, result: Result, what: str, amount: int, g: int, time_limit: float) -> int:
    """Return the exact gain of more of something on worker g.

    Parameters
    ----------
    time_limit
        Seconds.
    """
    from lbopt.solvers.front import solve  # it is above this module's readers alone

    workers = result.placed()
    admit = int((workers >= 0).sum())
    again = solve(_changed(problem, what, amount, g, admit), "search", time_limit, hint=workers)
    if not again.proved or again.objective is None or result.objective is None:
        raise InputError(f"worker {g} with more {what} is not proved within {time_limit} s; give a larger time_limit")
    return max(0, result.objective - again.objective)


def _by_prices(problem: StepProblem, result: Result, body: dict[str, Any], what: str, amount: int) -> IntArray:
    """Return upper bounds on the gains of all workers, from the leaves of the certificate."""
    admit, objective = int((result.placed() >= 0).sum()), int(result.objective or 0)
    gains = np.full(problem.num_workers, objective, dtype=np.int64)  # no objective is below 0
    proof = next((one for one in body["goals"] if one["goal"] == "objective"), None)
    if proof is None or objective == 0:
        return gains
    late = {stage.goal: int(stage.value or 0) for stage in result.stages}
    for g in range(problem.num_workers):
        changed = _recounted(Numbers.of(problem), what, amount, g, admit)
        gains[g] = _gain(ConditionedGoal(CountedFleet(changed), "objective", proof, late), objective)
    return gains


def _recounted(p: Numbers, what: str, amount: int, g: int, admit: int) -> Numbers:
    """Return what `_changed` does as the checkers count it, also where no condition is left that says anything."""
    slots, given = list(p.slots), {**p.given, "admit": admit}
    if what == "slot":
        slots[g] += amount
    else:
        free = list(given[_RESOURCES[what]])
        free[g] += amount
        given[_RESOURCES[what]] = free
    return replace(p, slots=slots, given=given)


def _gain(goal: ConditionedGoal, objective: int) -> int:
    """Return by how much decisions of a changed problem may be better than `objective`, by the prices of the leaves."""
    last = max(node.last for node in goal.nodes)
    gain = 0
    for node in goal.nodes:
        a = max(node.first, goal.first)
        b = goal.last if node.last == last else min(node.last, goal.last)  # with more slots a worker may hold more
        if a <= b:
            gain = max(gain, _gain_within(goal, node, a, b, objective))
    return min(gain, objective)


def _gain_within(goal: ConditionedGoal, node: Node, a: int, b: int, objective: int) -> int:
    """Return the same for decisions of the envelopes a..b of a node, 0 at least."""
    enough = goal.workers * a + goal.constant - objective
    most = enough

    def below(case: Case, record: Record) -> Sequence[Case]:
        nonlocal most
        if not isinstance(record, Refuted):
            return goal.split(case, record)
        prices = goal.vectors[record.prices]
        total = _total(goal, case, prices, enough)
        if total is not None and total // goal.scale > enough:
            # One blank more may be worth much to workers that had none; at a price of their gain they do without.
            blank = len(case.left) - 1
            for dearer in _blank_prices(goal, case, prices, blank):
                other = _total(goal, case, {**prices, blank: dearer}, enough)
                total = total if other is None else min(total, other)
            most = max(most, total // goal.scale)
        return []

    walk([Refuted(node.prices)] if node.tree is None else node.tree, below, goal.root(b))
    return most - enough


def _total(goal: ConditionedGoal, case: Case, prices: Prices, enough: int) -> int | None:
    """Return the bound on scale * value at some prices, exact where that is quick; None where nothing fits."""
    try:
        return goal.value(case, prices, enough)
    except TooLongError:
        least = [rough(goal.tasks(case, g, prices)) for g in case.workers]
        return goal.fixed(case, prices) + sum(value for value in least if value is not None)


def _blank_prices(goal: ConditionedGoal, case: Case, prices: Prices, blank: int) -> list[int]:
    """Return prices of the blank at which fewer and fewer workers want one."""
    gains = []
    for g in case.workers:
        with_blanks = rough(goal.tasks(case, g, prices))
        without = rough(goal.tasks(case.banning(g, blank), g, prices))
        if with_blanks is not None and without is not None and with_blanks > without:
            gains.append(with_blanks - without)
    return [prices.get(blank, 0) + gain for gain in sorted(gains)[-2:]]
