"""The ledger is exact after every event, whatever the order of events."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving.ledger import Course, run_course

from lbopt.serving.state import Ending, FleetState, Stage


def test_random_courses_of_events():
    """Four hundred courses of sixty events, recounted after each; every kind of ending and late events occur."""
    endings, late, recomputed = Counter(), 0, 0
    for seed in range(400):
        fleet = run_course(seed).fleet
        endings += fleet.endings
        late += fleet.late_events
        recomputed += fleet.recomputations
    assert set(endings) == set(Ending)
    assert late > 1000
    assert recomputed > 80


@pytest.mark.slow
def test_a_hundred_thousand_courses():
    """The same, 10^5 courses."""
    for seed in range(1000, 101_000):
        run_course(seed, events=40)


@given(st.integers(0, 2**32), st.integers(1, 120))
@settings(max_examples=40)
def test_courses_that_hypothesis_draws(seed, events):
    """Hypothesis chooses courses and shrinks one that fails."""
    run_course(seed, events)


def test_the_recount_notices_a_planted_leak():
    """A load that is off by one token, and a block that is not given back, are found."""
    for spoil in (lambda w, p: setattr(w, "load", w.load + 1), lambda w, p: setattr(p, "blocks", p.blocks + 1)):
        course = Course(1)
        for _ in range(30):
            course.step()
        course.recount()
        worker = next(w for g in course.fleet.groups.values() for w in g.workers)
        spoil(worker, next(iter(course.fleet.prefillers.values())))
        with pytest.raises(AssertionError):
            course.recount()


def fleet_of(slots=2, workers=2):
    fleet = FleetState()
    fleet.add_group("g", "m")
    return fleet, [fleet.worker_up("g", f"w{g}", slots) for g in range(workers)]


def start(fleet, worker, prompt=10):
    tracker = fleet.arrived("m", prompt, 0.0)
    assert fleet.prefilled(tracker, 0.0)
    assert fleet.dispatched(tracker, worker, 0.0)
    return tracker


def test_a_worker_that_goes_down_returns_what_it_had_not_begun():
    """Requests without a chunk go back to their old places, in order; those with one have failed."""
    fleet, (w, other) = fleet_of(slots=2)
    begun, fresh, queued = (start(fleet, w) for _ in range(3))
    late = fleet.arrived("m", 5, 1.0)
    fleet.prefilled(late, 1.0)
    fleet.tokens(begun, 3, 1)
    returned, failed = fleet.down(w, 2.0)
    assert (returned, failed) == ([fresh, queued], [begun])
    assert list(fleet.pools["m"]) == [fresh, queued, late]
    assert begun.ending is Ending.FAILED
    assert not fleet.dispatched(fresh, w, 3.0), "it is down"
    assert fleet.dispatched(fresh, other, 3.0)
    assert not fleet.tokens(fresh, 1, attempt=1), "a token of the first attempt is late"
    assert fleet.tokens(fresh, 1, attempt=2)
    assert other.load == 11


def test_recomputation_lets_tokens_join_the_prompt():
    """The pre-empted request comes back larger, at the end of the pool, and its slot is free."""
    fleet, (w, _) = fleet_of(slots=1)
    tracker = start(fleet, w, prompt=10)
    waiting = fleet.arrived("m", 1, 0.0)
    fleet.prefilled(waiting, 0.0)
    fleet.tokens(tracker, 4, 1)
    assert fleet.recomputed(tracker, 1.0, 1)
    assert (tracker.prompt, tracker.generated, tracker.produced) == (14, 0, 4)
    assert list(fleet.pools["m"]) == [waiting, tracker]
    assert (w.load, w.free_slots) == (0, 1)


def test_a_chunk_of_a_queued_request_seats_it():
    """An engine may start its queue in another order than the router thought."""
    fleet, (w, _) = fleet_of(slots=1)
    first, second = start(fleet, w, 10), start(fleet, w, 20)
    assert (second.stage, w.queued_tokens) == (Stage.QUEUED, 20)
    assert fleet.first_chunk(second, 1.0, 1)
    assert (w.load, w.queued_tokens, w.free_slots) == (30, 0, 0)
    assert fleet.finished(first, 2.0, 1)
    assert w.load == 20


def test_a_draining_worker_leaves_when_it_is_empty():
    """It takes part in the steps until then."""
    fleet, (w, _) = fleet_of()
    tracker = start(fleet, w)
    fleet.draining(w, leave=True)
    group = fleet.groups["g"]
    assert w in group.at_barrier
    assert w not in group.open_workers
    assert w.free_slots == 0
    fleet.finished(tracker, 1.0, 1)
    assert w not in group.workers


def test_the_step_follows_the_tokens():
    """The group's step is that of the request that is furthest."""
    fleet, (w, other) = fleet_of()
    one = start(fleet, w)
    fleet.tokens(one, 5, 1)
    two = start(fleet, other)
    assert two.started_step == 5
    fleet.tokens(two, 1, 1)
    assert fleet.groups["g"].step == 6
    fleet.tokens(one, 1, 1)
    assert fleet.groups["g"].step == 6
