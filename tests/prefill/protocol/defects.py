"""Schedulers that are wrong in one place each, and what the monitor says of them."""

import math
from dataclasses import replace

from lbopt.prefill.protocol import Phase, TripleCheck
from lbopt.prefill.protocol.messages import Deliver


def _changed(state, instance, **changes):
    instances = list(state.instances)
    instances[instance] = instances[instance]._replace(**changes)
    return state._replace(instances=tuple(instances))


class IgnoresSeq(TripleCheck):
    """Takes any end of a pass for that of its batch."""

    def on_end_forward(self, state, event):
        return super().on_end_forward(state, replace(event, seq=state.instances[event.instance].seq))


class ResetsTheLedger(TripleCheck):
    """Forgets with the counters what the batch was made of."""

    def suspected(self, state, instance, at):
        entries = state.ledger.entries
        for request, entry in entries.items():
            if entry.holder and entry.holder[0] == instance:
                entries = entries.delete(request)
        return super().suspected(state._replace(ledger=state.ledger._replace(entries=entries)), instance, at)


class RecomputesTheDeadline(TripleCheck):
    """Looks up the typical pass when the watchdog rings, not when it is armed."""

    def on_watchdog(self, state, instance):
        at = state.instances[instance]
        if at.phase is Phase.BUSY:
            sent = at.deadline - self.timeouts.get((instance, at.seq), 0.0)
            now = self.setting.timeout(state.pace.typical)
            state = _changed(state, instance, deadline=sent + now)
        return super().on_watchdog(state, instance)

    def try_dispatch(self, state, elapsed):
        after, actions = super().try_dispatch(state, elapsed)
        for g, at in enumerate(after.instances):
            if at.seq != state.instances[g].seq:
                self.timeouts[g, at.seq] = self.setting.timeout(after.pace.typical)
        return after, actions

    def __init__(self, setting):
        super().__init__(setting)
        self.timeouts = {}


class GivesUpEarly(TripleCheck):
    """Takes every ring for the deadline."""

    def on_watchdog(self, state, instance):
        return super().on_watchdog(_changed(state, instance, deadline=state.now), instance)


class WaitsForTheHead(TripleCheck):
    """Does not skip in the ring."""

    def next_target(self, state, elapsed):
        g = super().next_target(state, elapsed)
        return g if g == state.turn else None


class ServesSuspects(TripleCheck):
    """Serves a SUSPECT whenever no instance is READY."""

    def next_target(self, state, elapsed):
        g = super().next_target(state, elapsed)
        suspects = (g for g, at in enumerate(state.instances) if at.phase is Phase.SUSPECT)
        return next(suspects, None) if g is None and elapsed else g


class BelievesEveryPoll(TripleCheck):
    """Does not ask whether the batch had been delivered."""

    def on_poll_answer(self, state, event):
        return super().on_poll_answer(state, replace(event, seq=state.instances[event.instance].seq))


class SubtractsAgain(TripleCheck):
    """Takes the tokens off the counter when the late end of a pass comes, which the watchdog did already."""

    def ready(self, state, at, remaining):
        after = super().ready(state, at, remaining)
        return after._replace(in_flight=-1) if at.phase is Phase.SUSPECT else after


class HasNoWatchdog(TripleCheck):
    """Waits for ever."""

    def on_watchdog(self, state, instance):
        return state, ()


class LosesAnEarlyWatchdog(TripleCheck):
    """Thinks that a timer which fired early has nothing more to say."""

    def on_watchdog(self, state, instance):
        at = state.instances[instance]
        if state.now < at.due:
            return _changed(state, instance, armed=math.inf), ()
        return super().on_watchdog(state, instance)


class LosesAnEarlyTick(TripleCheck):
    """Likewise with the interval."""

    def on_interval_tick(self, state):
        return (state, ()) if state.now < state.due else super().on_interval_tick(state)


class KeepsWhatItGaveUp(TripleCheck):
    """Suspects an instance, and leaves its requests with it."""

    def suspected(self, state, instance, at):
        after, at = super().suspected(state, instance, at)
        return after._replace(ledger=state.ledger), at


class ForgetsTheBatch(TripleCheck):
    """Removes an instance and leaves its requests with it."""

    def on_health_check(self, state, event):
        after, actions = super().on_health_check(state, event)
        return after._replace(ledger=state.ledger), actions


class IgnoresEpochs(TripleCheck):
    """Notes a newer epoch, and does not ask what it means."""

    def on_new_epoch(self, state, instance, epoch):
        return _changed(state, instance, epoch=epoch)


