"""Replay: a finished run written as a log and followed is that run again; a row that cannot be followed is named."""

import random

import numpy as np
import pandas as pd
import pytest
from kernels.rules import IMMEDIATE, POOLED, many, random_br_0
from simulator.traces import Case, assert_same_run, random_case

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import Observation, make_policy
from lbopt.policies.replay import load_replay
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes


def random_run(rng):
    case = random_case(rng)
    return case, case.run(rng.choice([*POOLED, *IMMEDIATE, *[random_br_0(rng)] * 5])[0])


@pytest.mark.parametrize(
    ("kind", "by"),
    [("csv", "step"), ("csv", "time"), ("npz", "step"), ("npz", "time"), ("npz as the reference", "step")],
)
def test_a_finished_run_is_followed_to_the_last_bit(kind, by, tmp_path):
    rng = random.Random(f"{kind} {by}")
    for round_ in range(many(30, 8)):
        case, run = random_run(rng)
        start = run.requests["start_step" if by == "step" else "start_clock"]
        if kind == "csv":
            file = tmp_path / f"{round_}.csv"
            pd.DataFrame({"worker": run.requests["worker"], f"start_{by}": start}).to_csv(file, index=False)
        elif kind == "npz":
            file = tmp_path / f"{round_}.npz"
            np.savez(file, **{"worker": run.requests["worker"], f"start_{by}": start})
        else:
            file = tmp_path / f"{round_}.npz"
            np.savez(file, req_worker=run.requests["worker"].astype(np.int8), req_start_step=start.astype(np.int16))
        again = case.run(f"replay:{file}")
        assert_same_run(again, run)
        assert (again.policy, again.admission) == (f"replay:{file.name}", "pooled")


def test_the_requests_table_of_a_run_is_a_log(tmp_path):
    case, run = random_run(random.Random(1))
    run.request_table().to_csv(tmp_path / "requests.csv", index=False)
    assert_same_run(case.run(f"replay:{tmp_path}/requests.csv"), run)


def test_times_in_a_csv_are_read_to_the_last_bit(tmp_path):
    """One unit in the last place too much, and a request starts a step late."""
    times = np.random.default_rng(0).random(20_000) * 100
    file = tmp_path / "log.csv"
    file.write_text("worker,start_time\n" + "".join(f"0,{time!r}\n" for time in times.tolist()))
    assert np.array_equal(load_replay(file).start, times)


# ---------------------------------------------------------------------------------------------------------------------
# rows that cannot be followed: three requests of two steps, two workers with a slot each, two kept waiting

TINY = Case(
    Trace(prompt=[4, 5, 6], output=[2, 2, 2], arrival=[0.0, 0.0, 0.0]),
    SimulationSetting(Fleet(2, 1), ClosedLoop(2), step_time=AffineStepTime(1.0, 0.0)),
)


def follow(tmp_path, case=TINY, **columns):
    file = tmp_path / "log.csv"
    pd.DataFrame(columns).to_csv(file, index=False)
    return case.run(f"replay:{file}")


def test_a_log_that_can_be_followed(tmp_path):
    assert follow(tmp_path, worker=[1, 0, 0], start_step=[0, 1, 3]).requests["start_step"].tolist() == [0, 1, 3]
    assert follow(tmp_path, worker=[1, 0, 0], start_time=[0, 0.5, 2.5]).requests["start_step"].tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"worker": [0, 2, 0], "start_step": [0, 0, 2]},
            r"replay:log\.csv row 1: names worker 2; the fleet has workers 0\.\.1",
        ),
        (
            {"worker": [0, 0, 1], "start_step": [0, 0, 2]},
            r"row 1: starts on worker 0 in step 0, which has 1 free slots then",
        ),
        (
            {"worker": [0, 1, 0], "start_step": [0, 0, 1]},  # both slots are taken until step 2
            r"row 2: starts in step 1 on worker 0, but .* had not started by step 2",
        ),
        (
            {"worker": [0, 1, 1], "start_step": [0, 1, 0]},  # two are shown in step 0, so request 2 is not yet known
            r"row 2: starts in step 0 on worker 1, but it joined the pool in step 1",
        ),
        (
            {"worker": [0, 1, 0], "start_step": [0, 0, 9]},
            r"admits nothing in step 2 although nothing is running and 1 requests wait",
        ),
    ],
)
def test_a_row_that_cannot_be_followed_is_named(columns, message, tmp_path):
    with pytest.raises(InfeasibleDecisionError, match=message):
        follow(tmp_path, **columns)


@pytest.mark.parametrize("count", [2, 4])
def test_a_log_of_more_or_fewer_requests_is_refused(count, tmp_path):
    with pytest.raises(InputError, match=rf"log\.csv has {count} rows, but the trace has 3 requests"):
        follow(tmp_path, worker=[0, 1, 0, 0][:count], start_step=[0, 0, 2, 4][:count])


OWN = {"prompt_tokens": [4, 5, 6], "output_tokens": [2, 2, 2], "arrival": [100.0, 100.0, 100.0]}


@pytest.mark.parametrize(
    "named",
    [
        OWN,
        {"prompt": [4, 5, 6], "output": [2, 2, 2]},
        {"input_tokens": [4, 5, 6], "completion_tokens": [2, 2, 2]},
        {"input_tokens": [4, 5, 6]},
    ],
)
def test_a_log_in_another_order_is_the_same_log(named, tmp_path):
    """The requests of the log are found by what it says of them."""
    columns = {"worker": [1, 0, 0], "start_step": [0, 1, 3], **named}
    straight = follow(tmp_path, **columns)
    for order in ([2, 0, 1], [1, 0, 2], [2, 1, 0]):
        turned = {name: [values[i] for i in order] for name, values in columns.items()}
        assert_same_run(follow(tmp_path, **turned), straight)


