"""Whose turn it is where batches are made by an allocation: the readings of `lbopt.prefill.policies`.

An instance is ready when it has room and, by the reading `ended`, the first pass has ended that its last batch could be
in; by the reading `free` it also runs nothing. At the moment at which the end of a pass is heard it runs nothing,
though something may be left; an engine that goes `back-to-back` runs an empty pass if it gets nothing at that moment.

* `timer` ``none``: whoever is ready, at once.
* ``spacing``: one interval after the last dispatch the next instance of the ring; after a second interval whoever is
  ready, in ring order. ``lattice``: ticks lie on a lattice; one that passes while a request waits allows one dispatch
  to the next instance of the ring, and from the second such tick on to whoever is ready. ``tick``: at a tick only.
* `target` ``free``: to the ready instance that has been free the longest instead of the next of the ring, and ``skip``
  to the first ready one of the ring.
* Who does not live is not in the ring. Where no instance lives, a SUSPECT is served, an interval after the last batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from lbopt.kernels.prefill.rules import next_tick, passed, spaced, ticked
from lbopt.prefill.pace import Pace
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState
from lbopt.prefill.protocol.units import Units, left


class Turn(NamedTuple):
    """The instance to serve now, or None, and when to look again; infinity = when something is heard."""

    instance: int | None
    look: float = math.inf


def next_turn(
    state: SchedulerState, setting: ProtocolSetting, units: Units, arrived: bool, elapsed: bool
) -> tuple[SchedulerState, Turn]:
    """Return whose turn it is; the state may go on by a tick of the lattice.

    Parameters
    ----------
    state, setting, units
        Of the scheduler.
    arrived
        Whether a request arrived at this moment, and may be sent to an idle instance at once.
    elapsed
        Whether a tick came, by the reading ``tick``.
    """
    now = state.now
    if not any(at.lives for at in state.instances):
        suspect = next((g for g in ring(state) if state.instances[g].phase is Phase.SUSPECT), None)
        due = elapsed if setting.timer == "tick" else now >= state.due
        return state, Turn(suspect if due else None, math.inf if due else state.due)
    allowed, to_any, look, interval = True, True, math.inf, state.pace.interval
    if setting.timer == "lattice":
        lattice = ticked(passed(state.lattice, now, interval), now, interval)
        state = state._replace(lattice=lattice)
        allowed, to_any, look = lattice.waited >= 1, lattice.waited >= 2, next_tick(lattice, interval)
    elif setting.timer == "tick":
        allowed, to_any, look = elapsed, False, state.due
    elif setting.timer == "spacing" and state.last_dispatch is not None:
        allowed, to_any, look = spaced(now, state.due, interval)
    ready = [g for g in ring(state) if is_ready(state.instances[g], now, setting, units)]
    if arrived and setting.idle_bypass:
        idle = next((g for g in ready if _has_nothing(state.instances[g], now, setting)), None)
        if idle is not None:
            return state, Turn(idle, look)
    if not (allowed and ready):
        return state, Turn(None, look)
    if setting.timer == "none" or setting.target == "free":
        return state, Turn(min(ready, key=lambda g: _freedom(g, state.instances[g], now, setting)), look)
    if setting.target == "skip" or to_any:
        return state, Turn(ready[0], look)
    first = next(g for g in ring(state) if state.instances[g].lives)
    return state, Turn(first if first in ready else None, look)


def is_ready(at: InstanceState, now: float, setting: ProtocolSetting, units: Units) -> bool:
    """Return whether an instance may get a batch.

    Parameters
    ----------
    at, now
        The instance, and the time, s.
    setting, units
        Of the scheduler.
    """
    if at.phase is not Phase.READY or at.ended == math.inf or not units.has_room(at, now):
        return False
    if not runs(at, now, setting):
        return True
    return setting.ready == "ended" and sum(left(at)) > 0


def runs(at: InstanceState, now: float, setting: ProtocolSetting) -> bool:
    """Return whether a READY instance runs a pass, as far as it is known."""
    return now > at.ended and (setting.engine == "back-to-back" or sum(left(at)) > 0)


def ring(state: SchedulerState) -> Iterator[int]:
    """Iterate over all instances, from the one whose turn it is."""
    count = len(state.instances)
    return ((state.turn + step) % count for step in range(count))


def _has_nothing(at: InstanceState, now: float, setting: ProtocolSetting) -> bool:
    return not sum(left(at)) and not runs(at, now, setting)


def _freedom(g: int, at: InstanceState, now: float, setting: ProtocolSetting) -> tuple[bool, float, int]:
    return runs(at, now, setting), at.ended, g


def with_pace(state: SchedulerState, pace: Pace) -> SchedulerState:
    """Return the state with another pace; a lattice takes a new interval with its next tick."""
    before = state.pace.interval
    if pace.interval == before:
        return state._replace(pace=pace)
    anchor = next_tick(passed(state.lattice, state.now, before), before)
    return state._replace(pace=pace, lattice=state.lattice._replace(anchor=anchor, tick=0))
