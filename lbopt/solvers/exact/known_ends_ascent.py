"""Prices by ascent for large windows in which requests end, and the bound that they prove.

The steps are those of `lbopt.kernels.known_ends.ascent`.
"""

from __future__ import annotations

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.known_ends.ascent import ascend, first_prices, round_ascent
from lbopt.kernels.known_ends.bounds import bound_of_all
from lbopt.kernels.known_ends.state import ASCENT, Prices
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.known_ends import KnownEnds

#: Length of the first step, how much shorter each following one is, and the length to begin with when it goes on.
_FIRST, _SHRINK, _AGAIN = 0.5, 0.99, 0.2


class Ascent:
    """Prices that become better step by step."""

    def __init__(self, decision: KnownEnds) -> None:
        self.decision = decision
        (W, T), K = decision.window.peak.shape, decision.window.n.size
        self._pi, self._mu = np.zeros((W + 1, T)), np.zeros(K)
        first_prices(decision.window, self._pi, self._mu)
        self._best_pi, self._best_mu = self._pi.copy(), self._mu.copy()
        self._mean_loads, self._mean_used = np.zeros((W + 1, T)), np.zeros(K)
        self._numbers = record(ASCENT)
        self._numbers.step, self._numbers.shrink = _FIRST, _SHRINK
        self.prices = decision.prices()

    @property
    def value(self) -> float:
        """The bound of the best prices before rounding, tokens."""
        return float(self._numbers.best)

    def advance(self, goal: int, steps: int, deadline: int = NEVER) -> None:
        """Take steps towards `goal`, the cost of an assignment in tokens; fewer where the deadline passes."""
        ascend(
            self.decision.window,
            float(goal),
            self._numbers,
            self._pi,
            self._mu,
            self._best_pi,
            self._best_mu,
            self._mean_loads,
            self._mean_used,
            steps,
            deadline,
        )

    def again(self) -> None:
        """Go on from the best prices, in steps of middling length; nothing changes before the first step."""
        if self._numbers.started == 0.0:
            return
        self._pi[:], self._mu[:] = self._best_pi, self._best_mu
        self._numbers.step, self._numbers.shrink = _AGAIN, _SHRINK

    def proved(self, deadline: int = NEVER) -> int:
        """Round the best prices; return the bound that they prove, tokens; none, below zero, beyond the deadline."""
        round_ascent(self.decision.window, self._best_pi, self._best_mu, self.prices)
        return int(bound_of_all(self.decision.window, self.prices, deadline))

    def kept(self) -> IntArray:
        """Return the rounded prices in one row, as `unpacked` reads them."""
        return np.concatenate([self.prices.pi.ravel(), self.prices.mu])[None, :]


def unpacked(decision: KnownEnds, row: IntArray) -> Prices:
    """Return the prices that `Ascent.kept` has packed into a row."""
    prices = decision.prices()
    size = prices.pi.size
    return prices._replace(pi=row[:size].reshape(prices.pi.shape).copy(), mu=row[size:].copy())
