"""The search over a window, whatever its kind: one that all new requests outlive, or one in which requests end."""

from __future__ import annotations

from lbopt.model import StepProblem
from lbopt.solvers.budget import Clock
from lbopt.solvers.exact.known_ends_search import search_known_ends
from lbopt.solvers.exact.search import ExactAnswer
from lbopt.solvers.exact.windows import search_window


def search_any_window(
    problem: StepProblem, best: int | None, remaining: Clock, *, effort: int | None = None
) -> tuple[ExactAnswer, bool]:
    """Return the answer, and whether it is of the search for known ends, which has proofs of its own.

    Arguments are those of `search_window`, which is asked first: it knows less and is quicker. It refuses windows in
    which requests end or slots stay empty.
    """
    answer = search_window(problem, best, remaining, effort=effort)
    if answer.stop != "refused":
        return answer, False
    return search_known_ends(problem, best, remaining, effort=effort), True
