"""Run the exact search over a window that every new request outlives: in slices, so that clock and Ctrl-C are heard.

Such a window is recognised by its numbers: all requests have one profile, work[i, h] - work[i, 0] is the same for all.
Then what a worker receives enters its loads by one number, see `lbopt.kernels.windows`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.known_ends.state import Draft as Made
from lbopt.kernels.known_ends.state import Tops
from lbopt.kernels.known_ends.state import Window as Fleet
from lbopt.kernels.windows.state import (
    CUTS,
    DONE,
    OPEN,
    PROGRESS,
    Box,
    Cuts,
    Draft,
    Nodes,
    Pool,
    Profile,
    Program,
    Scratch,
    Search,
    Window,
)
from lbopt.kernels.windows.tree import advance
from lbopt.model import StepProblem
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates.format import MOST_SLOTS
from lbopt.solvers.elementary import elementary_bound
from lbopt.solvers.exact.known_ends import handed_out
from lbopt.solvers.exact.search import ExactAnswer, raised

#: Largest sum of magnitudes for which prices are still a thousandth of a token fine.
_LARGEST = 1 << 60

_FINEST_SCALE = 1 << 26

#: Beyond this many tokens floats no longer guide.
_LONGEST_LOAD = 1 << 30

#: Totals of few requests are listed while there are at most so many combinations.
_FEW_TOTALS = 4_000

#: Slots that stay empty, each of which is filled by an empty request: more are left to `known_ends`, which counts them.
_MOST_EMPTY = 1 << 20

#: Work between two looks at the clock, about microseconds; one node of a large fleet may take longer.
_SLICE = 2_000

#: Requests of a worker that a branch may speak of.
_DEPTH = 3

_NODES = 1 << 15

_MEMORY = 1 << 22  # entries of the boxes of all nodes

#: Numbers of a problem up to which elementary reasoning takes a few milliseconds; the root's bound is seldom below it.
_SMALL = 4000


def has_one_profile(problem: StepProblem) -> bool:
    """Return whether all requests, and the slots that stay empty, grow alike over the window."""
    work = problem.work
    profile = work[0] - work[0, 0]
    empty = problem.num_free_slots - problem.num_requests
    if empty > _MOST_EMPTY or int(problem.slots.max()) > MOST_SLOTS or (empty > 0 and profile.any()):
        return False
    return bool((work - work[:, :1] == profile).all())


class WindowDecision:
    """A step problem in the terms of the window search; `fits` is False where it is of another kind, or too large."""

    def __init__(self, problem: StepProblem) -> None:
        self.problem = problem
        self.fits = False
        work, base = problem.work, problem.base
        if problem.num_admitted == 0 or not has_one_profile(problem):
            return
        profile = work[0] - work[0, 0]
        sizes, must = work[:, 0], problem.must_admit
        missing = problem.num_free_slots - problem.num_requests
        if missing > 0:
            sizes = np.concatenate([sizes, np.zeros(missing, dtype=np.int64)])
            must = np.concatenate([must, np.zeros(missing, dtype=np.bool_)])
        order = np.lexsort((~must, sizes))
        v, start, n = np.unique(sizes[order], return_index=True, return_counts=True)
        forced = must[order].astype(np.int64)
        admits_all = problem.num_free_slots >= sizes.size
        counted = np.zeros(v.size, dtype=np.int64) if admits_all else np.add.reduceat(forced, start)
        slots = problem.slots
        G, T = base.shape
        profiled = base + slots[:, None] * profile
        shift = profiled.max(axis=0)
        peak = profiled - shift
        self.workers = np.flatnonzero(slots)
        closed = slots == 0
        open_slots = slots[self.workers]
        floor = peak[closed].max(axis=0) if closed.any() else np.full(T, -_LONGEST_LOAD)
        self.constant = int(G * shift.sum() - profiled.sum())
        ascending = np.concatenate([[0], np.cumsum(sizes[order])])
        low = ascending[open_slots]
        high = ascending[-1] - ascending[ascending.size - 1 - open_slots]
        reach = int(high.sum()) + int(np.abs(peak).max())
        magnitude = 8 * G * T * (int(np.abs(peak).sum(axis=0).max()) + int(high.sum()) + 1)
        if reach > _LONGEST_LOAD or magnitude > _LARGEST >> 10:
            return
        self.fits = True
        scale = _FINEST_SCALE
        while scale * magnitude > _LARGEST:
            scale //= 2
        every = np.arange(open_slots.size)
        listed, begin = _listed_totals(v, int(open_slots.max()))
        self.window = Window(
            pool=Pool(
                v=v,
                n=n.astype(np.int64),
                must=counted,
                forced=int(counted.sum()),
                small=ascending[: int(open_slots.max()) + 1],
                listed=listed,
                begin=begin,
            ),
            profile=Profile(
                peak=np.ascontiguousarray(peak[self.workers]),
                floor=floor,
                worker=np.concatenate([np.repeat(every, T), np.full(T, -1), every, every, np.full(CUTS, -1)]),
                step=np.concatenate([np.tile(np.arange(T), every.size + 1), np.full(2 * every.size + CUTS, -1)]),
                workers=G,
                constant=self.constant,
                scale=scale,
            ),
            fleet=Fleet(
                peak=np.ascontiguousarray(peak[self.workers]),
                slots=open_slots,
                owner=_ints(T),  # only bounds ask for it, as for the scale
                v=np.repeat(v[:, None], T, axis=1),
                total=T * v,
                n=n.astype(np.int64),
                must=counted,
                workers=G,
                constant=self.constant,
                scale=scale,
            ),
            slots=open_slots,
            low=low,
            high=high,
            order=np.argsort(open_slots, kind="stable"),
        )

    def start(self, cost: int) -> Search:
        """Return a search for something cheaper than `cost`."""
        profile = self.window.profile
        W, T = profile.peak.shape
        K, Q, n = self.window.pool.v.size, int(self.window.slots.max()), W + T
        D = min(Q, _DEPTH)
        tops = Tops(*(_ints(T) for _ in Tops._fields))
        made = Made(pattern=_ints(W, Q), loads=_ints(W, T), left=_ints(K), tops=tops, rest=_ints(T))
        nodes = max(16, min(_NODES, _MEMORY // (W * (2 + 2 * D))))
        search = Search(
            progress=record(PROGRESS),
            nodes=Nodes(  # written before they are read: zeroing them would take longer than many searches
                bounds=np.empty(nodes, dtype=np.int64),
                low=np.empty((nodes, W), dtype=np.int64),
                high=np.empty((nodes, W), dtype=np.int64),
                first=np.empty((nodes, W, D), dtype=np.int64),
                last=np.empty((nodes, W, D), dtype=np.int64),
            ),
            box=Box(
                low=_ints(W),
                high=_ints(W),
                first=_ints(W, D),
                last=_ints(W, D),
                fixed=_ints(W),
                held=_ints(W),
                least=_ints(W),
                most=_ints(W),
                avail=_ints(K),
            ),
            cuts=Cuts(inside=_ints(CUTS, W), sense=_ints(CUTS), limit=_ints(CUTS)),
            program=Program(
                right=np.concatenate([profile.peak.ravel(), profile.floor, _ints(2 * W + CUTS)]),
                basis=_ints(n),
                edge=np.zeros((n, n)),
                price=np.zeros(n),
                point=np.zeros(n),
                rate=np.zeros(n),
                scaled=_ints(n + 1),
            ),
            draft=Draft(
                goal=_ints(W),
                pattern=made.pattern,
                left=made.left,
                placed=_ints(W),
                owed=_ints(W * Q),
                owner=_ints(W * Q),
                room=_ints(W),
                rest=_ints(W),
                made=made,
            ),
            answer=_ints(W, Q),
            scratch=Scratch(
                row=_ints(Q),
                filled=_ints(W),
                below=_ints(2),
                above=_ints(2),
                opened=_ints(W),
                link=_ints(W),
                head=_ints(K),
                turn=_ints(W),
                margin=_ints(W),
                goal=_ints(W),
                gaps=_ints(T),
                inside=_ints(W),
                demand=_ints(K + 1),
                limits=_ints(W),
                order=_ints(W),
                in_basis=_ints(CUTS),
                gain=_ints(W),
                paid=_ints(T),
                largest=_ints(T),
            ),
        )
        search.progress.cost = cost
        return search

    def handed_out(self, search: Search) -> IntArray:
        """Return the worker of each request in the best assignment of `search`: the first of a class come first."""
        klass = np.searchsorted(self.window.pool.v, self.problem.work[:, 0])
        order = np.lexsort((~self.problem.must_admit, klass))
        return handed_out(search.answer, self.window.slots, self.workers, klass, order)


def _ints(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)


def _listed_totals(v: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Return the totals of 2, 3, ... classes as far as they are few, and where those of each number begin."""
    rows, begin = [], [0, 0, 0]
    row = v
    for _ in range(2, most + 1):
        if row.size * v.size > _FEW_TOTALS:
            break
        row = np.unique(np.add.outer(row, v))
        rows.append(row)
        begin.append(begin[-1] + row.size)
    begin += [begin[-1]] * (most + 2 - len(begin))
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows]), np.array(begin, dtype=np.int64)


