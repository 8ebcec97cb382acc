"""The triple check as a pure function: (state, event) -> (state, actions). Nothing is changed in place.

One method a kind of event; where a row of the transition table applies it is quoted as *state, event -> next*. After
every event one dispatch is tried: it needs the interval AND a ready target. Readiness has three sources: quiescence (a
poll answered with depth 0), the pushed end of a pass, the watchdog. Source: staggered batch scheduling (arXiv
2512.16134), section on synchronisation; the states are ours, and so is a fourth source, `last_token`: the last first
token of all that an instance holds.

What goes beyond the source, because a batch, an answer or an instance may be lost unnoticed: an instance that holds a
request has a timer (`armed` is never later than `due`), and what is heard of an instance is compared with what it
should have (`reconcile`). Requests that it lost are queued again.
"""

from __future__ import annotations

import math

from lbopt.exceptions import InputError
from lbopt.prefill.protocol.anticipation import reopened, settled, told
from lbopt.prefill.protocol.dispatcher import Dispatcher
from lbopt.prefill.protocol.messages import (
    Action,
    ArmWatchdog,
    Arrival,
    Deliver,
    EndForward,
    Event,
    FirstToken,
    HealthCheck,
    Inbox,
    IntervalTick,
    Poll,
    PollAnswer,
    PollTick,
    WakeAt,
    Watchdog,
)
from lbopt.prefill.protocol.state import (
    InstanceState,
    Phase,
    SchedulerState,
    Step,
    answered,
    armed,
    compared,
    counted,
    emptied,
    given_up,
    in_new_epoch,
    with_instance,
    without,
)
from lbopt.prefill.protocol.turns import noted, with_pace


