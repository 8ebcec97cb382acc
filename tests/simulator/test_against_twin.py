"""The whole compiled loop against the naive simulator: workers, steps, clocks, loads, metrics."""

import importlib
import math
import random

import naive
import numpy as np
import pytest
from kernels.rules import IMMEDIATE, POOLED, many, random_br_0, random_iqr
from lengths import quick_and_long
from simulator.traces import Case, assert_same_run, random_case

from lbopt.model import Fleet, Trace
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes, Window
from lbopt.simulator.run import REQUEST_COLUMNS, Run
from lbopt.simulator.state import fresh_rows

LOOP = importlib.import_module("lbopt.simulator.simulate")  # the package offers a function of the same name


def assert_same(run: Run, twin: naive.Trajectory) -> None:
    request, step = run.requests, run.steps
    for name in ("worker", "reveal_step", "start_step", "finish_step", "reveal_clock", "start_clock", "finish_clock"):
        assert request[name].tolist() == getattr(twin, name), name
    assert step["barrier_loads"].tolist() == twin.barrier_loads
    assert step["post_loads"].tolist() == twin.post_loads
    assert step["active"].tolist() == twin.active
    assert step["seconds"].tolist() == twin.duration
    assert step["clock"].tolist() == twin.clock
    for prefix, loads in (("barrier", twin.barrier_loads), ("post", twin.post_loads), ("read", twin.read_loads)):
        assert step[f"{prefix}_max"].tolist() == [max(row) for row in loads]
        assert step[f"{prefix}_sum"].tolist() == [sum(row) for row in loads]
    assert step["read_min"].tolist() == [min(row) for row in twin.read_loads]
    rows = range(len(twin.clock))
    assert step["completed"].tolist() == [twin.finish_step.count(row + 1) for row in rows]
    assert step["admitted"].tolist() == [twin.start_step.count(row) for row in rows]


def assert_same_decisions_faced(run: Run, twin: naive.Trajectory) -> None:
    """Row r tells what the decision before step r + 1 faced."""
    fleet = run.setting.fleet
    known = list(zip(twin.reveal_step, twin.start_step, strict=True))
    for row in range(run.num_steps):
        assert run.steps["waiting"][row] == sum(reveal <= row <= start for reveal, start in known)
        running = twin.active[row] - run.steps["admitted"][row]
        assert run.steps["free_slots"][row] == fleet.num_slots - running
        if fleet.kv_capacity is not None:
            over = sum(load > fleet.kv_capacity for load in twin.barrier_loads[row])
            assert run.steps["over_capacity"][row] == over
    open_decisions = (run.steps["waiting"] > 0) & (run.steps["free_slots"] > 0)
    assert run.steps["real_choice"].sum() == run.steps["real_choice"][open_decisions].sum()
    if run.admission == "pooled":
        assert run.decisions == open_decisions.sum()
        assert run.real_choices == run.steps["real_choice"].sum()
    else:
        assert run.decisions == len(run.trace)


def assert_same_metrics(run: Run, twin: naive.Trajectory) -> None:
    def close(ours, theirs):
        assert math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12), (ours, theirs)

    ours, theirs = run.metrics(), naive.metrics(twin)
    close(ours.tpot_mean_seconds, theirs.tpot)
    assert ours.waiting_max_steps == max(theirs.waiting_steps)
    close(ours.waiting_mean_steps, sum(theirs.waiting_steps) / len(theirs.waiting_steps))
    close(ours.first_token_mean_seconds, naive.figures.mean(theirs.time_to_first_token))
    assert ours.first_step == 1
    if theirs.cut == 0:  # no window before the last admission: lbopt then takes all steps, the twin none
        assert ours.last_step == run.num_steps
        return
    assert ours.last_step == theirs.cut
    close(ours.imbalance_tokens, theirs.average_imbalance)
    close(ours.spread_tokens, theirs.average_spread)
    if run.steps["read_max"][: theirs.cut].all():  # else: see test_an_empty_fleet_is_idle
        close(ours.idle_share, theirs.idle_share)
    close(ours.throughput_tokens_per_second, theirs.throughput)
    close(ours.energy_joules, theirs.energy)


