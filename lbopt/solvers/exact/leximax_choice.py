"""The depth-first search over lists: from a room and prices to lists, and back to the room."""

from __future__ import annotations

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.leximax.choose import DONE, choose_rows
from lbopt.kernels.leximax.lists import CHOICE, Choice, Lists
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.leximax_room import Room

#: Steps of the search, some 20 to 40 ns each: what takes longer is left to tickets.
_BRIEF = 100_000

#: Rows of all lists, and what is left of them at the nodes in hand: no more than these and a row for each step.
_ROWS, _STACK = 80_000, 1 << 19


def choose(room: Room, limits: Limits) -> bool:
    """Look for something more even than the assignment of `room`, and keep it there; False where something is left."""
    prices = room.best_prices()
    if prices is None or limits.stopped() is not None:
        return False
    step, slots, W = room.step, room.slots, room.slots.size
    low, high = room.window()
    ceiling = room.search.bound[:W].copy()
    lists = Lists(
        v=step.v,
        base=room.base,
        slots=slots,
        listed=_ints(W),
        profit=room.scale * step.v - prices,
        ceiling=ceiling,
        forced=(step.floor < 0).astype(np.int64),
        items=np.empty((_ROWS, int(slots.max())), dtype=np.int64),  # written before they are read
        loss=np.empty(_ROWS, dtype=np.int64),
        load=np.empty(_ROWS, dtype=np.int64),
    )
    choice = Choice(
        state=record(CHOICE),
        avail=step.n.copy(),
        row=np.full(W, -1),
        order=_ints(W + 1),
        cursor=_ints(W + 1),
        left=_ints(W + 2),
        need=np.full(W + 2, room.total),
        begin=_ints(W + 2, W),
        end=_ints(W + 2, W),
        rows=_ints(W + 2),
        live=np.empty(_STACK, dtype=np.int64),
        best=room.best,
        answer=room.held.copy(),
        lo=low.copy(),
        hi=high.copy(),
        even=room.even_loads(),
        loads=_ints(W),
        least=_ints(W),
    )
    choice.left[0] = int((prices * step.n).sum()) - room.scale * room.tokens + int(ceiling.sum())
    choice.state.deadline = limits.deadline()
    state = choose_rows(lists, choice, _BRIEF)
    if choice.state.gains:
        room.take(choice.answer)
    return bool(state == DONE)


def _ints(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)
