"""Schedulers that are wrong in one place each, and what the monitor says of them."""

from dataclasses import replace

from lbopt.prefill.protocol import Ledger, Phase, TripleCheck
from lbopt.prefill.protocol.messages import Deliver


def _changed(state, instance, **changes):
    instances = list(state.instances)
    instances[instance] = replace(instances[instance], **changes)
    return replace(state, instances=tuple(instances))


class IgnoresSeq(TripleCheck):
    """Takes any end of a pass for that of its batch."""

    def on_end_forward(self, state, event):
        return super().on_end_forward(state, replace(event, seq=state.instances[event.instance].seq))


class ResetsTheLedger(TripleCheck):
    """Forgets with the counters what the batch was made of."""

    def on_watchdog(self, state, event):
        after = super().on_watchdog(state, event)
        if after.faults == state.faults:
            return after
        kept = {r: e for r, e in after.ledger.entries.items() if not e.holder or e.holder[0] != event.instance}
        return replace(after, ledger=Ledger(kept, after.ledger.queue))


class RequeuesOnAWatchdog(TripleCheck):
    """Takes silence for death: what the instance still does is done twice."""

    def on_watchdog(self, state, event):
        after = super().on_watchdog(state, event)
        return after if after.faults == state.faults else replace(after, ledger=after.ledger.requeue(event.instance))


class RecomputesTheDeadline(TripleCheck):
    """Looks up the mean pass when the watchdog rings, not when it is armed."""

    def on_watchdog(self, state, event):
        at = state.instances[event.instance]
        sent = at.deadline - self.timeouts.get((event.instance, at.seq), 0.0)
        now = self.setting.timeout(state.pace.mean_pass)
        return super().on_watchdog(_changed(state, event.instance, deadline=sent + now), event)

    def try_dispatch(self, state, elapsed):
        after, actions = super().try_dispatch(state, elapsed)
        for g, at in enumerate(after.instances):
            if at.seq != state.instances[g].seq:
                self.timeouts[g, at.seq] = self.setting.timeout(after.pace.mean_pass)
        return after, actions

    def __init__(self, setting):
        super().__init__(setting)
        self.timeouts = {}


class WaitsForTheHead(TripleCheck):
    """Does not skip in the ring."""

    def next_target(self, state, elapsed):
        g = super().next_target(state, elapsed)
        return g if g == state.turn else None


class BelievesEveryPoll(TripleCheck):
    """Does not ask whether the batch had been delivered."""

    def on_poll_answer(self, state, event):
        return super().on_poll_answer(state, replace(event, seq=state.instances[event.instance].seq))


class SubtractsAgain(TripleCheck):
    """Takes the tokens off the counter when the late end of a pass comes, which the watchdog did already."""

    def ready(self, at, remaining):
        after = super().ready(at, remaining)
        return replace(after, in_flight=-1) if at.phase is Phase.SUSPECT else after


class HasNoWatchdog(TripleCheck):
    """Waits for ever."""

    def on_watchdog(self, state, event):
        return state


class ForgetsTheBatch(TripleCheck):
    """Removes an instance and leaves its requests with it."""

    def on_health_check(self, state, event):
        after, actions = super().on_health_check(state, event)
        return replace(after, ledger=state.ledger), actions


class DeliversTwice(TripleCheck):
    """Hands on every first token that comes."""

    def on_first_token(self, state, event):
        after, _ = super().on_first_token(state, event)
        return after, (Deliver(event.request),)


class PostponesForEver(TripleCheck):
    """Re-arms the timer from now."""

    def rearmed(self, state):
        return super().rearmed(replace(state, last_dispatch=state.now))


class IsNeverImpatient(TripleCheck):
    """Refuses nobody, and sends the newest first."""

    def try_dispatch(self, state, elapsed):
        queue = tuple(sorted(state.ledger.queue, reverse=True))
        lenient = TripleCheck(replace(self.setting, patience=None))
        return lenient.try_dispatch(replace(state, ledger=Ledger(state.ledger.entries, queue)), elapsed)


DEFECTS = {
    IgnoresSeq: "gets batch|has retired",
    ResetsTheLedger: "the ledger says",
    RequeuesOnAWatchdog: "the ledger says",
    RecomputesTheDeadline: "busy after its deadline|has retired|gets batch",
    WaitsForTheHead: "none is sent",
    BelievesEveryPoll: "gets batch|has retired",
    SubtractsAgain: "-1 tokens in flight",
    HasNoWatchdog: "has retired",
    ForgetsTheBatch: "the ledger says",
    DeliversTwice: "becomes done, but it is",
    PostponesForEver: "no dispatch for",
    IsNeverImpatient: "waits for",
}
