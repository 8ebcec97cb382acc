"""Small runs get the exact search as well: what is joined, when it is asked, what ends it, and what is said of it."""

from __future__ import annotations

import dataclasses
import signal
import threading

import numpy as np
import pytest
from hindsight import exhaustion

import lbopt
from lbopt import compile_time
from lbopt.hardware import BarrierForm
from lbopt.hindsight import interval as module
from lbopt.hindsight import optimum as optimum_module
from lbopt.hindsight.interval import EXACT, clairvoyant_interval, is_small, joined, narrowed
from lbopt.hindsight.optimum import optimum
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.model import Trace
from lbopt.report.hindsight_report import hindsight_csv, hindsight_tables
from lbopt.studies.hindsight import study as study_module
from tests.hindsight.frozen import lengths_of

AFFINE = BarrierForm(fixed=0.5, per_token=0.01)
SMALL = {"policies": ["jsq", "fcfs"], "requests": 30, "workers": 2, "slots": 3}


def random_table(seed, count=7, workers=3, slots=2):
    rng = np.random.default_rng(seed)
    return first_come(Trace(prompt=rng.integers(0, 40, count), output=rng.integers(1, 6, count)), workers, slots)


def burst(count=64):
    """A run that is open for long: short outputs start in bursts."""
    return first_come(lengths_of("burstgpt", count, np.random.default_rng([99, count, 0])), 4, 4)


def test_a_small_run_is_proved_to_be_what_exhaustion_finds():
    open_before = 0
    for seed in range(40):
        table = random_table(seed)
        before = clairvoyant_interval(table, AFFINE, effort=0)
        after = narrowed(before, 600.0)
        best = exhaustion.least(table)
        assert after.is_proved and after.placed.complete
        assert after.barriers.low == after.barriers.high == best == table.barriers(after.placed.worker)
        assert after.to_dict()["proved"] is True
        assert after.to_dict()["optimum"] == ("checked" if best == before.lower_sum else "by the search")
        seconds = 0.5 * table.num_steps + 0.01 * best
        assert after.seconds.low == pytest.approx(seconds) == after.seconds.high
        open_before += not before.is_proved
        assert (after is before) == before.is_proved  # a point asks nothing
    assert open_before > 10


@pytest.mark.more
def test_the_better_placement_and_the_larger_bound_are_kept():
    table = random_table(3)
    interval = clairvoyant_interval(table, AFFINE, effort=0)
    best = exhaustion.least(table)
    assert interval.lower_sum < best < interval.placed.barriers
    result = optimum(table, 600.0)
    both = joined(interval, result)
    assert both.placed.found_by == EXACT and both.placed.tried[EXACT] == best
    assert np.array_equal(both.placed.worker, result.worker)
    worse = dataclasses.replace(result, upper=interval.placed.barriers + 5, lower=interval.lower_sum - 5, stop="time")
    kept = joined(interval, worse)
    assert (kept.lower_sum, kept.placed.barriers) == (interval.lower_sum, interval.placed.barriers)
    assert kept.placed.found_by == interval.placed.found_by and kept.placed.worker is interval.placed.worker
    assert not kept.placed.complete and kept.said == "open"  # time decided how far it came
    claimed = joined(interval, dataclasses.replace(result, proof="claimed:cp-sat"))
    assert claimed.is_closed and not claimed.is_proved
    assert (claimed.said, claimed.to_dict()["proved"]) == ("claimed by cp-sat", False)
    given = clairvoyant_interval(table, AFFINE, {"best": result.worker}, lower_bound=best, effort=0)
    assert given.said == "by the bound given"


@pytest.mark.parametrize(("count", "slots", "small"), [(100, 4, True), (101, 4, False), (100, 5, False)])
def test_only_small_runs_are_asked(count, slots, small, monkeypatch):
    asked = []
    real = module.optimum

    def noted(timetable, time_limit, **named):
        asked.append(time_limit)
        return real(timetable, 1e-6, **named)

    monkeypatch.setattr(module, "optimum", noted)
    table = random_table(1, count, 2, slots)
    assert is_small(table) == small
    interval = clairvoyant_interval(table, AFFINE, effort=0)
    assert (narrowed(interval, 3.0) is interval) == (not small)
    assert asked == ([3.0] if small else [])


def test_without_time_nothing_is_searched_and_that_is_said(monkeypatch):
    monkeypatch.setattr(module, "optimum", None)
    interval = clairvoyant_interval(random_table(3), AFFINE, effort=0)
    after = narrowed(interval, -0.1)
    assert after.barriers == interval.barriers and not after.placed.complete