class BelievesTheDead(TripleCheck):
    """Hears what an earlier epoch says."""

    def step(self, state, event):
        return super().step(state, replace(event, epoch=0) if getattr(event, "epoch", 0) else event)


class IgnoresGaps(TripleCheck):
    """Does not look at the batches that never came."""

    def reconcile(self, state, instance, at, newest, oldest, missing, actions=()):
        return super().reconcile(state, instance, at, newest, oldest, (), actions)


class IgnoresALowerNewest(TripleCheck):
    """Does not see that an instance knows less than it did."""

    def forgotten(self, state, instance, at, asked):
        return state, at


class WaitsForLostAnswers(TripleCheck):
    """Thinks that what is not on the device any more is done."""

    def reconcile(self, state, instance, at, newest, oldest, missing, actions=()):
        return super().reconcile(state, instance, at, newest, 0, missing, actions)


class HearsTheHolderOnly(TripleCheck):
    """Throws an answer away if the request was given to another meanwhile."""

    def on_first_token(self, state, event):
        entry = state.ledger.entries.get(event.request)
        if entry is not None and entry.holder != (event.instance, event.seq):
            return state, ()
        return super().on_first_token(state, event)


class DeliversTwice(TripleCheck):
    """Hands on every first token that comes."""

    def on_first_token(self, state, event):
        after, _ = super().on_first_token(state, event)
        return after, (Deliver(event.request),)


class TakesADoubleForNew(TripleCheck):
    """Remembers nobody who is done."""

    def on_arrival(self, state, event):
        forgetful = (
            state.ledger._replace(finished=state.ledger.finished.delete(event.request))
            if (event.request in state.ledger.finished)
            else state.ledger
        )
        return super().on_arrival(state._replace(ledger=forgetful), event)


class TakesTheMean(TripleCheck):
    """Lets an outlier into the interval."""

    def rearmed(self, state):
        pace = state.pace
        return super().rearmed(state._replace(pace=replace(pace, typical=sum(pace.measured) / len(pace.measured))))


class StandsStillWithTheClock(TripleCheck):
    """Waits until a clock that stepped back has caught up."""

    def step(self, state, event):
        after, actions = super().step(state, event)
        return after._replace(ahead=0.0), actions


class ForgetsTheTimers(TripleCheck):
    """Leaves the timers as they were when the clock stepped back."""

    def timers(self, state):
        return ()


class PostponesForEver(TripleCheck):
    """Re-arms the timer from now, at every end of a pass and first token."""

    def on_end_forward(self, state, event):
        after, actions = super().on_end_forward(state, event)
        after, more = self.rearmed(after._replace(last_dispatch=after.now))
        return after, (*actions, *more)

    def on_first_token(self, state, event):
        after, actions = super().on_first_token(state, event)
        after, more = self.rearmed(after._replace(last_dispatch=after.now))
        return after, (*actions, *more)


class IsNeverImpatient(TripleCheck):
    """Refuses nobody."""

    def try_dispatch(self, state, elapsed):
        return TripleCheck(replace(self.setting, patience=None)).try_dispatch(state, elapsed)


DEFECTS = {
    IgnoresSeq: "gets batch|has retired",
    ResetsTheLedger: "the ledger says",
    RecomputesTheDeadline: "busy after its deadline|has retired|gets batch|rings",
    GivesUpEarly: "the ledger says|gets batch",
    WaitsForTheHead: "none is sent",
    ServesSuspects: "goes to the suspect",
    BelievesEveryPoll: "gets batch|has retired",
    SubtractsAgain: "-1 tokens in flight",
    HasNoWatchdog: "rings",
    LosesAnEarlyWatchdog: "rings inf",
    LosesAnEarlyTick: "interval's timer rings inf",
    KeepsWhatItGaveUp: "still holds|stays in|the queue",
    ForgetsTheBatch: "which is lost",
    IgnoresEpochs: "which is lost",
    BelievesTheDead: "which is lost|is handed on",
    IgnoresGaps: "which is lost",
    IgnoresALowerNewest: "which is lost",
    WaitsForLostAnswers: "which has none",
    HearsTheHolderOnly: "is the first answer",
    DeliversTwice: "is handed on",
    TakesADoubleForNew: "the ledger says",
    TakesTheMean: "the typical pass is",
    StandsStillWithTheClock: "the scheduler's time is",
    ForgetsTheTimers: "rings",
    PostponesForEver: "no dispatch for",
    IsNeverImpatient: "waits for",
}
