"""Run the exact search over windows in which requests end, or slots stay empty: in slices, so that the clock is heard.

First the placements of `greedy_assignment`, and exchanges; then the tree of linear programs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbopt.kernels.known_ends.placing import add_loads
from lbopt.kernels.known_ends.polish import polish
from lbopt.kernels.known_ends.terms import BOUND, COST, FAR, OPEN, STUCK
from lbopt.model import StepProblem
from lbopt.solvers.bounds import elementary_bound
from lbopt.solvers.exact.known_ends import KnownEnds
from lbopt.solvers.exact.known_ends_tree import Tree
from lbopt.solvers.exact.limits import Clock, Limits
from lbopt.solvers.exact.search import ExactAnswer

#: Work between two looks at the clock, about microseconds.
_SLICE = 3_000

_POLISH_ROUNDS = 40


def search_known_ends(problem: StepProblem, best: int | None, remaining: Clock) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    `remaining` says how many seconds are left; None is without limit. Where the numbers are too large, or nobody can be
    admitted, the answer is "refused".
    """
    decision = KnownEnds(problem)
    if not decision.fits:
        return ExactAnswer(None, 0, "refused")
    run = _Run(decision, FAR if best is None else best, Limits(remaining))
    try:
        stop = run.place() or run.grow()
    except KeyboardInterrupt:
        if run.pattern is None and best is None:
            raise
        stop = "interrupted"
    answer = ExactAnswer(
        assignment=None if run.pattern is None else decision.handed_out(run.pattern),
        bound=min(run.bound, run.cost),
        stop="done" if run.bound >= run.cost else stop,
        cost=run.cost,
    )
    if answer.stop == "done":
        return answer
    elementary = elementary_bound(problem)
    if elementary <= answer.bound:
        return answer
    return replace(answer, bound=elementary, proof="elementary-bound", stop="done" if elementary == run.cost else stop)


class _Run:
    """What is known so far: the best cost, the patterns that have it (None: the one given), and a proved bound."""

    def __init__(self, decision: KnownEnds, cost: int, limits: Limits) -> None:
        self.decision, self.limits = decision, limits
        self.cost, self.bound = cost, 0
        self.pattern = None
        self._draft = decision.draft()

    def place(self) -> str | None:
        """Find a first assignment, and improve it; return which limit was reached, if any."""
        window, draft = self.decision.window, self._draft
        starts = [(cost, draft.pattern.copy()) for cost in self.decision.placements(draft)]
        self._keep(*min(starts, key=lambda start: start[0]))
        rest = np.zeros(window.v.shape[1], dtype=np.int64)
        for before, pattern in sorted(starts, key=lambda start: start[0])[:2]:
            cost = before
            draft.pattern[:] = pattern
            add_loads(window, draft)
            for _ in range(_POLISH_ROUNDS):
                reached = self.limits.reached(0)
                if reached is not None:
                    return reached
                found = int(polish(window, draft, 1, rest))
                self._keep(found, draft.pattern)
                if found == cost:
                    break
                cost = found
        return None

    def grow(self) -> str:
        """Grow the tree until it is done or a limit is reached; return how it ended."""
        tree = Tree(self.decision, self.cost, self._draft.pattern, bound=self.bound)
        while True:
            reached = self.limits.reached(0)
            if reached is not None:
                return reached
            state = tree.advance(_SLICE)
            self._keep(int(tree.known[COST]), tree.answer)
            self.bound = int(tree.known[BOUND])
            if state != OPEN:
                return "stuck" if state == STUCK else "done"

    def _keep(self, cost: int, pattern: np.ndarray) -> None:
        if cost < self.cost:
            self.cost, self.pattern = cost, pattern.copy()
