"""Baselines that bind a request to an instance when it arrives, as pure schedulers with the protocol's messages.

They are what a usual gateway does: each request is sent at once, alone, and what is lost is lost, with one exception.
When a health check fails, the instance gets nothing more, and what it had is sent to the others; when a restarted
instance is heard of, what it had counts no more as in flight there, but is not sent again. No instance is polled, and
there is no watchdog: a request of which the answer, or the instance, is lost unnoticed is *stranded*.

* ``random`` by given draws, ``round-robin`` in turn, ``jsq`` to whom has the fewest requests without an answer, and
  ``jsq-tokens`` to whom has the fewest tokens that were sent and, as far as it is known, not computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeVar

from immutables import Map

from lbopt.exceptions import InputError
from lbopt.prefill.protocol.messages import (
    Action,
    Arrival,
    Deliver,
    EndForward,
    Event,
    FirstToken,
    HealthCheck,
    Inbox,
    PollAnswer,
    Send,
)
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import Counts, InstanceState, Phase
from lbopt.prefill.protocol.turns import Units, noted
from lbopt.spec import unknown

T = TypeVar("T")
Rule = Literal["random", "round-robin", "jsq", "jsq-tokens"]
RULES: tuple[Rule, ...] = ("random", "round-robin", "jsq", "jsq-tokens")


class Held(NamedTuple):
    """A request that was sent and not answered: where to, and its number, unit and tokens."""

    instance: int
    seq: int
    unit: int
    tokens: int


class BoundState(NamedTuple):
    """What a baseline knows.

    Parameters
    ----------
    instances
        READY or REMOVED, with what they were said to have left.
    on_the_way
        By instance: (number, unit, tokens) of what it was not yet said to have received.
    in_flight
        By instance: requests without an answer.
    held, done
        Requests that were sent and not answered, and those that are done.
    waiting
        (request, tokens) of those for whom no instance is healthy.
    turn
        Of ``round-robin``.
    counts
        What went wrong: `again`, `duplicates`, `doubled`, `restarts`, `stale`.
    """

    instances: tuple[InstanceState, ...]
    on_the_way: tuple[tuple[tuple[int, int, int], ...], ...]
    in_flight: tuple[int, ...]
    held: Map[int, Held] = Map()
    done: Map[int, bool] = Map()
    waiting: tuple[tuple[int, int], ...] = ()
    turn: int = 0
    counts: Counts = Counts()

    @property
    def faults(self) -> int:
        """Watchdogs that ran out: none, as there are none."""
        return self.counts.faults

    @property
    def healthy(self) -> int:
        """Instances that are not removed."""
        return sum(at.phase is not Phase.REMOVED for at in self.instances)


Step = tuple[BoundState, tuple[Action, ...]]


class BoundOnArrival:
    """A baseline.

    Parameters
    ----------
    setting
        Instances, units, and the allocation that gives a request its unit.
    rule
        A name from `RULES`.
    draws
        In [0, 1), of ``random``: by request number, in turn.
    """

    def __init__(self, setting: ProtocolSetting, rule: Rule, draws: Sequence[float] = ()) -> None:
        if rule not in RULES:
            raise unknown("rule", rule, RULES)
        if rule == "random" and not len(draws):
            raise InputError("rule random has no draws; expected at least one number in [0, 1)")
        if setting.rule is None or setting.rule.chooses:
            raise InputError(f"allocation is {setting.allocation}; expected one that places each request as it comes")
        self.setting, self.rule, self.draws, self.units = setting, rule, draws, Units(setting)

    def initial_state(self) -> BoundState:
        """Return the state before the first event."""
        count = self.setting.num_instances
        return BoundState((InstanceState(),) * count, ((),) * count, (0,) * count)

    def step(self, state: BoundState, event: Event) -> Step:
        """Return the state after the event, and what is to be done."""
        actions: tuple[Action, ...] = ()
        for one in event.events if isinstance(event, Inbox) else (event,):
            state, more = self._heard(state, one)
            actions = (*actions, *more)
        return state, actions

    def _heard(self, state: BoundState, event: Event) -> Step:
        match event:
            case Arrival():
                if event.request in state.held or event.request in state.done:
                    return _counted(state, doubled=1), ()
                return self._send(state, event.request, event.tokens)
            case EndForward() | FirstToken() | PollAnswer():
                at = state.instances[event.instance]
                if 0 < event.epoch < at.epoch:
                    return _counted(state, stale=1), ()
                if event.epoch > at.epoch:
                    state = self._in_new_epoch(state, event.instance, event.epoch)
                if isinstance(event, FirstToken):
                    return self._answered(state, event.request)
                if isinstance(event, EndForward):
                    return self._ended(state, event), ()
            case HealthCheck():
                return self._health(state, event)
        return state, ()

    def _send(self, state: BoundState, request: int, tokens: int) -> Step:
        healthy = [g for g, at in enumerate(state.instances) if at.phase is not Phase.REMOVED]
        if not healthy:
            return state._replace(waiting=(*state.waiting, (request, tokens))), ()
        state, g = self._chosen(state, request, healthy)
        at = state.instances[g]
        (unit,) = self.units.placed(at, [tokens], [0], self._load(state, g))
        at = at._replace(seq=at.seq + 1, placed=at.placed + 1)
        state = state._replace(
            instances=_at(state.instances, g, at),
            on_the_way=_at(state.on_the_way, g, (*state.on_the_way[g], (at.seq, unit, tokens))),
            in_flight=_at(state.in_flight, g, state.in_flight[g] + 1),
            held=state.held.set(request, Held(g, at.seq, unit, tokens)),
        )
        return state, (Send(g, at.seq, 0, (request,), at.epoch, (unit,)),)

    def _chosen(self, state: BoundState, request: int, healthy: list[int]) -> tuple[BoundState, int]:
        if self.rule == "random":
            return state, healthy[int(self.draws[request % len(self.draws)] * len(healthy))]
        if self.rule == "round-robin":
            count = len(state.instances)
            g = min(healthy, key=lambda g: (g - state.turn) % count)
            return state._replace(turn=(g + 1) % count), g
        if self.rule == "jsq":
            return state, min(healthy, key=lambda g: (state.in_flight[g], g))
        return state, min(healthy, key=lambda g: (sum(self._load(state, g)), g))

    def _load(self, state: BoundState, g: int) -> tuple[int, ...]:
        load = list(state.instances[g].load or (0,) * self.setting.units)
        for _, unit, tokens in state.on_the_way[g]:
            load[unit] += tokens
        return tuple(load)

    def _ended(self, state: BoundState, event: EndForward) -> BoundState:
        g = event.instance
        at = noted(state.instances[g], event, event.time)
        way = tuple(sent for sent in state.on_the_way[g] if sent[0] > at.received)
        return state._replace(instances=_at(state.instances, g, at), on_the_way=_at(state.on_the_way, g, way))

    def _answered(self, state: BoundState, request: int) -> Step:
        held = state.held.get(request)
        if held is None:
            return _counted(state, duplicates=1), ()
        g = held.instance
        flight = max(0, state.in_flight[g] - 1)
        state = state._replace(
            held=state.held.delete(request),
            done=state.done.set(request, True),
            in_flight=_at(state.in_flight, g, flight),
        )
        return state, (Deliver(request),)

    def _in_new_epoch(self, state: BoundState, g: int, epoch: int) -> BoundState:
        at = state.instances[g]
        if at.epoch:
            state = _counted(self._emptied(state, g), restarts=1)
        return state._replace(instances=_at(state.instances, g, state.instances[g]._replace(epoch=epoch)))

    def _emptied(self, state: BoundState, g: int) -> BoundState:
        at = state.instances[g]._replace(load=(), number=0)
        return state._replace(
            instances=_at(state.instances, g, at),
            on_the_way=_at(state.on_the_way, g, ()),
            in_flight=_at(state.in_flight, g, 0),
        )

    def _health(self, state: BoundState, event: HealthCheck) -> Step:
        g = event.instance
        phase = Phase.READY if event.healthy else Phase.REMOVED
        if state.instances[g].phase is phase:
            return state, ()
        state = self._emptied(state, g)
        at = state.instances[g]
        at = at._replace(phase=phase, epoch=max(at.epoch, event.epoch))
        state = state._replace(instances=_at(state.instances, g, at))
        if event.healthy:
            again, state = list(state.waiting), state._replace(waiting=())
        else:
            again = sorted((request, held.tokens) for request, held in state.held.items() if held.instance == g)
            state = _counted(state, again=len(again))
        actions: tuple[Action, ...] = ()
        for request, tokens in again:
            state, more = self._send(state, request, tokens)
            actions = (*actions, *more)
        return state, actions


def _at(items: tuple[T, ...], g: int, item: T) -> tuple[T, ...]:
    return (*items[:g], item, *items[g + 1 :])


def _counted(state: BoundState, **more: int) -> BoundState:
    counts = state.counts
    return state._replace(counts=counts._replace(**{name: getattr(counts, name) + n for name, n in more.items()}))
