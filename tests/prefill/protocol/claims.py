"""What the scheduler claims of instances, pace and counts, held against what was heard and done.

The monitor takes phases, who is on trial and the typical pass from the scheduler's state. Here these are checked,
event by event:

Suspects
    As soon as a SUSPECT says anything it is READY. Who becomes one is polled, and again whenever its time is over. A
    batch that goes to a SUSPECT puts it on trial, and none that goes to another instance does; BUSY ends a trial, and
    nothing else has one. Where a request waits, the interval has elapsed and no instance lives, a SUSPECT gets a batch.
Batches
    have numbers without gaps, an instance each; name the newest epoch that was heard of; void exactly what was given
    up: all that was sent before the instance was suspected, removed or named a newer epoch.
The interval
    is (typical pass + latency) / instances that are not removed; the typical pass lies within `spread`. With `spacing`
    it counts from the last dispatch.
Counts
    Requests that were queued again, and first tokens of requests that had ended, are all counted.

Options that send by other rules (`dispatch`, `allocation`) have checks of their own for the interval and the turn.
"""

from __future__ import annotations

from lbopt.exceptions import LbOptError
from lbopt.prefill.protocol.messages import (
    Action,
    EndForward,
    Event,
    FirstToken,
    HealthCheck,
    IntervalTick,
    Poll,
    PollAnswer,
    PollTick,
    Send,
    Watchdog,
)
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState

#: s, of rounding in sums of times.
SLACK = 1e-8


class BrokenPromiseError(LbOptError):
    """The scheduler did what the protocol forbids."""


