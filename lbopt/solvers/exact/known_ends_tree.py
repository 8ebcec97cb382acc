"""The tree of the search over windows in which requests end: its state, and the columns that the root rules out."""

from __future__ import annotations

import numpy as np

from lbopt.kernels.known_ends.striking import strike
from lbopt.kernels.known_ends.terms import (
    BOUND,
    COST,
    INSIDE,
    KNOWN,
    OPEN,
    ORDERED,
    STALE,
    STUCK,
    VISITED,
    WORK,
    Nodes,
    Prices,
)
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
        self.known = np.zeros(KNOWN, dtype=np.int64)
        self.known[COST], self.known[BOUND] = cost, bound
        self.box, self.prices, self.draft = decision.box(), decision.prices(), decision.draft()
        self.answer = pattern.copy()
        self.nodes = Nodes(*(np.empty(_NODES, dtype=np.int64) for _ in range(7)))  # written before they are read
        self.at = np.zeros(4, dtype=np.int64)
        self._root = self.box._replace(least=self.box.least.copy(), most=self.box.most.copy())  # shares what is allowed
        self._struck_at = cost
        self.strikes: list[Prices] = []
        for known in prices or []:
            self.strike(known)
        self.program = decision.program(self.box)
        self._restarts = 0

    @property
    def affordable(self) -> bool:
        """Whether the linear program is small enough to be solved at all."""
        return self.program is not None

    def strike(self, prices: Prices) -> int:
        """Rule out what these prices say is too dear; return the number of columns that went."""
        struck = int(strike(self.decision.window, prices, self._root, int(self.known[COST])))
        if struck:
            self.strikes.append(prices._replace(pi=prices.pi.copy(), mu=prices.mu.copy()))
        return struck

    def advance(self, work: int) -> int:
        """Go on for about `work` units; return STUCK, OPEN or DONE."""
        if self.program is None:
            return STUCK
        state = advance(
            self.decision.window,
            self.known,
            self.program,
            self.prices,
            self.box,
            self.draft,
            self.nodes,
            self.answer,
            self.at,
            work,
        )
        if state == OPEN and self.known[VISITED] == 1:
            self._after_the_root()
        elif state == OPEN and self.known[COST] < self._struck_at and self.known[INSIDE] == 0:
            self._struck_at = int(self.known[COST])
            for prices in self.strikes:
                strike(self.decision.window, prices, self._root, self._struck_at)
            if self.box.allowed.sum() < _WORTH_ANEW * self.program.klass.size:
                self.program = self.decision.program(self.box)
                self.known[STALE] = 1
        return int(state)

    def _after_the_root(self) -> None:
        assert self.program is not None, "its root was visited"
        columns = self.program.klass.size
        self.known[VISITED] = 2  # the tree is grown from here on
        self._struck_at = int(self.known[COST])
        if self.strike(self.prices) >= _WORTH_A_RESTART * columns and self._restarts < _RESTARTS:
            self._restarts += 1
            kept = self.known[[COST, BOUND, WORK, ORDERED]]
            self.known[:] = 0
            self.known[[COST, BOUND, WORK, ORDERED]] = kept
            self.program = self.decision.program(self.box)
