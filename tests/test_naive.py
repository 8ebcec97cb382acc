"""The naive twins against worked examples, hand calculations and the reference trajectories.

Nothing of lbopt is tested here: these tests make sure that the judges are right before anybody is judged by them.
"""

import ast
import json
import math
import random
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import (
    IMMEDIATE_RULES,
    POOLED_RULES,
    Trajectory,
    auto,
    best_single,
    best_subset,
    bind,
    br_0,
    br_0_trace,
    brute_force,
    fcfs,
    imbalance,
    jsq,
    jsq_load,
    max_min,
    metrics,
    objective,
    place,
    power_of_two,
    random_rule,
    round_robin,
    score,
    simulate,
    spread,
    vllm,
)

FIXED_SECONDS = 0.0048874999999999995
SECONDS_PER_TOKEN = 1.0052490234375e-07

# name, options of every pooled rule that the random cases run
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("fcfs", {}),
    ("round_robin", {}),
    ("random", {}),
    ("power_of_two", {}),
    ("jsq", {}),
    ("jsq_load", {}),
    ("vllm", {}),
    ("max_min", {"scope": "oldest"}),
    ("max_min", {"scope": "pool"}),
    ("auto", {}),
    ("auto", {"age_weight": 0.0, "age_bound": 3}),
    ("br_0", {"stage_switch": 3, "window_size": 4}),
    ("br_0", {"stage_switch": 0, "window_size": 4}),
    ("br_0", {"stage_switch": 99, "window_size": 3, "window_order": "arrival", "key": "product"}),
    ("br_0", {"stage_switch": 2, "window_size": 4, "age_bound": 3}),
    ("br_0_bypass", {}),
    ("br_0_bypass", {"ties": "index"}),
    ("iqr", {}),
    ("iqr", {"multiplier": "0.5", "percentile": "weibull"}),
]


def test_the_twins_use_the_standard_library_only() -> None:
    for path in (Path(__file__).parent / "naive").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            for name in names:
                assert name.split(".")[0] in {"naive", *sys.stdlib_module_names}


# ---------------------------------------------------------------------------------------------------------------------
# objective


def test_imbalance_and_spread_of_example_e1() -> None:
    loads = [100, 90, 70, 60]
    assert imbalance(loads) == 80
    assert imbalance(loads) == 4 * max(loads) - sum(loads)
    assert spread(loads) == 40


def test_objective_sums_the_window_columns() -> None:
    base = [[10, 0], [4, 4]]
    work = [[3, 5], [7, 0]]
    # loads (10, 7) and (0, 9), the second request waits
    assert objective(base, [1, 1], work, [1, -1]) == 3 + 9
    # loads (10, 4) and (0, 4)
    assert objective(base, [1, 1], work, [-1, -1]) == 6 + 4
    with pytest.raises(ValueError, match="free slots"):
        objective(base, [1, 1], work, [0, 0])


def test_brute_force_by_hand() -> None:
    # One slot each, so both are admitted: 10 + 1 and 4 + 6 differ by 1, 10 + 6 and 4 + 1 by 11.
    assert brute_force([[10], [4]], [1, 1], [[6], [1]]) == (1, [[1, 0]])
    # One of two equal requests is admitted, on the lighter worker; nobody can tell them apart.
    assert brute_force([[5], [0]], [0, 1], [[5], [5]]) == (0, [[-1, 1], [1, -1]])
    # Here 5 would be best, but 3 has to be admitted.
    assert brute_force([[5], [0]], [0, 1], [[5], [3]]) == (0, [[1, -1]])
    assert brute_force([[5], [0]], [0, 1], [[5], [3]], [False, True]) == (2, [[-1, 1]])
    with pytest.raises(ValueError, match="no feasible"):
        brute_force([[5], [0]], [0, 1], [[5], [3]], [True, True])


# ---------------------------------------------------------------------------------------------------------------------
# BR-0


def test_example_e1_score() -> None:
    loads = [100, 90, 70, 60]
    for total, value in ((25, 25), (40, 40), (45, 25), (60, -20)):
        assert score(total, 40, 4) == value
        assert imbalance([100, 90, 70, 60 + total]) == imbalance(loads) - value


