"""A window with departures, or with slots that stay empty, in the terms of its search (`lbopt.kernels.known_ends`).

Any work vectors will do; windows that all new requests outlive are answered faster by `windows.py`.

Large windows get prices by ascent (`lbopt.kernels.known_ends.ascent`), and the bound that they prove.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.known_ends.ascent import ascend, first_prices, round_ascent
from lbopt.kernels.known_ends.bounds import bound_of_all
from lbopt.kernels.known_ends.placing import place_in_order
from lbopt.kernels.known_ends.polish import polish
from lbopt.kernels.known_ends.state import ASCENT, NUMBERS, Box, Climb, Draft, Prices, Program, Tops, Window
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray

#: Largest sum of magnitudes that prices are multiplied with.
_LARGEST = 1 << 60

_FINEST_SCALE = 1 << 26

#: Entries of the dictionary up to which a linear program is affordable.
_LARGEST_TABLE = 1 << 22


def handed_out(pattern: IntArray, slots: IntArray, workers: IntArray, klass: IntArray, order: IntArray) -> IntArray:
    """Return the worker of each request where `pattern` says how many of each class the open workers take.

    Parameters
    ----------
    pattern
        int64 (W, Q): classes, in the first slots[w] places.
    slots, workers
        int64 (W,): slots, and numbers of the workers in the problem.
    klass, order
        Class of each request; requests by class, those first that come first.
    """
    taken = np.arange(pattern.shape[1]) < slots[:, None]
    classes, owners = pattern[taken], np.repeat(workers, slots)
    by_class = np.argsort(classes, kind="stable")
    classes, owners = classes[by_class], owners[by_class]
    ordered = klass[order]
    place = np.searchsorted(ordered, classes) + np.arange(classes.size) - np.searchsorted(classes, classes)
    real = place < np.searchsorted(ordered, classes, side="right")  # beyond are the empty requests that fill slots up
    assignment = np.full(order.size, -1, dtype=np.int64)
    assignment[order[place[real]]] = owners[real]
    return assignment


class KnownEnds:
    """A step problem in the terms of the search.

    `fits` is False where its numbers are too large, or no request can be admitted.
    """

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
        # the heaviest before, if possible one that stays as it is: M_h is at least its load
        self.heaviest = np.where(base == shift, 1 + (slots == 0)[:, None], 0).argmax(axis=0)
        most = int(classes[-1, 0])
        load = int((shift - base.min(axis=0)).sum())
        magnitude = 8 * G * (load + (int(slots.sum()) + 2) * (most + 1))
        if magnitude > _LARGEST >> 8:
            return
        self.fits = True
        scale = _FINEST_SCALE
        while scale * magnitude > _LARGEST:
            scale //= 2
        self.window = Window(
            peak=np.ascontiguousarray((base - shift)[self.workers]),
            slots=slots[self.workers],
            owner=np.where(
                slots[self.heaviest] > 0, np.searchsorted(self.workers, self.heaviest), self.workers.size
            ).astype(np.int64),
            v=np.ascontiguousarray(classes[:, 1:-1]),
            total=classes[:, 0].copy(),
            n=n.astype(np.int64),
            must=np.ones(n.size, dtype=np.int64) if admits_all else classes[:, -1].copy(),
            workers=G,
            constant=int(G * shift.sum() - base.sum()),
            scale=scale,
        )

    # ------------------------------------------------------------------ assignments

    def draft(self) -> Draft:
        """Return room for an assignment."""
        (W, T), K = self.window.peak.shape, self.window.n.size
        tops = Tops(*(_ints(T) for _ in Tops._fields))
        return Draft(_ints(W, int(self.window.slots.max())), _ints(W, T), _ints(K), tops, _ints(T))

    def placements(self, draft: Draft) -> Iterator[int]:
        """Yield the cost of one cheap placement after the other, each in `draft`: those of `greedy_assignment`."""
        problem = self.problem
        size, must = problem.work.sum(axis=1), problem.must_admit
        forced, free = np.flatnonzero(must), np.flatnonzero(~must)
        count = problem.num_admitted - forced.size
        orders = [free]
        if count < free.size:
            orders += [free[np.argsort(-size[free], kind="stable")], free[np.argsort(size[free], kind="stable")]]
        for order in orders:
            admitted = np.concatenate([forced, order[:count]])
            admitted = admitted[np.lexsort((admitted, -size[admitted]))]
            for by_envelope in (0, 1):
                place_in_order(self.window, self.klass[admitted], admitted.size, by_envelope, self.filler, draft)
                yield polish(self.window, draft, 0, NEVER)

    def handed_out(self, pattern: IntArray) -> IntArray:
        """Return the worker of each request: the first requests of a class come first."""
        order = np.argsort(self.klass[: self.problem.num_requests], kind="stable")
        return handed_out(pattern, self.window.slots, self.workers, self.klass, order)

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

    def program(self, box: Box) -> Program | None:
        """Return the linear program of the classes that the box allows, which the search begins; None if too large."""
        (W, T), K = self.window.peak.shape, self.window.n.size
        worker, klass = map(np.ascontiguousarray, np.nonzero(box.allowed))  # strided ones compile the tree once more
        n = klass.size + T
        R = W + min(K, int(self.window.slots.sum())) + min(W * T, 4 * T + 2 * W) + 64
        if n * R > _LARGEST_TABLE:
            return None
        unit = float(max(1, self.window.v.max()))
        numbers = record(NUMBERS)
        numbers.unit, numbers.tolerance = unit, 1e-8
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
            numbers=numbers,
        )


def _ints(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)


#: Length of the first step, how much shorter each following one is, and the length to begin with when it goes on.
_FIRST, _SHRINK, _AGAIN = 0.5, 0.99, 0.2


class Ascent:
    """Prices that become better step by step."""

    def __init__(self, decision: KnownEnds) -> None:
        self.decision = decision
        (W, T), K = decision.window.peak.shape, decision.window.n.size
        self._climb = climb = Climb(
            numbers=record(ASCENT),
            pi=np.zeros((W + 1, T)),
            mu=np.zeros(K),
            best_pi=np.zeros((W + 1, T)),
            best_mu=np.zeros(K),
            mean_loads=np.zeros((W + 1, T)),
            mean_used=np.zeros(K),
        )
        first_prices(decision.window, climb.pi, climb.mu)
        climb.best_pi[:], climb.best_mu[:] = climb.pi, climb.mu
        climb.numbers.step, climb.numbers.shrink = _FIRST, _SHRINK
        self.prices = decision.prices()

    @property
    def value(self) -> float:
        """The bound of the best prices before rounding, tokens."""
        return float(self._climb.numbers.best)

    def advance(self, goal: int, steps: int, deadline: int = NEVER) -> None:
        """Take steps towards `goal`, the cost of an assignment in tokens; fewer where the deadline passes."""
        self._climb.numbers.goal = goal
        ascend(self.decision.window, self._climb, steps, deadline)

    def again(self) -> None:
        """Go on from the best prices, in steps of middling length; nothing changes before the first step."""
        climb = self._climb
        if climb.numbers.started == 0.0:
            return
        climb.pi[:], climb.mu[:] = climb.best_pi, climb.best_mu
        climb.numbers.step, climb.numbers.shrink = _AGAIN, _SHRINK

    def proved(self, deadline: int = NEVER) -> int:
        """Round the best prices; return the bound that they prove, tokens; none, below zero, beyond the deadline."""
        round_ascent(self.decision.window, self._climb, self.prices)
        return int(bound_of_all(self.decision.window, self.prices, deadline))

    def kept(self) -> IntArray:
        """Return the rounded prices in one row, as `unpacked` reads them."""
        return np.concatenate([self.prices.pi.ravel(), self.prices.mu])[None, :]


def unpacked(decision: KnownEnds, row: IntArray) -> Prices:
    """Return the prices that `Ascent.kept` has packed into a row."""
    prices = decision.prices()
    size = prices.pi.size
    prices.pi[:], prices.mu[:] = row[:size].reshape(prices.pi.shape), row[size:]
    return prices
