"""The best profit of a pattern for each worker, and what prices leave spare: exact, or from above."""

from __future__ import annotations

from collections import Counter

import numpy as np

from lbopt.solvers.certificates.patterns import Patterns
from lbopt.solvers.certificates.profits import BestProfits

#: (free slots, room) of a worker.
Place = tuple[int, int]

#: Partial patterns that may be kept for one worker, where its best profit is known only from above.
_PATIENCE = 100_000


def best_profits(table: BestProfits, places: set[Place]) -> dict[Place, int]:
    """Return the largest profit of a pattern, or a number above it, for each place that has patterns."""
    best: dict[Place, int] = {}
    for slots in {slots for slots, _ in places}:
        rooms = sorted(room for c, room in places if c == slots)
        profits = table.upper(slots, np.array(rooms, dtype=table.kind))
        best.update(zip(((slots, room) for room in rooms), profits.tolist(), strict=True))
    return best


def refined(
    table: BestProfits, workers: dict[int, Place], best: dict[Place, int], fixed: int
) -> tuple[dict[Place, int], int]:
    """Return the best profits, and fixed + their sum over all workers; where that is not negative, as low as can be.

    Parameters
    ----------
    table
        The table of best profits.
    workers
        Workers by number.
    best
        Best profit of each place; changed in place.
    fixed
        The part of the bound that does not depend on workers.
    """
    spare = fixed + sum(best[place] for place in workers.values())
    if spare >= 0 and not table.exact:
        for place, number in Counter(workers.values()).items():
            lower = min(best[place], _searched(table, *place))
            spare -= number * (best[place] - lower)
            best[place] = lower
            if spare < 0:
                break
    return best, spare


def _searched(table: BestProfits, slots: int, room: int) -> int:
    """Return the largest profit by a search that may end early, then a number above it."""
    found = Patterns(table, slots, room, least=None, patience=_PATIENCE).best_or_above()
    return table.magnitude if found is None else found
