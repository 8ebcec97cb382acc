"""lbopt's own searches for plain problems as engines: single steps, windows, and departures.

Each breaks ties in its run, and has a certificate of its own kind. `search_problem` is the same without the formalities
of `solve`, for policies that decide every few milliseconds.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial

from lbopt.model import StepProblem, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Budget, Limits
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.elementary import elementary_bound, greedy_assignment
from lbopt.solvers.engine import Bound, Decision, Engine, Known
from lbopt.solvers.exact.known_ends_proof import written_known_ends_proof
from lbopt.solvers.exact.known_ends_search import search_known_ends
from lbopt.solvers.exact.leximax import load_kernels, most_even
from lbopt.solvers.exact.leximax_windows import load_window_kernel, most_even_window
from lbopt.solvers.exact.search import ExactAnswer, raised, search_exactly, written_proof
from lbopt.solvers.exact.window_proof import written_window_proof
from lbopt.solvers.exact.windows import has_one_profile, search_window

#: Requests times entries of the loads up to which a greedy placement takes a millisecond or two.
_QUICKLY_PLACED = 500_000


def search_problem(
    problem: StepProblem,
    best: int | None,
    limits: Limits,
    *,
    tie: str = "oldest",
    seed: int | tuple[int, ...] = 0,
) -> ExactAnswer:
    """Look for an assignment of cost below `best`, and for the proof that there is none, by the search that applies.

    Parameters
    ----------
    best
        Cost of an assignment that is known already, tokens; None for none.
    tie, seed
        Without a window: which of the assignments that differ by equals alone, see `tie_orders`.
    """
    if problem.horizon == 0:
        return search_exactly(problem, best, limits, tie=tie, seed=seed)
    answer = search_window(problem, best, limits)
    if answer.stop != "refused":
        return answer
    return search_known_ends(problem, best, limits)


class _OwnEngine(Engine):
    """What the engines for plain problems share: a search, then tie-breaking from the optimum that it proved."""

    def refusal(self) -> str | None:
        """Refuse problems under conditions, and those with nothing to decide."""
        if self.problem.conditions is not None:
            return "conditions"
        return "no requests" if self.problem.num_admitted == 0 else None

    def run(self, known: Known, budget: Budget) -> Known:
        """Search from the hint; loading kernels does not count. "refused" where numbers are too large."""
        problem, limits, best, ending = self.problem, budget.limits, known.best, "any"
        leximax = self.question.tie == "leximax"
        if leximax:
            self._load_tie_kernels()
        found = self._search(None if best is None else best.rank[-1], limits)
        if found.stop == "refused":
            return known
        if found.assignment is not None:
            best = Decision(problem, found.assignment)
        if leximax and found.stop == "done" and best is not None:
            even, ending = self._most_even(found, best.assignment, limits)
            best = Decision(problem, even)
        return Known(
            problem=problem,
            best=best,
            bounds=(Bound(found.bound, found.proof),),
            stop="interrupted" if ending == "interrupted" else found.stop,
            solver=self.solver,
            tie="leximax" if ending == "done" else "any",
            evidence=partial(self._certificate, found) if found.proof == "certificate" else None,
            holds=partial(self._holds, found),
        )

    @abstractmethod
    def _load_tie_kernels(self) -> None:
        """Load what `_most_even` needs, before the clock starts."""

    @abstractmethod
    def _search(self, best: int | None, limits: Limits) -> ExactAnswer:
        """Look for a cost below `best`, tokens."""

    @abstractmethod
    def _most_even(self, found: ExactAnswer, optimum: IntArray, limits: Limits) -> tuple[IntArray, str]:
        """Return the optimum with the most even loads, and how the search for it ended."""

    def _holds(self, found: ExactAnswer) -> bool:
        """Return whether the checker's kernels accept what the search wrote down; False where that is not settled."""
        return False

    @abstractmethod
    def _certificate(self, found: ExactAnswer) -> Certificate:
        """Return the proof in writing."""


class Steps(_OwnEngine):
    """Single steps."""

    def refusal(self) -> str | None:
        """Refuse windows."""
        return "window" if self.problem.horizon > 0 else super().refusal()

    def _load_tie_kernels(self) -> None:
        load_kernels()

    def _search(self, best: int | None, limits: Limits) -> ExactAnswer:
        return search_exactly(self.problem, best, limits)

    def _most_even(self, found: ExactAnswer, optimum: IntArray, limits: Limits) -> tuple[IntArray, str]:
        return most_even(self.problem, found, optimum, limits)

    def _certificate(self, found: ExactAnswer) -> Certificate:
        return written_proof(self.problem, found)

    def _holds(self, found: ExactAnswer) -> bool:
        return found.closures is not None and found.closures.hold(self.problem)


class Windows(_OwnEngine):
    """Windows that every new request outlives: all requests follow one profile."""

    def refusal(self) -> str | None:
        """Refuse single steps, and windows in which requests end."""
        if self.problem.horizon == 0:
            return "no window"
        return super().refusal() or (None if has_one_profile(self.problem) else "departures")

    def _load_tie_kernels(self) -> None:
        load_window_kernel()

    def _search(self, best: int | None, limits: Limits) -> ExactAnswer:
        return _no_worse_than_elementary(self.problem, best, search_window(self.problem, best, limits))

    def _most_even(self, found: ExactAnswer, optimum: IntArray, limits: Limits) -> tuple[IntArray, str]:
        """Exhaust what is small."""
        return most_even_window(self.problem, optimum, limits)

    def _certificate(self, found: ExactAnswer) -> Certificate:
        return written_window_proof(self.problem, found.bound)


class Departures(Windows):
    """Windows in which requests end or slots stay empty; slower than `Windows` where both apply."""

    def refusal(self) -> str | None:
        """Refuse single steps."""
        return "no window" if self.problem.horizon == 0 else _OwnEngine.refusal(self)

    def _search(self, best: int | None, limits: Limits) -> ExactAnswer:
        limits.remaining()  # from here it counts: loading the kernels within the search is left out
        return _no_worse_than_elementary(self.problem, best, search_known_ends(self.problem, best, limits))

    def _certificate(self, found: ExactAnswer) -> Certificate:
        return written_known_ends_proof(self.problem, found.bound, found.prices)


def _no_worse_than_elementary(problem: StepProblem, best: int | None, answer: ExactAnswer) -> ExactAnswer:
    """Return the answer; after a search that was cut off, a greedy placement or the elementary bound may be better.

    Parameters
    ----------
    best
        Cost of an assignment that is known already, tokens; None for none.
    """
    if answer.stop in ("done", "refused"):
        return answer
    if problem.num_requests * problem.base.size <= _QUICKLY_PLACED:
        placed = greedy_assignment(problem)
        cost = objective(problem, placed)
        known = answer.cost if answer.cost is not None else best
        if known is None or cost < known:
            answer = replace(answer, assignment=placed, cost=cost)
    return raised(answer, elementary_bound(problem))
