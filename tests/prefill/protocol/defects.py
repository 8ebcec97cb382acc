"""Schedulers that are wrong in one place each, and what the monitor says of them."""

import math
from dataclasses import replace

from lbopt.prefill.protocol import Phase, TripleCheck
from lbopt.prefill.protocol.messages import Deliver, Poll, Refuse, Send, WakeAt


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
        return super().rearmed(state._replace(pace=pace._replace(typical=sum(pace.measured) / len(pace.measured))))


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


class TrustsASuspect(TripleCheck):
    """Puts nobody on trial."""

    def try_dispatch(self, state, elapsed):
        after, actions = super().try_dispatch(state, elapsed)
        for g in range(len(after.instances)):
            after = _changed(after, g, on_trial=False)
        return after, actions


class TrustsNobody(TripleCheck):
    """Puts whoever gets a batch on trial, so that nobody who is busy counts as living."""

    def try_dispatch(self, state, elapsed):
        after, actions = super().try_dispatch(state, elapsed)
        for action in actions:
            if isinstance(action, Send):
                after = _changed(after, action.instance, on_trial=True)
        return after, actions


class StaysSuspicious(TripleCheck):
    """Hears a suspect, and goes on to suspect it."""

    def ready(self, state, at, remaining):
        return at if at.phase is Phase.SUSPECT else super().ready(state, at, remaining)


class AsksNoSuspect(TripleCheck):
    """Waits until a suspect says something by itself."""

    def on_watchdog(self, state, instance):
        after, actions = super().on_watchdog(state, instance)
        return after, tuple(action for action in actions if not isinstance(action, Poll))


class SparesTheSuspects(TripleCheck):
    """Serves no suspect, also where nobody else is left."""

    def next_target(self, state, elapsed):
        g = super().next_target(state, elapsed)
        return None if g is not None and state.instances[g].phase is Phase.SUSPECT else g


class SkipsANumber(TripleCheck):
    """Numbers the next batch two higher after a suspicion."""

    def suspected(self, state, instance, at):
        state, at = super().suspected(state, instance, at)
        return state, at._replace(seq=at.seq + 1)


class VoidsNothing(TripleCheck):
    """Does not tell a suspect that its batches were given to others."""

    def suspected(self, state, instance, at):
        state, after = super().suspected(state, instance, at)
        return state, after._replace(fence=at.fence)


class NamesNoEpoch(TripleCheck):
    """Sends batches for whatever epoch there is."""

    def try_dispatch(self, state, elapsed):
        after, actions = super().try_dispatch(state, elapsed)
        return after, tuple(replace(one, epoch=0) if isinstance(one, Send) else one for one in actions)


class CountsTheRemoved(TripleCheck):
    """Reckons the interval of the whole fleet."""

    def on_health_check(self, state, event):
        after, _ = super().on_health_check(state, event)
        return self.rearmed(after._replace(pace=after.pace.after_change(len(after.instances), self.setting)))


class ReckonsFromNow(TripleCheck):
    """Lets a new interval count from when it is known."""

    def rearmed(self, state):
        if self.setting.timer == "tick" or state.last_dispatch is None:
            return state, ()
        due = state.now + state.pace.interval
        return state._replace(due=due), (WakeAt(due),)


class CountsNoDuplicates(TripleCheck):
    """Overlooks first tokens of requests that are done."""

    def on_first_token(self, state, event):
        after, actions = super().on_first_token(state, event)
        return after._replace(counts=after.counts._replace(duplicates=0)), actions


class CountsNobodyAgain(TripleCheck):
    """Overlooks that requests were queued again."""

    def suspected(self, state, instance, at):
        after, at = super().suspected(state, instance, at)
        return after._replace(counts=after.counts._replace(again=state.counts.again)), at


class TurnsTheQueue(TripleCheck):
    """Puts the youngest of those that were given up first."""

    def suspected(self, state, instance, at):
        after, at = super().suspected(state, instance, at)
        return after._replace(ledger=after.ledger._replace(back=after.ledger.back[::-1])), at


class MiscountsTokens(TripleCheck):
    """Books one token more than a request has."""

    def on_arrival(self, state, event):
        return super().on_arrival(state, replace(event, tokens=event.tokens + 1))


class RefusesWhatItSent(TripleCheck):
    """Turns a request away that an instance has."""

    def on_interval_tick(self, state):
        after, actions = super().on_interval_tick(state)
        sent = [request for request, entry in after.ledger.entries.items() if entry.holder is not None]
        if not sent:
            return after, actions
        ledger = after.ledger.close(sent[0], "refused", self.setting.remembered)
        return after._replace(ledger=ledger), (*actions, Refuse(sent[0]))


class KnowsNoHealthChecks(TripleCheck):
    """Removes nobody."""

    def on_health_check(self, state, event):
        return state, ()


class ServesTheRemoved(TripleCheck):
    """Sends to whoever's turn it is, removed or not."""

    def next_target(self, state, elapsed):
        removed = [g for g, at in enumerate(state.instances) if at.phase is Phase.REMOVED]
        return removed[0] if removed and elapsed else super().next_target(state, elapsed)


class GivesUpOnTheWay(TripleCheck):
    """Suspects whoever has a first token on its way, without giving up what it has."""

    def on_end_forward(self, state, event):
        after, actions = super().on_end_forward(state, event)
        at = after.instances[event.instance]
        return (_changed(after, event.instance, phase=Phase.SUSPECT) if at.batches else after), actions


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
    LosesAnEarlyTick: "interval's timer rings inf|no dispatch for",
    KeepsWhatItGaveUp: "still holds|stays in|the queue",
    ForgetsTheBatch: "which is lost",
    IgnoresEpochs: r"which is lost|is sent \(batch",
    BelievesTheDead: r"which is lost|is handed on|is sent \(batch",
    IgnoresGaps: "which is lost",
    IgnoresALowerNewest: "which is lost",
    WaitsForLostAnswers: "which has none",
    HearsTheHolderOnly: "is the first answer",
    DeliversTwice: "is handed on",
    TakesADoubleForNew: "the ledger says",
    TakesTheMean: "the typical pass is",
    StandsStillWithTheClock: "the scheduler's time is",
    ForgetsTheTimers: "rings",
    PostponesForEver: "the interval ends|no dispatch for",
    IsNeverImpatient: "waits for",
    TrustsASuspect: "not on trial",
    TrustsNobody: "on trial|goes to the suspect",
    StaysSuspicious: "although it said",
    AsksNoSuspect: "is not polled",
    SparesTheSuspects: "no suspect of",
    SkipsANumber: r"is sent \(batch|has retired",
    VoidsNothing: r"is sent \(batch",
    NamesNoEpoch: r"is sent \(batch",
    CountsTheRemoved: "the interval is",
    ReckonsFromNow: "the interval ends",
    CountsNoDuplicates: "counted as a duplicate",
    CountsNobodyAgain: "counted as queued again",
    TurnsTheQueue: "is not who waits",
    MiscountsTokens: "tokens, what was heard",
    RefusesWhatItSent: "the ledger says",
    KnowsNoHealthChecks: "which is lost|the health checks say otherwise",
    ServesTheRemoved: "which is removed|is busy, the health checks",
    GivesUpOnTheWay: "is suspected, and still holds|is suspected, although",
}
