"""Leximax over a window: among assignments of the optimal cost the one whose loads at all steps are most even.

Nothing is fixed here but the cost, because envelopes and admitted work can be traded for each other from step to step.
So what is small is exhausted (`lbopt.kernels.leximax.windows`), within limits; the best that is met is kept.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.leximax.windows import DONE, EXHAUSTION, Exhaustion, Window, exhaust
from lbopt.model import StepProblem, loads_after, objective
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits

#: Steps between two looks at the clock, some 3 ms; and in all.
SLICE, LONGEST = 300_000, 300_000_000


def most_even_window(problem: StepProblem, optimum: IntArray, limits: Limits) -> tuple[IntArray, str]:
    """Return the leximax assignment among those of the cost of `optimum`, and how it ended: "done" if that is proved.

    Other endings are "time", "cancelled", "interrupted", and "stuck" where there is too much to be exhausted. The
    assignment is then of the same cost, and its sorted loads are no greater.

    Parameters
    ----------
    optimum
        int64 (N,), an assignment of proved cost.
    """
    window, members, workers = _described(problem, objective(problem, optimum))
    W, P = workers.size, window.owner.size
    search = Exhaustion(
        state=record(EXHAUSTION),
        avail=np.array([len(those) for those in members]),
        chosen=np.full(P + 1, len(members)),
        tied=np.zeros(P + 1, dtype=np.int64),
        loads=window.base.copy(),
        best=np.sort(loads_after(problem, optimum).ravel())[::-1].copy(),
        answer=np.full(P, -1),
    )
    ending: str | None = None
    try:
        while ending is None:
            if exhaust(window, search, SLICE) == DONE:
                ending = "done"
            elif search.state.steps >= LONGEST:
                ending = "stuck"
            else:
                ending = limits.stopped()
    except KeyboardInterrupt:
        ending = "interrupted"
    if search.state.gains == 0:
        return optimum, ending
    assignment = np.full(problem.num_requests, -1, dtype=np.int64)
    waiting = [iter(those) for those in members]
    for w in range(W):
        for p in range(window.begin[w], window.begin[w + 1]):
            request = next(waiting[search.answer[p]])
            if request < problem.num_requests:  # beyond are the empty requests that fill slots up
                assignment[request] = workers[w]
    return assignment, ending


@cache
def load_window_kernel() -> None:
    """Load the kernel, or compile it where that was never done: no time limit should have to pay for it."""
    most_even_window(StepProblem.survives([3, 0], [1, 1], [1, 2], 1), np.array([0, 1]), Limits())


def _described(problem: StepProblem, cost: int) -> tuple[Window, list[list[int]], IntArray]:
    """Return the problem in the terms of the kernel, the requests of each class, and the open workers in its order."""
    G, N = problem.num_workers, problem.num_requests
    slots = np.minimum(problem.slots, N)
    empty = max(0, sum(slots.tolist()) - N)
    T = problem.horizon + 1
    kinds: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for i, (row, must) in enumerate(zip(problem.work.tolist(), problem.must_admit.tolist(), strict=True)):
        kinds.setdefault((tuple(row), must and empty == 0), []).append(i)
    if empty:
        kinds.setdefault(((0,) * T, False), []).extend(range(N, N + empty))
    ordered = sorted(kinds)
    alike = sorted(range(G), key=lambda g: (problem.base[g].tolist(), int(slots[g]), g))
    workers = np.array([g for g in alike if slots[g] > 0])
    base, seats = problem.base[workers].copy(), slots[workers]
    same = np.zeros(workers.size, dtype=np.int64)
    same[1:] = (base[1:] == base[:-1]).all(axis=1) & (seats[1:] == seats[:-1])
    window = Window(
        work=np.array([row for row, _ in ordered], dtype=np.int64).reshape(len(ordered), T),
        forced=np.array([int(must) for _, must in ordered], dtype=np.int64),
        base=base,
        begin=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(seats)]),
        owner=np.repeat(np.arange(workers.size), seats),
        alike=same,
        closed=problem.base[slots == 0].copy(),
        cost=cost,
    )
    return window, [kinds[kind] for kind in ordered], workers
