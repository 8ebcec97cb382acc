"""The triple check as a pure function: (state, event) -> (state, actions). Nothing is changed in place.

One method a kind of event; where a row of the transition table applies it is quoted as *state, event -> next*. After
every event one dispatch is tried: it needs the interval AND a ready target. Readiness has three sources: quiescence (a
poll answered with depth 0), the pushed end of a pass, the watchdog. Source: staggered batch scheduling (arXiv
2512.16134), section on synchronisation; the states are ours.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

from lbopt.exceptions import InputError
from lbopt.prefill.protocol.messages import (
    Action,
    ArmWatchdog,
    Arrival,
    Deliver,
    EndForward,
    Event,
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
from lbopt.prefill.protocol.ring import target
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState

Step = tuple[SchedulerState, tuple[Action, ...]]


class TripleCheck:
    """The scheduler. It holds its setting and nothing else.

    Parameters
    ----------
    setting
        The constants.
    """

    def __init__(self, setting: ProtocolSetting) -> None:
        self.setting = setting

    def step(self, state: SchedulerState, event: Event) -> Step:
        """Return the state after the event, and what is to be done.

        Raises
        ------
        InputError
            The event lies before its predecessor or before 0, or names an instance that there is not.
        """
        kind = type(event).__name__
        if not (math.isfinite(event.time) and event.time >= 0):
            raise InputError(f"{kind} comes at {event.time} s; expected a time from 0 on")
        if event.time < state.now:
            raise InputError(
                f"{kind} comes at {event.time} s after an event at {state.now} s; expected times to ascend"
            )
        instance = getattr(event, "instance", 0)
        if not 0 <= instance < len(state.instances):
            raise InputError(f"{kind} names instance {instance}; expected 0 to {len(state.instances) - 1}")
        elapsed = self.interval_elapsed(state, event)
        state, actions = self._heard(replace(state, now=event.time), event)
        state, sent = self.try_dispatch(state, elapsed)
        return state, (*actions, *sent)

    def _heard(self, state: SchedulerState, event: Event) -> Step:
        match event:
            case Arrival():
                return replace(state, ledger=state.ledger.arrive(event.request, event.tokens)), ()
            case EndForward():
                return self.on_end_forward(state, event)
            case FirstToken():
                return self.on_first_token(state, event)
            case PollAnswer():
                return self.on_poll_answer(state, event), ()
            case Watchdog():
                return self.on_watchdog(state, event), ()
            case IntervalTick():
                return self.on_interval_tick(state)
            case PollTick():
                # Known to be empty: the answer would say nothing new.
                asked = (g for g, at in enumerate(state.instances) if at.phase is not Phase.REMOVED)
                return state, tuple(Poll(g) for g in asked if not state.instances[g].known_empty)
            case HealthCheck():
                return self.on_health_check(state, event)

    # The rows of the table.

    def on_end_forward(self, state: SchedulerState, event: EndForward) -> Step:
        """BUSY, EndForward of its seq -> READY; of an older one -> BUSY. SUSPECT, any -> READY."""
        if not (math.isfinite(event.seconds) and event.seconds > 0):
            raise InputError(f"a pass of instance {event.instance} took {event.seconds} s; expected more than 0")
        if event.remaining < 0:
            raise InputError(f"a pass of instance {event.instance} left {event.remaining} tokens; expected 0 or more")
        at = state.instances[event.instance]
        if at.phase is Phase.REMOVED or not at.fence < event.seq <= at.seq:
            return state, ()
        actions: tuple[Action, ...] = ()
        if event.seq > at.measured:
            # Once a seq: a duplicate is no second measurement, nor are the further passes of a chunked backlog.
            at = replace(at, measured=event.seq)
            pace = copy.deepcopy(state.pace)
            pace.on_end_forward(event.seconds)
            state, actions = self.rearmed(replace(state, pace=pace))
        current = event.seq == at.seq
        if at.phase is Phase.BUSY and current:
            # Acknowledged: at most one seq is live, so that nothing else is in flight. This cancels the watchdog too,
            # for it rings in BUSY only.
            at = self.ready(at, event.remaining)
        elif at.phase is Phase.SUSPECT:
            # Its counters were reset already: nothing is subtracted a second time.
            at = self.ready(at, event.remaining) if current else replace(at, phase=Phase.READY)
        elif at.phase is Phase.READY and current:
            # A further pass of a backlog, or a duplicate, or one that was overtaken: the backlog of a seq only falls.
            at = replace(
                at, backlog=min(at.backlog, event.remaining), known_empty=at.known_empty or not event.remaining
            )
        return _with(state, event.instance, at), actions

    def on_poll_answer(self, state: SchedulerState, event: PollAnswer) -> SchedulerState:
        """BUSY, depth 0 and certainly delivered -> READY. SUSPECT, any answer -> READY."""
        at = state.instances[event.instance]
        delivered = event.seq == at.seq
        if at.phase in (Phase.BUSY, Phase.READY) and event.depth == 0 and delivered:
            at = self.ready(at, 0)
        elif at.phase is Phase.SUSPECT:
            at = self.ready(at, 0) if event.depth == 0 and delivered else replace(at, phase=Phase.READY)
        return _with(state, event.instance, at)

    def on_watchdog(self, state: SchedulerState, event: Watchdog) -> SchedulerState:
        """BUSY, now >= deadline -> SUSPECT, its counters reset (the ledger is not theirs)."""
        at = state.instances[event.instance]
        if at.phase is not Phase.BUSY or event.time < at.deadline:
            return state
        at = replace(at, phase=Phase.SUSPECT, in_flight=0, backlog=0, known_empty=False)
        return replace(_with(state, event.instance, at), faults=state.faults + 1)

    def on_health_check(self, state: SchedulerState, event: HealthCheck) -> Step:
        """Any, not healthy -> REMOVED, its requests requeued. REMOVED, healthy -> READY. Algorithm 1 both times."""
        at = state.instances[event.instance]
        if event.healthy == (at.phase is not Phase.REMOVED):
            return state, ()
        if event.healthy:
            # What it may still have is void, and unknown.
            at = replace(at, phase=Phase.READY, known_empty=False)
        else:
            at = replace(at, phase=Phase.REMOVED, in_flight=0, backlog=0, known_empty=False, fence=at.seq)
            state = replace(state, ledger=state.ledger.requeue(event.instance))
        state = _with(state, event.instance, at)
        pace = copy.deepcopy(state.pace)
        pace.on_topology_change(state.healthy)
        return self.rearmed(replace(state, pace=pace))

    def on_first_token(self, state: SchedulerState, event: FirstToken) -> Step:
        """In flight, first token from its holder -> done; anything else comes to nothing."""
        ledger = state.ledger.finish(event.request, (event.instance, event.seq))
        if ledger is None:
            return state, ()
        return replace(state, ledger=ledger), (Deliver(event.request),)

    # The interval.

    def interval_elapsed(self, state: SchedulerState, event: Event) -> bool:
        """Return whether the interval has elapsed at the event: always so after `due`, or at a tick only."""
        return event.time >= state.due and (self.setting.timer == "spacing" or isinstance(event, IntervalTick))

    def on_interval_tick(self, state: SchedulerState) -> Step:
        """Go on to the next tick of the lattice, sent or not."""
        if self.setting.timer == "spacing" or state.now < state.due:
            return state, ()
        missed = math.floor((state.now - state.due) / state.pace.interval)
        due = state.due + (missed + 1) * state.pace.interval
        return replace(state, due=due), (WakeAt(due),)

    def rearmed(self, state: SchedulerState) -> Step:
        """Take a new interval: it counts from the last dispatch (never from now, or events could postpone it for ever).

        A lattice takes it with its next tick.
        """
        if self.setting.timer == "tick" or state.last_dispatch is None:
            return state, ()
        due = state.last_dispatch + state.pace.interval
        return replace(state, due=due), (WakeAt(max(due, state.now)),)

    # Dispatch.

    def ready(self, at: InstanceState, remaining: int) -> InstanceState:
        """Return the instance after its batch was acknowledged, with `remaining` tokens left on the device."""
        return replace(at, phase=Phase.READY, in_flight=0, backlog=remaining, known_empty=remaining == 0)

    def next_target(self, state: SchedulerState, elapsed: bool) -> int | None:
        """Return the instance to serve now, or None."""
        return target(state, elapsed, self.setting.idle_bypass)

    def try_dispatch(self, state: SchedulerState, elapsed: bool) -> Step:
        """READY or SUSPECT, the interval elapsed, a request waits -> BUSY, with a deadline that stays as it is now."""
        # An event may have moved the interval (spacing); a tick has moved it already.
        elapsed = elapsed if self.setting.timer == "tick" else state.now >= state.due
        g = self.next_target(state, elapsed) if state.ledger.queue else None
        if g is None:
            return state, ()
        at, limit = state.instances[g], self.setting.batch_tokens
        suspect = at.phase is Phase.SUSPECT
        requests = state.ledger.head(None if limit is None else limit - at.backlog)
        seq, deadline = at.seq + 1, state.now + self.setting.timeout(state.pace.mean_pass)
        tokens = sum(state.ledger.entries[request].tokens for request in requests)
        at = replace(
            at, phase=Phase.BUSY, seq=seq, deadline=deadline, in_flight=at.in_flight + tokens, known_empty=False
        )
        ledger, refused = state.ledger.dispatch(requests, (g, seq)).refuse_impatient(self.setting.patience)
        changes: dict[str, Any] = {"ledger": ledger, "last_dispatch": state.now, "turn": (g + 1) % len(state.instances)}
        changes["degraded"] = state.degraded + suspect
        actions: list[Action] = [Send(g, seq, at.fence, requests), ArmWatchdog(g, deadline), *map(Refuse, refused)]
        if self.setting.timer == "spacing":
            changes["due"] = state.now + state.pace.interval
            actions.append(WakeAt(changes["due"]))
        return replace(_with(state, g, at), **changes), tuple(actions)


def _with(state: SchedulerState, instance: int, at: InstanceState) -> SchedulerState:
    instances = (*state.instances[:instance], at, *state.instances[instance + 1 :])
    return replace(state, instances=instances)
