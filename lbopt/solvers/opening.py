"""What is answered in plain Python, before a search is compiled or a solver is started.

A greedy placement, or the hint, is the first decision, and elementary reasoning gives the first bounds. What is small
is exhausted: the first use of a compiled search takes most of a minute, and five requests should not wait for that.
What is small is read from the problem alone, never from what happens to be compiled already: the same problem has the
same answer on every machine.

Where no decision meets the conditions, the binding thing is said by its name and numbers. Each reason is a proof by
itself. Requests that each find room, but not together, have no such reason; then exhaustion, or a solver, says that
there is none, and small problems are tried without one condition at a time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.model import Conditions, StepProblem
from lbopt.model.floors import Floors
from lbopt.model.integers import IntArray
from lbopt.model.paced_numbers import PacedNumbers, RequestKind, paced_numbers
from lbopt.solvers.budget import Budget
from lbopt.solvers.elementary import elementary_bounds, greedy_assignment, greedy_decision
from lbopt.solvers.engine import Bound, Decision, Engine, Known, Question
from lbopt.solvers.exhaustion import exhausted, most_leaves, refuse_leaves, with_workers_in_order
from lbopt.solvers.program_engine import too_wide
from lbopt.solvers.registry import LEAF_LIMIT

#: Leaves up to which "exact" exhausts at once, mostly some milliseconds, and up to which exhaustion goes on where the
#: search would take too much memory.
LEAVES = {"small": 5_000, "further": 1 << 19, "brute-force": LEAF_LIMIT}

#: Open workers and sizes of a plain problem, from which on there are more leaves for sure: 8! / 8 and more.
MANY = 8

#: Requests times loads of a plain problem, and requests of one under conditions, beyond which "exact" does not even
#: estimate the leaves.
CELLS, MOST_UNDER_CONDITIONS = 4_096, 24


def opened(question: Question, known: Known) -> Known:
    """Return the better one of the known decision and a greedy one, with elementary bounds.

    Raises
    ------
    InfeasibleDecisionError
        Where a short argument shows that no decision meets the conditions.
    """
    problem = question.problem
    if problem.conditions is None:
        best: Decision | None = Decision(problem, greedy_assignment(problem))
    else:
        why_not = reason(question.numbers)
        if why_not is not None:
            raise InfeasibleDecisionError(why_not)
        best = greedy_decision(question.numbers)
    given = known.best
    if given is not None and (best is None or given.rank <= best.rank):
        best = given
    return Known(problem=problem, best=best, bounds=elementary_bounds(problem, best), stop="done", final=False)


class Elementary(Engine):
    """The engine that every solver but lbopt's own search starts from."""

    def refusal(self) -> str | None:
        """Return None: every problem has an elementary bound."""
        return None

    def run(self, known: Known, budget: Budget) -> Known:
        """Place greedily, unless the hint is as good; it is the last word where bound and placement meet."""
        first, tie = opened(self.question, known), self.question.tie
        only_one = self.problem.conditions is None and self.problem.num_admitted == 0
        if known.stop == "interrupted":
            return replace(first, stop="interrupted", final=True)
        final = only_one or (tie == "any" and first.closed)
        return known.joined(replace(first, tie=tie if only_one else "any", final=final))


