"""Optima of small runs against trying everything, and what the search for bad ones does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from naive import small_runs as naive

from lbopt.exceptions import InputError
from lbopt.hindsight.timetable import first_come
from tools.library.runs import exhaustion as kernels
from tools.library.runs.climb import Bad, Room, changed, climb, drawn, shrunk
from tools.library.runs.small_run import SmallRun, least_cost, least_placement, num_steps, timetable_of


def random_run(rng, most=5):
    count = int(rng.integers(1, most + 1))
    fleet = (int(rng.integers(2, 4)), int(rng.integers(1, 3)))
    return SmallRun(*fleet, tuple(rng.integers(0, 6, count).tolist()), tuple(rng.integers(1, 4, count).tolist()))


@pytest.mark.parametrize("seed", range(15))
def test_the_least_cost_is_that_of_trying_everything(seed):
    """With and without a fixed part; the timetable that comes with it costs as much, on slots that exist."""
    rng = np.random.default_rng(seed)
    run, fixed = random_run(rng), int(rng.integers(0, 2) * rng.integers(1, 9))
    least = least_cost(run, fixed)
    assert least.proved
    assert least.cost == naive.least_cost(run.prompt, run.output, run.num_workers, run.slots_per_worker, fixed)
    order = np.argsort(least.start, kind="stable")
    timetable = timetable_of(run, least.start)
    assert timetable.barriers(least.worker[order]) + fixed * num_steps(run, least.start) == least.cost
    assert timetable.running().min() > 0


@pytest.mark.parametrize("seed", range(15))
def test_the_least_placement_is_that_of_trying_everything(seed):
    rng = np.random.default_rng(seed)
    run = random_run(rng, 7)
    timetable = first_come(run.trace, run.num_workers, run.slots_per_worker)
    least = least_placement(run, timetable.start)
    start, fleet = timetable.start.tolist(), (run.num_workers, run.slots_per_worker)
    assert least.cost == naive.least_placed(start, run.prompt, run.output, *fleet)
    assert timetable.barriers(least.worker) == least.cost
    assert least_cost(run).cost <= least.cost


def test_idle_slots_can_pay():
    """Two long requests beside each other, after the short one: 3 + 45. First come, first served: 45, then 8 and 9."""
    run = SmallRun(2, 1, (1, 1, 1), (2, 9, 9))
    assert least_placement(run, first_come(run.trace, 2, 1).start).cost == 45 + 8 + 9
    assert least_cost(run).cost == 3 + 45


def test_equal_requests_and_names_of_workers_are_one_state():
    """Six equal requests on three workers are found with few states."""
    prompt, output = np.full(6, 3), np.full(6, 2)
    cost, proved, _ = kernels.least_any(prompt, output, 3, 2, 0, 2**62, 400)
    assert proved
    assert cost == 6 + 8


def test_a_known_cost_and_too_little_effort():
    run = SmallRun(2, 2, (9, 1, 9, 1), (3, 3, 3, 3))
    best = least_cost(run).cost
    known = least_cost(run, known=best)
    assert (known.cost, known.proved, known.start) == (best, True, None)
    assert not least_cost(run, known=best + 1, effort=1).proved
    with pytest.raises(InputError, match="within an effort of 1 states; give more"):
        least_cost(run, effort=1)


def judge_by_first_come(run):
    """A rule that puts everything on worker 0 while it has slots; compared with the best workers at its starts."""
    timetable = first_come(run.trace, run.num_workers, run.slots_per_worker)
    worker, ends = [], []
    for start, end in zip(timetable.start, timetable.end, strict=True):
        held = [sum(g == w and e > start for w, e in zip(worker, ends, strict=True)) for g in range(run.num_workers)]
        worker.append(next(g for g, count in enumerate(held) if count < run.slots_per_worker))
        ends.append(int(end))
    return Bad(run, timetable.barriers(np.array(worker)), least_placement(run, timetable.start).cost)


def test_a_climb_finds_what_is_worst_and_shrinking_keeps_it():
    """Two long requests on one worker of two: nearly twice, with nothing left to leave out."""
    room = Room(2, 2, most_requests=6, largest_prompt=9, longest_output=4)
    found = climb(judge_by_first_come, room, np.random.default_rng(1), 300)
    small = shrunk(judge_by_first_come, found)
    assert small.ratio == Fraction(2) >= found.ratio
    assert len(small.run.prompt) <= len(found.run.prompt)
    assert (small.run.prompt, small.run.output) == ((1, 1), (1, 1))
    assert climb(judge_by_first_come, room, np.random.default_rng(1), 300) == found


def test_a_climb_begins_where_it_is_told():
    worst = SmallRun(2, 2, (1, 1), (1, 1))
    harmless = SmallRun(2, 2, (1,), (1,))
    found = climb(judge_by_first_come, Room(2, 2), np.random.default_rng(0), 1, [harmless, worst])
    assert found.run == worst


def test_changes_stay_in_the_room():
    rng = np.random.default_rng(3)
    room = Room(3, 2, most_requests=7, largest_prompt=5, longest_output=3)
    run = drawn(room, rng)
    seen = set()
    for _ in range(500):
        run = changed(run, room, rng)
        assert 1 <= len(run.prompt) <= 7
        assert set(run.prompt) <= set(range(1, 6))
        assert set(run.output) <= {1, 2, 3}
        seen.add(len(run.prompt))
    assert seen == set(range(1, 8))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((2, 2, (1,) * 15, (1,) * 15), "15 prompts and 15 outputs"),
        ((2, 2, (1, 2), (1,)), "2 prompts and 1 outputs"),
        ((5, 2, (1,), (1,)), "5 x 2 slots"),
        ((2, 2, (1,), (63,)), r"outputs \[63\]"),
        ((2, 2, (-1,), (3,)), r"prompts \[-1\]"),
    ],
)
def test_what_is_no_small_run_is_refused(arguments, says):
    with pytest.raises(InputError, match=says):
        SmallRun(*arguments)
