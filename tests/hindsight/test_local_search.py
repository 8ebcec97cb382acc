"""Placements found in hindsight against exhaustion, and what they must be on large timetables."""

from __future__ import annotations

import numpy as np
import pytest
from hindsight import exhaustion

import lbopt
from lbopt.exceptions import InputError
from lbopt.hindsight.local_search import place_in_hindsight, slot_by_slot
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.kernels.hindsight import local_search_moves as moves
from lbopt.model import Trace
from lbopt.studies.hindsight.study import timetable_of


def drawn(seed, workers, slots, count, longest=6):
    rng = np.random.default_rng(seed)
    trace = Trace(prompt=rng.integers(0, 12, count), output=rng.integers(1, longest, count))
    return first_come(trace, workers, slots)


def test_no_placement_found_is_below_the_best_and_good_ones_are_found():
    """Each is counted by plain loops, none is below the optimum, and most of small ones are optimal."""
    optimal = cases = 0
    for seed in range(12):
        for workers, slots in ((2, 2), (2, 3), (3, 2)):
            table = drawn(seed, workers, slots, 8)
            best = exhaustion.least(table)
            for width in (1, 4):
                placed = place_in_hindsight(table, width=width, seed=seed)
                counted = exhaustion.loads(table, placed.worker)
                assert placed.barriers == sum(max(load) for load in counted) >= best
                assert placed.complete and not placed.interrupted
                assert min(placed.tried.values()) == placed.barriers == placed.tried[placed.found_by]
            optimal += placed.barriers == best
            cases += 1
    assert optimal >= 0.6 * cases


@pytest.mark.parametrize("seed", range(4))
def test_moves_count_what_they_save(seed):
    """The loads, the heaviest workers and the saved tokens of the kernel are those of a plain count; slots are kept."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(0, 20, 40))
    table = Timetable(3, 9, start, rng.integers(0, 30, 40), rng.integers(1, 9, 40))
    worker = slot_by_slot(table)
    before = table.barriers(worker)
    held = np.array([[0] * 3 for _ in range(table.num_steps)])
    for row, g in enumerate(worker):
        held[table.start[row] : table.end[row], g] += 1
    placement = moves.Placement(
        start=table.start,
        prompt=table.prompt,
        output=table.output,
        slots=9,
        worker=worker,
        loads=table.loads(worker),
        held=held,
        heaviest=np.zeros((table.num_steps, moves.KEPT), dtype=np.int64),
        holder=np.zeros((table.num_steps, moves.KEPT), dtype=np.int64),
    )
    moves.sort_steps(placement, 0, table.num_steps)
    saved = moves.improve(placement, 40, 0, 2000, np.uint64(seed))
    counted = np.array(exhaustion.loads(table, worker))
    assert saved == before - counted.max(axis=1).sum() > 0
    np.testing.assert_array_equal(placement.loads, counted)
    np.testing.assert_array_equal(placement.heaviest, np.sort(counted, axis=1)[:, ::-1])
    for k, holder in enumerate(placement.holder):
        assert sorted(holder) == [0, 1, 2]
        assert [counted[k, g] for g in holder] == sorted(counted[k], reverse=True)


def test_a_run_is_improved_and_a_wider_beam_is_no_worse():
    """On the starts of a run with full slots; the same search again finds the same placement."""
    run = lbopt.simulate("burstgpt-like", "jsq", requests=600, workers=4, slots=6)
    table, worker = timetable_of(run)
    placed = place_in_hindsight(table, {"jsq": worker}, width=4)
    assert placed.tried["jsq"] == table.barriers(worker) == int(run.steps["barrier_max"].sum())
    assert table.imbalance(placed.worker) < 0.8 * table.imbalance(worker)
    again = place_in_hindsight(table, {"jsq": worker}, width=4)
    np.testing.assert_array_equal(again.worker, placed.worker)
    assert list(placed.tried)[:4] == ["jsq", "beam 1", "beam 2", "beam 4"]


def test_with_free_slots_moves_improve_a_beam():
    run = lbopt.simulate("azure-like", "round-robin", requests=400, workers=4, slots=16, arrivals="trace", load=0.6)
    table, worker = timetable_of(run)
    placed = place_in_hindsight(table, {"round-robin": worker}, width=1)
    assert placed.found_by == "beam 1, moves"
    assert placed.barriers < placed.tried["beam 1"] < placed.tried["round-robin"]


def test_a_search_without_time_has_what_is_known():
    table = drawn(3, 3, 4, 200)
    known = slot_by_slot(table)
    placed = place_in_hindsight(table, {"mine": known}, time_limit=1e-9)
    assert (placed.found_by, placed.complete) == ("mine", False)
    assert place_in_hindsight(table, {"mine": known}, width=0).tried == {"mine": placed.barriers}


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    table = drawn(3, 3, 4, 200)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(moves, "improve", interrupted)
    placed = place_in_hindsight(table, width=2)
    assert placed.interrupted and not placed.complete
    assert placed.found_by in ("beam 1", "beam 2")
    assert placed.barriers < table.barriers(slot_by_slot(table))


def test_one_worker_or_no_request_needs_no_search():
    single = drawn(1, 1, 3, 9)
    assert place_in_hindsight(single).barriers == single.totals().sum()
    empty = Timetable(2, 2, [], [], [])
    assert place_in_hindsight(empty).barriers == 0


def test_what_cannot_be_is_refused():
    table = drawn(1, 2, 2, 6)
    with pytest.raises(InputError, match="width is -1"):
        place_in_hindsight(table, width=-1)
    with pytest.raises(InputError, match="time_limit is 0"):
        place_in_hindsight(table, time_limit=0)
    with pytest.raises(InputError, match="worker 7 does not exist"):
        place_in_hindsight(table, {"mine": np.full(6, 7)})