@pytest.mark.some(6)
@pytest.mark.parametrize("cases", quick_and_long(many(40, 25), many(120, 25)))
@pytest.mark.parametrize(("spec", "name", "options"), POOLED)
def test_pooled_runs_are_those_of_the_twin(spec, name, options, cases):
    rng = random.Random(f"run {spec}")
    for _ in range(cases):
        case = random_case(rng)
        run, twin = case.run(spec), case.naive_run(name, options, "pooled")
        assert_same(run, twin)
        assert_same_decisions_faced(run, twin)
        assert_same_metrics(run, twin)


@pytest.mark.parametrize("cases", quick_and_long(many(120, 60), many(400, 60)))
def test_br_0_runs_are_those_of_the_twin(cases):
    rng = random.Random("run br-0")
    for _ in range(cases):
        case = random_case(rng)
        if case.setting.fleet.num_workers == 1:  # see test_br_0_on_a_single_worker_decides_as_its_twin
            continue
        spec, name, options = random_br_0(rng)
        run, twin = case.run(spec), case.naive_run(name, options, "pooled")
        assert_same(run, twin)
        assert_same_decisions_faced(run, twin)
        assert_same_metrics(run, twin)


@pytest.mark.some(5)
@pytest.mark.parametrize("cases", quick_and_long(many(40, 25), many(120, 25)))
@pytest.mark.parametrize(("spec", "name", "options"), IMMEDIATE)
def test_immediate_runs_are_those_of_the_twin(spec, name, options, cases):
    rng = random.Random(f"run {spec}")
    for _ in range(cases):
        case = random_case(rng)
        run, twin = case.run(spec), case.naive_run(name, options, "immediate")
        assert_same(run, twin)
        assert_same_decisions_faced(run, twin)
        assert_same_metrics(run, twin)


@pytest.mark.parametrize("overbooking", range(4))
def test_runs_in_which_requests_are_held_are_those_of_the_twin(overbooking):
    rng = random.Random(f"run br-0-bypass {overbooking}")
    for _ in range(many(50, 12)):
        case, ties = random_case(rng), rng.choice(["load", "index"])
        run = case.run(f"br-0-bypass:overbooking={overbooking},ties={ties}")
        twin = case.naive_run("br_0_bypass", {"overbooking": overbooking, "ties": ties}, "immediate")
        assert_same(run, twin)
        assert_same_decisions_faced(run, twin)
        assert_same_metrics(run, twin)


@pytest.mark.parametrize("admission", ["pooled", "immediate"])
def test_iqr_runs_are_those_of_the_twin(admission):
    rng = random.Random(f"run iqr {admission}")
    for _ in range(many(60, 12)):
        case = random_case(rng)
        spec, name, options = random_iqr(rng)
        run, twin = case.run(f"{spec},admission={admission}"), case.naive_run(name, options, admission)
        assert_same(run, twin)
        assert_same_decisions_faced(run, twin)
        assert_same_metrics(run, twin)


def test_an_empty_fleet_is_idle():
    """A worker's idle share is 1 - P_g / max(1, max P): 1 where nothing is resident (reference_conventions.json)."""
    trace = Trace(prompt=[5, 5], output=[1, 1], arrival=[0.0, 100.0])
    case = Case(trace, SimulationSetting(Fleet(2, 1), TraceTimes()))
    run, twin = case.run("fcfs"), case.naive_run("fcfs", {}, "pooled")
    assert run.steps["read_max"].tolist() == [0, 0]
    assert naive.metrics(twin).idle_share == 1.0
    assert run.metrics().idle_share == 1.0


@pytest.mark.parametrize("rows", [1, 3])
def test_the_length_of_a_chunk_changes_nothing(rows, monkeypatch):
    rng = random.Random(9)
    cases = [random_case(rng) for _ in range(many(40, 10))]
    specs = [rng.choice([*POOLED, *IMMEDIATE, random_br_0(rng)])[0] for _ in cases]
    whole = [case.run(spec) for case, spec in zip(cases, specs, strict=True)]
    monkeypatch.setattr(LOOP, "_rows_for", lambda G, with_running: fresh_rows(G, rows, with_running))
    for case, spec, expected in zip(cases, specs, whole, strict=True):
        run = case.run(spec)
        assert_same_run(run, expected)
        assert (run.decisions, run.real_choices) == (expected.decisions, expected.real_choices)
        assert run.metrics() == expected.metrics()