def test_a_placement_that_is_known_is_improved_on():
    table = random_table(3)
    best = optimum(table, 600.0)
    assert optimum(table, 1e-9, known=best.worker).upper == best.upper


@pytest.mark.more
@pytest.mark.parametrize("solver", ["search", "cp-sat"])
def test_ctrl_c_ends_a_search_that_runs(solver):
    """The limit is an hour: without a hearing the test would not end. What is known by then holds."""
    if solver == "cp-sat":
        pytest.importorskip("ortools")
    table = first_come(lengths_of("uniform", 100, np.random.default_rng(5)), 4, 12)
    known = module.place_in_hindsight(table, effort=0).worker
    optimum(table, 0.01, known=known, solver=solver)  # loads what it needs
    pressed = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    pressed.start()
    result = optimum(table, 3600.0, known=known, solver=solver)
    assert not pressed.is_alive(), "it ended by itself"
    assert result.stop == "interrupted" and result.lower < result.upper
    assert result.upper == table.barriers(result.worker)


def test_ctrl_c_keeps_the_interval_and_all_rules(monkeypatch):
    """Ctrl-C in the exact search of the first timetable: it ends, no other begins, and every rule has an interval."""
    real, calls = module.optimum, []

    def pressed(timetable, time_limit, **named):
        calls.append(timetable)
        return dataclasses.replace(real(timetable, 1e-6, **named), stop="interrupted")

    monkeypatch.setattr(module, "optimum", pressed)
    outcome = lbopt.in_hindsight(**{**SMALL, "policies": ["jsq", "fcfs", "br-0"]}, effort=1)
    assert outcome.interrupted and len(calls) == 1
    assert [one.rule for one in outcome.rules] == ["jsq", "fcfs", "br-0"]
    assert len(outcome.intervals) > 1
    assert all(one.ratio.low >= 1 - 1e-9 for one in outcome.rules)


def test_compiling_does_not_count(monkeypatch):
    """A thousand seconds pass within the search, all of them in the compiler: the limit of a minute still proves it."""
    late = [0]
    real_clock, real_chained = optimum_module.Budget.__init__.__globals__["time"].perf_counter, optimum_module.chained

    def chained_late(timetable):
        late[0] += 1000
        monkeypatch.setattr(compile_time._Account, "total", compile_time._Account.total + 1000.0)
        return real_chained(timetable)

    table = Timetable(2, 2, [0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3])
    optimum(table, 60.0)
    monkeypatch.setattr("lbopt.solvers.budget.time.perf_counter", lambda: real_clock() + late[0])
    monkeypatch.setattr(optimum_module, "chained", chained_late)
    result = optimum(table, 60.0)
    assert late[0] == 1000
    assert result.is_proved and 0 <= result.seconds < 60


def test_a_bound_that_is_open_is_never_called_proved():
    result = optimum(burst(), 1e-9)
    assert result.lower < result.upper and result.stop == "time" and not result.is_proved


@pytest.mark.some(but=("words1-1.0-500.0",))
@pytest.mark.parametrize(("words", "least", "most"), [({"effort": 3}, 3.0, 3.0), ({"time_limit": 500.0}, 1.0, 500.0)])
def test_the_study_gives_it_the_time_that_is_left(words, least, most, monkeypatch):
    given = []

    def noted(interval, time_limit, *, seed):
        given.append(time_limit)
        return interval

    monkeypatch.setattr(study_module, "narrowed", noted)
    lbopt.in_hindsight(**SMALL, **words)
    assert given and all(least <= one <= most for one in given)


@pytest.mark.more
def test_the_table_says_how_sure_the_optimum_is():
    outcome = lbopt.in_hindsight(**SMALL, time_limit=600.0)
    assert all(one.is_proved for one in outcome.rules)
    (table,) = hindsight_tables(outcome)
    column = table.headers.index("optimum")
    assert all(row[column].endswith(", by the search") and "…" not in row[column] for row in table.rows)
    assert [row["optimum_proved"] for row in hindsight_csv(outcome)] == [True, True]
    assert [row["optimum"] for row in hindsight_csv(outcome)] == ["by the search"] * 2
    assert outcome.notes == []
    large = lbopt.in_hindsight(**{**SMALL, "slots": 12, "requests": 200}, effort=1)
    assert not any(one.is_proved for one in large.rules)
    assert {one.optimum for one in large.rules} == {"open"}
    assert not any("search" in cell or "claimed" in cell for row in hindsight_tables(large)[0].rows for cell in row)
