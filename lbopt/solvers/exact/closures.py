"""What a search by prices leaves behind: why each range of envelopes is closed. The proof is that log.

A range is closed by prices, or by a tree of placements whose nodes name theirs, see `lbopt.kernels.search.open_ranges`.
The log is a certificate of the kind "priced-envelopes" as it stands, and nothing is searched for a second time. Where
prices alone close all ranges, kernels that share nothing with the search check it (`lbopt.kernels.checking`), else
`lbopt.solvers.certificates.check`; both believe none of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.checking.priced import holds
from lbopt.kernels.search.state import RANGE, WAITS, Search, Step, Tree
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.certificates import Certificate, priced_envelopes
from lbopt.solvers.certificates.priced_body import placement, refuted
from lbopt.solvers.exact.workspace import what_is_known

#: Fields of a range, and the places of those that say what closed it.
_FIELDS = RANGE.names or ()
_CLOSED_BY = [_FIELDS.index(name) for name in ("first", "last", "beyond", "row", "shown")]

#: No number of a check is larger, so that none overflows.
_LARGEST = 1 << 61

#: Free slots up to which requests of size zero are written down to fill them.
_MOST_SLOTS = 1 << 16

#: Records of all trees together before a proof is given up: each takes the checker a table.
_RECORDS = 10_000

#: Vectors of prices times tokens of the widest margin, up to which the checker gets by with a few gigabytes.
_TABLES = 200_000_000

#: A node of a tree: the row of its prices, the class that the nodes below place, -1 for none, its place, those below.
_Node = tuple[int, int, int, list[int]]


@dataclass(slots=True, eq=False)
class Closures:
    """Ranges of envelopes, and the prices or trees that close them.

    Parameters
    ----------
    bound
        No assignment costs less, if the log is right; tokens.
    scale, prices
        Units of a price in a token; int64 (P, K), rows of prices.
    nodes
        int64 (R, 3): first and last envelope and row of prices of each range, ascending in the first. Where a tree
        closes the range they are the prices of its root, which may do alone.
    trees
        {place of a range among `nodes`: its tree, as {number of a node: node}, the root first}.
    workers
        int64 (W,): the worker that a tree means by a number.
    margin
        Tokens of the widest margin of a worker.
    """

    bound: int
    scale: int
    prices: IntArray
    nodes: IntArray
    trees: dict[int, dict[int, _Node]] = field(default_factory=dict)
    workers: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    margin: int = 0
    _held: bool | None = field(default=None, init=False)

    @classmethod
    def of(cls, step: Step, search: Search, tree: Tree, workers: IntArray, bound: int) -> Closures | None:
        """Return the log of a search that has proved `bound`; None where it was too long to be kept.

        Parameters
        ----------
        step, search, tree
            The decision, the state of the search, and its trees.
        workers
            int64 (W,): the open workers, as the search numbers them.
        bound
            What it proved, tokens.
        """
        found, K = what_is_known(search).prices, step.v.size
        if found > search.bank.shape[0]:
            return None
        count = what_is_known(search).ranges
        table = np.asarray(search.ranges)[:count].view(np.int64).reshape(-1, len(_FIELDS))[:, _CLOSED_BY]
        end = (bound - 1 + step.total + step.most) // step.workers if bound > 0 else -1  # no cost is below 0
        kept = np.flatnonzero((table[:, 0] <= end) & (table[:, 0] <= table[:, 2]))
        kept = kept[np.argsort(table[kept, 0], kind="stable")]
        # What closes a range closes the envelopes beyond it, too, at which no worker has a load of its own.
        real = np.flatnonzero(table[kept, 0] <= table[kept, 1])
        ends = table[kept, 2]
        if real.size:
            ends = np.maximum.reduceat(ends, real)
        kept = kept[real]
        nodes = np.stack([table[kept, 0], ends[: kept.size], table[kept, 3]], axis=1)
        prices = np.zeros((found + 1, K), dtype=np.int64)
        prices[:found] = search.bank[:found, :K]
        planted = kept[table[kept, 4] < bound].tolist()
        trees = _trees(tree, planted) if planted else {}
        for place, i in enumerate(kept.tolist()):
            if i in trees:
                nodes[place, 2] = trees[i][next(iter(trees[i]))][0]
        if step.least == step.most and kept.size:  # an envelope closes all below it
            nodes, kept = nodes[-1:], kept[-1:]
            nodes[:, 0] = 0
        elif bound > 0:  # below, there is not room for the least tokens, which prices of zero say
            head = int(nodes[0, 0]) - 1 if kept.size else end
            nodes, kept = np.concatenate([[[0, head, found]], nodes]), np.append(-1, kept)
        trees = {place: trees[i] for place, i in enumerate(kept.tolist()) if i in trees}
        margin = int(nodes[:, 1].max(initial=0)) - int(step.load.min())
        return cls(bound, int(step.scale), prices, nodes, trees, workers, margin)

    def hold(self, problem: StepProblem) -> bool:
        """Return whether prices alone prove the bound, by the kernels of the checker; False where not settled there."""
        if self._held is None:
            self._held = self._is_held(problem)
        return self._held

    def _is_held(self, problem: StepProblem) -> bool:
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
        """Return the log as a certificate; trees are left out where prices are known to do alone.

        Raises
        ------
        CertificateError
            Where it is too long for the checker.
        """
        trees = {i: [] if self._held else _records(nodes, self.workers.tolist()) for i, nodes in self.trees.items()}
        if (count := sum(map(len, trees.values()))) > _RECORDS:
            raise CertificateError(f"the proof needs {count} records of trees; it is not written down")
        records = [record for tree in trees.values() for record in tree]
        used = sorted({*self.nodes[:, 2].tolist(), *(record["prices"] for record in records)})
        if len(used) * self.margin > _TABLES:
            raise CertificateError(
                f"the proof has {len(used)} vectors of prices for margins of up to {self.margin} tokens; it is not "
                "written down, as the checker would take gigabytes"
            )
        row = {which: place for place, which in enumerate(used)}
        nodes = [
            (a, b, row[which], [{**one, "prices": row[one["prices"]]} for one in trees.get(i, [])] or None)
            for i, (a, b, which) in enumerate(self.nodes.tolist())
        ]
        return priced_envelopes(problem.digest, self.bound, self.scale, self.prices[used].tolist(), nodes)


def _trees(tree: Tree, wanted: list[int]) -> dict[int, dict[int, _Node]]:
    """Return the last tree of each of the ranges wanted."""
    trees: dict[int, dict[int, _Node]] = {i: {} for i in wanted}
    table = np.asarray(tree.nodes)[: int(tree.state.used)]
    fields = table[["range", "parent", "row", "chosen", "place"]].tolist()
    for j, (i, parent, row, chosen, place) in enumerate(fields):
        if i not in trees:
            continue
        if parent < 0:
            trees[i] = {}
        trees[i][j] = row, chosen, place, []
        if parent >= 0:
            trees[i][parent][3].append(j)
    return {i: nodes for i, nodes in trees.items() if nodes}


def _records(nodes: dict[int, _Node], workers: list[int]) -> list[dict[str, Any]]:
    """Return the records of a tree in preorder, with rows of the log."""
    records, waiting = [], [next(iter(nodes))]
    while waiting:
        row, chosen, _, below = nodes[waiting.pop()]
        if chosen < 0:
            records.append(refuted(row))
            continue
        below = sorted(below, key=lambda j: nodes[j][2])  # that all waits comes first
        places = [nodes[j][2] for j in below]
        records.append(placement(chosen, row, WAITS in places, [workers[w] for w in places if w != WAITS]))
        waiting += reversed(below)
    return records