def test_a_log_of_other_requests_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"2 of 3 rows of replay:log\.csv agree with the trace by prompt, output"):
        follow(tmp_path, worker=[1, 0, 0], start_step=[0, 1, 3], prompt=[4, 5, 7], output=[2, 2, 2])


def test_equal_requests_in_another_order_cannot_be_told_apart(tmp_path):
    with pytest.raises(InputError, match=r"in another order, and 2 of them equal another one by output"):
        case = Case(Trace(prompt=[4, 5, 6, 7], output=[2, 2, 2, 1]), TINY.setting)
        follow(tmp_path, case, worker=[0, 0, 0, 0], start_step=[0, 1, 2, 3], output=[1, 2, 2, 2])


def test_columns_of_requests_are_numbers(tmp_path):
    with pytest.raises(InputError, match="prompt is not a column of numbers"):
        follow(tmp_path, worker=[1, 0, 0], start_step=[0, 1, 3], prompt=["a", "b", "c"])


def test_blank_lines_are_skipped(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("worker,start_step\n\n1,0\n  \n0,1\n0,3\n\n")
    assert TINY.run(f"replay:{file}").requests["start_step"].tolist() == [0, 1, 3]


def test_a_time_before_the_request_arrives_means_the_first_decision_after_it(tmp_path):
    trace = Trace(prompt=[4, 5, 6], output=[2, 2, 2], arrival=[0.0, 0.5, 10.0])
    case = Case(trace, SimulationSetting(Fleet(2, 1), TraceTimes(), step_time=AffineStepTime(1.0, 0.0)))
    run = follow(tmp_path, case, worker=[0, 1, 0], start_time=[0.0, 0.0, 3.0])
    assert run.requests["start_clock"].tolist() == [0.0, 1.0, 10.0]


def test_a_slot_that_is_still_taken_at_the_time_is_named(tmp_path):
    with pytest.raises(InfeasibleDecisionError, match=r"row 1: starts on worker 0 in step 1, which has 0 free slots"):
        follow(tmp_path, worker=[0, 0, 1], start_time=[0.0, 0.5, 0.0])


# ---------------------------------------------------------------------------------------------------------------------
# files that are no logs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start_step\n0\n", r"lacks the column worker; it has start_step"),
        ("worker\n0\n", r"lacks start_step or start_time; it has worker"),
        ("gpu,begin\n0,0\n", r"lacks the column worker; it has gpu, begin"),
        ("worker,start_step\n0,0.5\n", r"start_step\[0\] is 0\.5; expected a whole number"),
        ("worker,start_step\n-1,0\n", r"worker\[0\] is -1; expected zero or more"),
        ("worker,start_step\n0,-3\n", r"start_step\[0\] is -3; expected zero or more"),
        ("worker,start_step\n0,\n", r"start_step.* row 0 is ''; expected a number"),
        ("worker,start_time\n0,1.5\n0,\n", r"start_time of row 1 is ''; expected a number"),
        ("", r"has no rows; expected a CSV with a header"),
        ("worker,start_step\n7,0,0\n8,1,0\n", r"line 2: 3 fields under 2 columns"),
        ("worker,start_step\n0,0\n1\n", r"line 3: 1 fields under 2 columns"),
        ("worker,start_step\n0,0\nworker,start_step\n", r"line 3: the header is repeated"),
        ("worker,start_step,worker\n0,0,1\n", r"has the column 'worker' twice"),
    ],
)
def test_a_file_that_is_no_log_is_named(text, message, tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        make_policy(f"replay:{file}")


def test_a_start_time_that_is_no_number_is_named(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("worker,start_time\n0,soon\n")
    with pytest.raises(InputError, match=r"start_time of row 0 is 'soon'"):
        make_policy(f"replay:{file}")
    archive = tmp_path / "log.npz"
    np.savez(archive, worker=[0], start_time=["soon"])
    with pytest.raises(InputError, match="start_time is not in seconds"):
        make_policy(f"replay:{archive}")
    np.savez(archive, worker=[0, 0], start_time=[1.0, np.inf])
    with pytest.raises(InputError, match="start_time of row 1 is missing"):
        make_policy(f"replay:{archive}")


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read replay file '.*none\.csv': No such file"):
        make_policy(f"replay:{tmp_path}/none.csv")
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK this is no archive")
    with pytest.raises(InputError, match="is not a zip archive that can be read"):
        make_policy(f"replay:{broken}")
    uneven = tmp_path / "uneven.npz"
    np.savez(uneven, worker=[0, 1], start_step=[0])
    with pytest.raises(InputError, match="2 workers but 1 starts"):
        make_policy(f"replay:{uneven}")


@pytest.mark.parametrize(("request_", "is_there"), [(1, True), (2, False)])
def test_a_request_beyond_the_last_row_is_refused(request_, is_there, tmp_path):
    (tmp_path / "log.csv").write_text("worker,start_step\n0,0\n1,0\n")
    policy = load_replay(tmp_path / "log.csv")
    seen = Observation(0, 0.0, [0, 0], [1, 1], [0, 0], [0, 0], [0, 0], [5], [0], [request_])
    if is_there:
        assert policy.decide(seen).tolist() == [1]
    else:
        with pytest.raises(InfeasibleDecisionError, match=r"log\.csv has 2 rows but the trace has a request 2"):
            policy.decide(seen)
