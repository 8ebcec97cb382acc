"""What the scheduler knows of the units of an instance, and a batch for them by an allocation rule.

The rules are the compiled ones of `lbopt.kernels.prefill.allocation`, which simulations of passes run too. The headroom
of a unit is the chunk less what it was said to have left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.prefill.codes import NO_LIMIT, REFUSE
from lbopt.prefill.allocations import place
from lbopt.prefill.protocol.messages import EndForward
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, SchedulerState


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
        state, g
            The state, and the instance.
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
        at
            The instance.
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
