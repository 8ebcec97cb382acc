"""The table of states and events, row by row."""

import math

import pytest
from prefill.protocol.story import Story

from lbopt.prefill.protocol import Phase
from lbopt.prefill.protocol.messages import (
    ArmWatchdog,
    Deliver,
    EndForward,
    FirstToken,
    HealthCheck,
    IntervalTick,
    Poll,
    PollAnswer,
    PollTick,
    Refuse,
    Send,
    WakeAt,
    Watchdog,
)


def busy(**setting) -> Story:
    story = Story(**setting)
    story.hear(IntervalTick(0.0))
    story.arrive(0.0, tokens=30)
    return story


def suspect() -> Story:
    """Instance 0 is suspected, and its prompt went to 1, which is busy."""
    story = busy(count=2)
    story.hear(Watchdog(5.0, 0))
    assert story.sent == [Send(1, 1, 0, (0,))]
    return story


def test_ready_dispatch():
    story = busy()
    at = story.at()
    assert (at.phase, at.seq, at.in_flight, at.deadline, at.known_empty) == (Phase.BUSY, 1, 30, 5.0, False)
    assert story.actions == (Send(0, 1, 0, (0,)), ArmWatchdog(0, 5.0), WakeAt(1.0))


def test_ready_needs_the_interval():
    story = busy(count=2)
    story.arrive(0.4)
    assert not story.sent, "the interval is 0.5 s"
    story.hear(IntervalTick(0.5))
    assert story.sent == [Send(1, 1, 0, (1,))]


def test_busy_end_forward_of_its_seq():
    story = busy()
    story.hear(EndForward(2.0, 0, 1, 1.6, 12))
    at = story.at()
    assert (at.phase, at.in_flight, at.backlog) == (Phase.READY, 0, 12)
    assert story.state.pace.measured == (1.0, 1.0, 1.6)
    assert story.actions == (WakeAt(2.0),), "the interval counts from the last dispatch, and never ends before now"


def test_busy_end_forward_of_an_old_seq():
    story = busy()
    story.hear(Watchdog(5.0, 0))
    assert story.sent == [Send(0, 2, 1, (0,))], "degraded mode: nobody else lives"
    story.hear(EndForward(6.5, 0, 1, 6.0, 10))
    assert story.at().phase is Phase.BUSY
    assert story.at().in_flight == 30
    assert story.state.pace.measured == (1.0, 1.0, 6.0), "it may feed the window"
    story.hear(EndForward(6.6, 0, 1, 6.0, 10))
    assert story.state.pace.measured == (1.0, 1.0, 6.0), "once"


@pytest.mark.parametrize(("seq", "depth", "phase"), [(1, 0, Phase.READY), (0, 0, Phase.BUSY), (1, 2, Phase.BUSY)])
def test_busy_poll_answer(seq, depth, phase):
    story = busy()
    story.hear(PollAnswer(0.5, 0, seq, depth))
    assert story.at().phase is phase
    assert story.at().known_empty == (phase is Phase.READY)


def test_busy_watchdog():
    story = busy(count=2)
    story.hear(Watchdog(4.9, 0))
    assert story.at().phase is Phase.BUSY, "before the deadline it says nothing"
    assert story.actions == (ArmWatchdog(0, 5.0),), "and rings again"
    story.hear(Watchdog(5.0, 0))
    at = story.at()
    assert (at.phase, at.in_flight, at.backlog, story.state.faults) == (Phase.SUSPECT, 0, 0, 1)
    assert story.actions[:2] == (Poll(0), ArmWatchdog(0, 10.0)), "it is asked, now and later"
    assert story.sent == [Send(1, 1, 0, (0,))], "its prompt goes to the other"


def test_busy_watchdog_after_a_first_token():
    """The end of the pass was lost, no more."""
    story = busy(count=2)
    story.hear(FirstToken(1.0, 0, 1, 0), Watchdog(5.0, 0))
    assert (story.at().phase, story.at().acknowledged, story.state.faults) == (Phase.READY, 1, 1)


def test_busy_last_first_token():
    """The end of the pass is lost, but nothing can be left: no poll and no watchdog is waited for."""
    story = busy(count=2, last_token=True)
    story.hear(FirstToken(1.0, 0, 1, 0))
    at = story.at()
    assert (at.phase, at.acknowledged, at.known_empty, at.due) == (Phase.READY, 1, True, math.inf)
    assert story.state.faults == 0


