"""When a batch is sent ahead of the end of a pass, and to whom: `kernels.prefill.anticipation`, by what is heard.

The rule is the compiled one, which see: an instance that will begin its next pass by itself takes batches from
(predicted end - margin - latency) until (predicted end - latency); one that will not, so that passes do not begin
together; the pass that begins the soonest gets the batch. Here the ends are known only when they are heard, and all
that may be wrong about them is in the view of an instance (`anticipation_view`) and in the law (`anticipation_law`).

* Who is asked. Instances that live, READY or BUSY: one batch beyond the running pass may be under way. Where none
  lives, a SUSPECT gets a batch an interval after the last one.
* No prediction decides whether an instance lives. One that is passed over because of what it is reckoned to do holds a
  request, and so has a timer; one that holds none is reckoned to be idle. The spacing of starts ends a watchdog's time
  after the last dispatch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lbopt.kernels.prefill.codes import CLOSED, FULL, NO_LIMIT, TOPPED_UP
from lbopt.kernels.prefill.rules import Moment, PassToCome, goes_before, opening
from lbopt.prefill.protocol.anticipation_view import Outlook, View, heard_end, heard_token, moved
from lbopt.prefill.protocol.messages import EndForward, FirstToken
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState


class Look(NamedTuple):
    """Who gets a batch now.

    Parameters
    ----------
    instance
        Who, or None.
    again
        s, when to look again, if nothing happens.
    start
        s, of the pass that the batch is sent for.
    enough
        Tokens in the queue that call for another look; see `Outlook`.
    """

    instance: int | None
    again: float
    start: float = -math.inf
    enough: int = 0


def settled(outlook: Outlook, now: float, by_now: bool, setting: ProtocolSetting) -> Outlook:
    """Return the outlook after what is reckoned to happen.

    Parameters
    ----------
    now, by_now
        s, and whether what happens at this very time is meant too, not only what happens before.
    """
    if outlook.moves > now or (outlook.moves == now and not by_now):
        return outlook
    views, law = outlook.views, outlook.law
    for g, view in enumerate(views):
        while view.moves < now or (by_now and view.moves == now):
            view = moved(view, law, setting)
            outlook = outlook.seeing(g, view)
    return outlook


def told(state: SchedulerState, event: EndForward | FirstToken, setting: ProtocolSetting) -> SchedulerState:
    """Return the state after what an instance tells of its passes."""
    g, outlook, end = event.instance, state.outlook, state.now - setting.way_back
    assert outlook is not None
    if isinstance(event, FirstToken):
        view = heard_token(outlook.views[g], event.seq, end, setting)
        if view is outlook.views[g]:
            return state
        # Nothing is sent sooner for it: it counts at the first event after `moves`.
        return state._replace(outlook=outlook.seeing(g, view, outlook.enough))
    view, law = heard_end(outlook.views[g], event, end, outlook.law, setting)
    if view is outlook.views[g] and law is outlook.law:
        return state
    return state._replace(outlook=outlook.seeing(g, view)._replace(law=law))


def reviewed(before: SchedulerState, state: SchedulerState, setting: ProtocolSetting) -> SchedulerState:
    """Return the state with an idle view of each instance that has changed and holds nothing."""
    outlook = state.outlook
    assert outlook is not None
    if state.instances is before.instances:
        return state
    for g, at in enumerate(state.instances):
        was = before.instances[g]
        if at is was:
            continue
        if at.lives != was.lives and outlook.enough:
            outlook = outlook._replace(enough=0)
        if was.ended == math.inf and at.ended < math.inf and outlook.views[g].is_idle:
            outlook = outlook.seeing(g, View.idle(setting, state.now - setting.way_back, at.seq))
        # It said so, or the end of its pass is overdue, while its answer came.
        empty = at.known_empty or (at.phase is Phase.READY and state.counts.faults > before.counts.faults)
        if outlook.views[g].is_idle or not (empty or not (at.batches or at.phase is Phase.BUSY)):
            continue
        outlook = outlook.seeing(g, View.idle(setting, state.now - setting.way_back, at.seq))
    return state if outlook is state.outlook else state._replace(outlook=outlook)


def reopened(outlook: Outlook) -> Outlook:
    """Return the outlook after an arrival: passes to come that are filled take who fits beside their batch."""
    for g, view in enumerate(outlook.views):
        if view.closed == FULL:
            outlook = outlook.seeing(g, view._replace(closed=TOPPED_UP))
    return outlook


def begins(state: SchedulerState, instance: int, timeout: float) -> float:
    """Return when the pass begins that a batch is sent for now, s: by a watchdog's time from now at the latest."""
    assert state.outlook is not None
    view, now = state.outlook.views[instance], state.now
    return min(max(now, view.ends), now + timeout) if view.running else now


def soonest(state: SchedulerState, setting: ProtocolSetting, timeout: float) -> Look:
    """Return to whom a batch goes now.

    Parameters
    ----------
    timeout
        s, of a watchdog that is set now.
    """
    outlook, instances, now = state.outlook, state.instances, state.now
    assert outlook is not None
    living = [g for g, at in enumerate(instances) if at.lives and at.ended < math.inf]
    if not living:
        return _on_suspicion(state) if not any(at.lives for at in instances) else Look(None, math.inf)
    law = outlook.law
    due = outlook.last_start + setting.spacing * law.mean_seconds / len(living)
    if state.last_dispatch is not None:
        due = min(due, state.last_dispatch + timeout)
    moment = Moment(now, setting.latency, law.margin(setting), due, state.ledger.sums.queued)
    chosen, first, again, enough = None, math.inf, math.inf, NO_LIMIT
    for g in living:
        view = outlook.views[g]
        runs = bool(view.running)
        if not runs and now < view.moves < again:
            again = view.moves
        if not view.room or (view.closed in (CLOSED, FULL) and view.waits):
            continue
        start, opens = opening(PassToCome(runs, view.began, view.ends, view.waits, view.room), moment)
        if opens > now:
            again = min(again, opens)
            if opens < math.inf and moment.queued < view.room:
                enough = min(enough, view.room)
        elif start < first or (start == first and chosen is not None and _goes_before(view, outlook.views[chosen])):
            chosen, first = g, start
    return Look(chosen, again, min(first, now + timeout), enough)


def _goes_before(view: View, other: View) -> bool:
    return goes_before(bool(view.running), view.free_since, bool(other.running), other.free_since)


def _on_suspicion(state: SchedulerState) -> Look:
    count = len(state.instances)
    suspect = next((g for k in range(count) if _is_suspect(state.instances[g := (state.turn + k) % count])), None)
    due = state.now if state.last_dispatch is None else state.last_dispatch + state.pace.interval
    if suspect is None or due > state.now:
        return Look(None, math.inf if suspect is None else due)
    return Look(suspect, math.inf)


def _is_suspect(at: InstanceState) -> bool:
    return at.phase is Phase.SUSPECT
