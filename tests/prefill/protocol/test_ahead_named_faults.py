"""What goes wrong with a batch that is sent ahead of the end of a pass, one by one.

A pass is predicted to take 1 s, a message 0.1 s, and a chunk is 100 tokens. Batch 1 leaves at 0 and is predicted to be
computed from 0.1 to 1.1 s; batch 2 leaves at 1 s, to be there when that ends.
"""

import math

import pytest
from prefill.protocol.explore import explore
from prefill.protocol.histories import UNTIL, draw_short
from prefill.protocol.schedules import check_outcome
from prefill.protocol.story import Story
from prefill.protocol.unit_histories import run_and_check

from lbopt.exceptions import InputError
from lbopt.prefill.protocol import Phase, ProtocolSetting
from lbopt.prefill.protocol.messages import (
    EndForward,
    FirstToken,
    HealthCheck,
    IntervalTick,
    PollAnswer,
    WakeAt,
    Watchdog,
)


def told(tokens=60, **setting):
    """One instance computes batch 1, and a prompt of 30 tokens waits since 0.5 s."""
    story = Story(latency=0.1, batch_tokens=100, dispatch="ahead", **setting)
    story.arrive(0.0, tokens)
    assert [send.seq for send in story.sent] == [1]
    story.arrive(0.5, 30)
    assert not story.sent
    return story


def wakes(story):
    return [action.time for action in story.actions if isinstance(action, WakeAt)]


def sent_ahead(**setting):
    story = told(**setting)
    (wake,) = wakes(story)
    assert wake == pytest.approx(1.0)
    story.hear(IntervalTick(wake))
    assert [send.seq for send in story.sent] == [2]
    assert story.at().phase is Phase.BUSY
    return story


def test_no_fault():
    """It is in the pass that begins at 1.1 s, as is told at 1.2 s."""
    story = sent_ahead()
    story.hear(FirstToken(1.2, 0, 1, 0), EndForward(1.2, 0, 1, 1.0, 30, 1, 2, (), (30,), 2, 1))
    (view,) = story.state.outlook.views
    assert (view.began, view.ends, view.running) == (pytest.approx(1.1), pytest.approx(2.1), (30,))
    story.hear(FirstToken(2.2, 0, 2, 1), EndForward(2.2, 0, 2, 1.0, 0, 1, 0, (), (0,), 2, 2))
    assert (story.at().phase, story.state.faults, story.at().batches) == (Phase.READY, 0, ())


def test_a_pass_that_ends_half_a_pass_early():
    """Who was to be sent at 1 s is sent when it is heard."""
    story = told()
    story.hear(FirstToken(0.7, 0, 1, 0), EndForward(0.7, 0, 1, 0.5, 0, 1, 0, (), (0,), 1, 1))
    assert [send.requests for send in story.sent] == [(1,)]


def test_a_pass_that_ends_half_a_pass_late():
    """The batch waits on the device, nobody else is sent before the end is heard, and there is no alarm."""
    story = sent_ahead()
    story.arrive(1.2, 90)
    for time in (1.3, 1.6):
        story.hear(IntervalTick(time))
        assert not story.sent
    story.hear(FirstToken(1.7, 0, 1, 0), EndForward(1.7, 0, 1, 1.5, 30, 1, 2, (), (30,), 2, 1))
    assert story.state.outlook.views[0].ends == pytest.approx(1.6 + 1.5), "one pass of 1.5 s is all that was seen"
    (wake,) = wakes(story)
    story.hear(IntervalTick(wake))
    assert [send.requests for send in story.sent] == [(2,)]
    assert 1.7 < wake < 3.0
    assert story.state.faults == 0


def test_an_end_that_is_lost_is_told_by_a_first_token():
    story = sent_ahead()
    story.hear(FirstToken(1.2, 0, 1, 0))
    assert story.state.outlook.views[0].told == pytest.approx(1.1)
    story.arrive(1.3, 90)
    (view,) = story.state.outlook.views
    assert (view.began, view.running) == (pytest.approx(1.1), (30,))
    (wake,) = wakes(story)
    assert wake == pytest.approx(2.0, abs=0.01), "for the end of the pass that was never heard to begin"
    story.hear(IntervalTick(wake))
    assert [send.seq for send in story.sent] == [3]
    story.hear(EndForward(1.2 + 1.2, 0, 2, 1.2, 90, 1, 3, (), (90,), 3, 2))
    assert story.at().phase is Phase.BUSY


def test_an_end_that_is_lost_and_told_by_nobody_costs_a_pass():
    """The prompt needs two passes; the end of the first is lost, that of the second sets all right."""
    story = told(150)
    story.hear(IntervalTick(1.05))
    story.hear(FirstToken(2.2, 0, 1, 0), EndForward(2.2, 0, 1, 1.0, 0, 1, 0, (), (0,), 1, 2))
    sent = [send.requests for send in story.sent] or story.state.ledger.entries[1].holder
    assert sent
    assert story.state.faults == 0