def test_busy_first_token_but_not_the_last():
    story = busy(last_token=True)
    story.arrive(0.4)
    story.arrive(0.5)
    story.hear(IntervalTick(1.0), FirstToken(1.2, 0, 1, 0))
    assert story.sent == [Send(0, 2, 0, (1, 2))]
    story.hear(FirstToken(2.2, 0, 2, 1))
    assert story.at().phase is Phase.BUSY, "the other may be left on the device"
    story.hear(FirstToken(2.3, 0, 2, 2))
    assert story.at().phase is Phase.READY


def test_ready_watchdog():
    """Acknowledged, but no pass ends and no first token comes."""
    story = busy(count=2)
    story.hear(EndForward(2.0, 0, 1, 1.0, 12), Watchdog(5.0, 0))
    assert (story.at().phase, story.actions) == (Phase.READY, (ArmWatchdog(0, 7.0),))
    story.hear(Watchdog(7.0, 0))
    assert (story.at().phase, story.sent) == (Phase.SUSPECT, [Send(1, 1, 0, (0,))])


def test_answers_that_do_not_come():
    """Nothing is left on the device, and no first token came: it is queued again after the time of a watchdog."""
    story = busy(count=2)
    story.hear(EndForward(2.0, 0, 1, 1.0, 0), Watchdog(6.9, 0))
    assert not story.sent
    story.hear(Watchdog(7.0, 0))
    assert (story.state.counts.unanswered, story.state.counts.again, story.state.faults) == (1, 1, 0)
    assert [send.requests for send in story.sent] == [(0,)]


def test_a_newer_epoch():
    """The first one is only noted; what an older one says is void."""
    story = busy(count=2)
    story.hear(PollAnswer(0.5, 0, 1, 1, epoch=7))
    assert (story.at().epoch, story.at().phase) == (7, Phase.BUSY)
    story.hear(PollAnswer(1.0, 0, 0, 0, epoch=9))
    assert story.at().phase is Phase.READY
    assert story.sent == [Send(1, 1, 0, (0,))]
    story.hear(FirstToken(1.1, 0, 1, 0, epoch=7), EndForward(1.2, 0, 1, 1.0, 0, epoch=7))
    assert (story.state.counts.restarts, story.state.counts.stale) == (1, 2)
    story.arrive(2.0)
    assert story.sent == [Send(0, 2, 1, (1,), epoch=9)]


def test_a_gap():
    """Batch 2 came and 1 did not: the instance restarted in between, under the same epoch."""
    story = busy(count=2)
    story.hear(EndForward(1.0, 0, 1, 1.0, 30))
    story.arrive(1.1)
    story.hear(EndForward(1.9, 1, 1, 0.5, 10))
    story.arrive(2.0)
    assert story.sent == [Send(0, 2, 0, (2,))]
    story.hear(EndForward(3.0, 0, 2, 1.0, 5, missing=(1,)))
    assert (story.state.counts.gaps, [send.requests for send in story.sent]) == (1, [(0,)])


def test_a_lower_newest():
    """It was asked when it had acknowledged batch 1, and knows of none."""
    story = busy(count=2)
    story.hear(EndForward(1.0, 0, 1, 1.0, 30), PollTick(1.5))
    assert story.actions == (Poll(0, asked=1),)
    story.hear(PollAnswer(1.6, 0, 0, 0))
    assert not story.sent, "an answer to an earlier poll says nothing"
    story.hear(PollAnswer(1.7, 0, 0, 0, asked=1))
    assert [send.requests for send in story.sent] == [(0,)]


def test_suspect_interval_tick():
    story = suspect()
    story.arrive(5.6)
    assert not story.sent, "1 is busy, and may live"
    story.hear(Watchdog(10.0, 1))
    assert story.sent == [Send(0, 2, 1, (0, 1))], "degraded mode: on the interval alone"
    story.arrive(10.1)
    story.hear(IntervalTick(10.5))
    assert story.sent == [Send(1, 2, 1, (2,))], "0 is on trial, and does not count as living"
    story.hear(Watchdog(15.0, 0))
    assert [send.seq for send in story.sent] == [3]


