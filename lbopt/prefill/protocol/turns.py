"""Whose turn it is where batches are made by an allocation: the readings of `lbopt.prefill.policies`.

An instance is ready when it has room and, by the reading `ended`, the first pass has ended that its last batch could be
in; by the reading `free` it also runs nothing. At the moment at which the end of a pass is heard it runs nothing,
though something may be left; an engine that goes `back-to-back` runs an empty pass if it gets nothing at that moment.

* `timer` ``none``: any ready instance, at once.
* ``spacing``: one interval after the last dispatch the next instance of the ring; after a second interval any ready
  instance, in ring order. ``lattice``: ticks lie on a lattice; one that passes while a request waits allows one
  dispatch to the next instance of the ring, and from the second such tick on to any ready instance. ``tick``: at a
  tick only.
* `target` ``free``: to the ready instance that has been free the longest instead of the next of the ring, and ``skip``
  to the first ready one of the ring.
* Who does not live is not in the ring. Where no instance lives, a SUSPECT is served, an interval after the last batch.

Without an allocation the turn goes by a ring over the instances that skips those which cannot be served. The source
speaks of the "next target instance" and gives no rule. Ours: once the interval has elapsed, the first READY instance
from the one after the last target on; a slow instance at the head is skipped, not waited for. A SUSPECT one is served,
on the interval alone, only where no instance lives: neither READY nor BUSY with a batch that it got as READY.

Batches for the units of an instance are made by what the scheduler knows of them. The rules are the compiled ones of
`lbopt.kernels.prefill.allocation`, which simulations of passes run too. The headroom of a unit is the chunk less what
it was said to have left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lbopt.kernels.prefill.codes import NO_LIMIT, REFUSE
from lbopt.kernels.prefill.rules import next_tick, passed, spaced, ticked
from lbopt.prefill.allocations import place
from lbopt.prefill.pace import Pace
from lbopt.prefill.protocol.messages import EndForward
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState


class Batched(NamedTuple):
    """Who is sent, to which units, and who is refused."""

    requests: tuple[int, ...]
    units: tuple[int, ...]
    refused: tuple[int, ...]


class Units:
    """The units of every instance, by a setting with an allocation; nothing in it changes."""

    def __init__(self, setting: ProtocolSetting) -> None:
        rule = setting.rule
        assert rule is not None
        self.rule, self.count = rule, setting.units
        self.chunk = setting.chunk or NO_LIMIT
        self.capacity = setting.requests_per_pass or NO_LIMIT

    def has_room(self, at: InstanceState, now: float) -> bool:
        """Return whether an instance may get more: fewer tokens, and fewer requests, than its units take together."""
        tokens = sum(left(at))
        return tokens < self.count * self.chunk and (not tokens or self._depth(at, now) < self.count * self.capacity)

    def batch(
        self,
        state: SchedulerState,
        g: int,
        load: tuple[int, ...] = (),
        room: int | None = None,
        tops_up: bool = False,
    ) -> Batched:
        """Return the batch that an instance gets now.

        Parameters
        ----------
        load
            Tokens of each unit; empty = what it was said to have left.
        room
            Tokens for which there is room; None = a chunk of each unit less the load of all.
        tops_up
            Whether the pass that this is for has got a batch before.
        """
        at = state.instances[g]
        room = self.count * self.chunk - sum(load or left(at)) if room is None else room
        places = self.count * self.capacity - self._depth(at, state.now)
        shown: list[int] = []
        lengths: list[int] = []
        kept: list[int] = []
        for request, entry in state.ledger.queued():
            if not (self.rule.chooses or (room > 0 and len(shown) < places)):
                break
            shown.append(request)
            lengths.append(entry.tokens)
            kept.append(state.ledger.dispatches - entry.since)
            room -= entry.tokens
        unit = self.placed(at, lengths, kept, load, tops_up)
        taken = [k for k, d in enumerate(unit) if d >= 0]
        return Batched(
            tuple(shown[k] for k in taken),
            tuple(unit[k] for k in taken),
            tuple(shown[k] for k, d in enumerate(unit) if d == REFUSE),
        )

    def placed(
        self,
        at: InstanceState,
        lengths: list[int],
        kept: list[int],
        load: tuple[int, ...] = (),
        tops_up: bool = False,
    ) -> list[int]:
        """Return the unit of each request, KEEP or REFUSE.

        Parameters
        ----------
        lengths, kept
            Tokens of each request, the oldest first, and how many batches left it behind.
        load
            Tokens of each unit; empty = what the instance was said to have left.
        tops_up
            Whether the pass that this is for has got a batch before.
        """
        # What left a request behind counts only for rules that are shown the whole queue.
        deferred = np.array(kept, dtype=np.int64) if self.rule.chooses else None
        loads = np.array(load or left(at) or [0] * self.count, dtype=np.int64)
        unit = place(
            self.rule, loads, np.array(lengths, dtype=np.int64), self.chunk, None, deferred, at.placed, tops_up
        )
        chosen: list[int] = unit.tolist()
        return chosen

    def _depth(self, at: InstanceState, now: float) -> int:
        """Return how many requests wait on the device; those that the running pass completes wait no more."""
        if not sum(left(at)):
            return 0
        return at.depth - (at.closing if now > at.ended else 0)


def left(at: InstanceState) -> tuple[int, ...]:
    """Return the tokens that each unit has left, as far as it is known; empty = none.

    Who has nothing to answer has nothing left, though the message that said so may be lost.
    """
    return at.load if at.batches else ()


def noted(at: InstanceState, event: EndForward, now: float) -> InstanceState:
    """Return the instance after the end of a pass was heard, with what the units have left."""
    if 0 < event.number <= at.number:
        return at
    load = event.units or (event.remaining,)
    newest = event.newest or event.seq
    if not event.number and at.load and newest == at.received:
        # Not numbered: it may be a duplicate, or one that was overtaken, and what is left of a batch only falls.
        load = tuple(map(min, at.load, load))
    return at._replace(
        load=load, received=newest, number=event.number, depth=event.depth, closing=event.closing, ended=now
    )


def target(state: SchedulerState, elapsed: bool, idle_bypass: bool) -> int | None:
    """Return the instance to serve now, or None.

    Parameters
    ----------
    elapsed
        Whether the interval has.
    idle_bypass
        Whether an instance known to be empty may be served before.
    """
    if not (elapsed or idle_bypass):
        return None
    count = len(state.instances)
    ring = [(state.turn + step) % count for step in range(count)]
    if not elapsed:
        ready = (g for g in ring if state.instances[g].phase is Phase.READY and state.instances[g].known_empty)
        return next(ready, None)
    lives = any(at.lives for at in state.instances)
    wanted = Phase.READY if lives else Phase.SUSPECT
    return next((g for g in ring if state.instances[g].phase is wanted), None)


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
    """Return whether an instance may get a batch."""
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