class Exhaustion(Engine):
    """The engine of "exact" for small problems, what goes on where its search cannot, and "brute-force"."""

    def refusal(self) -> str | None:
        """Return why the problem is not exhausted, a key of `REFUSALS`; None where it is."""
        problem = self.problem
        if problem.conditions is None:
            if problem.num_admitted == 0:
                return "no requests"
            if self.name == "small" and (
                problem.num_requests * problem.base.size > CELLS
                or (int((problem.slots > 0).sum()) >= MANY and len(set(problem.work[:, 0].tolist())) >= MANY)
            ):
                return "leaves"
            if self.name != "small" and too_wide(problem):
                return "memory"
        elif self.name == "small" and problem.num_requests > MOST_UNDER_CONDITIONS:
            return "leaves"
        leaves = most_leaves(self.question.numbers)
        return "leaves" if leaves is None or leaves > LEAVES[self.name] else None

    def run(self, known: Known, budget: Budget) -> Known:
        """Exhaust, from the best decision that is known; where the time is over, the bounds are the elementary ones."""
        problem, tie, given = self.problem, self.question.tie, known.best
        if self.refusal() == "memory":
            return replace(known, stop="memory", final=True)
        first = known if known.bounds else opened(self.question, known)
        reached = budget.limits.reached(0, *first.told)
        if reached in ("target", "cancelled"):
            return replace(first, stop=reached, final=True)
        best, bounds, stop = first.best, first.bounds, "done"
        if not first.closed or tie == "leximax":
            refuse_leaves(self.question.numbers)
            best, stop = exhausted(self.question.numbers, best, budget.limits.stopped, leximax=tie == "leximax")
            bounds = elementary_bounds(problem, best)
        if best is None:
            return replace(first, stop="infeasible" if stop == "done" else stop, solver=self.solver, final=True)
        if stop == "done":
            bounds = tuple(
                floor if floor.value == value else Bound(value, "exhaustion")
                for floor, value in zip(bounds, best.rank, strict=True)
            )
        if problem.conditions is None and problem.horizon == 0 and best is not given:
            best = Decision(problem, _oldest_of_equals(problem, best.assignment))
        tie = tie if stop == "done" else "any"
        return first.joined(Known(problem=problem, best=best, bounds=bounds, stop=stop, solver=self.solver, tie=tie))


def _oldest_of_equals(problem: StepProblem, assignment: IntArray) -> IntArray:
    """Return the placement that tie order "oldest" names, as the compiled search does; at H = 0 only.

    It is `lbopt.solvers.exact.tie_orders.canonical` in plain Python.
    """
    chosen = with_workers_in_order(problem, assignment)
    by_size: dict[int, list[int]] = {}
    for i in np.argsort(~problem.must_admit, kind="stable").tolist():
        by_size.setdefault(int(problem.work[i, 0]), []).append(i)
    for equals in by_size.values():
        workers = sorted(int(chosen[i]) for i in equals if chosen[i] >= 0)
        for place, i in enumerate(equals):
            chosen[i] = workers[place] if place < len(workers) else -1
    return chosen


#: Leaves of a problem that is tried without one of its conditions.
TRIED_LEAVES = 20_000

#: Fields of each condition that can make a decision impossible.
_REMOVABLE: dict[str, dict[str, str | None]] = {
    "capacity": {"capacity": None, "need": None},
    "prefill_budget": {"prefill_budget": None, "prompt": None},
    "allowed": {"allowed": None},
}


def reason(numbers: PacedNumbers) -> str | None:
    """Return why there is no decision, where a short argument shows it; else None."""
    for kind in numbers.kinds:
        if kind.must_admit and not kind.work:
            return _no_worker(numbers, kind)
    exactly = _conditions(numbers).exactly
    if exactly is not None and exactly > Floors(numbers.problem).most_admitted:
        return _too_few(numbers, exactly)
    return _crowded(numbers) or _short(numbers)


def without_reason(numbers: PacedNumbers, who: str) -> str:
    """Return the message where no short argument shows it."""
    exactly = _conditions(numbers).exactly
    wanted = "every request of must_admit" if exactly is None else f"exactly {exactly} requests, must_admit among them,"
    hints = [name for name in _REMOVABLE if _possible_without(numbers, name)]
    helps = f"; without {' or without '.join(hints)} there is one" if hints else ""
    return f"no placement admits {wanted} under the conditions ({who}): each finds room, but not together{helps}"


def _conditions(numbers: PacedNumbers) -> Conditions:
    assert numbers.problem.conditions is not None, "a plain problem always has a decision"
    return numbers.problem.conditions


def _no_worker(numbers: PacedNumbers, kind: RequestKind) -> str:
    """Say what keeps a request from every worker."""
    i, conditions, slots = kind.members[0], _conditions(numbers), numbers.problem.slots
    begin = f"request {i} must be admitted, and "
    may = [g for g in range(slots.size) if conditions.allowed is None or conditions.allowed[i, g]]
    if not may:
        return f"{begin}`allowed` names no worker that may take it"
    open_ones = [g for g in may if slots[g] > 0]
    if not open_ones:
        return f"{begin}no worker that may take it has a free slot"
    for resource in conditions.resources:
        most = max(int(resource.limit[g]) for g in open_ones)
        if resource.need[i] > most:
            return (
                f"{begin}no worker that may take it has room: it takes {resource.need[i]} of the {resource.name}, and "
                f"at most {most} are free on one of them"
            )
    return f"{begin}no worker that may take it has room for it in both KV capacity and prefill budget"


