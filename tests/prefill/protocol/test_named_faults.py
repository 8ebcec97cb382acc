"""The failure modes of a triple check, one by one."""

import pytest
from prefill.protocol.schedules import check_outcome
from prefill.protocol.story import Story
from prefill.protocol.watched import Watched

from lbopt.prefill.protocol import Phase, ProtocolSetting, TripleCheck
from lbopt.prefill.protocol.faults import FaultPlan, Outage
from lbopt.prefill.protocol.messages import EndForward, HealthCheck, IntervalTick, PollAnswer, Watchdog

STREAM = [(0.25 * i, 20) for i in range(80)]
READINGS = [("spacing", False), ("spacing", True), ("tick", False), ("tick", True)]


def run(plan, timer, idle_bypass, count=2, **world):
    setting = ProtocolSetting(count, latency=0.02, timer=timer, idle_bypass=idle_bypass)
    outcome = Watched(TripleCheck(setting), STREAM, plan, seed=1, **world).run(40.0)
    check_outcome(outcome)
    return outcome


everywhere = pytest.mark.parametrize(("timer", "idle_bypass"), READINGS)


@everywhere
def test_no_fault(timer, idle_bypass):
    outcome = run(FaultPlan(), timer, idle_bypass)
    assert outcome.state.faults == 0
    assert set(outcome.executions.values()) == {1}


@everywhere
def test_every_end_of_pass_is_lost_and_no_poll_answered(timer, idle_bypass):
    """Watchdog only: first tokens show that nobody is dead."""
    outcome = run(FaultPlan(lose=1.0), timer, idle_bypass)
    assert outcome.state.faults > 4
    assert set(outcome.executions.values()) == {1}


@everywhere
def test_the_last_first_token_stands_in_for_lost_ends(timer, idle_bypass):
    """Nobody waits for a watchdog."""
    setting = ProtocolSetting(2, latency=0.02, timer=timer, idle_bypass=idle_bypass, last_token=True)
    outcome = Watched(TripleCheck(setting), STREAM, FaultPlan(lose=1.0), seed=1).run(40.0)
    check_outcome(outcome)
    assert outcome.state.faults == 0
    assert set(outcome.executions.values()) == {1}
    without = run(FaultPlan(lose=1.0), timer, idle_bypass)
    assert sum(outcome.delivered_at) < 0.9 * sum(without.delivered_at)


@everywhere
def test_duplicates_and_reordering(timer, idle_bypass):
    outcome = run(FaultPlan(duplicate=1.0, delay=0.7, longest_delay=4.0), timer, idle_bypass)
    assert outcome.state.counts.doubled == len(STREAM)
    assert outcome.state.counts.duplicates > len(STREAM) / 2


@everywhere
def test_passes_longer_than_the_watchdog(timer, idle_bypass):
    """False alarms: what a slow instance has is done again elsewhere, and handed on once."""
    outcome = run(FaultPlan(slow=0.3, slow_factor=20.0), timer, idle_bypass)
    assert outcome.state.faults > 0
    assert outcome.late_top_ups > 0
    assert outcome.state.counts.again > 0


@everywhere
def test_a_silent_instance_costs_a_watchdog_and_no_more(timer, idle_bypass):
    outcome = run(FaultPlan(mute=(Outage(0, 0.0, 40.0),)), timer, idle_bypass)
    assert outcome.state.faults >= 1
    assert outcome.state.instances[1].seq > 2 * outcome.state.instances[0].seq, "who answers gets the work"


@everywhere
def test_partition_of_all(timer, idle_bypass):
    """They are alive, and given up: what they did meanwhile is handed on when it comes, once."""
    outcome = run(FaultPlan(partitions=(Outage(0, 3.0, 12.0), Outage(1, 3.0, 12.0))), timer, idle_bypass)
    assert outcome.requeued
    lost = run(FaultPlan(partitions=(Outage(0, 3.0, 12.0), Outage(1, 3.0, 12.0)), cut_loses=True), timer, idle_bypass)
    assert max(lost.executions.values()) == 2, "its answers were lost"


@everywhere
def test_all_gone_and_back(timer, idle_bypass):
    outcome = run(FaultPlan(crashes=(Outage(0, 3.0, 12.0), Outage(1, 3.0, 14.0))), timer, idle_bypass)
    assert outcome.requeued
    assert outcome.refused == ()


def test_alarms_and_degraded_batches_are_told():
    """A pass that takes longer than the watchdog is a false alarm; an end that got lost is none."""
    slow = run(FaultPlan(slow=1.0, slow_factor=20.0), "spacing", False)
    assert 0 < slow.false_alarms <= slow.state.faults
    lost = run(FaultPlan(lose=1.0), "spacing", False, poll_period=1e6)
    assert lost.false_alarms == 0 < lost.state.faults
    gone = run(FaultPlan(restarts=(Outage(0, 3.0, 20.0), Outage(1, 3.0, 20.0))), "spacing", False)
    assert 0 < gone.state.degraded <= gone.state.faults, "a batch on suspicion needs an alarm before it"
    assert run(FaultPlan(), "spacing", False).state.degraded == 0


