"""What a search by prices leaves behind: why each range of envelopes is closed. The proof is that log.

A range is closed by kept prices or by more than that, see `lbopt.kernels.search.open_ranges`. Where prices close all of
them, the log is a certificate of the kind "priced-envelopes" as it stands, and nothing is searched for a second time.
It is checked by kernels that share nothing with the search (`lbopt.kernels.checking`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.kernels.checking.priced import ANY, holds
from lbopt.kernels.search.state import Search, Step
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.certificates import Certificate, priced_envelopes

#: No number of a check is larger, so that none overflows.
_LARGEST = 1 << 61

#: Free slots up to which requests of size zero are written down to fill them.
_MOST_SLOTS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Closures:
    """Ranges of envelopes and the prices that close them.

    Parameters
    ----------
    bound
        No assignment costs less, if the log is right; tokens.
    scale, prices
        Units of a price in a token; int64 (P, K), rows of prices.
    nodes
        int64 (R, 3): first and last envelope and row of prices of each range, ascending in the first; ANY where the
        check has to find the row, which it writes here.
    """

    bound: int
    scale: int
    prices: IntArray
    nodes: IntArray

    @classmethod
    def of(cls, step: Step, search: Search, bound: int) -> Closures | None:
        """Return the log of a search that has proved `bound`; None where it has no prices.

        Where patterns or placements have closed a range, or prices that are not kept any more, the check has to find
        prices for it: evaluated exactly, those that are kept often suffice.

        Parameters
        ----------
        step, search
            The decision, and the state of the search.
        bound
            What it proved, tokens.
        """
        count, found, ring = int(search.known.ranges), int(search.known.prices), search.bank.shape[0]
        first, beyond = search.ranges.first[:count], search.ranges.beyond[:count]
        end = (bound - 1 + step.total + step.most) // step.workers
        chosen = np.flatnonzero((first <= end) & (first <= beyond))
        if step.least == step.most and chosen.size:  # an envelope closes all below it
            chosen = chosen[[first[chosen].argmax()]]
        if bound <= 0:  # no cost is below 0
            chosen = chosen[:0]
        elif found == 0 and chosen.size:
            return None
        number = search.ranges.reason[chosen] - 1
        rows = np.where(number < ring, number, 1 + (number - 1) % (ring - 1))
        rows[(number < 0) | ((number > 0) & (number <= found - ring))] = ANY
        nodes = np.stack([first[chosen], beyond[chosen], rows], axis=1)
        if step.least == step.most:
            nodes[:, 0] = 0
        K = step.v.size
        return cls(
            bound,
            int(step.scale),
            search.bank[: min(found, ring), :K].copy(),
            nodes[np.argsort(nodes[:, 0], kind="stable")],
        )

    def hold(self, problem: StepProblem) -> bool:
        """Return whether the log proves its bound, by the kernels of the checker; False where that is not settled."""
        admitted = problem.num_free_slots
        if admitted > _MOST_SLOTS or not self._fits(problem):
            return False
        sizes, must = problem.work[:, 0], problem.must_admit.astype(np.int64)
        if admitted > sizes.size:
            empty = np.zeros(admitted - sizes.size, dtype=np.int64)
            sizes, must = np.concatenate([empty, sizes]), np.concatenate([empty, must])
        order = np.lexsort((must, sizes)) if must.any() else np.argsort(sizes, kind="stable")
        sizes, must = sizes[order], must[order]
        waiting = sizes[must == 0]
        fixed, left = int(sizes[must == 1].sum()), admitted - int(must.sum())
        least, most = fixed + int(waiting[:left].sum()), fixed + int(waiting[waiting.size - left :].sum())
        loads, slots = problem.base[:, 0], problem.slots
        return bool(holds(loads, slots, sizes, must, self.bound, least, most, self.scale, self.prices, self.nodes))

    def _fits(self, problem: StepProblem) -> bool:
        """Return whether no sum of the check exceeds an int64, by a bound in Python's integers."""
        largest = int(problem.work[:, 0].max(initial=0))
        heaviest = max(int(problem.base[:, 0].max()), int(self.nodes[:, 1].max(initial=0)))
        price = int(max(self.prices.max(initial=0), -self.prices.min(initial=0)))
        count = problem.num_requests + problem.num_free_slots
        units = self.scale * (count * largest + 2 * problem.num_workers * heaviest + abs(self.bound))
        return units + 2 * count * price < _LARGEST and int(self.nodes[:, 0].min(initial=0)) >= 0

    def certificate(self, problem: StepProblem) -> Certificate:
        """Return the log as a certificate, once it holds.

        Parameters
        ----------
        problem
            The step problem.
        """
        used, row = np.unique(self.nodes[:, 2], return_inverse=True)
        nodes = [(a, b, i, None) for (a, b, _), i in zip(self.nodes.tolist(), row.reshape(-1).tolist(), strict=True)]
        return priced_envelopes(problem.digest, self.bound, self.scale, self.prices[used].tolist(), nodes)
