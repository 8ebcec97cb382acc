"""Small runs get the exact search as well: what is joined, when it is asked, what ends it, and what is said of it."""

from __future__ import annotations

import dataclasses
import signal
import threading

import numpy as np
import pytest
from hindsight import exhaustion

import lbopt
from lbopt.hardware import BarrierForm
from lbopt.hindsight import exact_interval, halt, search_cover, search_start
from lbopt.hindsight import optimum as optimum_module
from lbopt.hindsight.exact_interval import EXACT, is_small, joined, narrowed
from lbopt.hindsight.halt import Halt
from lbopt.hindsight.interval import clairvoyant_interval
from lbopt.hindsight.optimum import optimum
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.kernels import compile_time
from lbopt.kernels.arrays import record
from lbopt.kernels.hindsight.optimum_lists import LISTING
from lbopt.model import Trace
from lbopt.report.hindsight_tables import hindsight_csv, hindsight_tables
from lbopt.studies.hindsight import study as study_module
from tests.hindsight.frozen import lengths_of

AFFINE = BarrierForm(fixed=0.5, per_token=0.01)
SMALL = {"policies": ["jsq", "fcfs"], "requests": 30, "workers": 2, "slots": 3}


@pytest.fixture
def short_annealing(monkeypatch):
    monkeypatch.setattr(search_start, "MOVES", 200)
    monkeypatch.setattr(search_start, "PATIENCE", 1)
    monkeypatch.setattr("lbopt.hindsight.optimum.LONG", 200)


def random_table(seed, count=7, workers=3, slots=2):
    rng = np.random.default_rng(seed)
    return first_come(Trace(prompt=rng.integers(0, 40, count), output=rng.integers(1, 6, count)), workers, slots)


def burst(count=64):
    """A run that is open for long: short outputs start in bursts."""
    return first_come(lengths_of("burstgpt", count, np.random.default_rng([99, count, 0])), 4, 4)


def test_a_small_run_is_proved_to_be_what_exhaustion_finds(short_annealing):
    open_before = 0
    for seed in range(40):
        table = random_table(seed)
        before = clairvoyant_interval(table, AFFINE, effort=0)
        after = narrowed(before, 600.0)
        best = exhaustion.least(table)
        assert after.is_proved and after.placed.complete
        assert after.barriers.low == after.barriers.high == best == table.barriers(after.placed.worker)
        assert after.to_dict()["proved"] is True
        seconds = 0.5 * table.num_steps + 0.01 * best
        assert after.seconds.low == pytest.approx(seconds) == after.seconds.high
        open_before += not before.is_proved
        assert (after is before) == before.is_proved  # a point asks nothing
    assert open_before > 10


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
    assert not kept.placed.complete  # time decided how far it came
    assert joined(interval, dataclasses.replace(worse, stop="size")).placed.complete


@pytest.mark.parametrize(("count", "slots", "small"), [(100, 4, True), (101, 4, False), (100, 5, False)])
def test_only_small_runs_are_asked(count, slots, small, monkeypatch):
    asked = []
    real = exact_interval.optimum

    def noted(timetable, time_limit, **named):
        asked.append(time_limit)
        return real(timetable, 1e-6, **named)

    monkeypatch.setattr(exact_interval, "optimum", noted)
    table = random_table(1, count, 2, slots)
    assert is_small(table) == small
    interval = clairvoyant_interval(table, AFFINE, effort=0)
    assert (narrowed(interval, 3.0) is interval) == (not small)
    assert asked == ([3.0] if small else [])


def test_without_time_nothing_is_searched_and_that_is_said(monkeypatch):
    monkeypatch.setattr(exact_interval, "optimum", None)
    interval = clairvoyant_interval(random_table(3), AFFINE, effort=0)
    after = narrowed(interval, -0.1)
    assert after.barriers == interval.barriers and not after.placed.complete


def test_a_placement_that_is_known_is_improved_on():
    """With hardly any time the answer is no worse than what is known; a crowded worker is refused."""
    table = random_table(3)
    best = optimum(table, 600.0)
    assert optimum(table, 1e-9, known=best.worker).upper == best.upper
    with pytest.raises(lbopt.exceptions.InputError, match="holds more than 2 requests"):
        optimum(table, 1.0, known=np.zeros(table.num_requests, dtype=np.int64))


