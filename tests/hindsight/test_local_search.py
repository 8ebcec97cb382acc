"""Placements found in hindsight against exhaustion, and what they must be on large timetables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hindsight import exhaustion

import lbopt
from lbopt.exceptions import InputError
from lbopt.hindsight.local_search import (
    _placement,
    backwards,
    forwards,
    least_barriers,
    place_in_hindsight,
    slot_by_slot,
)
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.kernels.hindsight import local_search_moves as moves
from lbopt.model import Trace
from lbopt.studies.hindsight.study import timetable_of


def drawn(seed, workers, slots, count, longest=6):
    rng = np.random.default_rng(seed)
    trace = Trace(prompt=rng.integers(0, 12, count), output=rng.integers(1, longest, count))
    return first_come(trace, workers, slots)


@pytest.mark.more
def test_no_placement_found_is_below_the_best_and_good_ones_are_found():
    """Each is counted by plain loops, none is below the optimum, and most of small ones are optimal."""
    optimal = cases = 0
    for seed in range(12):
        for workers, slots in ((2, 2), (2, 3), (3, 2)):
            table = drawn(seed, workers, slots, 8)
            best = exhaustion.least(table)
            for effort in (1, 200):
                placed = place_in_hindsight(table, effort=effort, seed=seed)
                counted = exhaustion.loads(table, placed.worker)
                assert placed.barriers == sum(max(load) for load in counted) >= best
                assert placed.complete and not placed.interrupted
                assert min(placed.tried.values()) == placed.barriers == placed.tried[placed.found_by]
            optimal += placed.barriers == best
            cases += 1
    assert optimal >= 0.6 * cases


def as_read(loads, reading):
    """Loads of all steps in the order of the reading."""
    return np.array(loads)[::-1] if reading.growth < 0 else np.array(loads)


@pytest.mark.parametrize("direction", [forwards, backwards])
@pytest.mark.parametrize("slots", [5, 7, 14])
@pytest.mark.parametrize("seed", range(3))
def test_chains_count_what_they_save(seed, slots, direction):
    """The loads, the heaviest workers and the saved tokens of the kernel are those of a plain count; slots are kept."""
    table = drawn(seed, 3, slots, 60, longest=9)
    worker, reading = slot_by_slot(table), direction(table)
    before = table.barriers(worker)
    placement = _placement(reading, worker, least_barriers(table))
    saved = moves.improve(placement, 0, 4000, 20.0, np.uint64(seed))
    found = exhaustion.loads(table, reading.placement(placement.worker))
    assert found is not None
    counted = as_read(found, reading)
    assert saved == before - counted.max(axis=1).sum() > 0
    np.testing.assert_array_equal(placement.loads, counted)
    np.testing.assert_array_equal(placement.heaviest, np.sort(counted, axis=1)[:, ::-1])
    np.testing.assert_array_equal(placement.barrier, counted.max(axis=1))
    np.testing.assert_array_equal(placement.leader, placement.holder[:, 0])
    assert not placement.moved.any()
    for k, holder in enumerate(placement.holder):
        assert sorted(holder) == [0, 1, 2]
        assert [counted[k, g] for g in holder] == sorted(counted[k], reverse=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_timetable_reads_backwards(seed):
    """Requests come at their ends with their largest size, lose a token a step, and make the same loads."""
    table = drawn(seed, 3, 4, 40, longest=9)
    reading, worker = backwards(table), slot_by_slot(table)
    assert (np.diff(reading.start) >= 0).all()
    np.testing.assert_array_equal(reading.placement(reading.workers_read(worker)), worker)
    loads = np.zeros((table.num_steps, 3), dtype=int)
    for i, g in enumerate(reading.workers_read(worker)):
        for age in range(reading.output[i]):
            loads[reading.start[i] + age, g] += reading.prompt[i] - age
    np.testing.assert_array_equal(loads[::-1], exhaustion.loads(table, worker))


def test_the_drain_is_placed_better_backwards():
    """After the last start nothing can be mended any more, so what reads forwards comes to it too late."""
    run = lbopt.simulate("burstgpt-like", "fcfs", requests=1500, workers=8, slots=12)
    table, worker = timetable_of(run)
    placed = place_in_hindsight(table, {"fcfs": worker}, effort=2)
    least = {True: math.inf, False: math.inf}
    for name, barriers in placed.tried.items():
        if name.startswith("foresight") and "chains" not in name:
            way, imbalance = "backwards" in name, table.num_workers * barriers - table.totals().sum()
            least[way] = min(least[way], imbalance)
    assert least[True] < 0.8 * least[False]


def test_a_run_is_improved():
    """On the starts of a run with full slots; the same search again finds the same placement."""
    run = lbopt.simulate("burstgpt-like", "jsq", requests=600, workers=4, slots=6)
    table, worker = timetable_of(run)
    placed = place_in_hindsight(table, {"jsq": worker}, effort=20)
    assert placed.tried["jsq"] == table.barriers(worker) == int(run.steps["barrier_max"].sum())
    assert table.imbalance(placed.worker) < 0.8 * table.imbalance(worker)
    again = place_in_hindsight(table, {"jsq": worker}, effort=20)
    np.testing.assert_array_equal(again.worker, placed.worker)
    assert list(placed.tried)[:3] == ["jsq", "foresight 8 backwards", "foresight 16 backwards"]


def test_with_free_slots_chains_improve_foresight():
    run = lbopt.simulate("azure-like", "round-robin", requests=400, workers=4, slots=16, arrivals="trace", load=0.6)
    table, worker = timetable_of(run)
    placed = place_in_hindsight(table, {"round-robin": worker}, effort=10)
    name = placed.found_by
    assert name.startswith("foresight") and name.endswith(", chains")
    assert placed.barriers < placed.tried[name.removesuffix(", chains")] < placed.tried["round-robin"]


def test_a_search_without_time_has_what_is_known():
    table = drawn(3, 3, 4, 200)
    known = slot_by_slot(table)
    placed = place_in_hindsight(table, {"mine": known}, time_limit=1e-9)
    assert (placed.found_by, placed.complete) == ("mine", False)
    assert place_in_hindsight(table, {"mine": known}, effort=0).tried == {"mine": placed.barriers}


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    table = drawn(3, 3, 4, 200)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(moves, "improve", interrupted)
    placed = place_in_hindsight(table, effort=2)
    assert placed.interrupted and not placed.complete
    assert placed.found_by.startswith("foresight") and "chains" not in placed.found_by
    assert placed.barriers < table.barriers(slot_by_slot(table))


def test_one_worker_or_no_request_needs_no_search():
    single = drawn(1, 1, 3, 9)
    assert place_in_hindsight(single).barriers == single.totals().sum()
    empty = Timetable(2, 2, [], [], [])
    assert place_in_hindsight(empty).barriers == 0


def test_what_cannot_be_is_refused():
    table = drawn(1, 2, 2, 6)
    with pytest.raises(InputError, match="effort is -1"):
        place_in_hindsight(table, effort=-1)
    with pytest.raises(InputError, match="time_limit is 0"):
        place_in_hindsight(table, time_limit=0)
    with pytest.raises(InputError, match="worker 7 does not exist"):
        place_in_hindsight(table, {"mine": np.full(6, 7)})
