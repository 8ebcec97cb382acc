"""Branches that mutants changed without any other test noticing."""

import math

from prefill.protocol.story import Story

from lbopt.prefill.protocol import InstanceState, Phase, ProtocolSetting, initial_state
from lbopt.prefill.protocol.messages import EndForward, HealthCheck, PollAnswer
from lbopt.prefill.protocol.state import Batch, compared


def test_the_ring_goes_upwards():
    """It is the turn of 0, which is busy; 1 and 2 are ready."""
    story = Story(count=3)
    for k in range(3):
        story.arrive(0.4 * k)
    story.hear(EndForward(1.0, 1, 1, 1.0, 0), EndForward(1.1, 2, 1, 1.0, 0))
    assert (story.state.turn, story.at(0).phase) == (0, Phase.BUSY)
    story.arrive(2.0)
    assert [send.instance for send in story.sent] == [1]


def test_the_bypass_is_for_who_is_known_to_be_empty():
    """Ready is not enough before the interval has elapsed."""
    story = Story(idle_bypass=True)
    story.arrive(0.0)
    story.hear(EndForward(0.5, 0, 1, 1.0, 20))
    story.arrive(0.6)
    assert (story.at().phase, story.sent) == (Phase.READY, [])
    story.hear(EndForward(0.7, 0, 1, 1.0, 0))
    assert len(story.sent) == 1


def test_a_newer_epoch_has_nothing_and_is_not_known_to_be_empty():
    story = Story(count=2)
    story.arrive(0.0, tokens=70)
    story.hear(PollAnswer(0.1, 0, 1, 1, epoch=7), EndForward(0.2, 0, 1, 1.0, 20, epoch=7))
    story.hear(PollAnswer(0.3, 0, 0, 1, epoch=8))
    at = story.at()
    assert (at.in_flight, at.backlog, at.known_empty, at.on_trial, at.fence) == (0, 0, False, False, 1)


def test_who_comes_back_is_not_known_to_be_empty():
    """What it may still have is void, and unknown: it gets nothing before the interval has elapsed."""
    story = Story(idle_bypass=True)
    story.arrive(0.0)
    story.hear(HealthCheck(0.1, 0, False), HealthCheck(0.2, 0, True))
    assert (story.at().known_empty, story.at().on_trial, story.sent) == (False, False, [])


def test_of_the_oldest_batch_something_is_left():
    at = InstanceState(seq=3, batches=tuple(Batch(seq, (seq,), 1) for seq in (1, 2, 3)))
    _, after = compared(initial_state(ProtocolSetting(1)), 0, at, newest=2, oldest=2, missing=(), answers_by=9.0)
    assert [batch.gone for batch in after.batches] == [9.0, math.inf, math.inf]
    _, later = compared(initial_state(ProtocolSetting(1)), 0, after, newest=2, oldest=3, missing=(), answers_by=12.0)
    assert [batch.gone for batch in later.batches] == [9.0, 12.0, math.inf]