class TripleCheck(Dispatcher):
    """The scheduler. It holds its setting and nothing else.

    Parameters
    ----------
    setting
        The constants.
    """

    def step(self, state: SchedulerState, event: Event) -> Step:
        """Return the state after the event, and what is to be done.

        The times of events and actions are readings of the clock. If it steps back, the scheduler's own time stands
        still for this event and then goes on, and all timers are set anew.

        Raises
        ------
        InputError
            The event has no finite time, or names an instance that there is not.
        """
        events = event.events if isinstance(event, Inbox) else (event,)
        for one in events:
            if not math.isfinite(one.time):
                raise InputError(f"{type(one).__name__} comes at {one.time} s; expected a finite time")
            instance = getattr(one, "instance", 0)
            if not 0 <= instance < len(state.instances):
                raise InputError(
                    f"{type(one).__name__} names instance {instance}; expected 0 to {len(state.instances) - 1}"
                )
        now = event.time + state.ahead
        stepped = now < state.now
        if stepped:
            state = counted(state, clock_steps=1)._replace(ahead=state.now - event.time)
        else:
            state = state._replace(now=now)
        if state.outlook is None:
            elapsed = any(self.interval_elapsed(state, one) for one in events)
        else:
            elapsed = any(isinstance(one, IntervalTick) for one in events)
            outlook = settled(state.outlook, state.now, False, self.setting)
            state = state if outlook is state.outlook else state._replace(outlook=outlook)
        before = state
        state, actions = self._heard(state, events[0])
        for one in events[1:]:
            state, more = self._heard(state, one)
            actions = (*actions, *more)
        if state.outlook is not None:
            if any(isinstance(one, Arrival) for one in events):
                outlook = reopened(state.outlook)
                state, elapsed = state._replace(outlook=outlook), elapsed or outlook is not state.outlook
            state, sent = self.send_ahead(before, state, elapsed)
            actions = (*actions, *sent)
        elif state.ledger.waiting:
            if self.units is None:
                state, sent = self.try_dispatch(state, elapsed)
            else:
                arrived = any(isinstance(one, Arrival) for one in events)
                state, sent = self.hand_out(state, self.units, elapsed, arrived)
            actions = (*actions, *sent)
        if stepped:
            actions = (*actions, *self.timers(state))
        if state.ahead:
            actions = tuple(_by_the_clock(action, state.ahead) for action in actions)
        return state, actions

    def _heard(self, state: SchedulerState, event: Event) -> Step:
        match event:
            case Arrival():
                return self.on_arrival(state, event), ()
            case EndForward() | FirstToken() | PollAnswer():
                at = state.instances[event.instance]
                if at.phase is Phase.REMOVED or 0 < event.epoch < at.epoch:
                    return counted(state, stale=1), ()
                if event.epoch > at.epoch:
                    state = self.on_new_epoch(state, event.instance, event.epoch)
                if state.outlook is not None and not isinstance(event, PollAnswer) and event.seq <= at.seq:
                    state = told(state, event, self.setting)
                match event:
                    case EndForward():
                        return self.on_end_forward(state, event)
                    case FirstToken():
                        return self.on_first_token(state, event)
                return self.on_poll_answer(state, event)
            case Watchdog():
                return self.on_watchdog(state, event.instance)
            case IntervalTick():
                return self.on_interval_tick(state)
            case PollTick():
                return self.on_poll_tick(state)
            case HealthCheck():
                return self.on_health_check(state, event)
        raise InputError("an inbox is in an inbox; expected single events in it")

    # The rows of the table.

    def on_arrival(self, state: SchedulerState, event: Arrival) -> SchedulerState:
        """Queue a request; one that has arrived before is counted."""
        if state.ledger.knows(event.request):
            return counted(state, doubled=1)
        return state._replace(ledger=state.ledger.arrive(event.request, event.tokens))

    def on_new_epoch(self, state: SchedulerState, instance: int, epoch: int) -> SchedulerState:
        """Any but REMOVED, a newer epoch -> READY, all its requests queued again. The first one named is only noted."""
        return in_new_epoch(state, instance, epoch)

    def on_end_forward(self, state: SchedulerState, event: EndForward) -> Step:
        """BUSY, EndForward of its seq -> READY; of an older one -> BUSY. SUSPECT, any -> READY."""
        if not (math.isfinite(event.seconds) and event.seconds > 0):
            raise InputError(f"a pass of instance {event.instance} took {event.seconds} s; expected more than 0")
        if event.remaining < 0:
            raise InputError(f"a pass of instance {event.instance} left {event.remaining} tokens; expected 0 or more")
        g = event.instance
        at = state.instances[g]
        if event.seq > at.seq:
            return state, ()
        actions: tuple[Action, ...] = ()
        # Once a seq: a duplicate is no second measurement, nor are the further passes of a chunked backlog. A mean has
        # all passes.
        measures = event.seq > at.measured if self.setting.pace == "median" else event.number > at.number
        at = noted(at, event, state.now)
        if measures:
            at = at._replace(measured=event.seq)
            pace = state.pace.after_pass(event.seconds, state.healthy, self.setting)
            state, actions = self.rearmed(with_pace(state, pace))
        # Who is served when it runs nothing has acknowledged what it has received, though no pass had it yet.
        current = at.seq in (event.seq, event.newest) if self.setting.ready == "free" else event.seq == at.seq
        if current and at.phase is Phase.READY:
            # A further pass of a backlog, or a duplicate, or one that was overtaken: the backlog of a seq only falls.
            at = at._replace(
                backlog=min(at.backlog, event.remaining),
                known_empty=at.known_empty or not event.remaining,
                deadline=self.by_when(state),
            )
        elif at.phase is Phase.BUSY and not current:
            # With batches sent ahead a live one waits for this pass to end: the instance got on.
            if state.outlook is not None and event.seq > at.fence:
                at = at._replace(deadline=self.by_when(state))
        elif current or at.phase is Phase.SUSPECT:
            # Acknowledged: at most one seq is live, so that nothing else is in flight. The counters of a SUSPECT were
            # reset already: nothing is subtracted a second time.
            at = self.ready(state, at, event.remaining if current else None)
        oldest = event.oldest if event.remaining else event.seq + 1
        return self.reconcile(state, g, at, event.seq, oldest, event.missing, actions)

    def on_poll_answer(self, state: SchedulerState, event: PollAnswer) -> Step:
        """BUSY, depth 0 and certainly delivered -> READY. SUSPECT, any answer -> READY."""
        g = event.instance
        at = state.instances[g]
        if event.seq > at.seq:
            return state, ()
        delivered_and_done = event.depth == 0 and event.seq == at.seq
        if at.ended == math.inf:
            at = at._replace(ended=state.now)
        if delivered_and_done or at.phase is Phase.SUSPECT:
            if delivered_and_done:
                at = at._replace(load=())
            at = self.ready(state, at, 0 if delivered_and_done else None)
        elif event.units and event.seq == at.seq == at.received and at.load:
            at = at._replace(load=tuple(map(min, at.load, event.units)))
        if event.asked > event.seq:
            state, at = self.forgotten(state, g, at, event.asked)
        oldest = event.oldest if event.depth else event.seq + 1
        return self.reconcile(state, g, at, event.seq, oldest, event.missing)

    def on_first_token(self, state: SchedulerState, event: FirstToken) -> Step:
        """In flight or queued again, the first answer of any batch it was in -> done. SUSPECT, any -> READY.

        With `last_token`, BUSY, the last answer of all that it holds, of its seq -> READY: it has nothing left, though
        the end of the pass may be lost. Who sends ahead does so a moment later (`anticipation_view`).
        """
        g = event.instance
        at = state.instances[g]
        newest = event.seq if max(at.fence, at.answered) < event.seq <= at.seq else at.answered
        if at.phase is Phase.SUSPECT:
            at = self.ready(state, at, None)
        if at.phase is Phase.READY:
            at = at._replace(deadline=self.by_when(state), answered=newest)
        elif newest > at.answered:
            due = at.deadline if state.outlook is None else self.by_when(state)
            at = at._replace(answered=newest, deadline=due)
        entry = state.ledger.entries.get(event.request)
        if entry is None or (g, event.seq) not in entry.tried:
            state = counted(state, duplicates=1) if entry is None else counted(state, stale=1)
            return self.heard_of(state, g, at)
        ledger = state.ledger.close(event.request, "done", self.setting.remembered)
        if entry.holder is not None:
            holder, seq = entry.holder
            if holder == g:
                at = answered(at, seq)
                freed = self.setting.last_token and state.outlook is None
                if freed and at.phase is Phase.BUSY and event.seq == at.seq and not at.batches:
                    at = self.ready(state, at, 0)
            else:
                state = with_instance(state, holder, answered(state.instances[holder], seq))
        state, actions = self.heard_of(state._replace(ledger=ledger), g, at)
        return state, (*actions, Deliver(event.request))

    def on_watchdog(self, state: SchedulerState, instance: int) -> Step:
        """BUSY, or READY with batches, and now >= deadline -> SUSPECT, its counters reset, its requests queued again.

        Not so if a first token of the live batch came: then only the end of its pass was lost. A ring before the
        deadline sets the timer again.
        """
        at = state.instances[instance]._replace(armed=math.inf)
        actions: tuple[Action, ...] = ()
        if (gone := [batch for batch in at.batches if batch.gone <= state.now]) and at.phase is not Phase.REMOVED:
            state = counted(given_up(state, instance, gone), unanswered=len(gone))
            at = without(at, gone)
        if at.due <= state.now:
            if at.phase is Phase.BUSY and at.answered == at.seq:
                state, at = counted(state, faults=1), self.ready(state, at, None)._replace(acknowledged=at.seq)
            elif at.phase is Phase.SUSPECT:
                at, actions = at._replace(deadline=self.by_when(state)), (Poll(instance, at.acknowledged),)
            else:
                state, at = self.suspected(state, instance, at)
                actions = (Poll(instance, at.acknowledged),)
        state, arm = self.heard_of(state, instance, at)
        return state, (*actions, *arm)

    def suspected(
        self, state: SchedulerState, instance: int, at: InstanceState
    ) -> tuple[SchedulerState, InstanceState]:
        """Give an instance up for now, with all that it holds."""
        state = counted(given_up(state, instance, at.batches), faults=1)
        return state, emptied(at, Phase.SUSPECT)._replace(deadline=self.by_when(state))

    def on_poll_tick(self, state: SchedulerState) -> Step:
        """Ask all that may have something; look after timers that should have rung."""
        actions: list[Action] = []
        for g, at in enumerate(state.instances):
            if at.due <= state.now:
                state, rung = self.on_watchdog(state, g)
                actions += rung
        # Known to be empty: the answer would say nothing new.
        asked = ((g, at) for g, at in enumerate(state.instances) if at.phase is not Phase.REMOVED)
        actions += [Poll(g, at.acknowledged) for g, at in asked if not at.known_empty]
        return state, tuple(actions)

    def on_health_check(self, state: SchedulerState, event: HealthCheck) -> Step:
        """Any, not healthy -> REMOVED, its requests requeued. REMOVED, healthy -> READY. Algorithm 1 both times."""
        g = event.instance
        at = state.instances[g]
        if event.healthy and at.phase is not Phase.REMOVED and event.epoch > at.epoch:
            return self.on_new_epoch(state, g, event.epoch), ()
        if event.healthy == (at.phase is not Phase.REMOVED):
            return state, ()
        if event.healthy:
            # What it may still have is void, and unknown.
            ended = state.now if at.ended == math.inf else at.ended
            at = at._replace(phase=Phase.READY, epoch=max(at.epoch, event.epoch), ended=ended)
        else:
            state = given_up(state, g, at.batches)
            at = emptied(at, Phase.REMOVED)
        state = with_instance(state, g, at)
        pace = state.pace.after_change(state.healthy, self.setting)
        return self.rearmed(with_pace(state, pace))

    # What an instance has, against what it should have.

    def reconcile(
        self,
        state: SchedulerState,
        instance: int,
        at: InstanceState,
        newest: int,
        oldest: int,
        missing: tuple[int, ...],
        actions: tuple[Action, ...] = (),
    ) -> Step:
        """Take what an instance says of its batches into the state, and `at` with it.

        Parameters
        ----------
        state, instance, at
            The state, and the instance as it will be in it.
        newest, oldest, missing
            The newest batch that it had, the oldest of which something is left (0 = not told), and those that never
            came.
        actions
            What is to be done besides.
        """
        if at.batches:
            state, at = compared(state, instance, at, newest, oldest, missing, self.by_when(state))
        state, arm = self.heard_of(state, instance, at)
        return state, (*actions, *arm) if actions else arm

    def heard_of(self, state: SchedulerState, instance: int, at: InstanceState) -> Step:
        """Take the instance into the state, with its timer."""
        at, arm = armed(instance, at)
        return with_instance(state, instance, at), arm

    def forgotten(
        self, state: SchedulerState, instance: int, at: InstanceState, asked: int
    ) -> tuple[SchedulerState, InstanceState]:
        """Queue again what was acknowledged up to `asked`, and is not known to the instance any more.

        Parameters
        ----------
        state, instance, at
            The state, and the instance as it will be in it.
        asked
            The number with which it was asked: it knows of no batch so new.
        """
        lost = [batch for batch in at.batches if batch.seq <= asked]
        if not lost:
            return state, at
        return counted(given_up(state, instance, lost), restarts=1), without(at, lost)


def _by_the_clock(action: Action, ahead: float) -> Action:
    match action:
        case WakeAt():
            return WakeAt(action.time - ahead)
        case ArmWatchdog():
            return ArmWatchdog(action.instance, action.deadline - ahead)
    return action
