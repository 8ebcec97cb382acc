"""Tables of a gap study by hand, and folders read back."""

import dataclasses
import json
import re

import pytest
from studies.small_study import NAMES, seeds_outcome, small_config, small_outcome

from lbopt.exceptions import InputError
from lbopt.report.gap_report import lead
from lbopt.report.gap_tables import gap_csv, gap_tables, long_run_tables
from lbopt.report.study_report import read_config
from lbopt.studies.gap import SolvedState
from lbopt.studies.gap.outcome import compare


def column(table, header):
    return {row[0]: row[table.headers.index(header)] for row in table.rows}


def test_the_one_step_table_counts_states_and_shows_waits():
    """Each policy stands with its states and the longest wait of its own runs over all seeds."""
    tables = gap_tables(seeds_outcome())
    assert [table.title.rpartition(", ")[2] for table in tables] == [
        "over all states",
        "in states under fcfs",
        "in states under br-0",
    ]
    longest = dict.fromkeys(("fcfs", "random", "br-0"), 0)
    for run in seeds_outcome().long_runs:
        longest[run.policy] = max(longest[run.policy], run.metrics.waiting_max_steps)
    for table, states in zip(tables, ("6", "3", "3"), strict=True):
        assert table.headers[1] == "states"
        assert table.headers[-1] == "longest wait (own runs)"
        assert column(table, "states") == dict.fromkeys(longest, states)
        assert column(table, "longest wait (own runs)") == {name: f"{wait:,}" for name, wait in longest.items()}


def test_without_long_runs_there_is_no_column_of_waits():
    """A study of frozen states alone knows nothing of waiting."""
    outcome = dataclasses.replace(small_outcome(), long_runs=[])
    (table,) = gap_tables(outcome)
    assert "longest wait (own runs)" not in table.headers
    assert all(len(row) == len(table.headers) for row in table.rows)
    assert column(table, "states") == dict.fromkeys(NAMES, "5")


def test_rows_without_states_are_dropped():
    """A policy that decided no state of a group has no row in its table nor in gap.csv, and no wait is invented."""
    outcome = seeds_outcome()
    solved = [SolvedState(s.state, s.result, dict(s.decisions)) for s in outcome.solved]
    for one in solved:
        if one.state.behaviour == "fcfs":
            del one.decisions["random"]
        else:
            one.decisions["br-0 (as run)"] = one.decisions["br-0"]
    outcome = dataclasses.replace(outcome, solved=solved)
    over_all, fcfs, br_0 = gap_tables(outcome)
    assert column(over_all, "states") == {"fcfs": "6", "random": "3", "br-0": "6", "br-0 (as run)": "3"}
    assert column(fcfs, "states") == {"fcfs": "3", "br-0": "3"}
    assert column(br_0, "states") == dict.fromkeys(("fcfs", "random", "br-0", "br-0 (as run)"), "3")
    assert column(br_0, "longest wait (own runs)")["br-0 (as run)"] == "–"
    found = [(r["behaviour"], r["policy"], r["states"]) for r in gap_csv(outcome)]
    assert [behaviour for behaviour, _, _ in found] == ["all"] * 4 + ["fcfs"] * 2 + ["br-0"] * 4
    assert sorted(found) == [
        ("all", "br-0", 6),
        ("all", "br-0 (as run)", 3),
        ("all", "fcfs", 6),
        ("all", "random", 3),
        ("br-0", "br-0", 3),
        ("br-0", "br-0 (as run)", 3),
        ("br-0", "fcfs", 3),
        ("br-0", "random", 3),
        ("fcfs", "br-0", 3),
        ("fcfs", "fcfs", 3),
    ]


def test_what_was_really_done_is_not_the_answer():
    """The sentence on top names a rule, never what somebody did in his own states alone."""
    outcome = small_outcome()
    solved = [SolvedState(s.state, s.result, dict(s.decisions)) for s in outcome.solved]
    for one in solved:
        one.decisions["log (as run)"] = dataclasses.replace(one.decisions["fcfs"], objective=one.best + 10**9)
    text = lead(dataclasses.replace(outcome, solved=solved))
    assert text == lead(outcome)


def test_differences_of_shares_are_points():
    """In the table of differences, shares stand in points; in the table of values, in percent."""
    values, _, differences = long_run_tables(seeds_outcome())
    assert {row[0] for row in differences.rows} == {"random", "br-0"}
    for name, cell in column(values, "idle").items():
        assert re.fullmatch(r"\d+\.\d\d % ± \d+\.\d\d %", cell), name
    known = {c.policy: c.difference for c in compare(seeds_outcome().long_runs, "fcfs") if c.metric == "idle_share"}
    for name, cell in column(differences, "idle").items():
        assert re.fullmatch(r"[+−]?\d+\.\d\d pp ± \d+\.\d\d pp", cell), name
        mean = float(cell.split(" pp")[0].replace("−", "-"))
        assert mean == pytest.approx(100 * known[name].mean, abs=0.005001)


def account(**changes):
    """A run.json with everything that has to be in it, but for the changes."""
    whole = {"format": "lbopt-gap", "version": 1, "configuration": small_config().to_dict(), "interrupted": False}
    return json.dumps(whole | {"trace": {}, "command": "x", "versions": {}} | changes)


def test_a_whole_account_is_read(tmp_path):
    """The account that the cases below break reads back."""
    (tmp_path / "run.json").write_text(account())
    assert read_config(tmp_path, "gap")[0] == small_config()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "not an output folder"),
        ("{", "not valid JSON"),
        ("[]", "was not written by the study gap of lbopt"),
        ('{"format": "lbopt-simulation", "version": 1}', "was not written by the study gap of lbopt"),
        ('{"format": "lbopt-gap", "version": 99}', "has version 99"),
        (account(configuration={"colour": 1}), "not a configuration of a gap study"),
        (account(configuration=None), "not a configuration of a gap study"),
        (account(configuration={}), "not a configuration of a gap study"),
        ('{"format": "lbopt-gap", "version": 1}', "lacks configuration, interrupted, trace, command, versions"),
        (account(trace=None), "trace is None; expected an object"),
        (account(versions=[]), r"versions is \[\]; expected an object"),
        (b"\xff\xfe", "run.json"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path, text, expected):
    """A folder without, or with a broken, run.json is named with the reason."""
    if text is not None:
        (tmp_path / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=expected):
        read_config(tmp_path, "gap")