@pytest.mark.parametrize("window_order", ["s_desc", "arrival"])
def test_example_e2_full_round(window_order: str) -> None:
    loads = [1000, 760, 500]
    sizes = [300, 120, 110, 90, 60, 210]
    a, b, c, d, e, f = range(6)
    trace = br_0_trace(loads, [1, 2, 3], sizes, [0] * 6, 5, 4, window_order)
    assert [(stage, worker, sorted(batch), value) for stage, worker, batch, value in trace] == [
        ("one", 2, [a], 300),
        ("two", 1, [b, c], 230),
        ("two", 2, [f], 180),
        ("two", 0, [e], -90),
        ("two", 2, [d], -30),
    ]
    placement = br_0(loads, [1, 2, 3], sizes, [0] * 6, 5, 4, window_order)
    assert placement == [2, 1, 1, 2, 0, 2]
    final = list(loads)
    for size, worker in zip(sizes, placement, strict=True):
        final[worker] += size
    assert final == [1060, 990, 1100]
    assert (imbalance(loads), imbalance(final), spread(final)) == (740, 150, 110)
    assert sum(value for _, _, _, value in trace) == 590


def test_example_e5_subsets() -> None:
    sizes = [50, 120, 200, 310]
    reachable = {count: {sum(subset) for subset in combinations(sizes, count)} for count in range(1, 4)}
    assert reachable[1] == {50, 120, 200, 310}
    assert reachable[2] == {170, 250, 320, 360, 430, 510}
    assert reachable[3] == {370, 480, 560, 630}

    for margin, capacity, members, value in (
        (300, 1, {310}, 230),
        (300, 2, {50, 200}, 250),
        (300, 3, {50, 200}, 250),
        (365, 1, {310}, 310),
        (365, 2, {50, 310}, 360),
        (365, 4, {50, 310}, 360),
    ):
        positions = best_subset(sizes, capacity, margin, 8)
        assert {sizes[position] for position in positions} == members
        assert score(sum(members), margin, 8) == value


def test_subset_ties() -> None:
    # F(10) = F(13) = 10 at margin 12, G = 3 (slope -2): the larger total wins.
    assert score(10, 12, 3) == 10
    assert score(13, 12, 3) == 10
    assert best_subset([10, 13], 1, 12, 3) == (1,)
    assert best_single([0, 1, 2], [10, 13, 13], 12, 3) == 1
    # Same total: fewer requests, then the first in window positions.
    assert best_subset([6, 4, 10], 3, 10, 3) == (2,)
    assert best_subset([6, 5, 4, 6, 4], 2, 10, 3) == (0, 2)


def test_br_0_forced_single_and_keys() -> None:
    # No margin anywhere: the smallest of the window is forced, the window being the two largest.
    assert br_0([5, 5], [1, 0], [9, 7, 8], [0, 0, 0], 99, 2) == [-1, -1, 0]
    # In arrival order the window is the first two.
    assert br_0([5, 5], [1, 0], [9, 7, 8], [0, 0, 0], 99, 2, "arrival") == [-1, 0, -1]
    # cap (2, 1), margins (0, 6): lexicographic takes worker 0, the product worker 1.
    first = [entry[1] for entry in br_0_trace([6, 0], [2, 1], [4], [0], 99, 4)]
    assert first == [0]
    first = [entry[1] for entry in br_0_trace([6, 0], [2, 1], [4], [0], 99, 4, "s_desc", "product")]
    assert first == [1]
    # Stage one: most free slots, then the smaller load, then the index.
    assert [entry[1] for entry in br_0_trace([6, 0, 0], [2, 2, 2], [4], [0], 0, 4)] == [1]


def test_br_0_age_bound_places_the_oldest_first() -> None:
    trace = br_0_trace([10, 8, 0], [1, 1, 1], [1, 9, 5, 6], [7, 2, 5, 5], 99, 4, "s_desc", "lexicographic", 5)
    # Margins at the three placings: 10 for size 1, 10 - 8 = 2 for size 5, 13 - 10 = 3 for size 6; G = 3.
    assert trace == [("aged", 2, [0], 1), ("aged", 1, [2], -4), ("aged", 0, [3], -3)]
    assert br_0([10, 8, 0], [1, 1, 1], [1, 9], [7, 2], 99, 4, age_bound=8) == [1, 2]
    assert br_0([10, 8, 0], [1, 1, 1], [1, 9], [7, 2], 99, 4, age_bound=7) == [2, 1]