def test_a_batch_that_comes_after_the_pass_began_keeps_its_place():
    """Pass 1 of a long prompt ends early, and pass 2 begins without batch 2, which is part of the load of pass 3."""
    story = told(150)
    (wake,) = wakes(story)
    story.hear(IntervalTick(wake))
    assert [send.seq for send in story.sent] == [2]
    story.hear(EndForward(wake + 0.02, 0, 1, wake - 0.18, 50, 1, 1, (), (50,), 1, 1))
    (view,) = story.state.outlook.views
    assert (view.left, view.running, view.load, view.room) == ((50,), (50,), (30,), 70)
    sent = []
    for _ in range(3):
        story.arrive(wake + 0.1, 60)
        sent += story.sent
    assert [send.requests for send in sent] == [(2, 3)], "70 tokens of headroom, and what goes beyond"
    assert story.state.due == math.inf, "nobody looks again: the pass is full"


def test_a_restart_between_prediction_and_arrival():
    """Both batches are queued again at once, and leave for the new epoch."""
    story = told()
    story.hear(PollAnswer(0.6, 0, 1, 1, 1))
    (wake,) = wakes(story) or [1.0]
    story.hear(IntervalTick(max(wake, 1.0)))
    assert story.at().seq == 2
    story.hear(PollAnswer(1.05, 0, 0, 0, 2))
    assert story.state.counts.restarts == 1
    sent = list(story.sent)
    while not sent:
        (wake,) = wakes(story)
        story.hear(IntervalTick(wake))
        sent += story.sent
    assert [(send.requests, send.epoch) for send in sent] == [((0, 1), 2)]
    assert wake < 2.2


def test_a_lost_batch_is_named_by_the_next_one_before_the_watchdog():
    """Batch 1 never comes. Its end is predicted, batch 2 is sent ahead of it, and the instance says what it misses."""
    story = sent_ahead()
    story.hear(EndForward(2.2, 0, 2, 1.0, 0, 1, 0, (1,), (0,), 2, 1))
    assert story.state.counts.gaps == 1
    assert story.at().phase is Phase.BUSY, "request 0 is on its way again"


def test_whoever_stays_silent_is_given_up_with_all_its_batches():
    story = sent_ahead()
    deadline = story.at().deadline
    assert deadline == pytest.approx(5.0), "the instance is watched since batch 1 left"
    story.hear(Watchdog(deadline, 0))
    assert story.at().phase is Phase.BUSY and story.at().on_trial, "nobody else lives"
    assert [send.requests for send in story.sent] == [(0, 1)]


def test_a_suspect_gets_nothing_while_another_lives():
    story = Story(count=2, latency=0.1, batch_tokens=100, dispatch="ahead")
    story.arrive(0.0, 60)
    story.hear(Watchdog(5.0, 0))
    assert story.at().phase is Phase.SUSPECT
    assert [send.instance for send in story.sent] == [1], "what it had goes to the other"
    story.arrive(5.1, 100)
    while story.state.ledger.waiting:
        (wake,) = wakes(story)
        story.hear(IntervalTick(wake))
    assert story.state.degraded == 0


def test_no_instance_and_back():
    story = told()
    story.hear(HealthCheck(0.6, 0, False))
    assert story.state.ledger.queue == (0, 1)
    story.hear(HealthCheck(9.0, 0, True))
    assert [send.requests for send in story.sent] == [(0, 1)]


def test_short_histories():
    for seed in range(60):
        world = draw_short(seed, dispatch="ahead")
        check_outcome(world.run(UNTIL), len(world.plan.lapses))


def test_histories_with_units():
    for seed in range(30):
        run_and_check(seed, "ahead")


@pytest.mark.some(1)
@pytest.mark.parametrize("batch_tokens", [None, 100])
def test_all_interleavings_to_a_depth(batch_tokens):
    count, explorer = explore(5, 1, dispatch="ahead", batch_tokens=batch_tokens)
    assert sum(count.values()) > 300
    assert explorer.closest < 1


@pytest.mark.slow
def test_deeper_interleavings():
    count, _ = explore(6, 2, dispatch="ahead", batch_tokens=100, polls=True)
    assert sum(count.values()) > 20_000


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dispatch": "soon"}, "dispatch"),
        ({"margin": -1.0}, "margin is -1.0; expected 0 to 100"),
        ({"spacing": float("nan")}, "spacing is nan; expected 0 to 100"),
        ({"requests_per_pass": 3}, "expected no requests_per_pass"),
    ],
)
def test_what_a_setting_refuses(changes, says):
    with pytest.raises(InputError, match=says):
        ProtocolSetting(2, allocation="pbaa", **{"dispatch": "ahead", **changes})
