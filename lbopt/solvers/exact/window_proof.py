"""Write the proof of a window search down: its tree, and at every leaf the prices that close it.

The tree is grown again, depth first, with the bound as the cost to stay below. Nothing here has to be trusted:
`lbopt.solvers.certificates.check` believes none of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.windows.branching import take
from lbopt.kernels.windows.state import CUTS
from lbopt.kernels.windows.tree import BY_CLASS, BY_TOTAL, NO_BOX, NO_CUT, NO_POINT, NO_SETS, NOT_CHEAPER, begin, visit
from lbopt.model import StepProblem
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.exact.windows import WindowDecision

#: Records of the tree before it is given up.
_RECORDS = 100_000


def written_window_proof(problem: StepProblem, bound: int) -> Certificate:
    """Return the certificate that no assignment costs less than `bound`, which a window search has proved.

    Raises
    ------
    CertificateError
        Where the proof is too long to be written down.
    """
    writer = _Writer(problem, bound)
    tree = writer.records() if bound > 0 else []
    body = {"scale": writer.scale, "cuts": writer.cuts, "tree": tree}
    return Certificate(problem_digest=problem.digest, kind="window-boxes", bound=int(bound), body=body)


class _Writer:
    def __init__(self, problem: StepProblem, bound: int) -> None:
        self.decision = WindowDecision(problem)
        self.window, self.search = self.decision.window, self.decision.start(bound)
        self.names: list[int] = self.decision.workers.tolist()
        self.scale = int(self.window.profile.scale)
        self.cuts: list[dict[str, Any]] = []
        self._number: dict[tuple[int, ...], int] = {}
        W, T = self.window.profile.peak.shape
        self.first_floor, self.first_cut = W * T, W * T + T + 2 * W
        closed = np.flatnonzero(problem.slots == 0)
        # the heaviest closed worker of each step is the one that its row speaks of
        self.floor = closed[problem.base[closed].argmax(axis=0)].tolist() if closed.size else []

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the tree, in preorder."""
        search, progress, nodes = self.search, self.search.progress, self.search.nodes
        begin(self.window, search)
        records: list[dict[str, Any]] = []
        while progress.open_nodes > 0:
            if len(records) >= _RECORDS or progress.open_nodes + 3 > nodes.bounds.size:
                raise CertificateError(f"the proof needs a tree of more than {len(records)} records; it is not written")
            spend(50)
            lb = take(progress, nodes, search.box, int(progress.open_nodes) - 1)
            before = int(progress.open_nodes)
            outcome = visit(self.window, search, int(lb))
            children = range(int(progress.open_nodes) - 1, before - 1, -1)  # the last one is taken next
            w = int(progress.worker)
            if outcome == NO_BOX:
                records.append({"empty": True})
            elif outcome == NO_CUT:
                records.append({"contradiction": [[self._cut(self._broken_cut()), 1]]})
            elif outcome == NO_POINT:
                records.append({"contradiction": self._contradiction()})
            elif outcome == NOT_CHEAPER:
                records.append(self._priced())
            elif outcome == BY_TOTAL:
                ranges = [[int(nodes.low[i, w]), int(nodes.high[i, w])] for i in children]
                records.append({"worker": self.names[w], "totals": ranges})
            elif outcome == BY_CLASS:
                q, v = int(search.box.fixed[w]), self.window.pool.v
                sizes = [[int(v[nodes.first[i, w, q]]), int(v[nodes.last[i, w, q]])] for i in children]
                records.append({"worker": self.names[w], "position": q, "sizes": sizes})
            elif outcome == NO_SETS:
                records.append({"sets": True})
            else:
                raise CertificateError("the proof rests on a search for sets that was given up; it is not written down")
        return records

    def _priced(self) -> dict[str, Any]:
        """Return the leaf whose prices are in program.scaled."""
        program, profile = self.search.program, self.window.profile
        prices, paid = [], []
        for row, amount in zip(program.basis.tolist(), program.scaled.tolist(), strict=False):
            if amount == 0:
                continue
            if row < self.first_floor:
                prices.append([self.names[int(profile.worker[row])], int(profile.step[row]), amount])
            elif row < self.first_floor + profile.floor.size:
                prices.append([self.floor[row - self.first_floor], row - self.first_floor, amount])
            elif row >= self.first_cut:
                paid.append([self._cut(row - self.first_cut), amount])
        return {"prices": prices, "cuts": paid}

    def _contradiction(self) -> list[list[int]]:
        program = self.search.program
        rows = [*program.basis.tolist(), int(self.search.progress.empty_row)]
        return [
            [self._cut(row - self.first_cut), amount]
            for row, amount in zip(rows, program.scaled.tolist(), strict=True)
            if amount and row >= self.first_cut
        ]

    def _broken_cut(self) -> int:
        """Return the first cut that the box at hand does not keep."""
        cuts, box = self.search.cuts, self.search.box
        for c in range(min(int(self.search.progress.cuts), CUTS)):
            sense, limit = int(cuts.sense[c]), int(cuts.limit[c])
            total = int(cuts.inside[c] @ (box.low if sense > 0 else box.high))
            if sense and (limit < 0 or sense * (total - limit) > 0):
                return c
        raise CertificateError("a box is called empty by a cut that it keeps")

    def _cut(self, c: int) -> int:
        """Return the number of cut c in the certificate."""
        cuts = self.search.cuts
        workers = np.flatnonzero(cuts.inside[c]).tolist()
        key = (int(cuts.sense[c]), *workers)
        if key not in self._number:
            self._number[key] = len(self.cuts)
            self.cuts.append({"workers": [self.names[w] for w in workers], "at_most": key[0] > 0})
        return self._number[key]