def test_br_0_scores_telescope() -> None:
    generator = random.Random(1)
    for _ in range(300):
        num_workers = generator.randint(1, 5)
        loads = [generator.randint(0, 60) for _ in range(num_workers)]
        slots = [generator.randint(0, 3) for _ in range(num_workers)]
        sizes = [generator.randint(1, 30) for _ in range(generator.randint(0, 10))]
        waiting = sorted((generator.randint(0, 9) for _ in sizes), reverse=True)
        trace = br_0_trace(
            loads,
            slots,
            sizes,
            waiting,
            generator.randint(0, 6),
            generator.randint(1, 5),
            generator.choice(["s_desc", "arrival"]),
            generator.choice(["lexicographic", "product"]),
            generator.choice([None, 5]),
        )
        final = list(loads)
        for _, worker, batch, _ in trace:
            for request in batch:
                final[worker] += sizes[request]
        assert sum(value for _, _, _, value in trace) == imbalance(loads) - imbalance(final)
        for stage, _, batch, value in trace:
            assert stage == "two" or len(batch) == 1
            assert value > 0 or len(batch) == 1


# ---------------------------------------------------------------------------------------------------------------------
# the other rules, by hand


def test_fifo_rules_by_hand() -> None:
    loads, slots, sizes, waiting = [50, 10, 30], [2, 1, 2], [5, 25, 5, 5, 5, 5], [0] * 6
    assert fcfs(loads, slots, sizes, waiting) == [0, 0, 1, 2, 2, -1]
    assert round_robin(loads, slots, sizes, waiting, 1) == ([1, 2, 0, 2, 0, -1], 1)
    assert round_robin(loads, [0, 0, 0], sizes, waiting, 2) == ([-1] * 6, 2)
    # running 3, 1, 1: worker 1 (full then), worker 2 twice, then worker 0
    assert jsq(loads, slots, sizes, waiting, [3, 1, 1]) == [1, 2, 2, 0, 0, -1]
    assert vllm(loads, slots, sizes, waiting, [3, 1, 1]) == [1, 2, 2, 0, 0, -1]
    # 10 -> worker 1; 30 -> worker 2, 55 then; 50 -> 0, 55 = 55 -> 0, 2
    assert jsq_load(loads, slots, sizes, waiting) == [1, 2, 0, 0, 2, -1]


def test_max_min_by_hand() -> None:
    loads, slots, sizes = [20, 0], [1, 2], [1, 7, 7, 9, 8]
    # oldest: 1, 7, 7; the first 7 to worker 1, the second too (7 < 20), 1 to worker 0
    assert max_min(loads, slots, sizes, [0] * 5, "oldest") == [0, 1, 1, -1, -1]
    # pool: 9, 8 and the first 7
    assert max_min(loads, slots, sizes, [0] * 5, "pool") == [-1, 0, -1, 1, 1]


def test_auto_by_hand() -> None:
    # mean size 6, level (20 + 0 + 3 * 6) / 2 = 19. Worker 1 has two slots: gap 19 - 0 - 6 / 2 = 16, the 9 is nearest;
    # then gap 19 - 9 = 10, the 8; worker 0: gap -1, the 1.
    loads, slots, sizes = [20, 0], [1, 2], [1, 7, 5, 9, 8]
    assert auto(loads, slots, sizes, [0] * 5) == [0, -1, -1, 1, 1]
    # a step counts 6 / (1 + 2) = 2 tokens; 10 steps of the 7 count 20: it goes first
    assert auto(loads, slots, sizes, [0, 10, 0, 0, 0], 1.0) == [0, 1, -1, 1, -1]
    # overdue: the 1 and the 7 go to the lightest in order of age; of 5, 9 and 8, mean 22 / 3, worker 1 is full, and the
    # level (20 + 8 + 22 / 3) / 2 = 17.7 lies below worker 0: the 5
    assert auto(loads, slots, sizes, [4, 4, 0, 0, 0], 0.3, 3) == [1, 1, 0, -1, -1]
    # all can start, and each worker takes at most 3 of the 5: 9 and 8 to worker 1, 17; 7 too, which is its share
    assert auto(loads, [3, 3], sizes, [0] * 5) == [0, 1, 0, 1, 1]
    # shares 2 and 4: 9, 8 and 7 to worker 1, then 24 > 20: 5 and 1 to worker 0, 25, but 1 after 5: 25 > 24
    assert auto(loads, [2, 4], sizes, [0] * 5) == [1, 1, 0, 1, 1]


