"""The table of states and events, row by row."""

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
    story = busy()
    story.hear(Watchdog(5.0, 0))
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
    assert story.state.pace.measured == (1.6,)
    assert story.actions == (WakeAt(2.0),), "the interval counts from the last dispatch, and never ends before now"


def test_busy_end_forward_of_an_old_seq():
    story = busy()
    story.hear(Watchdog(5.0, 0))
    story.arrive(6.0)
    assert story.sent == [Send(0, 2, 0, (1,))]
    story.hear(EndForward(6.5, 0, 1, 6.0, 10))
    assert story.at().phase is Phase.BUSY
    assert story.at().in_flight == 10
    assert story.state.pace.measured == (6.0,), "it may feed the window"
    story.hear(EndForward(6.6, 0, 1, 6.0, 10))
    assert story.state.pace.measured == (6.0,), "once"


@pytest.mark.parametrize(("seq", "depth", "phase"), [(1, 0, Phase.READY), (0, 0, Phase.BUSY), (1, 2, Phase.BUSY)])
def test_busy_poll_answer(seq, depth, phase):
    story = busy()
    story.hear(PollAnswer(0.5, 0, seq, depth))
    assert story.at().phase is phase
    assert story.at().known_empty == (phase is Phase.READY)


def test_busy_watchdog():
    story = busy()
    story.hear(Watchdog(4.9, 0))
    assert story.at().phase is Phase.BUSY, "before the deadline it says nothing"
    story.hear(Watchdog(5.0, 0))
    at = story.at()
    assert (at.phase, at.in_flight, at.backlog, story.state.faults) == (Phase.SUSPECT, 0, 0, 1)
    assert story.state.ledger.tokens()["in flight"] == 30, "the ledger is not the counters'"


def test_suspect_interval_tick():
    story = suspect()
    story.hear(IntervalTick(5.5))
    assert not story.sent, "nobody waits"
    story.arrive(5.6)
    assert story.sent == [Send(0, 2, 0, (1,))], "degraded mode: on the interval alone"
    story.hear(Watchdog(10.6, 0))
    story.arrive(10.7)
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
    assert story.state.pace.measured == (1.0,), "one pass a seq"


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
    removed = story.at()
    story.hear(EndForward(1.1, 0, 1, 1.0, 0), PollAnswer(1.2, 0, 1, 0), Watchdog(6.0, 0), HealthCheck(7.0, 0, False))
    assert story.at() == removed
    assert story.state.pace.measured == ()


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


def test_a_suspect_is_served_only_where_nobody_is_ready():
    story = busy(count=2)
    story.hear(Watchdog(5.0, 0))
    for time in (5.0, 6.0, 7.0):
        story.arrive(time)
        if story.sent:
            story.hear(EndForward(time + 0.9, story.sent[0].instance, story.sent[0].seq, 1.0, 0))
            assert story.at(0).phase is Phase.SUSPECT
    story.arrive(8.0)
    story.arrive(8.6)
    assert [send.instance for send in story.sent] == [0], "1 is busy"
