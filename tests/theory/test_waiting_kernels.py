"""The compiled event simulation against its twin, float for float, with many equal times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import waiting as naive

from lbopt.kernels.sampling import waiting
from lbopt.theory.chains.waiting_runs import Traffic, bound

CODES = {"random": waiting.RANDOM, "round-robin": waiting.ROUND_ROBIN, "jsq": waiting.JSQ}

# Times on a grid of quarters meet often; times of any kind show the rounding.
GRID = st.integers(0, 60).map(lambda k: k / 4)
ANY = st.floats(0, 15, allow_subnormal=False)


@st.composite
def arrivals(draw: st.DrawFn) -> list[float]:
    times = draw(st.sampled_from([GRID, ANY]))
    return sorted(draw(st.lists(times, min_size=1, max_size=24)))


def some_phases(draw: st.DrawFn, pass_time: float) -> list[float]:
    steps = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    return sorted(step / 8 * pass_time for step in steps)


PASS_TIMES = st.sampled_from([1.0, 0.75, 0.3, 2.5])
CAPACITIES = st.sampled_from([1, 2, 4, 100])


@given(
    st.data(), arrivals(), PASS_TIMES, CAPACITIES, st.booleans(), st.sampled_from(sorted(CODES)), st.integers(0, 2**32)
)
def test_bound(
    data: st.DataObject,
    arrival: list[float],
    pass_time: float,
    capacity: int,
    back_to_back: bool,
    rule: str,
    seed: int,
) -> None:
    phases = some_phases(data.draw, pass_time)
    uniforms = np.random.default_rng(seed).random(len(arrival))
    wait = np.full(len(arrival), np.nan)
    traffic = Traffic(np.array(arrival), uniforms, np.array(phases))
    bound(CODES[rule], traffic, pass_time, capacity, back_to_back, wait)
    assert wait.tolist() == naive.bound(rule, arrival, uniforms.tolist(), phases, pass_time, capacity, back_to_back)


@given(st.data(), arrivals(), PASS_TIMES, CAPACITIES, st.sampled_from([0.0, 0.25, 0.5, 1.7]), st.booleans())
def test_pooled(
    data: st.DataObject, arrival: list[float], pass_time: float, capacity: int, interval: float, idle_bypass: bool
) -> None:
    phases = some_phases(data.draw, pass_time)
    wait = np.full(len(arrival), np.nan)
    waiting.pooled(np.array(arrival), np.array(phases), pass_time, capacity, interval, idle_bypass, wait)
    assert wait.tolist() == naive.pooled(arrival, phases, pass_time, capacity, interval, idle_bypass)


@given(st.data(), arrivals(), PASS_TIMES, CAPACITIES)
def test_clocked(data: st.DataObject, arrival: list[float], pass_time: float, capacity: int) -> None:
    phases = some_phases(data.draw, pass_time)
    wait = np.full(len(arrival), np.nan)
    waiting.clocked(np.array(arrival), np.array(phases), pass_time, capacity, wait)
    assert wait.tolist() == naive.clocked(arrival, phases, pass_time, capacity)


def test_passes_are_counted() -> None:
    """Two come during one pass and one after it: two passes without a limit, three of one each."""
    arrival, phases = np.array([0.5, 0.6, 3.0]), np.zeros(1)
    wait = np.empty(3)
    assert bound(waiting.RANDOM, Traffic(arrival, np.zeros(3), phases), 1.0, 9, False, wait) == 3
    assert wait.tolist() == [0.0, pytest.approx(0.9), 0.0]
    assert bound(waiting.RANDOM, Traffic(arrival, np.zeros(3), phases), 1.0, 9, True, wait) == 2
    assert waiting.pooled(arrival, phases, 1.0, 9, 0.0, False, wait) == 3
    assert waiting.clocked(arrival, phases, 1.0, 9, wait) == 2
    assert waiting.clocked(arrival, phases, 1.0, 1, wait) == 3
