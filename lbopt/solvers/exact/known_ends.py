"""Run the exact search over windows in which requests end, or slots stay empty: in slices, so that the clock is heard.

Any work vectors will do; windows that all new requests outlive are answered faster by `windows.py`. The parts are in
`lbopt.kernels.known_ends`: placements and exchanges for a first assignment, a linear program whose dual values are
rounded to integer prices, and a branch and bound on how many of the larger requests a worker takes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbopt.kernels.known_ends.placing import place_in_order
from lbopt.kernels.known_ends.polish import polish
from lbopt.kernels.known_ends.terms import (
    BOUND,
    COST,
    DONE,
    FAR,
    KNOWN,
    OPEN,
    SCALE,
    WORK,
    Box,
    Draft,
    Nodes,
    Prices,
    Program,
    Window,
)
from lbopt.kernels.known_ends.tree import advance, strike
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.limits import Clock
from lbopt.solvers.exact.search import ExactAnswer

#: Largest sum of magnitudes that prices are multiplied with.
_LARGEST = 1 << 60

_FINEST_SCALE = 1 << 26

#: Work between two looks at the clock, about microseconds.
_SLICE = 4_000

#: Entries of the dictionary up to which there is a tree at all.
_LARGEST_TABLE = 1 << 23

_NODES = 1 << 19

_POLISH_ROUNDS = 20


class KnownEnds:
    """A step problem in the terms of the search; `fits` is False where its numbers are too large, or nobody starts."""

    def __init__(self, problem: StepProblem) -> None:
        self.problem = problem
        self.fits = False
        if problem.num_admitted == 0:
            return
        base, N = problem.base, problem.num_requests
        G, T = base.shape
        slots = np.minimum(problem.slots, N)
        work, must = problem.work, problem.must_admit
        empty = int(slots.sum()) - N
        admits_all = empty >= 0
        if empty > 0:
            work = np.concatenate([work, np.zeros((1, T), dtype=np.int64)])
            must = np.concatenate([must, np.zeros(1, dtype=np.bool_)])
        keys = np.concatenate([work.sum(axis=1)[:, None], work, must[:, None]], axis=1)
        classes, self.klass, n = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        self.klass = self.klass.ravel()
        self.filler = int(self.klass[N]) if empty > 0 else -1
        if empty > 0:
            n[self.filler] += empty - 1
        shift = base.max(axis=0)
        self.workers = np.flatnonzero(slots)
        self.owner = base.argmax(axis=0)  # the heaviest before: M_h is at least its load
        most = int(classes[-1, 0])
        load = int((shift - base.min(axis=0)).sum())
        magnitude = 4 * G * (load + (N + empty + int(slots.sum()) + 2) * (most + 1))
        if magnitude > _LARGEST >> 8:
            return
        self.fits = True
        scale = _FINEST_SCALE
        while scale * magnitude > _LARGEST:
            scale //= 2
        self.window = Window(
            peak=np.ascontiguousarray((base - shift)[self.workers]),
            slots=slots[self.workers],
            v=np.ascontiguousarray(classes[:, 1:-1]),
            total=classes[:, 0].copy(),
            n=n.astype(np.int64),
            must=np.ones(n.size, dtype=np.int64) if admits_all else classes[:, -1].copy(),
            facts=np.array([G, int(G * shift.sum() - base.sum()), scale, int(admits_all)], dtype=np.int64),
        )

    # ------------------------------------------------------------------ assignments

    def draft(self) -> Draft:
        """Return room for an assignment."""
        (W, T), K = self.window.peak.shape, self.window.n.size
        return Draft(_ints(W, int(self.window.slots.max())), _ints(W, T), _ints(K), _ints(T, 5))

    def placements(self, draft: Draft) -> Iterator[int]:
        """Yield the cost of one cheap placement after the other, each in `draft`: those of `greedy_assignment`."""
        problem = self.problem
        size, must = problem.work.sum(axis=1), problem.must_admit
        forced, free = np.flatnonzero(must), np.flatnonzero(~must)
        count = problem.num_admitted - forced.size
        orders = [free]
        if count < free.size:
            orders += [free[np.argsort(-size[free], kind="stable")], free[np.argsort(size[free], kind="stable")]]
        rest = _ints(self.window.v.shape[1])
        for order in orders:
            admitted = np.concatenate([forced, order[:count]])
            admitted = admitted[np.lexsort((admitted, -size[admitted]))]
            for by_envelope in (0, 1):
                place_in_order(self.window, self.klass[admitted], admitted.size, by_envelope, self.filler, draft)
                yield polish(self.window, draft, 0, rest)

    def handed_out(self, pattern: IntArray) -> IntArray:
        """Return the worker of each request: the first requests of a class come first."""
        assignment = np.full(self.problem.num_requests, -1, dtype=np.int64)
        N = assignment.size
        order = np.argsort(self.klass[:N], kind="stable")
        following = np.searchsorted(self.klass[:N][order], np.arange(self.window.n.size))
        ends = np.searchsorted(self.klass[:N][order], np.arange(self.window.n.size), side="right")
        for w, g in enumerate(self.workers.tolist()):
            for k in pattern[w, : self.window.slots[w]].tolist():
                if following[k] < ends[k]:  # beyond are the empty requests that fill slots up
                    assignment[order[following[k]]] = g
                    following[k] += 1
        return assignment

    # ------------------------------------------------------------------ tree

    def prices(self) -> Prices:
        """Return room for prices."""
        (W, T), K = self.window.peak.shape, self.window.n.size
        return Prices(_ints(W + 1, T), _ints(K), _ints(K), _ints(int(self.window.slots.max()) + 1))

    def box(self) -> Box:
        """Return the box of the root."""
        W, K = self.window.slots.size, self.window.n.size
        most = np.repeat(self.window.slots[:, None], K, axis=1)
        return Box(np.ones((W, K), dtype=np.int64), _ints(W, K), np.ascontiguousarray(most))

    def program(self, box: Box) -> Program:
        """Return the linear program of the classes that the box allows, which the search begins by itself."""
        (W, T), K = self.window.peak.shape, self.window.n.size
        worker, klass = np.nonzero(box.allowed)
        n = klass.size + T
        R = W + min(K, n) + min(W * T, 4 * T + 2 * W) + 64
        unit = float(max(1, self.window.v.max()))
        return Program(
            klass=klass,
            worker=worker,
            kind=_ints(R),
            first=_ints(R),
            second=_ints(R),
            basis=_ints(R),
            nonbasic=_ints(n),
            where=_ints(n + R),
            lower=np.zeros(n + R),
            upper=np.zeros(n + R),
            value=np.zeros(n + R),
            table=np.empty((R, n)),
            rest=np.zeros(R),
            reduced=np.zeros(n),
            ratio=np.zeros(n),
            size=self.window.v / unit,
            weight=self.window.total / unit,
            start=self.window.peak / unit,
            number=np.array([unit, 0.0, 1e-8]),
        )


def nodes() -> Nodes:
    """Return room for the nodes of a tree: written before it is read."""
    return Nodes(*(np.empty(_NODES, dtype=np.int64) for _ in range(7)))


def _ints(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)


class Search:
    """A search for something cheaper than `cost`: its state, slice by slice."""

    def __init__(self, decision: KnownEnds, cost: int, bound: int = -FAR) -> None:
        self.decision = decision
        self.known = _ints(KNOWN)
        self.known[COST], self.known[BOUND] = cost, bound
        self.box, self.prices, self.draft = decision.box(), decision.prices(), decision.draft()
        self.answer = self.draft.pattern.copy()
        self.nodes = nodes()
        self.at = _ints(4)
        self.program = decision.program(self.box)

    def advance(self, work: int) -> int:
        """Go on for about `work` units; return STUCK, OPEN or DONE."""
        return advance(
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

    def restart(self) -> None:
        """Begin again with the columns that are left."""
        kept = self.known[[COST, BOUND, WORK]]
        self.known[:] = 0
        self.known[[COST, BOUND, WORK]] = kept
        self.program = self.decision.program(self.box)


def search_known_ends(problem: StepProblem, best: int | None, remaining: Clock) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    `remaining` says how many seconds are left; None is without limit. Where the numbers are too large, or nobody can be
    admitted, the answer is "refused".
    """
    decision = KnownEnds(problem)
    if not decision.fits:
        return ExactAnswer(None, 0, "refused")
    window, draft = decision.window, decision.draft()
    pattern, cost = draft.pattern, FAR
    rest = _ints(window.v.shape[1])
    for found in decision.placements(draft):
        if found < cost:
            cost, pattern = found, draft.pattern.copy()
    search = Search(decision, cost)
    search.answer[:] = pattern
    stop, state = "done", OPEN
    while state == OPEN:
        left = remaining()
        if left is not None and left <= 0:
            stop = "time"
            break
        state = search.advance(_SLICE)
    if state == -1:
        stop = "stuck"
    return ExactAnswer(decision.handed_out(search.answer), int(search.known[BOUND]), stop, cost=int(search.known[COST]))