def test_random_rules_by_hand() -> None:
    loads, waiting = [0, 0, 0], [0] * 3
    uniforms = [(0.99, 0.0), (0.5, 0.99), (0.0, 0.0)]
    # eligible 0, 1, 2 -> 2; then 0, 1 -> floor(0.5 * 2) = 1; then 0 -> 0
    assert random_rule(loads, [1, 1, 1], [5, 5, 5], waiting, uniforms) == [2, 1, 0]
    # a = 2, b = 0: running 1 and 4 -> worker 2; a = 1, b = floor(1.98) = 1 -> 2: running 2 and 2 -> worker 1;
    # a = 0, b = 0 -> 1: running 4 and 3 -> worker 1
    assert power_of_two(loads, [2, 2, 2], [5, 5, 5], waiting, uniforms, [4, 2, 1]) == [2, 1, 1]
    # worker 1 is the only one with a slot
    assert power_of_two(loads, [0, 1, 0], [5, 5, 5], waiting, uniforms, [4, 2, 1]) == [1, -1, -1]


def test_bind_by_hand() -> None:
    running, queued, tokens = [2, 3, 1], [0, 0, 1], [90, 40, 50]
    assert bind("round_robin", running, queued, tokens, None, 2) == (2, 0)
    assert bind("random", running, queued, tokens, (0.4, 0.0), 1) == (1, 1)
    assert bind("jsq", running, queued, tokens, None, 0) == (0, 0)  # 2, 3, 2
    assert bind("jsq_load", running, queued, tokens, None, 0) == (1, 0)
    assert bind("vllm", running, queued, tokens, None, 0) == (0, 0)  # 2, 3, 5
    assert bind("power_of_two", running, queued, tokens, (0.4, 0.99), 0) == (2, 0)  # 1 and 2: 3, 2
    assert bind("power_of_two", [7], [2], [5], (0.4, 0.99), 0) == (0, 0)
    assert bind("vllm", [2, 5], [1, 0], tokens, None, 0) == (1, 0)  # 6, 5
    assert bind("jsq", [2, 5], [1, 0], tokens, None, 0) == (0, 0)  # 3, 5
    for name in ("fcfs", "max_min", "br_0"):
        with pytest.raises(ValueError, match="immediate"):
            bind(name, running, queued, tokens, None, 0)


def test_every_pooled_rule_fills_up_and_overfills_nobody() -> None:
    assert {name for name, _ in VARIANTS} == set(POOLED_RULES)
    generator = random.Random(2)
    for _ in range(200):
        num_workers = generator.randint(1, 5)
        loads = [generator.randint(0, 60) for _ in range(num_workers)]
        slots = [generator.randint(0, 3) for _ in range(num_workers)]
        running = [generator.randint(0, 3) for _ in range(num_workers)]
        sizes = [generator.randint(1, 30) for _ in range(generator.randint(0, 10))]
        waiting = sorted((generator.randint(0, 9) for _ in sizes), reverse=True)
        uniforms = [(generator.random(), generator.random()) for _ in sizes]
        for name, options in VARIANTS:
            placement, counter = place(name, loads, slots, sizes, waiting, running, uniforms, 0, options)
            assert len(placement) == len(sizes)
            assert sum(worker >= 0 for worker in placement) == min(len(sizes), sum(slots))
            assert all(placement.count(worker) <= slots[worker] for worker in range(num_workers))
            assert 0 <= counter < num_workers


# ---------------------------------------------------------------------------------------------------------------------
# simulations by hand