def _too_few(numbers: PacedNumbers, exactly: int) -> str:
    """Say which worker takes fewer requests than it has slots, where too few can be admitted."""
    floors = Floors(numbers.problem)
    can_take: list[int] = floors.places.tolist()
    begin = f"exactly {exactly} requests must be admitted, and at most {floors.most_admitted} can be"
    idle = [(can_take[g] - free, g) for g, free in enumerate(numbers.slots) if free]
    lost, g = min(idle, default=(0, 0))
    if lost >= 0:
        return f"{begin}: the others have no worker that may take them"
    can = can_take[g]
    takes = "nothing" if can == 0 else f"only {can}"
    return f"{begin}: worker {g} can take {takes}{_bottleneck(numbers, g, can)}"


def _bottleneck(numbers: PacedNumbers, g: int, can: int) -> str:
    """Say which resource of worker g keeps requests out, where it can take so many."""
    conditions = _conditions(numbers)
    allowed = [i for i in range(numbers.problem.num_requests) if conditions.allowed is None or conditions.allowed[i, g]]
    if not allowed:
        return ": `allowed` names no request for it"
    for resource in conditions.resources:
        room, count = int(resource.limit[g]), 0
        needs = sorted(int(resource.need[i]) for i in allowed)
        for need in needs:
            room -= need
            count += room >= 0
        if count <= can:
            smallest = "smallest waiting request it may take needs" if count == 0 else "smallest ones it may take need"
            return (
                f": its free {resource.name} is {int(resource.limit[g])}, the {smallest} "
                f"{', '.join(map(str, needs[: count + 1]))}"
            )
    return f" of the {len(allowed)} that it may take"


def _crowded(numbers: PacedNumbers) -> str | None:
    """Find requests that must be admitted and have too few slots on all workers that may take them (Hall's theorem)."""
    forced = [(i, kind) for kind in numbers.kinds if kind.must_admit for i in kind.members]
    held: dict[int, list[int]] = {g: [] for g in range(len(numbers.slots))}

    for start in range(len(forced)):
        # Breadth first from the request to a free slot, along requests that could move elsewhere.
        came_from: dict[int, tuple[int, int | None]] = {}
        queue: list[tuple[int, int | None]] = [(start, None)]
        free = None
        for place, through in queue:
            for g in forced[place][1].work:
                if g in came_from:
                    continue
                came_from[g] = (place, through)
                if len(held[g]) < numbers.slots[g]:
                    free = g
                    break
                queue += [(other, g) for other in held[g]]
            if free is not None:
                break
        if free is None:
            stuck = sorted({forced[place][0] for place, _ in queue})
            slots = sum(numbers.slots[g] for g in came_from)
            return (
                f"{len(stuck)} requests must be admitted ({_listed(stuck)}), and the workers that may take them "
                f"({_listed(sorted(came_from))}) have {slots} free slots"
            )
        target: int | None = free
        while target is not None:
            place, left = came_from[target]
            held[target].append(place)
            if left is not None:
                held[left].remove(place)
            target = left
    return None


def _short(numbers: PacedNumbers) -> str | None:
    """Find a resource of which those that must be admitted take more than all their workers together have."""
    for place, resource in enumerate(_conditions(numbers).resources):
        forced = [kind for kind in numbers.kinds if kind.must_admit]
        need = sum(kind.needs[place] * len(kind.members) for kind in forced)
        where = sorted({g for kind in forced for g in kind.work})
        room = sum(int(resource.limit[g]) for g in where)
        if need > room:
            return (
                f"the requests of must_admit take {need} of the {resource.name}, and the workers that may take them "
                f"have {room} free together"
            )
    return None


def _possible_without(numbers: PacedNumbers, name: str) -> bool:
    """Return whether a small problem has a decision without a condition that it has."""
    problem, conditions = numbers.problem, _conditions(numbers)
    if getattr(conditions, name) is None:
        return False
    lighter = problem.under(replace(conditions, **_REMOVABLE[name]))  # type: ignore[arg-type]
    if lighter.conditions is None:
        return True
    again = paced_numbers(lighter)
    if reason(again) is not None:
        return False
    leaves = most_leaves(again)
    if leaves is None or leaves > TRIED_LEAVES:
        return False
    return exhausted(again, None)[0] is not None


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown}, ..." if len(numbers) > 8 else shown
