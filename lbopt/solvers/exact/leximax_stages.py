"""Prices that show how far the loads below the heaviest ones can be pressed down.

At stage j the j heaviest workers of the assignment at hand may keep their loads, and all others have to stay below the
next value. The master program of the exact search finds the prices at which fewest tokens fit; where these are fewer
than wanted, nothing of the kind exists. In the search over lists such prices cut off whatever resembles it. Where an
assignment that the master program meets on its way admits all tokens, it is a more even one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.terms import BOUND, COST, FIRST, HEAVIEST, LAST, NODES, OPEN, PRICES, STAGE
from lbopt.model.integers import IntArray
from lbopt.solvers.exact.leximax_room import Room

#: Stages that get prices.
MOST_STAGES = 12

#: The stage of an envelope that has nothing yet, and of one whose master program is solved.
_PRICED_ONCE, _SOLVED = 1, 2

_NOTHING = 1 << 60

#: Steps of exchanges between workers.
_EXCHANGES = 30_000_000


def stage_prices(room: Room, stop: Callable[[], str | None]) -> list[IntArray]:
    """Return the prices of the first stages; int64 (K,) each."""
    prices: list[IntArray] = []
    j = count = 0
    while j < room.best.size and count < MOST_STAGES and stop() is None:
        best = room.best
        if j > 0 and best[j] == best[j - 1]:
            j += 1
            continue
        prices += prices_at(room, j)
        count += 1
        j = j + 1 if (room.best == best).all() else 0
    return prices[-MOST_STAGES:]


def prices_at(room: Room, j: int) -> list[IntArray]:
    """Return the prices that the search finds at stage j, from which on loads have to fall."""
    search, step = room.search, room.step
    heaviest = np.argsort(-room.after, kind="stable")
    envelope = int(room.after[heaviest[j]]) - 1
    limits = np.full(room.after.size, envelope)
    limits[heaviest[:j]] = np.maximum(envelope, room.after[heaviest[:j]])
    facts = step.facts.copy()
    facts[HEAVIEST] = envelope  # so that tokens alone decide what is cheaper
    pressed = step._replace(load=room.base + (envelope - limits), facts=facts)
    if search.known[PRICES] > search.bank.shape[0] // 2:
        search.known[PRICES] = 1
    before = int(search.known[PRICES])
    search.node[0] = 0
    search.node[0, FIRST], search.node[0, LAST] = envelope, envelope
    search.node[0, STAGE] = 0 if before == 0 else _PRICED_ONCE
    search.known[COST], search.known[NODES], search.known[BOUND] = _NOTHING, 1, 0
    search.cut[:] = 0
    state = OPEN
    while state == OPEN and search.node[0, STAGE] < _SOLVED:
        state = advance(pressed, search, room.masters, 1)
    if search.known[COST] <= envelope:
        room.take(search.answer)
        room.even_out(_EXCHANGES)
    return [search.bank[at, : step.v.size].copy() for at in range(before, int(search.known[PRICES]))]