@pytest.mark.parametrize("event", [EndForward(6.0, 0, 1, 5.5, 0), PollAnswer(6.0, 0, 1, 1), PollAnswer(6.0, 0, 0, 0)])
def test_suspect_hears_something(event):
    story = suspect()
    story.hear(event)
    assert story.at().phase is Phase.READY
    assert story.at().in_flight == 0
    assert story.at().known_empty == isinstance(event, EndForward), "an answer that does not know the batch is no proof"


def test_ready_hears_of_further_passes():
    """A chunked backlog: the engine goes on by itself, with the same seq; events may overtake one another."""
    story = busy()
    story.hear(EndForward(1.0, 0, 1, 1.0, 20), EndForward(3.0, 0, 1, 1.0, 0), EndForward(3.1, 0, 1, 1.0, 10))
    assert (story.at().backlog, story.at().known_empty) == (0, True)
    assert story.state.pace.measured == (1.0, 1.0, 1.0), "one pass a seq"


def test_health_check_fails():
    story = busy(count=2)
    story.arrive(0.1)
    story.hear(HealthCheck(0.2, 0, False))
    assert story.at(0).phase is Phase.REMOVED
    assert story.state.pace.interval == 1.0, "Algorithm 1: one instance is left"
    assert story.state.ledger.queue == (0, 1), "requeued, the oldest first"
    story.hear(IntervalTick(1.0))
    assert story.sent == [Send(1, 1, 0, (0, 1))]
    story.hear(HealthCheck(2.0, 0, True))
    assert story.at(0).phase is Phase.READY
    assert story.state.pace.interval == 0.5
    story.arrive(2.1)
    assert story.sent == [Send(0, 2, 1, (2,))], "the fence voids batch 1"


def test_removed_hears_nothing():
    story = busy()
    story.hear(HealthCheck(1.0, 0, False))
    removed = story.at()._replace(armed=math.inf)
    story.hear(EndForward(1.1, 0, 1, 1.0, 0), PollAnswer(1.2, 0, 1, 0), Watchdog(6.0, 0), HealthCheck(7.0, 0, False))
    assert story.at() == removed
    assert story.state.pace.measured == (1.0, 1.0)


def test_first_tokens():
    story = busy()
    story.hear(FirstToken(1.0, 0, 1, 0))
    assert story.actions == (Deliver(0),)
    story.hear(FirstToken(1.1, 0, 1, 0))
    assert story.actions == (), "a duplicate"
    story.arrive(2.0)
    story.hear(EndForward(2.0, 0, 1, 1.0, 0))
    story.hear(HealthCheck(2.1, 0, False), FirstToken(2.2, 0, 2, 1))
    assert story.actions == (), "its sender lost it: it is queued"
    assert story.state.ledger.queue == (1,)


def test_flow_control():
    """`patience` dispatches may go without a request; the next one that does refuses it."""
    story = Story(batch_tokens=10, patience=1)
    for _ in range(4):
        story.arrive(0.0, tokens=10)
    assert story.state.ledger.queue == (1, 2, 3)
    story.hear(EndForward(1.0, 0, 1, 1.0, 0))
    assert [send.requests for send in story.sent] == [(1,)]
    assert Refuse(2) not in story.actions, "left behind once"
    story.hear(EndForward(2.0, 0, 2, 1.0, 0))
    assert [send.requests for send in story.sent] == [(2,)]
    assert Refuse(3) in story.actions


def test_headroom():
    """A batch may overshoot by one request; a backlog takes its room, but one request always goes."""
    story = Story(batch_tokens=100)
    story.arrive(0.0)
    for tokens in (60, 60, 60):
        story.arrive(0.1, tokens=tokens)
    story.hear(EndForward(1.0, 0, 1, 1.0, 0))
    assert [send.requests for send in story.sent] == [(1, 2)]
    story.arrive(1.1)
    story.hear(EndForward(2.0, 0, 2, 1.0, 500))
    assert [send.requests for send in story.sent] == [(3,)]


def test_polls():
    story = busy(count=3)
    story.hear(HealthCheck(0.1, 2, False), PollTick(0.2))
    assert story.actions == (Poll(0),), "one is known to be empty, one is removed"


def test_the_ring_skips():
    story = busy(count=3)
    story.arrive(0.4)
    story.hear(HealthCheck(0.5, 2, False))
    story.arrive(1.0)
    story.hear(EndForward(1.1, 1, 1, 0.6, 0))
    assert story.sent == [Send(1, 2, 0, (2,))], "2 is removed and 0 is busy"
