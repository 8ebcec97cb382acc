"""Each promise can fail: for everything that the monitor says there is a scheduler of which it says that first."""

import re
from dataclasses import replace

import pytest
from prefill.protocol import defects as d
from prefill.protocol.monitor import BrokenPromiseError
from prefill.protocol.schedules import draw, run_and_check
from prefill.protocol.story import Story

from lbopt.prefill.protocol import TripleCheck
from lbopt.prefill.protocol.messages import EndForward, HealthCheck

PROMISES = {
    "the scheduler's time is": d.StandsStillWithTheClock,
    "which is removed": d.ServesTheRemoved,
    "is live": d.IgnoresSeq,
    "goes to the suspect": d.ServesSuspects,
    "no dispatch for": d.LosesAnEarlyTick,
    "waits for .* s, bound": d.IsNeverImpatient,
    "the ledger says .* of request": d.GivesUpEarly,
    "which is lost": d.IgnoresALowerNewest,
    "is the first answer, and is not handed on": d.HearsTheHolderOnly,
    "is handed on at": d.DeliversTwice,
    "what was heard and done says": d.TakesADoubleForNew,
    "is not who waits": d.TurnsTheQueue,
    "tokens, what was heard says": d.MiscountsTokens,
    "waits for an answer of": d.WaitsForLostAnswers,
    "-1 tokens in flight": d.SubtractsAgain,
    "which has retired": d.RecomputesTheDeadline,
    "is suspected, and still holds": d.GivesUpOnTheWay,
    "is busy, due .* rings": d.LosesAnEarlyWatchdog,
    "the interval's timer rings": d.LosesAnEarlyTick,
    "the typical pass is .* expected": d.TakesTheMean,
    "none is sent": d.WaitsForTheHead,
    r"is sent \(batch, fence, epoch\)": d.VoidsNothing,
    "although it said": d.StaysSuspicious,
    "is not polled": d.AsksNoSuspect,
    "and not on trial": d.TrustsASuspect,
    "busy and on trial": d.TrustsNobody,
    "the interval is": d.CountsTheRemoved,
    "the interval ends": d.ReckonsFromNow,
    "no suspect of": d.SparesTheSuspects,
    "counted as queued again": d.CountsNobodyAgain,
    "is not counted as a duplicate": d.CountsNoDuplicates,
}


@pytest.mark.parametrize("promise", PROMISES)
def test_it_is_the_first_to_fail(promise):
    for seed in range(60):
        try:
            run_and_check(draw(seed, PROMISES[promise]))
        except BrokenPromiseError as error:
            if re.search(promise, str(error)):
                return
    pytest.fail("kept in 60 schedules, or another one was broken before")


def test_the_spread():
    """Three passes of an hour are a majority of the window."""

    class KnowsNoSpread(TripleCheck):
        def on_end_forward(self, state, event):
            other = TripleCheck(replace(self.setting, spread=1e6))
            return other.on_end_forward(state, event)

    def after_three(scheduler):
        story = Story(scheduler=scheduler, window=3)
        for k in range(3):
            story.arrive(5.0 * k)
            story.hear(EndForward(5.0 * k + 1.0, 0, k + 1, 3600.0, 0))

    after_three(TripleCheck)
    with pytest.raises(BrokenPromiseError, match="outside of the spread"):
        after_three(KnowsNoSpread)


def test_health_checks():
    story = Story(count=2, scheduler=d.KnowsNoHealthChecks)
    with pytest.raises(BrokenPromiseError, match="instance 0 is ready, the health checks say otherwise"):
        story.hear(HealthCheck(0.0, 0, False))
