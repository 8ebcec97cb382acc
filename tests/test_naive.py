"""The naive twins against worked examples, hand calculations and the reference trajectories.

Nothing of lbopt is tested here: these tests make sure that the judges are right before anybody is judged by them.
"""

import ast
import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive import (
    IMMEDIATE_RULES,
    Trajectory,
    imbalance,
    metrics,
    simulate,
)
from naive.variants import VARIANTS

FIXED_SECONDS = 0.0048874999999999995
SECONDS_PER_TOKEN = 1.0052490234375e-07


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
