"""Engines, network and clock around a scheduler: an event loop that injects the faults of a plan.

Deterministic from its seed. The world has a true time; the scheduler reads a clock that may step, and its timers run by
true time from when they are set.

With `moments`, what happens at one time is one moment, in this order: passes end, batches reach their instances, the
scheduler hears all that has come and acts once, passes start. So an instance whose pass ends can be topped up before
the next one begins, if that takes no time: so counts the compiled simulation of passes (`lbopt.kernels.prefill`).
Without, every event is a step of its own.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lbopt.exceptions import InputError, LbOptError
from lbopt.prefill.protocol.faults import Devices, FaultPlan, Kind, Log
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
    Refuse,
    Send,
    WakeAt,
    Watchdog,
)
from lbopt.prefill.protocol.scheduler import TripleCheck
from lbopt.prefill.protocol.state import SchedulerState, initial_state


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run.

    Parameters
    ----------
    state
        The scheduler's last.
    delivered, refused
        Requests, in this order.
    events
        Steps of the scheduler.
    executions
        How often each request was prefilled to its end, on whatever instance.
    requeued
        How often each request was taken back from an instance; absent = never.
    late_top_ups
        Batches that came to an instance during a pass: their wait counts as device-side.
    delivered_at
        s, when the first token of each of `delivered` was handed on.
    false_alarms
        Watchdogs that ran out, out of `state.faults`, while a pass was running on the instance.
    sent_to_dead
        Requests that were sent to an instance that was down, once for each time.
    """

    state: SchedulerState
    delivered: tuple[int, ...]
    refused: tuple[int, ...]
    events: int
    executions: dict[int, int]
    requeued: dict[int, int]
    late_top_ups: int
    delivered_at: tuple[float, ...]
    false_alarms: int
    sent_to_dead: tuple[int, ...]


#: Events at one moment: timers before what comes over the network; with moments, ends of passes and what instances get,
#: what the scheduler gets, its look into the inbox, starts of passes.
_TIMER, _NETWORK = 0, 1
_END, _REACH, _HEAR, _LOOK, _START = -2, -1, 1, 2, 3
#: s, of the clock: a timer that fires early, and is set again, fires later.
_RESOLUTION = 1e-9


