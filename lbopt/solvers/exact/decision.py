"""A step problem in the terms of the search, and the log that a search leaves of it.

Where fewer requests wait than there are slots, empty requests of size 0 fill the others; from then on every slot is
filled by exactly one request, and which requests are admitted follows.

The log says why each range of envelopes is closed, and is the proof (`Closures`). A range is closed by prices, or by a
tree of placements whose nodes name theirs, see `lbopt.kernels.search.open_ranges`. The log is a certificate of the kind
"priced-envelopes" as it stands, and nothing is searched for a second time. Where prices alone close all ranges, kernels
that share nothing with the search check it (`lbopt.kernels.checking`), else `lbopt.solvers.certificates.check`; both
believe none of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.checking.priced import holds
from lbopt.kernels.deadline import ENDLESS, NEVER
from lbopt.kernels.search.decision import first_assignment, hand_out, read
from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.open_ranges import begin, closed_ranges
from lbopt.kernels.search.state import WAITS, Search, Step, Tree
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.certificates import Certificate, priced_envelopes
from lbopt.solvers.certificates.format import placement, refuted
from lbopt.solvers.exact.workspace import Known, workspace

#: Largest magnitude that an evaluation may reach (prices times scale, summed over all requests).
LARGEST = 1 << 60

#: Prices are rounded to 1/4096 token where magnitudes allow it.
FINEST_SCALE = 4096


class Decision:
    """A step problem in the terms of the search; `scale` is 0 where its numbers are too large for it."""

    def __init__(self, problem: StepProblem) -> None:
        self.loads, self.slots = problem.base[:, 0], problem.slots
        self.num_requests, self.admitted = problem.num_requests, problem.num_free_slots
        N, G, Q = max(self.num_requests, self.admitted), problem.num_workers, int(self.slots.max())
        self.sizes, self.must, self.order = np.zeros((3, N), dtype=np.int64)
        self.sizes[: self.num_requests], self.must[: self.num_requests] = problem.work[:, 0], problem.must_admit
        classes, workers, sums = (np.zeros(shape, dtype=np.int64) for shape in ((3, N), (4, G), Q + 1))
        K, W, most, least, magnitude = read(
            self.loads, self.slots, self.sizes, self.must, self.order, classes, workers, sums
        )
        self.workers, load, slots, rank = workers[:, :W]
        v, n, must = classes[:, :K]
        heaviest = int(self.loads.max())
        # Where all requests are admitted, none has to be forced.
        self.forced = int(self.must.sum()) if self.admitted < N else 0
        bonus = 2 * (heaviest + int(v[-1])) if self.forced else 0
        magnitude += 2.0 * bonus * (self.forced + self.admitted)
        self.scale = FINEST_SCALE
        while self.scale > 0 and self.scale * magnitude > LARGEST:
            self.scale //= 2
        self.total, self.most, self.least = int(self.loads.sum()), most, least
        numbers = (G, self.total, heaviest, self.scale, most, least, self.forced)
        self.step = Step(v, n, must * (-bonus * self.scale), load, slots, rank, sums, *numbers)
        self._shape = (W, K, int(slots[-1]))

    def first_assignment(self) -> tuple[IntArray, int]:
        """Return the best of three cheap assignments, and its cost."""
        assignment = np.zeros(self.sizes.size, dtype=np.int64)
        cost = int(first_assignment(self.loads, self.slots, self.sizes, self.must, self.order, assignment))
        return assignment[: self.num_requests], cost

    def start(self, cost: int, seed: int = 0, most: int = ENDLESS, bound: int = 0) -> Search:
        """Return a search for something cheaper than `cost`; other seeds let it draw otherwise.

        Beyond `most` units of work it cannot go on. That no cost is below `bound` is known.

        Parameters
        ----------
        cost, bound
            Of an assignment that is known, and of none below; tokens.
        """
        search, self.masters = workspace(*self._shape)
        known = self._known = search.known  # to read a field of a group takes as long as to read ten integers
        known.cost, known.seed, known.most = cost, seed, most
        begin(self.step, search, -(-(bound + self.total + self.least) // self.loads.size))
        return search

    def known(self) -> Known:
        """Return what the search knows, as Python's own integers."""
        return Known(*self._known.item())

    def advance(self, search: Search, budget: int, deadline: int = NEVER) -> int:
        """Go on with a search for about so many microseconds; PROVED, OPEN or FULL.

        Parameters
        ----------
        search
            The search, which changes in place.
        budget
            About microseconds.
        deadline
            Nanoseconds, see `lbopt.kernels.deadline`; where it has passed the search cannot go on.
        """
        self._known.deadline = deadline
        return int(advance(self.step, search, self.masters, budget))

    def handed_out(self, search: Search) -> IntArray:
        """Return the worker of each request in the best assignment of `search`."""
        open_worker = np.full(self.loads.size, -1, dtype=np.int64)
        open_worker[self.workers] = np.arange(self.workers.size)
        assignment = np.zeros(self.num_requests, dtype=np.int64)
        scratch = np.zeros(self.step.v.size, dtype=np.int64)
        if not hand_out(self.step, search.answer, self.order, scratch, open_worker, assignment):
            raise AssertionError("the search answers with requests that do not exist: a defect of lbopt")
        return assignment


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
        int64 (R, 4): of each range its first and last envelope, the row of its prices, and the number of its tree, -1
        for none; ascending. Where a tree closes the range they are the prices of its root, which may do alone.
    trees
        {number: tree, as {number of a node: node}, the root first}.
    envelopes
        int64 (P,): where ranges were given these prices, -1 for those of a node of a tree.
    workers
        int64 (W,): the worker that a tree means by a number.
    margin
        Tokens of the widest margin of a worker.
    """

    bound: int
    scale: int
    prices: IntArray
    nodes: IntArray
    trees: dict[int, dict[int, _Node]]
    envelopes: IntArray
    workers: IntArray
    margin: int
    _held: bool | None = field(default=None, init=False)

    @classmethod
    def of(cls, decision: Decision, search: Search, known: Known, bound: int) -> Closures | None:
        """Return the log of a search that knows `known` and has proved `bound`, tokens; None where it was too long."""
        step, found, bank = decision.step, known.prices, search.bank
        if found > bank.shape[0]:
            return None
        nodes = np.zeros((known.ranges + 1, 4), dtype=np.int64)
        nodes = nodes[: closed_ranges(step, search, bound, nodes)]
        if decision.least == decision.most and nodes.shape[0] > 1:  # an envelope closes all below it
            nodes = nodes[-1:]
            nodes[:, 0] = 0
        prices = np.zeros((found + 1, step.v.size), dtype=np.int64)  # the last are prices of zero
        prices[:found] = bank[:found, : prices.shape[1]]
        planted = nodes[nodes[:, 3] >= 0, 3].tolist()
        trees = _trees(decision.masters.tree, planted) if planted else {}
        for node in nodes:
            if int(node[3]) in trees:
                node[2] = next(iter(trees[int(node[3])].values()))[0]
        margin = int(nodes[:, 1].max(initial=0)) - int(step.load.min())
        return cls(bound, decision.scale, prices, nodes, trees, search.bank_at[:found].copy(), decision.workers, margin)

    def hold(self, problem: StepProblem) -> bool:
        """Return whether prices alone prove the bound, by the kernels of the checker; False where not settled there."""
        if self._held is None:
            step = problem.base[:, 0], problem.slots, problem.work[:, 0], problem.must_admit
            self._held = bool(holds(*step, self.bound, self.scale, self.prices, self.nodes))
        return self._held

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
            (a, b, row[which], [{**one, "prices": row[one["prices"]]} for one in trees.get(number, [])] or None)
            for a, b, which, number in self.nodes.tolist()
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
