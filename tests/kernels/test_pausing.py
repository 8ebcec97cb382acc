"""DyntraLB's plan: every step of its definition worked by hand, and random states beside the twin."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from kernels.rules import many
from lengths import quick_and_long
from naive.pausing import Counted, Plan
from naive.pausing import balance as naive_balance

from lbopt.kernels.pausing import Pausing, balance, write_difference
from lbopt.simulator import Detail
from lbopt.simulator.detail import fresh_pausing

pytestmark = pytest.mark.more

#: Of each worker the blocks of what runs, and of what waits.
Blocks = list[tuple[list[int], list[int]]]


def planned(workers: Blocks, slots: int, threshold: float = 5.0) -> tuple[Pausing, list[tuple[list[int], list[int]]]]:
    """Return what the kernel worked on, and of each worker what leaves and what enters, sorted."""
    pausing = fresh_pausing(Detail(pause="static"), len(workers), slots)
    for w, (runs, waits) in enumerate(workers):
        pausing.num_inside[w], pausing.num_outside[w] = len(runs), len(waits)
        pausing.inside[w, : len(runs)] = 2 * np.array(runs, dtype=np.int64)
        pausing.outside[w, : len(waits)] = 2 * np.array(waits, dtype=np.int64)
    balance(np.full(len(workers), slots), threshold, pausing)
    plans = []
    for w, (runs, _) in enumerate(workers):
        inside = pausing.inside[w, : pausing.num_inside[w]] // 2
        before = np.array(runs, dtype=np.int64)
        left, entered = write_difference(before, inside, pausing.leaving[w], pausing.entering[w])
        plans.append((sorted(pausing.leaving[w, :left].tolist()), sorted(pausing.entering[w, :entered].tolist())))
    return pausing, plans


def test_fill() -> None:
    """Slots are filled from the head of what waits, and where that leaves workers level nothing else happens."""
    _, plans = planned([([10], [4, 9]), ([12], [2, 1])], slots=2)
    assert plans == [([], [4]), ([], [2])]  # 14 and 14


def test_the_lightest_swaps_for_a_heavier_one() -> None:
    """Loads 40 and 20: the mean is 30. 8 for 20 leaves the light one at 32, the mean at 36: 4 from it; nearest."""
    _, plans = planned([([20, 20], []), ([12, 8], [20, 14, 50])], slots=2)
    assert plans == [([], []), ([8], [20])]


def test_the_heaviest_swaps_for_a_lighter_one() -> None:
    """Loads 60 and 20: 40 for 8 leaves 28, the mean is 24, and the largest load 4 above it: level."""
    _, plans = planned([([40, 20], [30, 8]), ([12, 8], [])], slots=2)
    assert plans == [([40], [8]), ([], [])]


def test_of_equal_swaps_the_first_counts_unless_a_later_one_gives_back_a_new_one() -> None:
    """Loads 30 and 40, mean 35. A swap of 10 for 20 makes it 40 and 40; 10 stands there twice."""
    _, plans = planned([([10, 10, 10], [20, 20]), ([20, 20], [])], slots=3)
    assert plans == [([10], [20]), ([], [])]
    pausing, plans = planned([([10, 10], [10, 20]), ([20, 20], [])], slots=3)
    assert plans == [([], [20]), ([], [])]  # the third 10 filled a slot: it is the one that goes again
    assert (pausing.inside[0, :3] // 2).tolist() == [10, 10, 20]
    assert pausing.outside[0, 0] == 2 * 10 + 1


def test_a_pause() -> None:
    """One request of 2,000 blocks beside three of 10: three requests a step of 10 blocks beat four of one of 2,000.

    4 / (20000 + 19.2 * 2000) = 0.0000685 and 3 / (20000 + 19.2 * 10) = 0.0001486.
    """
    _, plans = planned([([2000], []), ([10], []), ([10], []), ([10], [])], slots=1)
    assert plans == [([2000], []), ([], []), ([], []), ([], [])]


def test_no_pause_where_it_costs_more_than_it_brings() -> None:
    """4 / (20000 + 19.2 * 300) = 0.0001553 and 3 / (20000 + 19.2 * 10) = 0.0001486."""
    _, plans = planned([([300], []), ([10], []), ([10], []), ([10], [])], slots=1)
    assert plans == [([], [])] * 4


def test_the_last_one_running_is_never_paused() -> None:
    _, plans = planned([([100_000], []), ([], [])], slots=1)
    assert plans == [([], []), ([], [])]


def test_equal_counts_that_leave_and_enter_cancel() -> None:
    """7 leaves for 7 among other changes: only what is different is left, and a worker without entries is frozen."""
    leaving, entering = np.zeros(4, dtype=np.int64), np.zeros(4, dtype=np.int64)
    before, after = np.array([7, 3, 7, 9]), np.array([7, 5, 9, 2])
    left, entered = write_difference(before, after, leaving, entering)
    assert (leaving[:left].tolist(), entering[:entered].tolist()) == ([3, 7], [2, 5])


def test_equal_loads_keep_the_order_that_they_had() -> None:
    """Workers 0 and 1 are equal and lightest; the later one of the order swaps, and 20 is then 5 1/3 above the mean."""
    _, plans = planned([([10], [14]), ([10], [14]), ([20], [])], slots=1, threshold=5.5)
    assert plans == [([], []), ([10], [14]), ([], [])]


@pytest.mark.some(2)
@pytest.mark.parametrize("states", quick_and_long(many(500, 100), many(2000, 100)))
@pytest.mark.parametrize("threshold", [5.0, 40.0, 1.0, 0.125, 0.5])
def test_plans_are_those_of_the_twin(threshold: float, states: int) -> None:
    changed = 0
    for seed in range(states):
        rng = random.Random(f"{threshold} {seed}")
        slots, scale = rng.randint(1, 10), rng.choice([3, 10, 100, 2000])
        workers: Blocks = []
        for _ in range(rng.randint(1, 9)):
            runs = [rng.randint(1, scale * rng.choice([1, 1, 8])) for _ in range(rng.randint(0, slots))]
            waits = [
                rng.randint(0, scale * rng.choice([1, 1, 8])) for _ in range(rng.randint(0, 2 * slots - len(runs)))
            ]
            workers.append((runs, waits))
        pausing, plans = planned(workers, slots, threshold)
        twins = [
            Plan(w, [Counted(blocks) for blocks in runs], [Counted(blocks) for blocks in waits], [])
            for w, (runs, waits) in enumerate(workers)
        ]
        naive_balance(twins, [slots] * len(workers), threshold)
        for w, twin in enumerate(twins):
            assert pausing.load[w] == twin.load
            waits = pausing.outside[w, : pausing.num_outside[w]].tolist()
            assert waits == [2 * item.blocks + item.is_new for item in twin.waits]
            runs_before, runs_now = Counter(workers[w][0]), Counter(item.blocks for item in twin.runs)
            leaving, entering = plans[w]
            assert leaving == sorted((runs_before - runs_now).elements())
            assert entering == sorted((runs_now - runs_before).elements())
            changed += bool(leaving)
    assert changed > states / 20


def test_the_share_of_a_step_that_blocks_add_is_the_sources() -> None:
    """n (max - max') > 1041.7 + max is the same condition; the kernel compares integers."""
    rng = random.Random(5)
    for _ in range(many(2000, 200)):
        n, second = rng.randint(2, 40), rng.randint(0, 3000)
        heavy = second + rng.randint(1, 3000)
        workers: Blocks = [([heavy], []), *([([second], [])] + [([1], [])] * (n - 2))]
        _, plans = planned(workers, slots=1, threshold=1e-9)
        expected = n * (heavy - second) > 20000 / 19.2 + heavy
        assert math.isclose(n * (heavy - second), 20000 / 19.2 + heavy) or (plans[0][0] == [heavy]) == expected
