"""The tree of the search over windows with departures: its state, and the columns that the root rules out."""

from __future__ import annotations

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.known_ends.bounds import fix_by_reduced_costs
from lbopt.kernels.known_ends.state import BRANCH, OPEN, PROGRESS, STUCK, Box, Nodes, Prices, Search
from lbopt.kernels.known_ends.tree import advance
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.known_ends import KnownEnds

_NODES = 1 << 19

#: Share of the columns that has to go for a fresh start to pay.
_WORTH_A_RESTART = 0.1

_RESTARTS = 4

#: Share of the columns that are left, below which the program is written anew without the others.
_WORTH_ANEW = 0.8


class Tree:
    """A search for something cheaper than `cost`, slice by slice.

    Parameters
    ----------
    decision
        The window.
    cost, pattern
        Cost of an assignment that is known, tokens, and its patterns, int64 (W, Q).
    bound
        A lower bound that is known, tokens.
    prices
        Prices that may rule classes out on workers before anything else.
    """

    def __init__(
        self, decision: KnownEnds, cost: int, pattern: IntArray, *, bound: int = 0, prices: list[Prices] | None = None
    ) -> None:
        self.decision = decision
        self.progress = record(PROGRESS)
        self.progress.cost, self.progress.bound = cost, bound
        self.box, self.prices, self.draft = decision.box(), decision.prices(), decision.draft()
        self.answer = pattern.copy()
        self.nodes = Nodes(*(np.empty(_NODES, dtype=np.int64) for _ in range(7)))  # written before they are read
        self.branch = record(BRANCH)
        self._root = Box(self.box.allowed, self.box.least.copy(), self.box.most.copy())  # shares what is allowed
        self._fixed_at = cost
        self.fixed_by: list[Prices] = []
        for given in prices or []:
            self.fix(given)
        self.program = decision.program(self.box)
        self._restarts = 0

    @property
    def affordable(self) -> bool:
        """Whether the linear program is small enough to be solved at all."""
        return self.program is not None

    @property
    def full(self) -> bool:
        """Whether there is no room for another two nodes."""
        return bool(self.progress.nodes + 2 > self.nodes.parent.size)

    def fix(self, prices: Prices) -> int:
        """Rule out what these prices say is too dear; return the number of columns that went."""
        fixed = int(fix_by_reduced_costs(self.decision.window, prices, self._root, int(self.progress.cost)))
        if fixed:
            kept = self.decision.prices()
            kept.pi[:], kept.mu[:] = prices.pi, prices.mu
            self.fixed_by.append(kept)
        return fixed

    def advance(self, work: int, deadline: int = NEVER) -> int:
        """Go on for about `work` units, or to the deadline; return STUCK, OPEN or DONE."""
        if self.program is None:
            return STUCK
        self.progress.deadline, self.progress.expired = deadline, 0
        search = Search(
            progress=self.progress,
            program=self.program,
            prices=self.prices,
            box=self.box,
            draft=self.draft,
            nodes=self.nodes,
            answer=self.answer,
            branch=self.branch,
        )
        state = advance(self.decision.window, search, work)
        if state == OPEN and self.progress.visited == 1:
            self._after_the_root()
        elif state == OPEN and self.progress.cost < self._fixed_at and self.progress.inside == 0:
            self._fixed_at = int(self.progress.cost)
            for prices in self.fixed_by:
                fix_by_reduced_costs(self.decision.window, prices, self._root, self._fixed_at)
            if self.box.allowed.sum() < _WORTH_ANEW * self.program.klass.size:
                self.program = self.decision.program(self.box)
                self.progress.stale = 1
        return int(state)

    def _after_the_root(self) -> None:
        assert self.program is not None, "its root was visited"
        columns = self.program.klass.size
        self.progress.visited = 2  # the tree is grown from here on
        self._fixed_at = int(self.progress.cost)
        if self.fix(self.prices) >= _WORTH_A_RESTART * columns and self._restarts < _RESTARTS:
            self._restarts += 1
            before, self.progress = self.progress, record(PROGRESS)
            self.progress.cost, self.progress.bound = before.cost, before.bound
            self.progress.work, self.progress.ordered = before.work, before.ordered
            self.program = self.decision.program(self.box)