@cache
def _load_kernel() -> None:
    """Load the kernel, or compile it where that was never done: no time limit should have to pay for it."""
    decision = WindowDecision(StepProblem.survives([9, 0, 3], [1, 2, 2], [1, 2, 4, 5, 7, 9], 1))
    advance(decision.window, decision.start(1 << 61), 1)


def search_window(problem: StepProblem, best: int | None, limits: Limits) -> ExactAnswer:
    """Look for an assignment of cost below `best` (None: any), and for the proof that there is none.

    The answer is "refused" where the problem is of another kind, the numbers are too large, or nothing was found
    within the limit and there is no `best`.

    Parameters
    ----------
    best
        Cost of an assignment that is known already, tokens; None for none.
    """
    _load_kernel()
    deadline = limits.deadline()  # the clock counts from when it is first asked
    decision = WindowDecision(problem)
    if not decision.fits:
        return ExactAnswer(None, 0, "refused")
    nothing = 1 << 61
    cost = nothing if best is None else best
    search = decision.start(cost)
    stop, state = "done", OPEN
    progress = search.progress
    try:
        budget = 1  # the root, whatever the clock says: it gives a first assignment
        while state == OPEN:
            progress.deadline = deadline
            state = advance(decision.window, search, budget)
            if state == OPEN:
                found = int(progress.cost)
                told = None if found == nothing else found
                reached = limits.reached(int(progress.work), told, int(min(progress.bound, found)))
                if reached is not None or progress.expired:
                    stop = reached or "time"
                    break
                budget, deadline = _SLICE, limits.deadline()
    except KeyboardInterrupt:
        stop = "interrupted"
    if stop == "done" and state != DONE:
        stop = "memory" if search.progress.open_nodes > 0 else "effort"
    found = int(search.progress.cost)
    if found == nothing:
        if stop == "interrupted":
            raise KeyboardInterrupt
        return ExactAnswer(None, 0, "refused")
    answer = ExactAnswer(
        assignment=decision.handed_out(search) if found < cost else None,
        bound=int(min(search.progress.bound, found)),
        stop=stop,
        cost=found,
    )
    if stop == "done" or (stop not in ("memory", "interrupted") and problem.base.size + problem.work.size > _SMALL):
        return answer
    return raised(answer, elementary_bound(problem))
