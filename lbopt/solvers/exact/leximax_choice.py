"""The depth-first search over lists: from a room and prices to lists, slices, and back to the room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.leximax.choose import choose_rows
from lbopt.kernels.leximax.lists import list_workers
from lbopt.kernels.leximax.state import AT_A_NODE, CHOICE, DONE, Choice, Lists
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.leximax_room import Room

#: Steps between two looks at the clock: 2 to 4 ms.
SLICE = 100_000

#: Patterns listed for a worker before anything is decided, branches looked at for them, rows in all.
_LISTED, _BRANCHES, _ROWS = 20_000, 400_000, 60_000

#: Seconds that making the lists takes for a worker, and again for four further prices; and those of a row.
_SECONDS_EACH, _SECONDS_A_ROW = 8e-5, 1.5e-7

#: Rows on the stack of a search.
_STACK = 16_000_000


def choose(room: Room, prices: Sequence[IntArray], limit: int, limits: Limits) -> str:
    """Look for something more even than the assignment of `room`, and keep it there.

    `prices` (K,) are any, the first those by which the lists are made; `limit` is in steps. Returns "done" where
    nothing more even is left, "effort" at the limit, "stuck" where lists had to be cut short, or what `limits` say.

    Parameters
    ----------
    room
        The decision and the best assignment; a more even one is kept there.
    prices
        int64 (K,) each, in 1/scale tokens; the lists are made by the first.
    limit
        Steps of the search.
    """
    stopped = limits.leaving(_SECONDS_EACH * room.slots.size * (1 + len(prices) / 4)).stopped()
    if stopped is not None:  # there is no time to make the lists in
        return stopped
    prepared = _prepared(room, prices, limits)
    if prepared is None:
        return limits.stopped() or "time"
    lists, choice = prepared
    if choice is None:
        return "stuck"
    ending, gains = None, 0
    try:
        while ending is None:
            choice.state.deadline, choice.state.expired = limits.deadline(), 0
            if choose_rows(lists, choice, SLICE) == DONE:
                ending = "done" if choice.state.cut == 0 else "stuck"
            elif choice.state.steps >= limit:
                ending = "effort"
            else:
                ending = limits.stopped()
    finally:
        gains = int(choice.state.gains)
        if gains:
            room.take(choice.answer)
    return ending


def _prepared(room: Room, prices: Sequence[IntArray], limits: Limits) -> tuple[Lists, Choice | None] | None:
    """List the patterns of all workers; no choice where its stack would be too large, nothing where time is over."""
    step, slots, W = room.step, room.slots, room.slots.size
    scale, cap, even = room.scale, int(room.after.max()), room.even_loads()
    profit = scale * step.v - np.array(prices)
    ceiling = np.zeros((len(prices), W), dtype=np.int64)
    for i, one in enumerate(prices):
        if room.bound_at(one, cap) is None:
            raise AssertionError("nothing fits under the largest load of an assignment: a defect of lbopt")
        ceiling[i] = room.search.bound[:W]
    worth = (np.array(prices) * step.n).sum(axis=1) - scale * room.tokens
    items = np.empty((_ROWS, int(slots.max())), dtype=np.int64)
    first, last = np.zeros((2, W), dtype=np.int64)
    need = ceiling[0] - (worth[0] + ceiling[0].sum())
    least, largest = room.window()
    rows = list_workers(
        *(step.v, step.n, room.base, slots, least, largest, profit[0], need, _LISTED, _BRANCHES),
        *(items, first, last, limits.deadline()),
    )
    if limits.leaving(_SECONDS_A_ROW * rows * (1 + len(prices) / 4)).stopped() is not None:
        return None  # there is no time to read the lists in
    listed = (first >= 0).astype(np.int64)
    first, last = np.maximum(first, 0), np.maximum(last, 0)
    spare = int((listed == 0).sum()) * AT_A_NODE
    deepest = (rows + AT_A_NODE) * W
    owner = np.repeat(np.arange(W), last - first)
    mine = np.arange(items.shape[1]) < slots[owner][:, None]
    load = np.zeros(rows + spare, dtype=np.int64)
    load[:rows] = room.base[owner] + np.where(mine, step.v[items[:rows] * mine], 0).sum(axis=1)
    loss = np.zeros((rows + spare, len(prices)), dtype=np.int64)
    some = np.flatnonzero(last > first)
    for i in range(len(prices)):
        gained = np.where(mine, profit[i][items[:rows] * mine], 0).sum(axis=1)
        if some.size:  # their rows follow each other
            ceiling[i, some] = np.minimum(ceiling[i, some], np.maximum.reduceat(gained, first[some]))
        loss[:rows, i] = ceiling[i][owner] - gained
    listing = _ints(rows + spare, items.shape[1])  # the spare rows cost nothing until they are used
    listing[:rows] = items[:rows] * mine
    lists = Lists(
        v=step.v,
        base=room.base,
        slots=slots,
        listed=listed,
        profit=profit,
        bound=ceiling,
        items=listing,
        loss=loss,
        load=load,
        forced=(step.floor < 0).astype(np.int64),
    )
    if deepest > _STACK:
        return lists, None
    choice = Choice(
        state=record(CHOICE),
        avail=step.n.copy(),
        row=np.full(W, -1),
        order=_ints(W + 1),
        cursor=_ints(W + 1),
        left=_ints(W + 2, len(prices)),
        need=np.full(W + 2, room.total),
        begin=_ints(W + 2, W),
        end=_ints(W + 2, W),
        rows=np.full(W + 2, rows),
        short=_ints(W + 1),
        bound=np.full((W + 1, W), -1),
        live=np.empty(rows + spare + deepest, dtype=np.int64),
        best=room.best,
        answer=room.held.copy(),
        lo=_ints(W),
        hi=_ints(W),
        even=_ints(W),
        loads=_ints(W),
        least=_ints(W, len(prices)),
        spare=_ints(len(prices)),
    )
    choice.state.fresh = 1
    choice.left[0] = worth + ceiling.sum(axis=1)
    choice.begin[0], choice.end[0] = first, last
    # of a worker's patterns those are tried first whose load is next to what would be most even
    choice.live[:rows] = np.lexsort((np.abs(load[:rows] - even[owner]), owner))
    return lists, choice


def _ints(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)