class _SoonHalted(Halt):
    """Asks for the end a little after the first list is begun."""

    def __init__(self):
        super().__init__()
        self.watched = 0

    def watch(self, state):
        self.watched += 1
        if self.watched == 1:
            threading.Timer(0.02, self.ask).start()
        super().watch(state)


def test_a_kernel_that_runs_ends_when_asked(short_annealing):
    """The limit is an hour: without a hearing the test would not end. What is known by then holds."""
    asked = _SoonHalted()
    result = optimum(burst(), 3600.0, halt=asked)
    assert asked.watched >= 1
    assert result.stop == "interrupted" and result.lower < result.upper
    assert result.upper == burst().barriers(result.worker)


def test_who_is_asked_before_the_search_begins_searches_nothing(short_annealing):
    asked = Halt()
    asked.ask()
    result = optimum(burst(), 3600.0, halt=asked)
    assert result.stop == "interrupted"
    state = record(LISTING)
    asked.watch(state)
    assert state.deadline == 1


def test_ctrl_c_keeps_the_interval_and_all_rules(monkeypatch):
    """Ctrl-C in the exact search of the first timetable: it ends, no other begins, and every rule has an interval."""
    real, calls = exact_interval.optimum, []

    def pressed(timetable, time_limit, *, halt, **named):
        calls.append(timetable)
        signal.raise_signal(signal.SIGINT)
        ended = threading.Event()
        while not halt.is_asked:
            ended.wait(0.01)
        return real(timetable, time_limit, halt=halt, **named)

    monkeypatch.setattr(exact_interval, "optimum", pressed)
    outcome = lbopt.in_hindsight(**{**SMALL, "policies": ["jsq", "fcfs", "br-0"]}, effort=1)
    assert outcome.interrupted and len(calls) == 1
    assert [one.rule for one in outcome.rules] == ["jsq", "fcfs", "br-0"]
    assert len(outcome.intervals) > 1
    assert all(one.ratio.low >= 1 - 1e-9 for one in outcome.rules)


def test_compiling_does_not_count(monkeypatch, short_annealing):
    """A thousand seconds pass within the search, all of them in the compiler: the limit of a minute still proves it."""
    late = [0]
    real_now, real_cut = halt.now, optimum_module.cut

    def cut_late(timetable):
        late[0] += 1000
        monkeypatch.setattr(compile_time._Account, "total", compile_time._Account.total + 1000.0)
        return real_cut(timetable)

    table = Timetable(2, 2, [0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3])
    optimum(table, 60.0)
    monkeypatch.setattr(halt, "now", lambda: real_now() + late[0] * 10**9)
    monkeypatch.setattr(optimum_module, "cut", cut_late)
    result = optimum(table, 60.0)
    assert late[0] == 1000
    assert result.is_proved and 0 <= result.seconds < 60


def test_a_bound_that_is_open_is_never_called_proved(short_annealing):
    result = optimum(burst(), 1e-9)
    assert result.lower < result.upper and result.stop == "time"
    table = burst()
    windows = optimum_module.cut(table)
    worker = search_start.greedy(table, windows) // 4
    assert search_cover.prove(table, windows, worker, 0.0).stop == "time"


@pytest.mark.parametrize(("words", "least", "most"), [({"effort": 3}, 3.0, 3.0), ({"time_limit": 500.0}, 1.0, 500.0)])
def test_the_study_gives_it_the_time_that_is_left(words, least, most, monkeypatch):
    given = []

    def noted(interval, time_limit, *, seed):
        given.append(time_limit)
        return interval

    monkeypatch.setattr(study_module, "narrowed", noted)
    lbopt.in_hindsight(**SMALL, **words)
    assert given and all(least <= one <= most for one in given)


def test_the_table_says_proved():
    outcome = lbopt.in_hindsight(**SMALL, time_limit=600.0)
    assert all(one.is_proved for one in outcome.rules)
    (table,) = hindsight_tables(outcome)
    column = table.headers.index("optimum")
    assert all(row[column].endswith(", proved") and "…" not in row[column] for row in table.rows)
    assert [row["optimum_proved"] for row in hindsight_csv(outcome)] == [True, True]
    assert outcome.notes == []
    large = lbopt.in_hindsight(**{**SMALL, "slots": 12, "requests": 200}, effort=1)
    assert not any(one.is_proved for one in large.rules)
    assert not any("proved" in cell for row in hindsight_tables(large)[0].rows for cell in row)