class World:
    """One run.

    Parameters
    ----------
    scheduler
        The one to try.
    arrivals
        (time in s, tokens) of each request.
    plan
        What goes wrong.
    seed
        Of all chance in the run.
    devices
        The instances.
    poll_period
        s, > 0; infinity = no instance is polled.
    moments
        See the module.
    """

    def __init__(
        self,
        scheduler: Any,
        arrivals: Sequence[tuple[float, int]],
        plan: FaultPlan,
        seed: int,
        devices: Devices,
        poll_period: float = 1.0,
        moments: bool = False,
    ) -> None:
        if not poll_period > 0:
            raise InputError(f"poll_period is {poll_period}; expected more than 0")
        setting = scheduler.setting
        for o in plan.outages:
            if not 0 <= o.instance < setting.num_instances:
                raise InputError(f"an outage concerns instance {o.instance}; expected 0 to {setting.num_instances - 1}")
        if devices.units != setting.units:
            raise InputError(f"instances have {devices.units} units, the scheduler's setting {setting.units}")
        if devices.engine == "back-to-back" and not devices.phases:
            devices = replace(devices, phases=(0.0,) * setting.num_instances)
        self.scheduler, self.plan, self.setting, self.devices = scheduler, plan, setting, devices
        self.promises = isinstance(scheduler, TripleCheck)
        self.state: Any = scheduler.initial_state() if not self.promises else initial_state(setting)
        self.engines = [devices.built(self.promises) for _ in range(setting.num_instances)]
        self.moments, self.poll_period = moments, poll_period
        self.log = Log(len(arrivals))
        self._inbox: list[Event] = []
        self.tokens = [tokens for _, tokens in arrivals]
        self._open = set(range(len(arrivals)))
        self.sent_to_dead: list[int] = []
        self.events = 0
        self.delivered: list[int] = []
        self.delivered_at: list[float] = []
        self.false_alarms = 0
        self.refused: list[int] = []
        self.requeued: Counter[int] = Counter()
        self._rng = np.random.default_rng([seed, 5])
        self._heap: list[tuple[float, int, int, Callable[[float], None]]] = []
        self._count = 0
        self._timers: dict[int, int] = {}
        self._busy, self._starting = set(range(len(devices.phases))), set[int]()
        # Where a request may be stranded, empty passes must come to an end.
        last = max([time for time, _ in arrivals], default=0.0)
        beyond = max(last, plan.over if plan.over < math.inf else 0.0) + plan.longest_delay + setting.latency
        self._empty_until = math.inf if self.promises else beyond
        self._down, self._failed = [0] * setting.num_instances, [0] * setting.num_instances
        for request, (time, tokens) in enumerate(arrivals):
            arrives = partial(Arrival, request=request, tokens=tokens)
            self._hear_at(time, _NETWORK, arrives)
            if plan.happens(plan.duplicate, self._rng, time):
                self._hear_at(time + plan.longest_delay * self._rng.random(), _NETWORK, arrives)
        self._hear_at(0.0, _TIMER, IntervalTick)
        if poll_period < math.inf:
            self._at(0.0, _TIMER, self._poll_tick)
        for g, until in enumerate(devices.phases):
            self._at(until, _END, partial(self._announce, g=g))
        for o in (*plan.crashes, *plan.restarts):
            self._at(o.start, _NETWORK, partial(self._crash, g=o.instance))
            self._at(o.end, _NETWORK, partial(self._restart, g=o.instance))
        for o in plan.lapses:
            self._at(o.start, _NETWORK, partial(self._lapse, g=o.instance))
        for o in plan.removals():
            self._at(o.start, _NETWORK, partial(self._health, g=o.instance, more=1))
            self._at(o.end, _NETWORK, partial(self._health, g=o.instance, more=-1))

    def run(self, until: float, most_events: int = 100_000) -> Outcome:
        """Run until `until` s, or until no request is left to serve, whichever is later.

        Raises
        ------
        LbOptError
            Requests are still not served after `most_events` events.
        """
        while self._heap and (self._open if self.moments else self._heap[0][0] <= until or self._open):
            now, happen = self._next()
            if self.events > most_events:
                raise LbOptError(
                    f"at {now:g} s, after {self.events} events, requests {sorted(self._open)} are not served"
                )
            happen(now)
        executions = {request: sum(e.done[request] for e in self.engines) for request in range(len(self.tokens))}
        late = sum(engine.late_top_ups for engine in self.engines)
        return Outcome(
            self.state,
            tuple(self.delivered),
            tuple(self.refused),
            self.events,
            executions,
            dict(self.requeued if self.promises else self.log.sent - Counter(self.log.sent.keys())),
            late,
            tuple(self.delivered_at),
            self.false_alarms,
            tuple(self.sent_to_dead),
        )

    def _next(self) -> tuple[float, Callable[[float], None]]:
        now, _, _, happen = heapq.heappop(self._heap)
        return now, happen

    def _at(self, time: float, rank: int, happen: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, rank, self._count, happen))

    def _hear_at(self, time: float, rank: int, event: Callable[[float], Event]) -> None:
        self._at(time, _HEAR if self.moments else rank, lambda now: self._hear(now, event))

    def _hear(self, now: float, make: Callable[[float], Event]) -> None:
        event = make(self.plan.reading(now))
        if not self.moments:
            self._step(now, event)
            return
        if not self._inbox:
            self._at(now, _LOOK, self._look)
        self._inbox.append(event)

    def _look(self, now: float) -> None:
        events, self._inbox = tuple(self._inbox), []
        self._step(now, events[0] if len(events) == 1 else Inbox(events[0].time, events))

    def _step(self, now: float, event: Event) -> None:
        before, actions = self.state, self._decide(now, event)
        self.events += 1
        if isinstance(event, Watchdog) and self.state.faults > before.faults:
            self.false_alarms += self.engines[event.instance].running is not None
        if self.promises:
            self._count_requeued(before, actions)
            self._count_deferred(before, actions)
        for action in actions:
            self._do(now, action)

    def _count_deferred(self, before: SchedulerState, actions: tuple[Action, ...]) -> None:
        """Note how many batches had left each request behind that is sent now, where the rule looks at all of them."""
        units = self.scheduler.units
        if units is None or not units.rule.chooses:
            return
        made = before.ledger.dispatches
        for action in actions:
            if isinstance(action, Send):
                for request in action.requests:
                    self.log.deferred[request] = made - self.state.ledger.entries[request].since
                made += 1

    def _decide(self, now: float, event: Event) -> tuple[Action, ...]:
        """Let the scheduler take a step at the true time `now`."""
        self.state, actions = self.scheduler.step(self.state, event)
        return tuple(actions)

    def _count_requeued(self, before: SchedulerState, actions: tuple[Action, ...]) -> None:
        """Note who was taken back from an instance: who now has another holder or none, and who was refused there."""
        if self.state.counts.again == before.counts.again:
            return
        entries = self.state.ledger.entries
        refused = {action.request for action in actions if isinstance(action, Refuse)}
        for request, was in before.ledger.entries.items():
            entry = entries.get(request)
            if was.holder is not None and (request in refused if entry is None else entry.holder != was.holder):
                self.requeued[request] += 1

    def _do(self, now: float, action: Action) -> None:
        match action:
            case Send():
                self._send(now, action)
            case ArmWatchdog():
                ring = partial(Watchdog, instance=action.instance)
                target = self._set(now, action.instance, action.deadline, ring)
                if self.plan.happens(self.plan.spurious, self._rng, now):
                    self._hear_at(now + self._rng.random() * max(target - now, 0.0), _TIMER, ring)
            case WakeAt():
                self._set(now, -1, action.time, IntervalTick)
            case Poll():
                g = action.instance
                for at in self._ways(now, g, "event", there=True):
                    self._at(at, _REACH if self.moments else _NETWORK, partial(self._polled, g=g, asked=action.asked))
            case Deliver():
                self.delivered.append(action.request)
                self.delivered_at.append(now)
                self._open.discard(action.request)
            case Refuse():
                self.refused.append(action.request)
                self._open.discard(action.request)

    def _set(self, now: float, which: int, reading: float, event: Callable[[float], Event]) -> float:
        """Set a timer, and void what it was set to; returns the true time meant."""
        self._timers[which] = mine = self._timers.get(which, 0) + 1
        target = now + (reading - self.plan.reading(now)) if self.plan.clock else reading

        def ring(then: float) -> None:
            if self._timers[which] == mine:
                self._hear(then, event)

        fires = self.plan.off(self._rng, now, target)
        # Every timer takes some time, if only by the clock's resolution: time goes on where one fires early again.
        # Where all that comes at one time is one moment, one that is set to the next number is on time.
        later = now if self.moments and fires > now else now + _RESOLUTION
        self._at(max(fires, later), _TIMER, ring)
        return target

    def _ways(self, now: float, instance: int, kind: Kind, there: bool = False) -> list[float]:
        latency = self.setting.latency if there else self.setting.way_back
        return self.plan.arrivals(self._rng, instance, now, latency, kind)

    # What happens at the instances.

    def _send(self, now: float, action: Send) -> None:
        g = action.instance
        engine = self.engines[g]
        units = action.units or (0,) * len(action.requests)
        batch: list[tuple[int, ...]] = [
            (request, self.tokens[request], unit) for request, unit in zip(action.requests, units, strict=True)
        ]
        epoch = engine.epoch
        self.log.send(now, action.requests)

        def receive(then: float) -> None:
            # A connection to an earlier epoch is broken.
            if not engine.up or engine.epoch != epoch:
                return
            if engine.receive(action.seq, action.fence, action.epoch, batch):
                self._start(then, g)
            else:
                self._polled(then, g, 0)

        if engine.up:
            for at in self._ways(now, g, "batch", there=True):
                self._at(at, _REACH if self.moments else _NETWORK, receive)
        else:
            self.sent_to_dead += action.requests

    def _announce(self, now: float, g: int) -> None:
        """An instance is no more busy with what it had at the start, and says so."""
        self._busy.discard(g)
        # It registers, which nothing loses.
        here = partial(PollAnswer, instance=g, seq=0, depth=0, epoch=self.engines[g].epoch)
        self._hear_at(now + self.setting.way_back, _NETWORK, here)
        self._start(now, g)

    def _start(self, now: float, g: int) -> None:
        if self.moments:
            # At the end of the moment, once.
            if g not in self._starting:
                self._starting.add(g)
                self._at(now, _START, partial(self._begin, g=g))
        else:
            self._begin(now, g)

    def _begin(self, now: float, g: int) -> None:
        self._starting.discard(g)
        engine = self.engines[g]
        empty = self.devices.engine == "back-to-back" and now <= self._empty_until
        if g in self._busy or not engine.up or engine.start(empty) is None:
            return
        load = engine.load()
        slow = self.plan.slow_factor if self.plan.happens(self.plan.slow, self._rng, now) else 1.0
        seconds = slow * self.devices.seconds(load)
        life = engine.life
        self.log.start(now, g, seconds, load, (work.request for work, _ in engine.running or ()))

        def end(then: float) -> None:
            if engine.life == life:
                self._end(then, g, then - now)

        self._at(now + seconds, _END if self.moments else _NETWORK, end)

    def _end(self, now: float, g: int, seconds: float) -> None:
        engine = self.engines[g]
        seq = engine.pass_seq
        self.log.end(engine, g)
        for work in engine.end():
            for at in self._ways(now, g, "answer"):
                token = partial(FirstToken, instance=g, seq=work.seq, request=work.request, epoch=engine.epoch)
                self._hear_at(at, _NETWORK, token)
        if self.plan.happens(self.plan.outlier, self._rng, now):
            seconds = float(self._rng.choice([1e-6, 3600.0]))
        ended = partial(
            EndForward,
            instance=g,
            seq=seq,
            seconds=seconds,
            remaining=engine.remaining(),
            epoch=engine.epoch,
            oldest=engine.oldest,
            missing=engine.missing,
            units=engine.backlog(),
            newest=engine.newest,
            number=engine.passes,
            depth=len(engine.work),
            closing=engine.closing() if self.devices.capacity is not None else 0,
        )
        for at in self._ways(now, g, "event"):
            self._hear_at(at, _NETWORK, ended)
        self._start(now, g)

    def _polled(self, now: float, g: int, asked: int) -> None:
        engine = self.engines[g]
        answer = partial(
            PollAnswer,
            instance=g,
            seq=engine.newest,
            depth=len(engine.work),
            epoch=engine.epoch,
            oldest=engine.oldest,
            missing=engine.missing,
            asked=asked,
            units=engine.backlog(),
        )
        if engine.up:
            for at in self._ways(now, g, "event"):
                self._hear_at(at, _NETWORK, answer)

    def _poll_tick(self, now: float) -> None:
        self._hear(now, PollTick)
        self._at(now + self.poll_period, _TIMER, self._poll_tick)

    def _crash(self, now: float, g: int) -> None:
        self._failed[g] += 1
        self.engines[g].crash()

    def _restart(self, now: float, g: int) -> None:
        self._failed[g] -= 1
        self.engines[g].up = self._failed[g] == 0
        self._polled(now, g, 0)
        if self.devices.engine == "back-to-back":
            self._start(now, g)

    def _lapse(self, now: float, g: int) -> None:
        self.engines[g].forget()
        if self.devices.engine == "back-to-back":
            self._start(now, g)

    def _health(self, now: float, g: int, more: int) -> None:
        self._down[g] += more
        if more > 0 or self._down[g] == 0:
            epoch = self.engines[g].epoch
            self._hear(now, partial(HealthCheck, instance=g, healthy=more < 0, epoch=epoch if more < 0 else 0))
