"""What a search by prices leaves behind: why each range of envelopes is closed. The proof is that log.

A range is closed by kept prices or by more than that, see `lbopt.kernels.search.open_ranges`. Where prices close all of
them, the log is a certificate of the kind "priced-envelopes" as it stands, and nothing is searched for a second time.
It is checked by kernels that share nothing with the search (`lbopt.kernels.checking`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbopt.kernels.checking.priced import ANY, holds
from lbopt.kernels.search.state import RANGE, Search, Step
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.certificates import Certificate, priced_envelopes
from lbopt.solvers.exact.workspace import what_is_known

#: Fields of a range, and the places of its first envelope, its last one and its reason among them.
_FIELDS = RANGE.names or ()
_NODE = [_FIELDS.index(name) for name in ("first", "beyond", "reason")]

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
        known, ring, K = what_is_known(search), search.bank.shape[0], step.v.size
        found = known.prices
        nodes = np.asarray(search.ranges)[: known.ranges].view(np.int64).reshape(-1, len(_FIELDS))[:, _NODE]
        end = (bound - 1 + step.total + step.most) // step.workers if bound > 0 else -1  # no cost is below 0
        nodes = nodes[(nodes[:, 0] <= end) & (nodes[:, 0] <= nodes[:, 1])]
        nodes = nodes[np.argsort(nodes[:, 0], kind="stable")]
        if step.least == step.most:  # an envelope closes all below it
            nodes = nodes[-1:]
            nodes[:, 0] = 0
        if found == 0 and nodes.size:
            return None
        number = nodes[:, 2] - 1
        lost = (number < 0) | ((number > 0) & (number <= found - ring))
        nodes[:, 2] = np.where(lost, ANY, np.where(number < ring, number, 1 + (number - 1) % (ring - 1)))
        return cls(bound, int(step.scale), search.bank[: min(found, ring), :K].copy(), nodes)

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
        asked = loads, slots, np.stack([sizes, must]), self.bound, (least, most)
        return bool(holds(*asked, self.scale, self.prices, self.nodes))

    def _fits(self, problem: StepProblem) -> bool:
        """Return whether no sum of the check exceeds an int64, by a bound in Python's integers."""
        largest = int(problem.work[:, 0].max(initial=0))
        heaviest = max(int(problem.base[:, 0].max()), int(self.nodes[:, 1].max(initial=0)))
        price = int(max(self.prices.max(initial=0), -self.prices.min(initial=0)))
        count = problem.num_requests + problem.num_free_slots
        units = self.scale * (count * largest + 2 * problem.num_workers * heaviest + abs(self.bound))
        return units + 2 * count * price < _LARGEST and int(self.nodes[:, 0].min(initial=0)) >= 0

    def certificate(self, problem: StepProblem) -> Certificate:
        """Return the log as a certificate, once it holds."""
        used, row = np.unique(self.nodes[:, 2], return_inverse=True)
        nodes = [(a, b, i, None) for (a, b, _), i in zip(self.nodes.tolist(), row.reshape(-1).tolist(), strict=True)]
        return priced_envelopes(problem.digest, self.bound, self.scale, self.prices[used].tolist(), nodes)
