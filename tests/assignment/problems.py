"""Random balanced assignments, hard on purpose: ties, no room to spare, one centre, more centres than points."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

KINDS = ("ties", "tight", "unbalanced", "one centre", "square", "equal", "huge", "negative", "more centres", "loose")


def drawn(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return costs (N, K) and capacities (K,) that suffice."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    points, centres = int(rng.integers(1, 31)), int(rng.integers(1, 9))
    if kind == "one centre":
        centres = 1
    elif kind == "square":
        centres = points
    elif kind == "more centres":
        centres = points + int(rng.integers(1, 9))
    low, high = {"ties": (0, 3), "equal": (7, 8), "huge": (0, 2**52), "negative": (-50, 20)}.get(kind, (0, 1000))
    costs = rng.integers(low, high, (points, centres))
    if kind in ("tight", "ties"):
        capacity = rng.multinomial(points, np.full(centres, 1 / centres))
    elif kind == "unbalanced":
        capacity = rng.multinomial(points + int(rng.integers(0, 4)), rng.dirichlet(np.full(centres, 0.4)))
    elif kind == "square":
        capacity = np.ones(centres, dtype=np.int64)
    elif kind == "loose":
        capacity = rng.integers(points, 2 * points + 1, centres)
    else:
        capacity = np.full(centres, -(-points // centres))
    return costs, capacity


def lower_bounds(points: int, capacity: np.ndarray, seed: int) -> np.ndarray:
    """Return lower bounds that some assignment keeps."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(capacity.size, dtype=np.int64)
    for _ in range(points):
        counts[rng.choice(np.flatnonzero(counts < capacity))] += 1
    return rng.integers(0, counts + 1)


@st.composite
def problems(draw: st.DrawFn, *, most: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Costs, lower bounds and capacities of at most 12 points and 6 centres, with entries up to `most`."""
    points, centres = draw(st.integers(0, 12)), draw(st.integers(1, 6))
    row = st.lists(st.integers(-most, most), min_size=centres, max_size=centres)
    costs = np.array(draw(st.lists(row, min_size=points, max_size=points)), dtype=np.int64).reshape(points, centres)
    labels = draw(st.lists(st.integers(0, centres - 1), min_size=points, max_size=points))
    counts = np.bincount(np.array(labels, dtype=np.int64), minlength=centres)
    below = np.array(draw(st.lists(st.integers(0, 3), min_size=centres, max_size=centres)))
    above = np.array(draw(st.lists(st.integers(0, 2), min_size=centres, max_size=centres)))
    return costs, np.maximum(counts - below, 0), counts + above