@everywhere
def test_first_tokens_are_timed(timer, idle_bypass):
    """As many times as tokens, in order, none before its request and half a pass."""
    outcome = run(FaultPlan(delay=0.5, longest_delay=2.0), timer, idle_bypass)
    assert len(outcome.delivered_at) == len(outcome.delivered) == len(STREAM)
    assert list(outcome.delivered_at) == sorted(outcome.delivered_at)
    for request, at in zip(outcome.delivered, outcome.delivered_at, strict=True):
        assert at >= STREAM[request][0] + 0.5


def test_poll_race():
    """Depth 0, seen before the batch arrived: it does not name the batch, and the second dispatch is not made."""
    story = Story()
    story.arrive(0.0)
    story.arrive(0.1)
    story.hear(PollAnswer(1.5, 0, 0, 0))
    assert story.at().phase is Phase.BUSY
    assert not story.sent
    story.hear(PollAnswer(1.7, 0, 1, 0))
    assert [send.seq for send in story.sent] == [2]


def test_end_of_pass_after_a_reset():
    """The counters were reset by the watchdog: the late event takes nothing off them."""
    story = Story(count=2)
    story.arrive(0.0, tokens=70)
    story.hear(Watchdog(5.0, 0), EndForward(5.5, 0, 1, 5.4, 0))
    assert (story.at().phase, story.at().in_flight) == (Phase.READY, 0)
    story.arrive(6.0, tokens=5)
    story.hear(EndForward(6.1, 0, 1, 5.4, 0))
    assert (story.at().phase, story.at().in_flight) == (Phase.BUSY, 5)


def test_the_mean_shrinks_and_grows_after_dispatch():
    """The deadline is the one of the moment of dispatch."""
    for seconds in (0.01, 50.0):
        story = Story(count=2)
        story.arrive(0.0)
        story.arrive(0.6)
        story.hear(EndForward(1.0, 1, 1, seconds, 0))
        story.hear(Watchdog(4.99, 0))
        assert story.at().phase is Phase.BUSY
        story.hear(Watchdog(5.0, 0))
        assert story.at().phase is Phase.SUSPECT


def test_ends_of_passes_do_not_postpone_dispatch():
    """Re-arming counts from the last dispatch: a stream of events cannot keep the queue waiting for ever."""
    story = Story(count=2)
    story.arrive(0.0)
    story.hear(EndForward(0.1, 0, 1, 1.0, 5))
    story.arrive(0.2)
    for i in range(3):
        story.hear(EndForward(0.3 + 0.05 * i, 0, 1, 1.0, 4))
        assert not story.sent
    story.hear(IntervalTick(0.5))
    assert [send.instance for send in story.sent] == [1]


@pytest.mark.parametrize(("timer", "wake"), [("spacing", 5.0), ("tick", 5.5)])
def test_the_bound_is_reached(timer, wake):
    """One silent instance: who comes just after a dispatch waits for the watchdog, and on a lattice for its tick."""
    story = Story(timer=timer, latency=0.1)  # ticks at 0, 1.1, ..., 4.4, 5.5
    story.arrive(0.0)
    story.hear(IntervalTick(0.0))
    story.arrive(0.0)
    for i in range(5):
        story.hear(IntervalTick(1.1 * i))
        assert not story.sent
    story.hear(Watchdog(5.0, 0), IntervalTick(wake))
    assert story.state.last_dispatch == pytest.approx(wake)
    assert wake <= story.monitor.gap == (5.0 if timer == "spacing" else pytest.approx(6.1))


def test_no_instance():
    story = Story()
    story.hear(HealthCheck(0.0, 0, False))
    story.arrive(1.0)
    story.hear(IntervalTick(1000.0))
    assert story.state.pace.interval == 1.0, "N = 0 leaves the interval as it is"
    story.hear(HealthCheck(1001.0, 0, True))
    assert [send.requests for send in story.sent] == [(0,)]


def test_tick_or_spacing():
    """A lattice makes a request wait for its tick, however long nothing was sent; spacing does not."""
    for timer, sent_at_once in (("spacing", True), ("tick", False)):
        story = Story(timer=timer)
        story.hear(IntervalTick(0.0), IntervalTick(1.0))
        story.arrive(1.3)
        assert bool(story.sent) == sent_at_once
        story.hear(IntervalTick(2.0))
        assert bool(story.sent) != sent_at_once


def test_idle_bypass():
    """Quiescence goes before the interval, or it is a sign of readiness and no more."""
    for timer in ("spacing", "tick"):
        for bypass in (False, True):
            story = Story(timer=timer, idle_bypass=bypass)
            story.hear(IntervalTick(0.0))
            story.arrive(0.0)
            assert bool(story.sent) == (timer == "spacing" or bypass)
            story.hear(IntervalTick(1.0), PollAnswer(1.1, 0, 1, 0))
            story.arrive(1.2)
            assert bool(story.sent) == (timer == "spacing" or bypass)
            story.hear(PollAnswer(1.3, 0, 2, 0))
            story.arrive(1.4)
            assert bool(story.sent) == bypass
