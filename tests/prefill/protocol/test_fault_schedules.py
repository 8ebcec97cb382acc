"""All promises in random fault schedules: the monitor looks at every event."""

from collections import Counter

import pytest
from prefill.protocol.histories import UNTIL as SHORT_UNTIL
from prefill.protocol.histories import draw_short
from prefill.protocol.schedules import UNTIL, check_outcome, draw, run_and_check

from lbopt.prefill.protocol import PLACES, SchedulerState
from lbopt.prefill.protocol.state import Counts


@pytest.mark.some(2)
@pytest.mark.parametrize("part", range(4))
def test_120_schedules(part):
    for seed in range(30 * part, 30 * (part + 1)):
        run_and_check(draw(seed))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_2000_schedules(part):
    for seed in range(10_000 + 200 * part, 10_000 + 200 * (part + 1)):
        run_and_check(draw(seed))


@pytest.mark.parametrize(
    "seed",
    [
        54003,  # the clock steps ahead after a timer was set: it rings late for the batch that is sent next
        44666,  # an outlier is on its way when the faults end, and the typical pass is long from then on
    ],
)
def test_short_histories_that_failed_once(seed):
    world = draw_short(seed)
    check_outcome(world.run(SHORT_UNTIL), len(world.plan.lapses))


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
        for name, count in outcome.state.counts._asdict().items():
            seen[name] += count > 0
    assert min(seen[what] for what in ("watchdog", "refused", "requeued", "work done twice", "top-up too late")) >= 5
    assert seen["all gone"] >= 5
    assert min(seen[name] for name in Counts._fields) >= 1, seen


def test_a_seed_is_a_run():
    assert draw(7).run(UNTIL) == draw(7).run(UNTIL)


def test_a_step_changes_nothing_in_place():
    """Pure: the same state and event give the same answer, and the state is as it was."""
    world = draw(3)
    step = world.scheduler.step

    def twice(state: SchedulerState, event):
        was = repr(state)
        first, second = step(state, event), step(state, event)
        assert first == second
        assert repr(state) == was
        return first

    world.scheduler.step = twice
    run_and_check(world)


def test_tokens_by_place():
    outcome = draw(11).run(UNTIL)
    tokens = outcome.state.ledger.tokens()
    assert tuple(tokens) == PLACES
    assert tokens["queued"] == tokens["in flight"] == 0
    assert tokens["done"] + tokens["refused"] == sum(draw(11).tokens)