def test_pooled_simulation_by_hand() -> None:
    trajectory = simulate(
        [10, 20, 5], [2, 1, 2], 2, 1, "fcfs", reveal_target=2, fixed_seconds=1.0, seconds_per_token=0.1
    )
    # Decision 0: pool 0, 1; both start. Step 1: loads 10, 20, 3 s; request 1 leaves; post 11, 0.
    # Decision 1: request 2 starts on worker 1. Step 2: loads 11, 5, 2.1 s; request 0 leaves; post 0, 6. Step 3: 0, 6.
    assert trajectory.worker == [0, 1, 1]
    assert trajectory.start_step == [0, 0, 1]
    assert trajectory.finish_step == [2, 1, 3]
    assert trajectory.reveal_step == [0, 0, 1]
    assert trajectory.barrier_loads == [[10, 20], [11, 5], [0, 6]]
    assert trajectory.post_loads == [[11, 0], [0, 6], [0, 0]]
    assert trajectory.active == [2, 2, 1]
    assert trajectory.duration == pytest.approx([3.0, 2.1, 1.6])
    assert trajectory.clock == pytest.approx([3.0, 5.1, 6.7])
    result = metrics(trajectory)
    assert result.cut == 1
    assert result.average_imbalance == 11
    assert result.average_spread == 11
    assert result.throughput == pytest.approx(2 / 3)
    assert result.tpot == pytest.approx((5.1 / 2 + 3.0 + 3.7 / 2) / 3)
    assert result.energy == pytest.approx((400 + 100) * 3.0)
    assert result.idle_share == 0.5
    assert result.waiting_steps == [0, 0, 0]
    assert result.time_to_first_token == pytest.approx([3.0, 3.0, 2.1])

    theory = simulate(
        [10, 20, 5],
        [2, 1, 2],
        2,
        1,
        "fcfs",
        reveal_target=2,
        fixed_seconds=1.0,
        seconds_per_token=0.1,
        event_order="theory",
    )
    assert theory.read_loads == [[10, 20], [11, 5], [0, 6]]
    other = metrics(theory)
    assert (other.cut, other.average_imbalance, other.average_spread) == (1, 10, 10)
    assert other.energy == pytest.approx((400 + 100 + 300 * 0.5**0.7) * 3.0)
    assert other.idle_share == 0.25
    assert (other.throughput, other.tpot) == (result.throughput, result.tpot)


def test_immediate_simulation_by_hand() -> None:
    # One slot each. Decision 0 reveals three: 0 -> worker 0, 1 -> worker 1, 2 -> worker 0, where it has to queue.
    trajectory = simulate(
        [10, 20, 5, 7, 8, 9],
        [3, 1, 1, 1, 1, 1],
        2,
        1,
        "round_robin",
        "immediate",
        reveal_target=3,
        fixed_seconds=1.0,
        seconds_per_token=0.0,
    )
    # Decision 1: one is queued, so two more are revealed: 3 -> worker 1, which is free: it starts; 4 -> worker 0.
    # Decision 2: two are queued, so one more: 5 -> worker 1, free again.
    # Requests 2 and 4 wait for worker 0, though worker 1 is empty from step 4 on.
    assert trajectory.worker == [0, 1, 0, 1, 0, 1]
    assert trajectory.reveal_step == [0, 0, 0, 1, 1, 2]
    assert trajectory.start_step == [0, 0, 3, 1, 4, 2]
    assert trajectory.finish_step == [3, 1, 4, 2, 5, 3]
    assert trajectory.active == [2, 2, 2, 1, 1]
    assert trajectory.barrier_loads == [[10, 20], [11, 7], [12, 9], [5, 0], [8, 0]]
    assert metrics(trajectory).waiting_steps == [0, 0, 3, 0, 3, 0]
    assert metrics(trajectory).time_to_first_token == pytest.approx([1, 1, 4, 1, 4, 1])


@pytest.mark.parametrize(
    ("rule", "workers"),
    [
        # tokens, resident and queued, before each binding: (0, 0), (10, 0), (10, 20), (15, 20), (21, 20), (21, 21)
        ("jsq_load", [0, 1, 0, 0, 1, 0]),
        # 4 * queued + running: (0, 0), (1, 0), (1, 1), (5, 1), (5, 5), (9, 5)
        ("vllm", [0, 1, 0, 1, 0, 1]),
        # queued + running: (0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)
        ("jsq", [0, 1, 0, 1, 0, 1]),
    ],
)
def test_immediate_rules_see_the_queues(rule: str, workers: list[int]) -> None:
    trajectory = simulate(
        [10, 20, 5, 6, 1, 3],
        [1] * 6,
        2,
        1,
        rule,
        "immediate",
        reveal_target=6,
        fixed_seconds=1.0,
        seconds_per_token=0.0,
    )
    assert trajectory.worker == workers
    for worker in (0, 1):
        own = [start for start, chosen in zip(trajectory.start_step, workers, strict=True) if chosen == worker]
        assert own == list(range(len(own)))


