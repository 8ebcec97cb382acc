"""Exponents of a scaling study: known planes come back, and bootstrap intervals cover as often as they say.

Part of checking the checker itself: the rest is in `tests/theory/test_checker.py`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from lbopt.studies.scaling.study import fit_exponents

GRID = [(G, B) for G in (2, 8, 32) for B in (16, 64, 256)]


def imbalance(G: int, B: int, slots: float, workers: float) -> float:
    return 3.0 * G * B**slots * math.log(G) ** workers


def test_a_plane_comes_back() -> None:
    found = fit_exponents([(G, B, [imbalance(G, B, 0.5, 0.7)]) for G, B in GRID])
    assert found is not None
    assert (found.slots, found.workers) == (pytest.approx(0.5), pytest.approx(0.7))
    assert found.worst == pytest.approx(0, abs=1e-12)
    assert found.slots_interval is found.workers_interval is None  # nothing was sampled


def test_one_axis_alone() -> None:
    slots = fit_exponents([(4, B, [imbalance(4, B, 0.3, 1)]) for B in (2, 8, 32)])
    workers = fit_exponents([(G, 8, [imbalance(G, 8, 1, 0.6)]) for G in (2, 8, 32)])
    assert slots is not None and workers is not None
    assert (slots.slots, slots.workers, slots.workers_interval) == (pytest.approx(0.3), None, None)
    assert (workers.workers, workers.slots, workers.slots_interval) == (pytest.approx(0.6), None, None)


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [(4, 8, [1.0])],
        [(4, 8, [1.0]), (4, 16, [0.0])],
        [(2, 8, [1.0]), (4, 16, [2.0])],  # both change at once: neither exponent is known
    ],
)
def test_no_law(cells: list[tuple[int, int, list[float]]]) -> None:
    assert fit_exponents(cells) is None


def test_a_miss_is_a_share() -> None:
    cells = [(4, B, [imbalance(4, B, 0.5, 1)]) for B in (1, 4, 16)]
    cells[1] = (4, 4, [1.3 * cells[1][2][0]])
    found = fit_exponents(cells)
    assert found is not None
    # the plane takes a third of log 1.3 everywhere: the middle cell is above it by the rest
    assert found.worst == pytest.approx(1.3 ** (2 / 3) - 1)
    assert found.slots == pytest.approx(0.5)


def test_the_seed_alone_moves_an_interval() -> None:
    draw = np.random.default_rng(0)
    cells = [(4, B, (B**0.5 * draw.normal(1, 0.1, 20)).tolist()) for B in (4, 16, 64)]
    first, again, other = (fit_exponents(cells, seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first is not None and other is not None
    assert first.slots == other.slots


def covered(grid: list[tuple[int, int]], runs: int, spread: float, seed: int) -> tuple[float, float]:
    """Shares of 95 % intervals that hold the exponents 1/2 and 0.7."""
    draw = np.random.default_rng(seed)
    slots = workers = 0
    for run in range(runs):
        cells = [(G, B, (imbalance(G, B, 0.5, 0.7) * draw.normal(1, spread, 20)).tolist()) for G, B in grid]
        found = fit_exponents(cells, run)
        assert found is not None and found.slots_interval is not None
        slots += found.slots_interval[0] <= 0.5 <= found.slots_interval[1]
        if found.workers_interval is not None:
            workers += found.workers_interval[0] <= 0.7 <= found.workers_interval[1]
    return slots / runs, workers / runs


@pytest.mark.more
def test_intervals_cover_a_known_slope() -> None:
    """2,000 studies of nine cells with 20 batches each: 93 to 97 % of the 95 % intervals hold the exponents."""
    slots, workers = covered(GRID, 2000, 0.1, 1)
    assert 0.93 <= slots <= 0.97
    assert 0.93 <= workers <= 0.97


@pytest.mark.more
def test_intervals_cover_on_the_smallest_grid() -> None:
    """Two cells are the worst case: 20 batches each, and nothing to average over."""
    slots, _ = covered([(4, 16), (4, 256)], 2000, 0.1, 2)
    assert 0.93 <= slots <= 0.97
