"""Engines, network and clock around a scheduler: an event loop that injects the faults of a plan.

Deterministic from its seed. Every step of the scheduler is shown to a `Monitor`. The world has a true time; the
scheduler reads a clock that may step, and its timers run by true time from when they are set.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from lbopt.exceptions import InputError
from lbopt.prefill.protocol.claims import BrokenPromiseError
from lbopt.prefill.protocol.engine import Engine
from lbopt.prefill.protocol.faults import FaultPlan, Kind
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
from lbopt.prefill.protocol.monitor import Monitor
from lbopt.prefill.protocol.outcome import Outcome
from lbopt.prefill.protocol.scheduler import TripleCheck
from lbopt.prefill.protocol.state import initial_state

#: Events at one moment: timers before what comes over the network.
_TIMER, _NETWORK = 0, 1
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
    chunk
        Most tokens of a pass, >= 1.
    per_token
        s of a pass, a token; a pass without tokens would take half the setting's default pass.
    poll_period
        s, > 0.
    """

    def __init__(
        self,
        scheduler: TripleCheck,
        arrivals: Sequence[tuple[float, int]],
        plan: FaultPlan,
        seed: int,
        chunk: int = 100,
        per_token: float = 0.005,
        poll_period: float = 1.0,
    ) -> None:
        for name, value in (("chunk", chunk), ("poll_period", poll_period)):
            if not value > 0:
                raise InputError(f"{name} is {value}; expected more than 0")
        if not per_token >= 0:
            raise InputError(f"per_token is {per_token} s; expected 0 or more")
        setting = scheduler.setting
        for o in plan.outages:
            if not 0 <= o.instance < setting.num_instances:
                raise InputError(f"an outage concerns instance {o.instance}; expected 0 to {setting.num_instances - 1}")
        self.scheduler, self.plan, self.setting = scheduler, plan, setting
        self.monitor = Monitor(setting, self._lateness(plan, poll_period))
        self.state = initial_state(setting)
        self.engines = [Engine(chunk) for _ in range(setting.num_instances)]
        self.per_token, self.poll_period = per_token, poll_period
        self.tokens = [tokens for _, tokens in arrivals]
        self._open = set(range(len(arrivals)))
        self.calm, self.allowed, self.last_open = math.inf, math.inf, 0.0
        self.sent_to_dead: list[int] = []
        self.events = 0
        self.saw_no_instance = False
        self.delivered: list[int] = []
        self.delivered_at: list[float] = []
        self.false_alarms = 0
        self.refused: list[int] = []
        self._rng = np.random.default_rng([seed, 5])
        self._heap: list[tuple[float, int, int, Callable[[float], None]]] = []
        self._count = 0
        self._timers: dict[int, int] = {}
        self._down, self._failed = [0] * setting.num_instances, [0] * setting.num_instances
        for request, (time, tokens) in enumerate(arrivals):
            arrives = partial(Arrival, request=request, tokens=tokens)
            self._hear_at(time, _NETWORK, arrives)
            if plan.happens(plan.duplicate, self._rng, time):
                self._hear_at(time + plan.longest_delay * self._rng.random(), _NETWORK, arrives)
        self._hear_at(0.0, _TIMER, IntervalTick)
        self._at(0.0, _TIMER, self._poll_tick)
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
        BrokenPromiseError
            The scheduler broke one, or requests are still not served after `most_events` events, or later than the
            bound after all faults are over.
        """
        # What was sent while things went wrong has arrived by then: an outlier on its way changes the typical pass.
        over = self.plan.over + self.plan.longest_delay + self.setting.latency
        served_by = math.inf
        while self._heap and (self._heap[0][0] <= until or self._open):
            now, _, _, happen = heapq.heappop(self._heap)
            if now > over and served_by == math.inf:
                self.calm, self.allowed = now, self.bound()
                served_by = now + self.allowed
            if self.events > most_events or (now > served_by and self._open):
                raise BrokenPromiseError(
                    f"at {now:g} s, after {self.events} events, requests {sorted(self._open)} are not served; faults "
                    f"were over at {over:g} s, and the bound was {served_by:g} s"
                )
            happen(now)
            if self._open:
                self.last_open = now
        executions = {request: sum(e.done[request] for e in self.engines) for request in range(len(self.tokens))}
        late = sum(engine.late_top_ups for engine in self.engines)
        return Outcome(
            self.state,
            tuple(self.delivered),
            tuple(self.refused),
            self.events,
            executions,
            dict(self.monitor.requeued),
            late,
            tuple(self.delivered_at),
            self.false_alarms,
            tuple(self.sent_to_dead),
        )

    def bound(self) -> float:
        """Return how long it may take from now on until all that have arrived are served, s, if no more goes wrong.

        See `served_within` of the monitor, with all requests not yet served, and all passes that they and the work on
        the devices may take.
        """
        tokens = [self.tokens[request] for request in self._open] + [
            work.tokens for engine in self.engines for work in engine.work
        ]
        passes = sum(math.ceil(count / self.engines[0].chunk) for count in tokens)
        slowest = self.plan.slow_factor * (0.5 * self.setting.default_pass + self.per_token * self.engines[0].chunk)
        return self.monitor.served_within(len(self._open), passes, max(1.0, slowest) + self.plan.longest_delay)

    @staticmethod
    def _lateness(plan: FaultPlan, poll_period: float) -> float:
        # Each time that the clock steps back, the scheduler's time stands still from the last event to the next.
        return 2 * plan.timer_error + poll_period * sum(step < 0 for _, step in plan.clock)

    def _at(self, time: float, rank: int, happen: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, rank, self._count, happen))

    def _hear_at(self, time: float, rank: int, event: Callable[[float], Event]) -> None:
        self._at(time, rank, lambda now: self._hear(now, event))

    def _hear(self, now: float, make: Callable[[float], Event]) -> None:
        before, event = self.state, make(self.plan.reading(now))
        self.state, actions = self.scheduler.step(before, event)
        self.events += 1
        if isinstance(event, Watchdog) and self.state.faults > before.faults:
            self.false_alarms += self.engines[event.instance].running is not None
        self.saw_no_instance |= isinstance(event, HealthCheck) and self.state.healthy == 0
        self.monitor.after(before, event, self.state, actions, now)
        for action in actions:
            self._do(now, action)

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
                for at in self._ways(now, g, "event"):
                    self._at(at, _NETWORK, partial(self._polled, g=g, asked=action.asked))
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
        target = now + (reading - self.plan.reading(now))

        def ring(then: float) -> None:
            if self._timers[which] == mine:
                self._hear(then, event)

        fires = self.plan.off(self._rng, now, target)
        # Every timer takes some time, if only by the clock's resolution: time goes on where one fires early again.
        self._at(max(fires, now + _RESOLUTION), _TIMER, ring)
        return target

    def _ways(self, now: float, instance: int, kind: Kind) -> list[float]:
        return self.plan.arrivals(self._rng, instance, now, self.setting.latency, kind)

    # What happens at the instances.

    def _send(self, now: float, action: Send) -> None:
        g = action.instance
        engine = self.engines[g]
        epoch, batch = engine.epoch, [(request, self.tokens[request]) for request in action.requests]

        def receive(then: float) -> None:
            # A connection to an earlier epoch is broken.
            if not engine.up or engine.epoch != epoch:
                return
            if engine.receive(action.seq, action.fence, action.epoch, batch):
                self._start(then, g)
            else:
                self._polled(then, g, 0)

        if engine.up:
            for at in self._ways(now, g, "batch"):
                self._at(at, _NETWORK, receive)
        else:
            self.sent_to_dead += action.requests

    def _start(self, now: float, g: int) -> None:
        engine = self.engines[g]
        tokens = engine.start()
        if tokens is None:
            return
        slow = self.plan.slow_factor if self.plan.happens(self.plan.slow, self._rng, now) else 1.0
        seconds = slow * (0.5 * self.setting.default_pass + self.per_token * tokens)
        life = engine.life

        def end(then: float) -> None:
            if engine.life == life:
                self._end(then, g, seconds)

        self._at(now + seconds, _NETWORK, end)

    def _end(self, now: float, g: int, seconds: float) -> None:
        engine = self.engines[g]
        seq = engine.pass_seq
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

    def _lapse(self, now: float, g: int) -> None:
        self.engines[g].forget()

    def _health(self, now: float, g: int, more: int) -> None:
        self._down[g] += more
        if more > 0 or self._down[g] == 0:
            epoch = self.engines[g].epoch
            self._hear(now, partial(HealthCheck, instance=g, healthy=more < 0, epoch=epoch if more < 0 else 0))
