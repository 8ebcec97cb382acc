"""Write the proof of a search over a window in which requests end down: the tree, and the prices at its leaves.

The tree is grown again with the bound as the cost to stay below, "at most" before "at least", so that its records are
in preorder. Nothing here has to be trusted: `lbopt.solvers.certificates.check` believes none of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.known_ends.bounds import bound_of_all
from lbopt.kernels.known_ends.state import OPEN, STUCK, Prices
from lbopt.kernels.known_ends.tree import BRANCHED
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.exact.known_ends import KnownEnds, unpacked
from lbopt.solvers.exact.known_ends_search import Tree

#: Records of the tree before it is given up.
_RECORDS = 100_000

#: Work at one node before it is given up, about microseconds.
_NODE = 60_000_000


def written_known_ends_proof(problem: StepProblem, bound: int, prices: IntArray | None = None) -> Certificate:
    """Return the certificate that no assignment costs less than `bound`, which the search has proved.

    `prices` are those of an ascent, as `ExactAnswer` keeps them: where they prove the bound, there is no tree.

    Parameters
    ----------
    bound
        The bound to prove, tokens.
    prices
        Prices to start from, as `ExactAnswer` has them; None for none.

    Raises
    ------
    CertificateError
        Where the proof is too long to be written down.
    """
    writer = _Writer(problem, bound, prices)
    tree = writer.records() if bound > 0 else []
    body = {"scale": writer.scale, "strikes": writer.fixings(), "tree": tree}
    return Certificate(problem_digest=problem.digest, kind="window-prices", bound=int(bound), body=body)


class _Writer:
    def __init__(self, problem: StepProblem, bound: int, prices: IntArray | None) -> None:
        self.decision = KnownEnds(problem)
        self.scale = int(self.decision.window.scale)
        self.bound = bound
        self.kept = [] if prices is None else [unpacked(self.decision, row) for row in prices]
        self.tree = Tree(self.decision, bound, self.decision.draft().pattern, prices=self.kept)
        self.names: list[int] = self.decision.workers.tolist()

    def fixings(self) -> list[dict[str, Any]]:
        """Return the prices that rule classes out at the root."""
        return [self._priced(prices) for prices in self.tree.fixed_by]

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the tree, in preorder."""
        tree = self.tree
        for prices in self.kept:
            if bound_of_all(self.decision.window, prices, NEVER) >= self.bound:
                tree.fixed_by.clear()
                return [self._priced(prices)]
        records: list[dict[str, Any]] = []
        tree.progress.ordered = 1
        state = OPEN
        while state == OPEN:
            if len(records) >= _RECORDS:
                raise CertificateError(f"the proof needs a tree of more than {len(records)} records; it is not written")
            spend(100)
            state = tree.advance(_NODE)
            if state == STUCK:
                raise CertificateError("the tree cannot be grown to its end; the proof is not written")
            if tree.progress.inside:
                raise CertificateError("a node of the proof takes too long; it is not written")
            if tree.progress.started == 0:  # the root is visited again with fewer classes
                continue
            if tree.progress.outcome == BRANCHED:
                g, j, limit = self.names[int(tree.branch.worker)], int(tree.branch.klass), int(tree.branch.limit)
                records.append({"worker": g, "class": j, "at_most": limit})
            else:
                records.append(self._priced(tree.prices))
        return records

    def _priced(self, prices: Prices) -> dict[str, Any]:
        """Return prices in the problem's own numbering; the last row is a heaviest worker without free slots."""
        pi = [
            [self.names[w] if w < len(self.names) else int(self.decision.heaviest[h]), h, int(prices.pi[w, h])]
            for w, h in np.argwhere(prices.pi).tolist()
        ]
        mu = [[k, int(prices.mu[k])] for k in np.flatnonzero(prices.mu).tolist()]
        return {"loads": pi, "classes": mu}
