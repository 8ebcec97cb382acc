"""Closed forms of the waiting laws against other ways to the same number."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from lbopt.kernels.sampling import waiting as kernel
from lbopt.theory.laws import waiting
from lbopt.theory.laws.waiting import bounded_wait, many_servers_wait, round_robin_wait

FLEETS = st.integers(1, 40)
LOADS = st.floats(0.01, 12)


def test_the_worked_examples_of_the_sheet() -> None:
    assert waiting.back_to_back_wait() == 0.5
    assert waiting.tick_wait(4) == 0.125
    assert waiting.frozen_pool_wait(4) == 0.2
    assert waiting.immediate_wait(0.5) == pytest.approx(0.2259, abs=5e-5)
    assert waiting.spacing_wait(10, 0.5) == pytest.approx(0.02259, abs=5e-6)
    assert waiting.single_server_wait(0.8) == pytest.approx(2.0)


@given(LOADS)
def test_busy_share_is_a_long_run_of_passes_and_idle_times(load: float) -> None:
    """Chance of each number of passes in a busy period, summed as it stands."""
    stop = math.exp(-load)
    passes = sum(k * stop * (1 - stop) ** (k - 1) for k in range(1, 40 + int(40 / stop))) if stop > 1e-3 else 1 / stop
    assert waiting.busy_share(load) == pytest.approx(passes / (passes + 1 / load))


@given(LOADS, st.floats(0.1, 5))
def test_immediate_moments_by_integration(load: float, pass_time: float) -> None:
    busy = waiting.busy_share(load)
    first = busy * integrate.quad(lambda w: w / pass_time, 0, pass_time)[0]
    second = busy * integrate.quad(lambda w: w * w / pass_time, 0, pass_time)[0]
    assert waiting.immediate_wait(load, pass_time) == pytest.approx(first)
    assert waiting.immediate_variance(load, pass_time) == pytest.approx(second - first**2)


@given(FLEETS, st.floats(0.1, 5))
def test_frozen_pool_moments_by_integration(N: int, pass_time: float) -> None:
    def density(w: float) -> float:
        return N / pass_time * (1 - w / pass_time) ** (N - 1)

    first = integrate.quad(lambda w: w * density(w), 0, pass_time)[0]
    second = integrate.quad(lambda w: w * w * density(w), 0, pass_time)[0]
    assert waiting.frozen_pool_wait(N, pass_time) == pytest.approx(first)
    assert waiting.frozen_pool_variance(N, pass_time) == pytest.approx(second - first**2)


@given(FLEETS, LOADS)
def test_spacing_is_immediate_dispatch_on_a_faster_clock(N: int, load: float) -> None:
    assert waiting.spacing_wait(N, load) == pytest.approx(waiting.immediate_wait(load) / N)
    assert waiting.spacing_variance(N, load) == pytest.approx(waiting.immediate_variance(load) / N**2)
    assert waiting.uniform_variance(1 / N) == pytest.approx(1 / (12 * N**2))


@given(st.integers(2, 200))
def test_break_even_load(N: int) -> None:
    load = waiting.break_even_load(N)
    assert waiting.immediate_wait(load) == pytest.approx(waiting.tick_wait(N))
    assert waiting.immediate_wait(0.9 * load) < waiting.tick_wait(N) < waiting.immediate_wait(1.1 * load)
    if N > 3:
        assert load == pytest.approx(1 / N + 1 / (2 * N**3), abs=2 / N**4)


def test_one_instance_never_breaks_even() -> None:
    assert waiting.break_even_load(1) == math.inf


@given(LOADS)
def test_round_robin_of_one_is_immediate_dispatch(load: float) -> None:
    assert round_robin_wait(1, load) == pytest.approx(waiting.immediate_wait(load), abs=1e-10)


@pytest.mark.parametrize("N", [2, 10, 32])
def test_round_robin_fades_at_light_load_and_fills_at_high_load(N: int) -> None:
    assert 0 <= round_robin_wait(N, 0.05) < waiting.immediate_wait(0.05)
    assert round_robin_wait(N, 12.0) == pytest.approx(0.5, abs=1e-4)


def test_round_robin_can_wait_longer_than_a_random_split() -> None:
    assert round_robin_wait(10, 2.0) > waiting.immediate_wait(2.0) + 0.03


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.95])
def test_bounded_passes_of_one_are_pollaczek_and_khinchine(load: float) -> None:
    assert bounded_wait(load, 1) == pytest.approx(waiting.single_server_wait(load), rel=1e-7)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.95])
def test_one_of_many_servers_is_pollaczek_and_khinchine(load: float) -> None:
    assert many_servers_wait(1, load) == pytest.approx(waiting.single_server_wait(load), rel=1e-7)


@given(st.integers(1, 20), st.floats(0.2, 0.95))
@settings(max_examples=15)
def test_more_servers_wait_less(N: int, load: float) -> None:
    assert many_servers_wait(N + 1, load) <= many_servers_wait(N, load) + 1e-12


@settings(max_examples=30)
@given(st.floats(0.05, 8))
def test_wide_passes_are_unbounded(load: float) -> None:
    assert bounded_wait(load, 60) == pytest.approx(waiting.immediate_wait(load), rel=1e-9)


@settings(max_examples=15)
@given(st.floats(0.1, 3.8))
def test_a_wider_pass_waits_less(load: float) -> None:
    waits = [bounded_wait(load, capacity) for capacity in (4, 5, 8, 20)]
    assert all(wide <= narrow + 1e-12 for narrow, wide in pairwise(waits))


@given(st.integers(1, 8), st.floats(0, 2))
def test_latency_stretches_the_cycle(N: int, latency: float) -> None:
    """Starts by hand: the m-th tick is at m (T + L) / N, and the batch runs from L later on for T."""
    cycle = 1 + latency  # of which L is idle; the way to the instance adds L
    arrival = (np.arange(1000) + 0.5) / 1000 * cycle
    wait = np.empty_like(arrival)
    kernel.clocked(arrival, np.arange(N) / N * cycle, cycle, arrival.size, wait)
    assert waiting.tick_wait(N, cycle) == pytest.approx(wait.mean(), rel=0.02)