def test_metrics_of_an_empty_window() -> None:
    trajectory = simulate([4, 4], [2, 3], 2, 1, "jsq", reveal_target=2, fixed_seconds=1.0, seconds_per_token=0.0)
    result = metrics(trajectory)
    assert (result.cut, result.energy, result.tpot) == (0, 0.0, 1.0)
    assert math.isnan(result.average_imbalance)
    assert math.isnan(result.throughput)


@pytest.mark.parametrize("event_order", ["paper", "theory"])
@pytest.mark.parametrize("admission", ["pooled", "immediate"])
def test_the_clock_jumps_over_idle_time(event_order: str, admission: str) -> None:
    trajectory = simulate(
        [10, 10, 10],
        [2, 1, 1],
        1,
        1,
        "jsq",
        admission,
        arrival=[0.5, 1.0, 100.0],
        fixed_seconds=1.0,
        seconds_per_token=0.0,
        event_order=event_order,
    )
    # Jump to 0.5, start 0, steps 1 and 2 end at 1.5 and 2.5; request 1 is seen at decision 1 and starts at decision 2;
    # step 3 ends at 3.5; jump to 100 at decision 3.
    assert trajectory.reveal_step == [0, 1, 3]
    assert trajectory.reveal_clock == [0.5, 1.0, 100.0]
    assert trajectory.start_step == [0, 2, 3]
    assert trajectory.start_clock == [0.5, 2.5, 100.0]
    assert trajectory.clock == [1.5, 2.5, 3.5, 101.0]
    assert trajectory.duration == [1.0] * 4
    assert metrics(trajectory).time_to_first_token == [1.0, 2.5, 1.0]
    assert metrics(trajectory).tpot == 1.0


@pytest.mark.parametrize("event_order", ["paper", "theory"])
def test_a_rule_that_admits_nothing_is_an_error(event_order: str) -> None:
    def lazy(loads: list[int], slots: list[int], sizes: list[int], waiting: list[int]) -> list[int]:
        return [-1] * len(sizes)

    with pytest.raises(RuntimeError, match="nothing was admitted"):
        simulate(
            [3], [3], 2, 2, lazy, reveal_target=1, fixed_seconds=1.0, seconds_per_token=0.0, event_order=event_order
        )


# ---------------------------------------------------------------------------------------------------------------------
# both event orders


def random_cases(seed: int, count: int) -> list[dict[str, Any]]:
    generator = random.Random(seed)
    cases: list[dict[str, Any]] = []
    for _ in range(count):
        total = generator.randint(1, 40)
        case: dict[str, Any] = {
            "prompt": [generator.randint(1, 50) for _ in range(total)],
            "output": [generator.choice([1, 2, 3, 5, 20]) for _ in range(total)],
            "num_workers": generator.randint(1, 4),
            "slots": generator.randint(1, 4),
            "uniforms": [(generator.random(), generator.random()) for _ in range(total)],
            "fixed_seconds": 0.5,
            "seconds_per_token": 0.01,
        }
        if generator.random() < 0.5:
            case["reveal_target"] = generator.randint(1, 12)
        else:
            clock, arrival = 0.0, []
            for _ in range(total):
                clock += generator.choice([0.0, generator.expovariate(2.0), generator.expovariate(0.05)])
                arrival.append(clock)
            case["arrival"] = arrival
        cases.append(case)
    return cases


def check_invariants(trajectory: Trajectory, case: dict[str, Any]) -> None:
    steps = len(trajectory.clock)
    for request, output in enumerate(case["output"]):
        start, finish = trajectory.start_step[request], trajectory.finish_step[request]
        assert finish == start + output
        assert trajectory.reveal_step[request] <= start
        assert trajectory.reveal_clock[request] <= trajectory.start_clock[request]
    assert steps == max(trajectory.finish_step)
    for row in range(steps):
        # Loads from the definition: W_i = (s_i, s_i + 1, ...), on the steps start + 1 .. start + output.
        loads = [0] * case["num_workers"]
        counts = [0] * case["num_workers"]
        for request, worker in enumerate(trajectory.worker):
            if trajectory.start_step[request] <= row < trajectory.finish_step[request]:
                loads[worker] += case["prompt"][request] + row - trajectory.start_step[request]
                counts[worker] += 1
        assert trajectory.barrier_loads[row] == loads
        assert trajectory.active[row] == sum(counts) > 0
        assert max(counts) <= case["slots"]


