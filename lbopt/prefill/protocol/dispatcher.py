"""Who is served now, and with whom: one dispatch is tried after every event. Nothing is changed in place.

A dispatch needs the interval AND a ready target (`ring`, or `turns` where an allocation rule makes the batch); sent
ahead, it needs a pass that is predicted to begin soon (`anticipation`). The events are in `scheduler`.
"""

from __future__ import annotations

import math
from typing import Any

from lbopt.kernels.prefill.codes import CLOSED, FULL, NO_LIMIT, TOPPED_UP
from lbopt.prefill.protocol.anticipation import begins, reviewed, settled, soonest
from lbopt.prefill.protocol.anticipation_view import sent as with_batch
from lbopt.prefill.protocol.messages import Action, ArmWatchdog, Event, IntervalTick, Refuse, Send, WakeAt
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import (
    Batch,
    InstanceState,
    Phase,
    SchedulerState,
    Step,
    armed,
    counted,
    with_instance,
)
from lbopt.prefill.protocol.turns import Units, next_turn, target


class Dispatcher:
    """What a scheduler does to send. It holds its setting and nothing else.

    Parameters
    ----------
    setting
        The constants.
    """

    def __init__(self, setting: ProtocolSetting) -> None:
        self.setting = setting
        self.units = None if setting.allocation is None else Units(setting)

    # The interval.

    def interval_elapsed(self, state: SchedulerState, event: Event) -> bool:
        """Return whether the interval has elapsed at the event: always so after `due`, or at a tick only."""
        return state.now >= state.due and (self.setting.timer == "spacing" or isinstance(event, IntervalTick))

    def on_interval_tick(self, state: SchedulerState) -> Step:
        """Go on to the next tick of the lattice, sent or not. A timer that fired early is set again."""
        if state.outlook is not None or (self.setting.timer != "tick" and self.units is not None):
            return state, ()  # who looks sets the timer
        if state.now < state.due:
            return state, (WakeAt(state.due),)
        if self.setting.timer == "spacing":
            return state, ()
        missed = math.floor((state.now - state.due) / state.pace.interval)
        due = state.due + (missed + 1) * state.pace.interval
        return state._replace(due=due), (WakeAt(due),)

    def rearmed(self, state: SchedulerState) -> Step:
        """Take a new interval: it counts from the last dispatch (never from now, or events could postpone it for ever).

        A lattice takes it with its next tick.
        """
        if self.setting.timer != "spacing" or state.last_dispatch is None or state.outlook is not None:
            return state, ()
        due = state.last_dispatch + state.pace.interval
        if self.units is not None:
            return state._replace(due=due), ()  # who looks sets the timer
        return state._replace(due=due), (WakeAt(max(due, state.now)),)

    def timers(self, state: SchedulerState) -> tuple[Action, ...]:
        """Return all timers as they have to be set now."""
        rings = [ArmWatchdog(g, at.armed) for g, at in enumerate(state.instances) if at.armed < math.inf]
        return (*([WakeAt(max(state.due, state.now))] if state.due < math.inf else ()), *rings)

    def by_when(self, state: SchedulerState) -> float:
        """Return the time by which something must be heard of an instance, from now on."""
        return state.now + self.setting.timeout(state.pace.typical)

    # Dispatch.

    def ready(self, state: SchedulerState, at: InstanceState, remaining: int | None) -> InstanceState:
        """Return the instance after its batch was acknowledged, with `remaining` tokens left on the device.

        None: it was heard of, and what it has is not known.
        """
        known = remaining is not None
        return at._replace(
            phase=Phase.READY,
            in_flight=0,
            backlog=remaining or 0,
            load=at.load if known else (),
            known_empty=remaining == 0,
            acknowledged=at.seq if known else at.acknowledged,
            deadline=self.by_when(state),
            on_trial=False,
        )

    def next_target(self, state: SchedulerState, elapsed: bool) -> int | None:
        """Return the instance to serve now, or None."""
        return target(state, elapsed, self.setting.idle_bypass)

    def try_dispatch(self, state: SchedulerState, elapsed: bool) -> Step:
        """READY or SUSPECT, the interval elapsed, a request waits -> BUSY, with a deadline that stays as it is now."""
        # An event may have moved the interval (spacing); a tick has moved it already.
        elapsed = elapsed if self.setting.timer == "tick" else state.now >= state.due
        g = self.next_target(state, elapsed) if state.ledger.waiting else None
        if g is None:
            return state, ()
        at, limit = state.instances[g], self.setting.batch_tokens
        return self.hand_over(state, g, state.ledger.head(None if limit is None else limit - at.backlog))

    def hand_out(self, state: SchedulerState, units: Units, elapsed: bool, arrived: bool) -> Step:
        """Do the same with batches by an allocation rule, as long as it is an instance's turn.

        Parameters
        ----------
        elapsed, arrived
            Whether a tick came at this moment, and whether a request did.
        """
        actions: tuple[Action, ...] = ()
        look = math.inf
        while state.ledger.waiting:
            state, (g, look) = next_turn(state, self.setting, units, arrived, elapsed)
            if g is None:
                break
            batch = units.batch(state, g)
            state, sent = self.hand_over(state, g, batch.requests, batch.units, batch.refused)
            actions = (*actions, *sent)
            arrived, look = False, math.inf
            if self.setting.timer == "tick" or not (batch.requests or batch.refused):
                if self.setting.timer not in ("tick", "none"):
                    look = state.now + state.pace.interval
                break
        if look < math.inf and state.ledger.waiting and self.setting.timer != "tick":
            actions = (*actions, WakeAt(max(look, state.now)))
        return state, actions

    def send_ahead(self, before: SchedulerState, state: SchedulerState, rung: bool) -> Step:
        """READY or BUSY, a pass is predicted to begin soon, a request waits -> BUSY, with one batch beyond it at most.

        The timer is set to the next time at which that may be; it is also set again if it has `rung`.
        """
        setting = self.setting
        state = reviewed(before, state, setting)
        outlook = state.outlook
        assert outlook is not None
        if outlook.moves < state.now:
            outlook = settled(outlook, state.now, False, setting)
            state = state._replace(outlook=outlook)
        if state.now < min(state.due, outlook.moves) and state.ledger.sums.queued < outlook.enough and not rung:
            return state, ()  # as at the last look
        if not state.ledger.waiting and not outlook.enough and state.due == math.inf:
            return state, ()
        state, actions, again, enough = self.look_ahead(state)
        assert state.outlook is not None
        outlook = settled(state.outlook, state.now, True, setting)
        if outlook is not state.outlook:
            # The ends of passes that begin now are predicted now.
            state, again = state._replace(outlook=outlook), state.now
            if setting.latency:
                state, more, again, enough = self.look_ahead(state)
                actions = (*actions, *more)
            # Without a latency a batch for the pass to come would be in the one that begins: it is sent after that.
        if not state.ledger.waiting:
            again, enough = math.inf, 0
        elif again < math.inf:
            actions = (*actions, WakeAt(again))
        outlook = state.outlook
        assert outlook is not None
        if enough != outlook.enough:
            return state._replace(due=again, outlook=outlook._replace(enough=enough)), actions
        return (state if again == state.due else state._replace(due=again)), actions

    def look_ahead(self, state: SchedulerState) -> tuple[SchedulerState, tuple[Action, ...], float, int]:
        """Send batches as long as it is an instance's turn; also return when, and at how many tokens, to look again."""
        actions: tuple[Action, ...] = ()
        again, enough = math.inf, 0
        while state.ledger.waiting:
            g, again, start, enough = soonest(state, self.setting, self.setting.timeout(state.pace.typical))
            outlook = state.outlook
            assert outlook is not None
            if g is None:
                break
            view = outlook.views[g]
            tops_up = view.closed == TOPPED_UP
            filled = tops_up or state.ledger.sums.queued >= view.room
            units: tuple[int, ...] = ()
            refused: tuple[int, ...] = ()
            if self.units is None:
                requests = state.ledger.head(None if view.room >= NO_LIMIT else view.room)
            else:
                requests, units, refused = self.units.batch(state, g, view.load, view.room, tops_up)
            tokens = [0] * self.setting.units
            for k, request in enumerate(requests):
                tokens[units[k] if units else 0] += state.ledger.entries[request].tokens
            state, sent = self.hand_over(state, g, requests, units, refused, not tops_up)
            actions = (*actions, *sent)
            closed = (FULL if filled else CLOSED) if state.ledger.waiting else view.closed
            if requests:
                view = with_batch(view, state.instances[g].seq, tuple(tokens), closed, state.now, self.setting)
            else:
                view = view._replace(closed=closed)
            outlook = outlook._replace(last_start=max(outlook.last_start, start))
            state = state._replace(outlook=outlook.seeing(g, view))
            if not (requests or refused or view.waits):
                # A rule that leaves an empty instance empty: the next event asks it again, or an interval later.
                again, enough = min(again, state.now + state.pace.interval), 0
                break
        return state, actions, again, enough

    def hand_over(
        self,
        state: SchedulerState,
        g: int,
        requests: tuple[int, ...],
        units: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
        counts: bool = True,
    ) -> Step:
        """Send a batch to an instance; without requests only the dispatch counts.

        Parameters
        ----------
        requests, units
            Who goes, and to which unit of it.
        counts
            Whether those who stay were left behind.
        """
        at = state.instances[g]
        suspect = at.phase is Phase.SUSPECT
        remembered = self.setting.remembered
        turn = (g + 1) % len(state.instances)
        changes: dict[str, Any] = {"last_dispatch": state.now, "turn": turn}
        actions: list[Action] = []
        ledger = state.ledger
        if requests:
            seq, deadline = at.seq + 1, self.by_when(state)
            if state.outlook is not None:
                timeout = self.setting.timeout(state.pace.typical)
                deadline = at.deadline if at.phase is Phase.BUSY else begins(state, g, timeout) + timeout
            ledger = ledger.dispatch(requests, (g, seq), counts)
            at = at._replace(
                phase=Phase.BUSY,
                seq=seq,
                deadline=deadline,
                in_flight=at.in_flight + ledger.sums.in_flight - state.ledger.sums.in_flight,
                known_empty=False,
                batches=(*at.batches, Batch(seq, requests, len(requests))),
                on_trial=suspect,
                placed=at.placed + len(requests),
            )
            at, arm = armed(g, at)
            # Set again even if it is early enough: set before the clock stepped ahead, it would ring late by that step.
            arm = arm or (ArmWatchdog(g, at.armed),)
            actions = [Send(g, seq, at.fence, requests, at.epoch, units), *arm]
            state = with_instance(state, g, at)
        elif counts:
            ledger = ledger.left_behind()
        for request in refused:
            ledger = ledger.close(request, "refused", remembered)
        ledger, impatient = ledger.refuse_impatient(self.setting.patience, remembered)
        actions += map(Refuse, (*refused, *impatient))
        if self.setting.timer != "tick" and state.outlook is None:
            changes["due"] = state.now + state.pace.interval
            if self.setting.timer == "spacing":
                actions.append(WakeAt(changes["due"]))
            elif self.setting.timer == "lattice":
                changes["lattice"] = state.lattice._replace(waited=0)
        state = state._replace(ledger=ledger, **changes)
        return counted(state, degraded=1) if suspect and requests else state, tuple(actions)
