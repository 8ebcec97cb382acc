"""Random balanced assignments some of whose pairs are forbidden: many of them without any answer."""

from __future__ import annotations

import numpy as np

#: How the pairs that are left come about.
KINDS = ("few", "many", "one each", "neighbours", "ties")


def drawn(kind: str, seed: int, most: int = 14) -> tuple[np.ma.MaskedArray, np.ndarray, np.ndarray]:
    """Return masked costs, lower bounds and capacities whose sums fit the points."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    points, centres = int(rng.integers(1, most)), int(rng.integers(1, 7))
    costs = rng.integers(0, 3 if kind == "ties" else 100, (points, centres))
    if kind == "one each":
        hidden = np.arange(centres)[None, :] != rng.integers(0, centres, points)[:, None]
        hidden &= rng.random((points, centres)) < 0.9
    elif kind == "neighbours":
        near = rng.integers(0, centres, points)[:, None]
        hidden = np.abs(np.arange(centres)[None, :] - near) > 1
    else:
        hidden = rng.random((points, centres)) < (0.7 if kind == "few" else 0.3)
    room = points + int(rng.integers(0, 4))
    capacity = rng.multinomial(room, rng.dirichlet(np.full(centres, 2.0)))
    lower = np.minimum(capacity, rng.multinomial(int(rng.integers(0, points + 1)), np.full(centres, 1 / centres)))
    return np.ma.MaskedArray(costs, hidden), lower, capacity