def assert_same_dynamics(paper: Trajectory, theory: Trajectory) -> None:
    for name in (
        "worker",
        "reveal_step",
        "reveal_clock",
        "start_step",
        "start_clock",
        "finish_step",
        "finish_clock",
        "barrier_loads",
        "post_loads",
        "active",
        "duration",
        "clock",
    ):
        assert getattr(paper, name) == getattr(theory, name), name
    assert paper.read_loads == paper.post_loads
    assert theory.read_loads == paper.barrier_loads
    first, second = metrics(paper), metrics(theory)
    assert (first.cut, first.waiting_steps, first.time_to_first_token) == (
        second.cut,
        second.waiting_steps,
        second.time_to_first_token,
    )
    assert first.tpot == second.tpot
    assert first.throughput == second.throughput or first.cut == 0


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_event_orders_differ_only_in_reading_pooled(name: str, options: dict[str, Any]) -> None:
    for case in random_cases(3, 25):
        paper = simulate(rule=name, options=options, **case)
        check_invariants(paper, case)
        assert_same_dynamics(paper, simulate(rule=name, options=options, event_order="theory", **case))


@pytest.mark.parametrize("name", IMMEDIATE_RULES)
def test_event_orders_differ_only_in_reading_immediate(name: str) -> None:
    for case in random_cases(4, 25):
        paper = simulate(rule=name, admission="immediate", **case)
        check_invariants(paper, case)
        assert_same_dynamics(paper, simulate(rule=name, admission="immediate", event_order="theory", **case))


# ---------------------------------------------------------------------------------------------------------------------
# the reference trajectories


@pytest.fixture
def reference_run(shared_dir: Path) -> Callable[[str, str], Trajectory]:
    records = json.loads((shared_dir / "data" / "burstgpt_8000.json").read_text())["data"][:4000]

    def run(rule: str, event_order: str) -> Trajectory:
        return simulate(
            [record["input_length"] for record in records],
            [record["output_length"] for record in records],
            16,
            72,
            rule,
            reveal_target=64,
            fixed_seconds=FIXED_SECONDS,
            seconds_per_token=SECONDS_PER_TOKEN,
            event_order=event_order,
        )

    return run


@pytest.mark.parametrize(("rule", "label"), [("fcfs", "FCFS"), ("jsq_load", "JSQ")])
def test_reference_trajectory(
    rule: str, label: str, shared_dir: Path, reference_run: Callable[[str, str], Trajectory]
) -> None:
    trajectory = reference_run(rule, "paper")
    with np.load(shared_dir / "reference" / f"ref_{label.lower()}_burst4000_G16_B72.npz") as stored:
        reference = {name: stored[name] for name in stored.files}
    expected = json.loads((shared_dir / "reference" / "reference_conventions.json").read_text())["expected"][label]

    assert np.array_equal(trajectory.worker, reference["req_worker"])
    assert np.array_equal(trajectory.start_step, reference["req_start_step"])
    assert np.array_equal(trajectory.finish_step, reference["req_finish_step"])
    assert np.array_equal(trajectory.barrier_loads, reference["step_loads"])
    assert np.array_equal([max(loads) for loads in trajectory.post_loads], reference["step_post_max"])
    assert np.array_equal([sum(loads) for loads in trajectory.post_loads], reference["step_post_sum"])
    assert np.array_equal([imbalance(loads) for loads in trajectory.post_loads], reference["step_imbalance_metric"])
    assert np.array_equal(trajectory.active, reference["step_active"])
    assert np.array_equal(trajectory.duration, reference["step_dur"])
    assert np.array_equal(trajectory.clock, reference["step_end_clock"])

    def close(value: float, name: str) -> bool:
        return math.isclose(value, expected[name], rel_tol=1e-12, abs_tol=0.0)

    result = metrics(trajectory)
    assert result.cut == expected["cut"]
    assert len(trajectory.clock) == expected["steps"]
    assert close(result.average_imbalance, "avg_gpu_imbalance")
    assert close(result.idle_share, "avg_gpu_idle_rate")
    assert close(result.energy, "total_energy")
    assert close(result.throughput, "throughput_tokens_per_sec")
    assert close(result.tpot, "avg_latency_per_token")
    assert close(max(trajectory.finish_clock), "makespan")
    assert close(sum(trajectory.finish_clock) / 4000, "avg_latency")

    theory = reference_run(rule, "theory")
    assert_same_dynamics(trajectory, theory)
    assert close(metrics(theory).average_imbalance, "barrier_avg_imbalance_cut")
