"""The clairvoyant optimum against every placement, and against HiGHS and CP-SAT on the integer program."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from lbopt.exceptions import CertificateError, InputError
from lbopt.hindsight import search_cover, search_start
from lbopt.hindsight.bounds import step_bounds
from lbopt.hindsight.certificate import BoundCertificate, WindowBound, clip
from lbopt.hindsight.check import check_optimum
from lbopt.hindsight.optimum import optimum
from lbopt.hindsight.program import solve_program
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.hindsight.windows import cut
from lbopt.kernels.draw import new_dice
from lbopt.kernels.hindsight.optimum_exchange import Chains, anneal, link
from lbopt.model import Trace
from lbopt.solvers.registry import is_available
from tests.hindsight.frozen import lengths_of
from tests.hindsight.small_runs import KINDS, least_barriers, small_run

RUNS = 360  # of the kinds in turn


@pytest.fixture(autouse=True)
def short_annealing(monkeypatch):
    """Little annealing leaves something to the proof."""
    monkeypatch.setattr(search_start, "MOVES", 200)
    monkeypatch.setattr(search_start, "PATIENCE", 1)
    monkeypatch.setattr("lbopt.hindsight.optimum.LONG", 200)


@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_every_placement_and_with_solvers(kind):
    """Own search = brute force = HiGHS = CP-SAT where its claims are trusted, and the check accepts what is said."""
    rng = np.random.default_rng([5, KINDS.index(kind)])
    improved = 0
    for number in range(RUNS // len(KINDS)):
        timetable = small_run(kind, rng)
        least = least_barriers(timetable)
        result = optimum(timetable, 600, fine=int(rng.integers(1, 200)))
        assert (result.lower, result.upper, result.stop) == (least, least, "proved")
        assert timetable.barriers(result.worker) == least
        assert timetable.imbalance(result.worker) == result.upper_imbalance
        assert step_bounds(timetable).sum() <= least
        improved += least > step_bounds(timetable).sum()
        assert check_optimum(timetable, result).bound_established
        often = ("highs",) if kind != "long" else ()  # many steps take it long
        for solver in ("highs", "cp-sat") if number % 4 == 0 else often:
            if is_available(solver):
                answer = solve_program(timetable, solver, time_limit=30)
                assert answer.upper == least
                if answer.trusted:
                    assert answer.lower == least
    assert improved > 0 or kind == "zeros"  # the bounds of the steps alone would not do


@pytest.mark.parametrize("fine", [1, 3, 1000])
def test_windows_hold_the_tokens_of_the_run(fine):
    """Token sums are those of the steps; with single steps the windows of any placement cost what its steps cost."""
    rng = np.random.default_rng(fine)
    for kind in KINDS * 5:
        timetable = small_run(kind, rng, 14)
        windows = cut(timetable, fine)
        assert windows.totals.sum() == timetable.totals().sum()
        assert windows.floor.sum() == step_bounds(timetable).sum()
        worker = search_start.greedy(timetable, windows) // timetable.slots_per_worker
        shown = np.zeros((timetable.num_workers, windows.floor.size), dtype=np.int64)
        np.add.at(shown, worker, windows.tokens)
        cost = int(shown.max(axis=0).sum())
        assert cost <= timetable.barriers(worker)
        if windows.exact:
            assert cost == timetable.barriers(worker)
        if fine == 1000:
            assert windows.exact


def test_annealing_keeps_its_books():
    """After many exchanges the slots are still those of a placement, and its cost is the one that was kept."""
    rng = np.random.default_rng(11)
    for kind in KINDS * 3:
        timetable = small_run(kind, rng, 20)
        windows = cut(timetable, 1000)
        slots, count = timetable.slots_per_worker, timetable.num_requests
        run = search_start.run_of(timetable, windows)
        if run.movable.size == 0:
            continue
        places = timetable.num_workers * slots
        chains = Chains(
            *(np.zeros(size, np.int64) for size in (count, places, count, count)),
            np.zeros((windows.floor.size, timetable.num_workers), np.int64),
            *(np.zeros(size, np.int64) for size in (windows.floor.size, windows.floor.size, count)),
        )
        chains.slot[:] = search_start.greedy(timetable, windows)
        link(run, chains, slots)
        least, _ = anneal(run, chains, slots, new_dice(1), 2_000, 20.0, 1.0, 0)
        assert timetable.barriers(chains.best // slots) == least
        for p in range(places):  # one after the other
            inside = np.flatnonzero(chains.slot == p)
            assert (timetable.start[inside][1:] >= timetable.end[inside][:-1]).all()
        kept = chains.peak.sum()
        assert link(run, chains, slots) == kept == timetable.barriers(chains.slot // slots)
        assert not chains.change.any()


def four_by_four(seed=3, count=30):
    trace = lengths_of("uniform", count, np.random.default_rng(seed))
    return first_come(Trace(prompt=trace.prompt, output=trace.output % 40 + 1), 4, 3)


def test_a_full_fleet_is_proved_and_checked():
    timetable = four_by_four()
    result = optimum(timetable, 600)
    assert result.is_proved
    assert result.lower > step_bounds(timetable).sum()
    report = check_optimum(timetable, result)
    assert report.bound_established
    assert "no placement with barriers below" in str(report)


def test_false_claims_are_refused():
    """A bound too high, a window dropped, windows that overlap, another timetable, a placement that is not there."""
    timetable = four_by_four(4, 20)
    result = optimum(timetable, 600)
    steps = timetable.num_steps
    first, second = (clip(timetable, a, b) for a, b in ((0, steps // 2), (steps // 2, steps)))
    halves = [optimum(part, 600).lower for part in (first, second)]
    windows = (WindowBound(0, steps // 2, halves[0], "covers"), WindowBound(steps // 2, steps, halves[1], "covers"))
    digest = result.certificate.timetable

    def claim(windows, **more):
        lower = sum(window.bound for window in windows)
        fields = {
            "lower": lower,
            "lower_imbalance": 4 * lower - int(timetable.totals().sum()),
            "stop": "proved" if lower == result.upper else "time",
            "certificate": BoundCertificate(digest, tuple(windows)),
        }
        return dataclasses.replace(result, **(fields | more))

    assert check_optimum(timetable, claim(windows)).bound_established
    higher = dataclasses.replace(windows[1], bound=windows[1].bound + 1)
    with pytest.raises(CertificateError, match="has a placement with barriers below"):
        check_optimum(timetable, claim([windows[0], higher]))
    by_steps = dataclasses.replace(windows[1], kind="steps", bound=int(step_bounds(second).sum()) + 1)
    with pytest.raises(CertificateError, match="from its steps"):
        check_optimum(timetable, claim([windows[0], by_steps]))
    with pytest.raises(CertificateError, match="add up to"):
        check_optimum(timetable, claim(windows, certificate=BoundCertificate(digest, windows[:1])))
    wider = dataclasses.replace(windows[0], last=steps // 2 + 1)
    with pytest.raises(CertificateError, match="overlaps"):
        check_optimum(timetable, claim([wider, windows[1]]))
    with pytest.raises(CertificateError, match="is not a part"):
        check_optimum(timetable, claim([windows[0], dataclasses.replace(windows[1], last=steps + 1)]))
    with pytest.raises(CertificateError, match="another timetable"):
        check_optimum(four_by_four(5, 20), result)
    with pytest.raises(CertificateError, match=r"but \d+ is claimed"):
        check_optimum(timetable, dataclasses.replace(result, upper=result.upper - 1))
    crowded = np.zeros_like(result.worker)
    with pytest.raises(CertificateError, match="slots"):
        check_optimum(timetable, dataclasses.replace(result, worker=crowded))
    assert check_optimum(timetable, claim(windows), most_ways=50).unverified


def test_certificates_survive_a_file():
    result = optimum(four_by_four(6, 12), 600)
    assert BoundCertificate.from_dict(result.certificate.to_dict()) == result.certificate
    with pytest.raises(CertificateError, match="a certificate of a run holds"):
        BoundCertificate.from_dict({"windows": []})


def test_what_cannot_be_asked():
    timetable = Timetable(2, 1, [0, 0], [1, 2], [3, 3])
    with pytest.raises(InputError, match="time_limit is 0"):
        optimum(timetable, 0)
    with pytest.raises(InputError, match="solver is 'gurobi'"):
        solve_program(timetable, "gurobi")
    with pytest.raises(InputError, match="without requests has no program"):
        solve_program(Timetable(2, 1, [], [], []), "highs")
    assert optimum(Timetable(2, 1, [], [], [])).is_proved


def test_an_interval_is_left_where_time_is_short():
    """The interval holds the optimum, whatever the time."""
    timetable = four_by_four(8, 26)
    best = optimum(timetable, 600).upper
    for limit in (1e-6, 0.01, 0.05):
        result = optimum(timetable, limit)
        assert result.lower <= best <= result.upper


@pytest.mark.parametrize("attempts", [((0.0, 1.0, 1.0),), ((4.0, 1.0, 1.0),), ((0.3, 0.4, 0.5), (1.0, 0.7, 1.0))])
def test_short_lists_and_open_requests_leave_true_bounds(attempts, monkeypatch):
    """A list that drops its dear half, requests that are left open, low targets: whatever is said holds."""
    rng = np.random.default_rng(21)
    proved = raised = 0
    for number in range(90):
        monkeypatch.setattr(search_cover, "ATTEMPTS", attempts)
        monkeypatch.setattr(search_cover, "MOST_SETS", int(rng.choice([4, 16, 1000])))
        timetable = small_run(KINDS[number % len(KINDS)], rng, 9)
        least = least_barriers(timetable)
        result = optimum(timetable, 600)
        assert result.lower <= least <= result.upper == timetable.barriers(result.worker)
        assert result.is_proved == (result.stop == "proved")
        proved += result.is_proved
        raised += result.lower > step_bounds(timetable).sum()
    assert proved > 50
    assert raised > 0


def test_open_requests_may_run_beside_a_set(monkeypatch):
    """A worker that holds few of the listed requests can take the open ones: the others need not bear them all."""
    timetable = Timetable(4, 3, [0] * 8, [5, 7, 10, 11, 3, 8, 0, 6], [5, 2, 6, 5, 6, 6, 6, 1])
    windows = cut(timetable)
    worker = search_start.greedy(timetable, windows) // 3
    assert timetable.barriers(worker) == 103
    monkeypatch.setattr(search_cover, "ATTEMPTS", ((4.0, 1.0, 1.0),))
    proof = search_cover.prove(timetable, windows, worker, 600.0)
    assert proof.lower <= least_barriers(timetable) == 94


def test_parts_of_a_run_add_up_to_a_bound(monkeypatch):
    """Where only short lists fit, parts of the run are proved by themselves, and the check accepts their sum."""
    monkeypatch.setattr(search_cover, "ATTEMPTS", ((0.0, 1.0, 1.0),))
    monkeypatch.setattr(search_cover, "MOST_SETS", 60)
    several = 0
    for seed in range(6):
        timetable = four_by_four(seed, 24)
        result = optimum(timetable, 600)
        report = check_optimum(timetable, result)
        assert report.bound_established
        several += len(result.certificate.windows) > 1
    assert several > 0
