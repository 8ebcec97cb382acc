"""What a deployment adds: lost batches, restarts, early timers, outliers, dead instances, clocks that step."""

import math

import pytest
from prefill.protocol.story import Story

from lbopt.prefill.protocol import Phase
from lbopt.prefill.protocol.messages import (
    ArmWatchdog,
    Arrival,
    EndForward,
    FirstToken,
    IntervalTick,
    PollAnswer,
    WakeAt,
    Watchdog,
)


def sent_of(story: Story, *events) -> list[tuple[int, tuple[int, ...]]]:
    """Tell events one by one; returns (instance, requests) of all batches that left."""
    sent = []
    for event in events:
        story.hear(event)
        sent += [(send.instance, send.requests) for send in story.sent]
    return sent


def test_a_lost_batch_is_sent_again():
    """Batch 1 never arrives; the watchdog gives it up, and its prompt leaves again."""
    story = Story()
    story.arrive(0.0)
    assert sent_of(story, Watchdog(5.0, 0)) == [(0, (0,))]


def test_a_batch_given_up_goes_to_the_other_instance():
    story = Story(count=2)
    story.arrive(0.0)
    assert sent_of(story, Watchdog(5.0, 0)) == [(1, (0,))]


@pytest.mark.parametrize("early", [1e-9, 0.3])
def test_a_timer_that_fires_early_is_armed_again(early):
    story = Story(count=2)
    story.arrive(0.0)
    story.hear(Watchdog(5.0 - early, 0))
    assert ArmWatchdog(0, 5.0) in story.actions
    story = Story(count=2)
    story.arrive(0.0)
    story.arrive(0.1)
    story.hear(IntervalTick(0.5 - early))
    assert WakeAt(0.5) in story.actions
    story = Story(timer="tick")
    story.hear(IntervalTick(0.0), IntervalTick(1.0 - early))
    assert WakeAt(1.0) in story.actions


def test_an_outlier_moves_neither_interval_nor_watchdog():
    story = Story(count=3)
    for i, seconds in enumerate((0.9, 3600.0)):
        story.arrive(10.0 * i)
        (send,) = story.sent
        story.hear(FirstToken(10.0 * i + 1, send.instance, send.seq, i))
        story.hear(EndForward(10.0 * i + 1, send.instance, send.seq, seconds, 0))
    assert story.state.pace.interval <= 1 / 3
    story.arrive(20.0)
    (watchdog,) = (action for action in story.actions if isinstance(action, ArmWatchdog))
    assert watchdog.deadline <= 25.0


def test_a_suspect_gets_nothing_while_another_lives():
    """Instance 0 is silent, and 1 is busy: the prompt waits for 1."""
    story = Story(count=2)
    story.arrive(0.0)
    story.hear(Watchdog(5.0, 0))
    assert story.at(0).phase is Phase.SUSPECT
    assert story.at(1).phase is Phase.BUSY
    story.arrive(5.6)
    assert sent_of(story, IntervalTick(6.0), IntervalTick(7.0)) == []
    assert sent_of(story, EndForward(7.5, 1, 1, 1.0, 0)) == [(1, (1,))]


def test_the_ledger_forgets_who_is_done():
    story = Story()
    for request in range(3000):
        story.arrive(float(request))
        (send,) = story.sent
        story.hear(FirstToken(request + 0.5, 0, send.seq, request), EndForward(request + 0.5, 0, send.seq, 0.5, 0))
    assert len(story.state.ledger.entries) == 0


@pytest.mark.parametrize("step", [1e-6, 2.0, 3600.0])
def test_a_clock_that_steps_back_stops_nothing(step):
    """Time goes on from where it was: the watchdog of 5 s rings 5 s after the batch by a clock that stepped."""
    story = Story()
    story.hear(IntervalTick(4000.0))
    story.arrive(4000.0)
    story.hear(PollAnswer(4000.0 - step, 0, 0, 1))
    story.hear(Watchdog(4005.0 - step, 0))
    assert story.at().seq == 2, "given up and sent again"


def test_a_doubled_arrival_is_counted():
    story = Story()
    story.arrive(0.0)
    story.hear(Arrival(0.1, 0, 10))
    assert story.state.ledger.queue == ()
    assert not math.isnan(story.state.now)