class Claims:
    """Follows one run, beside the monitor.

    Parameters
    ----------
    setting
        The scheduler's.
    """

    def __init__(self, setting: ProtocolSetting) -> None:
        self.setting = setting
        self.seq, self.fence, self.epoch = ([0] * setting.num_instances for _ in range(3))
        self.trial: tuple[int, ...] = ()
        self.last_dispatch: float | None = None
        self.again = 0
        self.as_printed = (
            getattr(setting, "allocation", None) is None and getattr(setting, "dispatch", "ready") == "ready"
        )

    def copied(self) -> Claims:
        """Return another one with the same books."""
        new = Claims(self.setting)
        new.seq, new.fence, new.epoch = list(self.seq), list(self.fence), list(self.epoch)
        new.trial, new.last_dispatch, new.again = self.trial, self.last_dispatch, self.again
        return new

    def after(
        self,
        before: SchedulerState,
        event: Event,
        state: SchedulerState,
        actions: tuple[Action, ...],
        again: int,
    ) -> None:
        """Take one step of the scheduler; raises BrokenPromiseError.

        Parameters
        ----------
        before, state
            State of the scheduler before and after the event.
        event
            The event.
        actions
            What the scheduler did.
        again
            Requests queued again so far, each as often as it was.
        """
        for one in getattr(event, "events", (event,)):
            self._heard(before, one)
        sends = {action.instance: action for action in actions if isinstance(action, Send)}
        for send in sends.values():
            self._sent(send, state)
        polled = {action.instance for action in actions if isinstance(action, Poll)}
        for g, (was, at) in enumerate(zip(before.instances, state.instances, strict=True)):
            self._check_suspect(g, was, at, event, state.now, g in polled)
            self._check_trial(g, was, at, event, g in sends)
            if at.phase in (Phase.SUSPECT, Phase.REMOVED):
                self.fence[g] = at.seq
        self.trial = tuple(g for g, at in enumerate(state.instances) if at.on_trial)
        if self.as_printed:
            self._check_interval(before, state)
            self._check_idle(before, event, state, bool(sends))
        self._check_counts(before, event, state, again)

    def _heard(self, before: SchedulerState, event: Event) -> None:
        """Note a newer epoch: what was sent before is void, unless it is the first that is named."""
        if isinstance(event, EndForward | PollAnswer | FirstToken | HealthCheck):
            g, epoch = event.instance, event.epoch
            removed = before.instances[g].phase is Phase.REMOVED
            if isinstance(event, HealthCheck):
                takes = event.healthy
            else:
                takes = not removed
            if takes and epoch > self.epoch[g]:
                if self.epoch[g]:
                    self.fence[g] = self.seq[g]
                self.epoch[g] = epoch

    def _sent(self, send: Send, state: SchedulerState) -> None:
        g, at = send.instance, state.instances[send.instance]
        if at.on_trial:
            self.fence[g] = self.seq[g]
        said, expected = (send.seq, send.fence, send.epoch), (self.seq[g] + 1, self.fence[g], self.epoch[g])
        if said != expected:
            raise BrokenPromiseError(
                f"instance {g} is sent (batch, fence, epoch) = {said}; expected {expected} from what was sent and heard"
            )
        self.seq[g] = send.seq
        self.last_dispatch = state.now

    def _check_suspect(
        self, g: int, was: InstanceState, at: InstanceState, event: Event, now: float, polled: bool
    ) -> None:
        stays = was.phase is Phase.SUSPECT and at.phase is Phase.SUSPECT
        if stays and isinstance(event, EndForward | PollAnswer | FirstToken) and event.instance == g:
            known = isinstance(event, FirstToken) or event.seq <= was.seq
            if known and not 0 < event.epoch < was.epoch:
                raise BrokenPromiseError(f"instance {g} is suspected, although it said {event}")
        rings = isinstance(event, PollTick) or (isinstance(event, Watchdog) and event.instance == g)
        again = was.phase is Phase.SUSPECT and rings and now >= was.deadline
        if at.phase is Phase.SUSPECT and (was.phase is not Phase.SUSPECT or again) and not polled:
            raise BrokenPromiseError(f"instance {g} is suspected, and is not polled")

    def _check_trial(self, g: int, was: InstanceState, at: InstanceState, event: Event, sent: bool) -> None:
        on_trial = at.on_trial
        if sent and getattr(event, "instance", None) != g and not isinstance(event, PollTick):
            # Whether an own event, or a poll's ring, has made it READY or SUSPECT first is not known here.
            on_trial = was.phase is Phase.SUSPECT
        elif at.phase is not Phase.BUSY:
            on_trial = False
        elif not sent:
            on_trial = g in self.trial
        if at.on_trial != on_trial:
            raise BrokenPromiseError(
                f"instance {g} is {at.phase.value} and {'' if at.on_trial else 'not '}on trial after {event}"
            )

    def _check_interval(self, before: SchedulerState, state: SchedulerState) -> None:
        pace, setting = state.pace, self.setting
        if not setting.shortest_pass - SLACK <= pace.typical <= setting.longest_pass + SLACK:
            raise BrokenPromiseError(f"the typical pass is {pace.typical:g} s, outside of the spread")
        healthy = sum(at.phase is not Phase.REMOVED for at in state.instances)
        interval = (pace.typical + setting.latency) / healthy if healthy else before.pace.interval
        if abs(pace.interval - interval) > SLACK:
            raise BrokenPromiseError(f"the interval is {pace.interval:g} s; expected {interval:g} s")
        if setting.timer == "spacing" and self.last_dispatch is not None:
            due = self.last_dispatch + pace.interval
            if abs(state.due - due) > SLACK:
                raise BrokenPromiseError(f"the interval ends {state.due:g} s; expected {due:g} s")

    def _check_idle(self, before: SchedulerState, event: Event, state: SchedulerState, sent: bool) -> None:
        elapsed = state.now >= state.due
        if self.setting.timer == "tick":
            elapsed = isinstance(event, IntervalTick) and state.now >= before.due
        suspects = [g for g, at in enumerate(state.instances) if at.phase is Phase.SUSPECT]
        idle = elapsed and state.ledger.waiting and not sent
        if idle and suspects and not any(at.lives for at in state.instances):
            raise BrokenPromiseError(f"the interval has elapsed, nobody lives, and no suspect of {suspects} is served")

    def _check_counts(self, before: SchedulerState, event: Event, state: SchedulerState, again: int) -> None:
        counted, expected = state.counts.again - before.counts.again, again - self.again
        self.again = again
        # A first token that names a newer epoch queues its request again, and ends it.
        newer = isinstance(event, FirstToken) and event.epoch > before.instances[event.instance].epoch
        if not expected <= counted <= expected + newer:
            raise BrokenPromiseError(f"{counted} requests are counted as queued again; expected {expected}")
        if isinstance(event, FirstToken):
            at = before.instances[event.instance]
            void = at.phase is Phase.REMOVED or 0 < event.epoch < at.epoch
            double = not void and event.request not in before.ledger.entries
            if state.counts.duplicates - before.counts.duplicates != double:
                raise BrokenPromiseError(f"{event} is {'not ' if double else ''}counted as a duplicate")
