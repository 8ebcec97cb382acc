"""The BF-IO authors' own trajectories and their Table 1, digit for digit (see README.md of the shared reference).

Provenance: public repository Echoscd/Load-Balancing-Release, commit 6ae705d, run unmodified and observed.
"""

import json
from functools import cache

import numpy as np
import pytest

from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate

pytestmark = pytest.mark.jit

SETTING = SimulationSetting(Fleet(16, 72))
RULES = [("fcfs", "FCFS"), ("jsq-load", "JSQ")]


def close(value):
    return pytest.approx(value, rel=1e-12, abs=0.0)


@cache
def records(folder):
    data = json.loads((folder / "data" / "burstgpt_8000.json").read_text())["data"]
    return Trace(
        prompt=[record["input_length"] for record in data],
        output=[record["output_length"] for record in data],
        name="burstgpt",
    )


@cache
def table_1_run(folder, spec):
    return simulate(records(folder).resampled(100_000, 42), make_policy(spec), SETTING)


def expected_table_1(folder, label):
    return json.loads((folder / "reference" / "reference_100k_metrics.json").read_text())[label]


def log(folder, label):
    return folder / "reference" / f"ref_{label.lower()}_burst100000_seed42_G16_B72.npz"


@pytest.mark.parametrize(("spec", "label"), RULES)
def test_the_first_4000_requests_run_as_in_the_authors_simulator(spec, label, shared_dir):
    run = simulate(records(shared_dir).first(4000), make_policy(spec), SETTING, keep_loads=True)
    with np.load(shared_dir / "reference" / f"ref_{label.lower()}_burst4000_G16_B72.npz") as stored:
        reference = {name: stored[name] for name in stored.files}
    assert np.array_equal(run.trace.prompt, reference["req_s"])
    assert np.array_equal(run.trace.output, reference["req_o"])
    for theirs, ours in (("worker", "worker"), ("start_step", "start_step"), ("finish_step", "finish_step")):
        assert np.array_equal(run.requests[ours], reference[f"req_{theirs}"]), ours
    for theirs, ours in (
        ("loads", "barrier_loads"),
        ("max_load", "barrier_max"),
        ("sum_load", "barrier_sum"),
        ("active", "active"),
        ("dur", "seconds"),
        ("end_clock", "clock"),
        ("post_max", "post_max"),
        ("post_sum", "post_sum"),
    ):
        assert np.array_equal(run.steps[ours], reference[f"step_{theirs}"]), ours
    imbalance = 16 * run.steps["read_max"] - run.steps["read_sum"]
    assert np.array_equal(imbalance, reference["step_imbalance_metric"])


@pytest.mark.parametrize(("spec", "label"), RULES)
def test_the_first_4000_requests_measure_as_in_the_authors_simulator(spec, label, shared_dir):
    expected = json.loads((shared_dir / "reference" / "reference_conventions.json").read_text())["expected"][label]
    run = simulate(records(shared_dir).first(4000), make_policy(spec), SETTING)
    metrics = run.metrics()
    assert (run.num_steps, run.window.last) == (expected["steps"], expected["cut"])
    assert metrics.imbalance_tokens == close(expected["avg_gpu_imbalance"])
    assert metrics.idle_share == close(expected["avg_gpu_idle_rate"])
    assert metrics.energy_joules == close(expected["total_energy"])
    assert metrics.throughput_tokens_per_second == close(expected["throughput_tokens_per_sec"])
    assert metrics.tpot_mean_seconds == close(expected["avg_latency_per_token"])
    assert metrics.occupancy == close(expected["avg_gpu_utilization"])
    assert run.requests["finish_clock"].max() == expected["makespan"]
    assert run.requests["finish_clock"].mean() == close(expected["avg_latency"])
    rows = run.window.rows
    assert run.steps["watts"][rows].mean() / 16 == close(expected["avg_power"])
    assert run.steps["active"][rows].sum() == expected["tokens_cut"]
    assert run.steps["active"].sum() == expected["tokens_total"]
    assert run.steps["completed"][rows].sum() == expected["completed_in_cut"]
    assert run.steps["active"].max() == expected["max_active"]

    theory = simulate(
        records(shared_dir).first(4000), make_policy(spec), SimulationSetting(Fleet(16, 72), event_order="theory")
    )
    assert theory.metrics().imbalance_tokens == close(expected["barrier_avg_imbalance_cut"])


def assert_table_1(run, expected):
    metrics, figures = run.metrics(), expected["metrics"]
    assert (run.num_steps, run.window.last) == (expected["steps"], expected["cut"])
    assert metrics.imbalance_tokens == close(figures["avg_gpu_imbalance"])
    assert metrics.throughput_tokens_per_second == close(figures["throughput_tokens_per_sec"])
    assert metrics.tpot_mean_seconds == close(figures["avg_latency_per_token"])
    assert metrics.energy_joules == close(figures["total_energy"])
    assert metrics.idle_share == close(figures["avg_gpu_idle_rate"])
    assert metrics.occupancy == close(figures["avg_gpu_utilization"])
    assert run.requests["finish_clock"].max() == close(figures["makespan"])
    assert run.requests["finish_clock"].mean() == close(figures["avg_latency"])
    waits = expected["pool_wait_steps"]
    waited = run.requests["start_step"] - run.requests["reveal_step"]
    assert metrics.waiting_mean_steps == close(waits["mean"])
    assert np.median(waited) == waits["p50"]
    assert metrics.waiting_p99_steps == close(waits["p99"])
    assert metrics.waiting_max_steps == waits["max"]
    assert (waited > 100).sum() == waits["n_over_100"]


@pytest.mark.parametrize(("spec", "label"), RULES)
def test_table_1(spec, label, shared_dir):
    assert_table_1(table_1_run(shared_dir, spec), expected_table_1(shared_dir, label))


@pytest.mark.parametrize(
    ("label", "joules"), [("BFIO-H0", 385590.13636999857), ("BFIO-H20", 383034.1713859958)], ids=["H0", "H20"]
)
def test_table_1_of_the_tuned_heuristic_by_replay_of_its_log(label, joules, shared_dir):
    file = log(shared_dir, label)
    run = table_1_run(shared_dir, f"replay:{file}")
    assert_table_1(run, expected_table_1(shared_dir, label))
    assert run.metrics().energy_joules == close(joules)
    with np.load(file) as stored:
        assert np.array_equal(records(shared_dir).prompt[stored["file_index"]], run.trace.prompt)
        assert np.array_equal(run.requests["worker"], stored["req_worker"])
        assert np.array_equal(run.requests["start_step"], stored["req_start_step"])
        for theirs, ours in (
            ("max_load", "barrier_max"),
            ("sum_load", "barrier_sum"),
            ("active", "active"),
            ("end_clock", "clock"),
        ):
            assert np.array_equal(run.steps[ours], stored[f"step_{theirs}"]), ours


def test_the_heuristic_starves_some_and_the_baselines_nobody(shared_dir):
    waits = {spec: table_1_run(shared_dir, spec).metrics().waiting_max_steps for spec, _ in RULES}
    assert waits == {"fcfs": 4, "jsq-load": 4}
    assert table_1_run(shared_dir, f"replay:{log(shared_dir, 'BFIO-H20')}").metrics().waiting_max_steps == 3841
