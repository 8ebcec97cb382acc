"""All promises in random fault schedules: the monitor looks at every event."""

import dataclasses
from collections import Counter

import pytest
from prefill.protocol.schedules import UNTIL, check_outcome, draw

from lbopt.prefill.protocol import PLACES, SchedulerState


@pytest.mark.parametrize("part", range(4))
def test_200_schedules(part):
    for seed in range(50 * part, 50 * (part + 1)):
        check_outcome(draw(seed).run(UNTIL))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_2000_schedules(part):
    for seed in range(10_000 + 200 * part, 10_000 + 200 * (part + 1)):
        check_outcome(draw(seed).run(UNTIL))


def test_the_schedules_do_harm():
    """They would show nothing if nothing went wrong in them."""
    seen = Counter()
    for seed in range(60):
        world = draw(seed)
        outcome = world.run(UNTIL)
        seen["watchdog"] += outcome.state.faults > 0
        seen["refused"] += bool(outcome.refused)
        seen["requeued"] += bool(outcome.requeued)
        seen["work done twice"] += any(times > 1 for times in outcome.executions.values())
        seen["top-up too late"] += outcome.late_top_ups > 0
        seen["all gone"] += world.saw_no_instance
    assert min(seen[what] for what in ("watchdog", "refused", "requeued", "work done twice", "top-up too late")) >= 5
    assert seen["all gone"] >= 5


def test_a_seed_is_a_run():
    first, again = draw(7).run(UNTIL), draw(7).run(UNTIL)
    assert dataclasses.replace(first, state=again.state) == again
    assert first.state.instances == again.state.instances
    assert first.state.ledger == again.state.ledger


def test_a_step_changes_nothing_in_place():
    """Pure: the same state and event give the same answer, and the state is as it was."""
    world = draw(3)
    step = world.scheduler.step

    def twice(state: SchedulerState, event):
        measured, interval = state.pace.measured, state.pace.interval
        first, second = step(state, event), step(state, event)
        assert first[1] == second[1]
        assert _without_pace(first[0]) == _without_pace(second[0])
        assert (state.pace.measured, state.pace.interval) == (measured, interval)
        return first

    world.scheduler.step = twice
    check_outcome(world.run(UNTIL))


def test_tokens_by_place():
    outcome = draw(11).run(UNTIL)
    tokens = outcome.state.ledger.tokens()
    assert tuple(tokens) == PLACES
    assert tokens["queued"] == tokens["in flight"] == 0
    assert sum(tokens.values()) == sum(entry.tokens for entry in outcome.state.ledger.entries.values())


def _without_pace(state: SchedulerState):
    return dataclasses.replace(state, pace=None), state.pace.measured, state.pace.interval