@pytest.mark.parametrize("spec", ["fcfs", "br-0", "jsq"])
def test_progress_tells_how_many_requests_have_ended(spec, monkeypatch):
    monkeypatch.setattr(LOOP, "_rows_for", lambda G, with_running: fresh_rows(G, 2, with_running))
    rng = random.Random(16)
    for _ in range(many(20, 5)):
        case = random_case(rng)
        told: list[tuple[int, int]] = []
        run = case.run(spec, progress=lambda ended, total, told=told: told.append((ended, total)))
        ended = np.cumsum(run.steps["completed"])[1::2].tolist()  # after every chunk of two steps
        assert [n for n, _ in told[:-1]] == ended[: len(told) - 1]
        assert told[-1] == (len(case.trace), len(case.trace))


def test_chunks_are_longer_than_a_run_of_the_tests_and_shorter_on_wide_fleets():
    assert LOOP._rows_for(16, False).active.size == LOOP.ROWS_PER_CHUNK
    assert 64 <= LOOP._rows_for(4096, True).active.size < LOOP.ROWS_PER_CHUNK


def test_event_orders_differ_only_in_what_is_read():
    rng = random.Random(10)
    for _ in range(many(40, 8)):
        case = random_case(rng)
        setting = case.setting
        both = [
            Case(case.trace, SimulationSetting(setting.fleet, setting.arrivals, order, setting.step_time), case.seed)
            for order in ("paper", "theory")
        ]
        paper, theory = (each.run("jsq-load") for each in both)
        for name in REQUEST_COLUMNS:
            assert np.array_equal(paper.requests[name], theory.requests[name])
        for name in paper.steps:
            if not name.startswith("read") and name != "watts":
                assert np.array_equal(paper.steps[name], theory.steps[name], equal_nan=True), name
        assert np.array_equal(theory.steps["read_max"], paper.steps["barrier_max"])
        assert np.array_equal(paper.steps["read_max"], paper.steps["post_max"])


def test_the_loads_of_single_workers_are_kept_on_request_only():
    case = random_case(random.Random(11))
    from lbopt.policies import make_policy

    lean = LOOP.simulate(case.trace, make_policy("fcfs"), case.setting)
    full = case.run("fcfs")
    assert set(full.steps) - set(lean.steps) == {"barrier_loads", "post_loads"}
    for name, column in lean.steps.items():
        assert np.array_equal(column, full.steps[name], equal_nan=True)


def test_the_seed_feeds_random_rules_and_nothing_else():
    rng = random.Random(12)
    case = random_case(rng, 200)
    while len(case.trace) < 50 or case.setting.fleet.num_workers < 3:
        case = random_case(rng, 200)
    other = Case(case.trace, case.setting, seed=case.seed + 1)
    assert_same_run(case.run("random"), case.run("random"))
    assert_same_run(case.run("jsq"), other.run("jsq"))
    assert case.run("random").requests["worker"].tolist() != other.run("random").requests["worker"].tolist()


def test_reveal_target_is_four_times_the_workers_unless_given():
    case = random_case(random.Random(13), 80)
    fleet = case.setting.fleet
    settings = [
        SimulationSetting(fleet, arrivals, step_time=case.setting.step_time)
        for arrivals in (ClosedLoop(), ClosedLoop(4 * fleet.num_workers))
    ]
    assert_same_run(*(Case(case.trace, setting).run("fcfs") for setting in settings))


def test_the_default_window_of_a_run_that_starts_everything_at_once_is_the_whole_run():
    case = random_case(random.Random(14))
    trace = case.trace.first(1)
    run = Case(trace, case.setting).run("fcfs")
    assert run.window == Window(1, run.num_steps)
