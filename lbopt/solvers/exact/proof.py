"""Write the proof of a search down: which prices, and where needed which decisions, refute every cheaper assignment.

The search keeps its prices; which of them closes which range of envelopes is found again here, and so are the trees of
placements. Nothing here has to be trusted: `lbopt.solvers.certificates.check` believes none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lbopt.exceptions import CertificateError
from lbopt.kernels.search.columns import AT_ONCE, begin_columns, generate_columns
from lbopt.kernels.search.master import reset_master
from lbopt.kernels.search.open_ranges import SPARSE, reached
from lbopt.kernels.search.path import clear_path, leave
from lbopt.kernels.search.placement_tree import grow_tree, undecided
from lbopt.kernels.search.prices import evaluate
from lbopt.kernels.search.state import EXACT, NONE, WAITS
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates import Certificate, priced_envelopes
from lbopt.solvers.certificates.priced_body import ContradictedError, NodeRow, placement, refuted
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.search import ExactAnswer
from lbopt.solvers.exact.workspace import plant_tree

#: Ranges of a log up to which it is written as it stands; a longer one is derived again, with fewer of them.
_RANGES = 300

#: Prices tried for a range of envelopes, those found nearest to it first.
_NEAREST = 6

#: Evaluations of prices before the proof is given up: with few, very large requests nearly every envelope is its own.
_EVALUATIONS = 30_000

#: Records of a tree of placements before it is given up; each has prices of its own, and takes the checker a table.
_PLACEMENTS = 3_000

#: The same for a range of several envelopes, which is narrowed beyond; how much wider the next range is than one that
#: was closed, or narrower than one that was not.
_FEW_PLACEMENTS, _WIDER = 100, 4

#: Vectors of prices times tokens of the widest margin, up to which the checker gets by with a few gigabytes.
_TABLES = 200_000_000

#: Evaluations after which ranges get prices of their own before those that are known are tried.
_MANY = 1_000

#: How many ranges get prices of their own in this way.
_TRIES = 400


def written_proof(problem: StepProblem, answer: ExactAnswer) -> Certificate:
    """Return the certificate that no assignment costs less than answer.bound.

    Raises
    ------
    CertificateError
        Where a part of the proof is too long to be written down.
    """
    log = answer.closures
    if log is not None and len(log.nodes) <= _RANGES and log.hold(problem):
        return log.certificate(problem)
    if answer.bound <= 0:  # no cost is below 0, and nothing has to be shown
        return priced_envelopes(problem.digest, answer.bound, 1, [], [])
    return _Writer(problem, answer).certificate()


class _Writer:
    def __init__(self, problem: StepProblem, answer: ExactAnswer) -> None:
        if answer.prices is None or answer.envelopes is None:
            raise CertificateError("the search kept no prices, so there is no proof to write down")
        self.problem, self.bound = problem, answer.bound
        self.decision = Decision(problem)
        self.step = self.decision.step
        self.search = self.decision.start(answer.bound)
        self.prices: list[IntArray] = list(answer.prices)
        #: {row of prices: its envelope}; prices of placements belong to their tree alone
        self.found_at: dict[int, int] = dict(enumerate(answer.envelopes.tolist()))
        self.evaluations = 0
        #: Envelopes that are tried as one range where prices alone do not close it.
        self.width = 1
        #: Whether ranges are tried at all: where envelopes are dense, prices close most of them at once.
        self.sparse = bool(self.step.v[-1] > SPARSE)
        #: Ranges that were tried so where envelopes are many; each takes a master program of its own.
        self.tries = 0
        self.G, self.total, self.scale = self.step.workers, self.step.total, self.step.scale

    def certificate(self) -> Certificate:
        step = self.step
        first = max(step.heaviest, int((step.load + step.sums[step.slots]).max()))
        last = (self.bound - 1 + self.total + step.most) // self.G
        if not self.prices:
            self._solve(first)
        nodes: list[NodeRow] = []
        while first <= last:
            node = self._wide(first, last) or self._longest(first, last) or self._narrow(first, last)
            nodes.append(node)
            first = node[1] + 1
        self._refuse_wide(nodes)
        used = sorted(
            {node[2] for node in nodes}.union(r["prices"] for node in nodes for r in node[3] or () if "prices" in r)
        )
        row = {which: position for position, which in enumerate(used)}
        return priced_envelopes(
            self.problem.digest,
            self.bound,
            self.scale,
            [self.prices[which].tolist() for which in used],
            [(a, b, row[which], _renumbered(tree, row)) for a, b, which, tree in nodes],
        )

    def _refuse_wide(self, nodes: list[NodeRow]) -> None:
        """Refuse a proof for which the checker would need gigabytes: a table of the widest margin for each price."""
        widest = max((node[1] for node in nodes), default=0) - int(self.step.load.min())
        vectors = {node[2] for node in nodes}.union(
            r["prices"] for node in nodes for r in node[3] or () if "prices" in r
        )
        if len(vectors) * widest > _TABLES:
            raise CertificateError(
                f"the proof has {len(vectors)} vectors of prices for margins of up to {widest} tokens; it is not "
                "written down, as the checker would take gigabytes"
            )

    def _longest(self, a: int, last: int) -> NodeRow | None:
        """Return the longest range from a on that prices close; None where they do not even close a alone.

        The bound at b grows with b, in steps: at loads that some worker can have. So doubling and bisection find b.
        """

        def closed_by(b: int) -> int | None:
            which, tokens = self._best(b, b == a)
            return which if self._closes(a, tokens) else None

        which = closed_by(a)
        if which is None:
            return None
        good, step = a, 1
        while good < last:
            beyond = min(last, a + step)
            found = closed_by(beyond)
            if found is None:
                break
            good, which, step = beyond, found, 2 * step
        else:
            return a, good, which, None
        low, high = good, beyond  # closed at low, not at high
        while high - low > 1:
            middle = (low + high) // 2
            found = closed_by(middle)
            if found is None:
                high = middle
            else:
                low, which = middle, found
        return a, low, which, None

    def _closes(self, a: int, tokens: int) -> bool:
        return tokens == NONE or tokens // self.scale < self._needed(a)

    def _needed(self, a: int) -> int:
        """Return how many tokens an assignment below the bound admits at least if no envelope below a will do."""
        return max(self.G * a - self.total - self.bound + 1, int(self.step.least))

    def _evaluate(self, which: int, M: int) -> int:
        self.evaluations += 1
        spend(5 + self.step.load.size // 3)
        if self.evaluations > _EVALUATIONS:
            raise CertificateError(f"the proof needs more than {_EVALUATIONS} evaluations; it is not written down")
        self.search.price[: self.step.v.size] = self.prices[which]
        # No worker can have a load between `reached` and M, so exact bounds are equal there; ours need not be.
        at = reached(self.step, self.search, M) if self.step.v[-1] > SPARSE else M
        return int(evaluate(self.step, self.search, at, EXACT))

    def _best(self, M: int, thorough: bool) -> tuple[int, int]:
        """Return the prices of the least bound at M among those found nearest to it, and that bound times scale."""
        near = sorted(self.found_at, key=lambda i: abs(self.found_at[i] - M))
        values = [(self._evaluate(i, M), i) for i in (near if thorough else near[:_NEAREST])]
        tokens, which = min(values)
        return which, tokens

    def _solve(self, M: int) -> None:
        """Find the best prices at M anew."""
        spend(1_000)
        search, step = self.search, self.step
        search.price[: step.v.size] = self.prices[0] if self.prices else step.floor
        reset_master(self.decision.masters.whole, step.n, step.load.size, step.slots.max(), 2.0 * M + 1.0)
        clear_path(step, search.path)
        leave(step, search.path)
        begin_columns(search, True)
        generate_columns(step, search, self.decision.masters.whole, M, NONE, AT_ONCE)
        self.found_at[len(self.prices)] = M
        self.prices.append(search.best_price[: step.v.size].copy())

    def _wide(self, a: int, last: int) -> NodeRow | None:
        """Close a range wider than the last one by prices or a tree of its own, where envelopes are many."""
        if not self.sparse or self.evaluations < _MANY or self.tries == _TRIES:
            return None
        width = _WIDER * self.width
        while width > 1 and self.tries < _TRIES:
            self.tries += 1
            node = self._closed(a, min(last, a + width - 1))
            if node is not None:
                self.width = width
                return node
            width //= _WIDER
        self.width = 1
        return None

    def _narrow(self, a: int, last: int) -> NodeRow:
        """Close the first envelopes from a on, which known prices leave open: by better prices, or by a tree.

        With few, very large requests thousands of envelopes are open, and one tree often closes many of them.
        """
        while True:
            b = min(last, a + self.width - 1)
            node = self._closed(a, b)
            if node is not None:
                if self.sparse and b - a + 1 == self.width:
                    self.width *= _WIDER
                return node
            self.width = max(1, (b - a + 1) // _WIDER)

    def _closed(self, a: int, b: int) -> NodeRow | None:
        """Close envelopes a..b together; None where that is not possible, which is so for ranges alone."""
        if b not in self.found_at.values():
            self._solve(b)
        which, tokens = self._best(b, a == b)
        if self._closes(a, tokens):
            return a, b, which, None
        if a == b:
            tree = self._placements(a, b, which, _PLACEMENTS)
            if tree is None:
                raise CertificateError(
                    f"the proof needs more than {_PLACEMENTS} placements at envelope {a}; it is not written down"
                )
            return a, b, which, tree
        tree = self._placements(a, b, which, _FEW_PLACEMENTS)
        return None if tree is None else (a, b, which, tree)

    def _placements(self, a: int, b: int, which: int, most: int) -> list[dict[str, Any]] | None:
        """Grow the tree of placements again, to its end, and write down what closes each of its nodes.

        Returns None where that takes more than `most` placements, or where the range a..b has to be halved.
        """
        search, step, masters = self.search, self.step, self.decision.masters
        tree, names = masters.tree, self.decision.workers.tolist()
        search.bank[0, : step.v.size] = self.prices[which]
        search.known.cost, search.known.prices, search.known.warm = self.bound, 1, 0
        plant_tree(search, masters, a, b)
        closed: dict[int, tuple[dict[str, Any], list[int]]] = {}
        known_prices = len(self.prices)
        while grow_tree(step, search, masters, 0):
            j, k = int(tree.state.closed), int(tree.state.chosen)
            if undecided(step, search, tree, 0) or len(closed) == most:
                del self.prices[known_prices:]
                return None
            spend(100)
            if j < 0:
                continue
            self.prices.append(search.best_price[: step.v.size].copy())
            prices = len(self.prices) - 1
            below = np.flatnonzero(tree.nodes.parent[: tree.state.used] == j).tolist()
            below.sort(key=lambda i: int(tree.nodes.place[i]))  # that all waits comes first
            places = tree.nodes.place[below].tolist()
            workers = [names[w] for w in places if w != WAITS]
            record = refuted(prices) if k < 0 else placement(k, prices, WAITS in places, workers)
            closed[j] = record, below
        if search.known.cost < self.bound:
            raise ContradictedError(f"an assignment of cost {search.known.cost} was found, below {self.bound}")
        records, waiting = [], [0]
        while waiting:
            record, below = closed[waiting.pop()]
            records.append(record)
            waiting += reversed(below)
        return records


def _renumbered(tree: Sequence[dict[str, Any]] | None, row: dict[int, int]) -> list[dict[str, Any]] | None:
    """Return the records with the rows of their prices as the certificate numbers them."""
    if tree is None:
        return None
    return [{**record, "prices": row[record["prices"]]} if "prices" in record else record for record in tree]
