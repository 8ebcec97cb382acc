"""Engines, network and clock around a scheduler: an event loop that injects the faults of a plan.

Deterministic from its seed. Batches and first tokens are delivered late, twice and out of order, but get lost only with
an instance that crashes; ends of passes and poll answers get lost as well (see `messages`). Every step of the scheduler
is shown to a `Monitor`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from lbopt.exceptions import InputError
from lbopt.prefill.protocol.engine import Engine
from lbopt.prefill.protocol.faults import FaultPlan
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
from lbopt.prefill.protocol.monitor import BrokenPromiseError, Monitor
from lbopt.prefill.protocol.outcome import Outcome
from lbopt.prefill.protocol.scheduler import TripleCheck
from lbopt.prefill.protocol.state import initial_state

#: Events at one moment: timers before what comes over the network.
_TIMER, _NETWORK = 0, 1


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
        for o in (*plan.mute, *plan.partitions, *plan.crashes):
            if not 0 <= o.instance < setting.num_instances:
                raise InputError(f"an outage concerns instance {o.instance}; expected 0 to {setting.num_instances - 1}")
        self.scheduler, self.plan, self.setting = scheduler, plan, setting
        self.monitor = Monitor(setting)
        self.state = initial_state(setting)
        self.engines = [Engine(chunk) for _ in range(setting.num_instances)]
        self.per_token, self.poll_period = per_token, poll_period
        self.tokens = [tokens for _, tokens in arrivals]
        self.events = 0
        self.saw_no_instance = False
        self.delivered: list[int] = []
        self.delivered_at: list[float] = []
        self.false_alarms = 0
        self.refused: list[int] = []
        self._rng = np.random.default_rng([seed, 5])
        self._heap: list[tuple[float, int, int, Callable[[float], None]]] = []
        self._count = 0
        self._down = [0] * setting.num_instances
        for request, (time, tokens) in enumerate(arrivals):
            self._hear_at(time, _NETWORK, partial(Arrival, request=request, tokens=tokens))
        self._hear_at(0.0, _TIMER, IntervalTick)
        self._at(0.0, _TIMER, self._poll_tick)
        for o in plan.crashes:
            self._at(o.start, _NETWORK, partial(self._crash, g=o.instance))
            self._at(o.end, _NETWORK, partial(self._restart, g=o.instance))
        for o in plan.removals():
            self._at(o.start, _NETWORK, partial(self._health, g=o.instance, more=1))
            self._at(o.end, _NETWORK, partial(self._health, g=o.instance, more=-1))

    def run(self, until: float, most_events: int = 100_000) -> Outcome:
        """Run until `until` s, or until no request is left to serve, whichever is later.

        Raises
        ------
        BrokenPromiseError
            The scheduler broke one, or requests are still not served after `most_events` events.
        """
        while self._heap and (self._heap[0][0] <= until or self._unserved()):
            if self.events > most_events:
                raise BrokenPromiseError(f"after {self.events} events requests {self._unserved()} are not served")
            now, _, _, happen = heapq.heappop(self._heap)
            happen(now)
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
        )

    def _unserved(self) -> list[int]:
        served = {*self.delivered, *self.refused}
        return [request for request in range(len(self.tokens)) if request not in served]

    def _at(self, time: float, rank: int, happen: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, rank, self._count, happen))

    def _hear_at(self, time: float, rank: int, event: Callable[[float], Event]) -> None:
        self._at(time, rank, lambda now: self._hear(event(now)))

    def _hear(self, event: Event) -> None:
        before = self.state
        self.state, actions = self.scheduler.step(before, event)
        self.events += 1
        self.saw_no_instance |= self.state.healthy == 0
        if isinstance(event, Watchdog) and self.state.faults > before.faults:
            self.false_alarms += self.engines[event.instance].running is not None
        self.monitor.after(before, event, self.state, actions)
        for action in actions:
            self._do(event.time, action)

    def _do(self, now: float, action: Action) -> None:
        match action:
            case Send():
                self._send(now, action)
            case ArmWatchdog():
                self._hear_at(action.deadline, _TIMER, partial(Watchdog, instance=action.instance))
                if self._rng.random() < self.plan.spurious:
                    early = now + self._rng.random() * (action.deadline - now)
                    self._hear_at(early, _TIMER, partial(Watchdog, instance=action.instance))
            case WakeAt():
                self._hear_at(max(action.time, now), _TIMER, IntervalTick)
            case Poll():
                g = action.instance
                for at in self._ways(now, g, lossy=True):
                    self._at(at, _NETWORK, partial(self._polled, g=g))
            case Deliver():
                self.delivered.append(action.request)
                self.delivered_at.append(now)
            case Refuse():
                self.refused.append(action.request)

    def _ways(self, now: float, instance: int, lossy: bool) -> list[float]:
        return self.plan.arrivals(self._rng, instance, now, self.setting.latency, lossy)

    # What happens at the instances.

    def _send(self, now: float, action: Send) -> None:
        engine = self.engines[action.instance]
        incarnation, batch = engine.incarnation, [(request, self.tokens[request]) for request in action.requests]

        def receive(then: float) -> None:
            if engine.up and engine.incarnation == incarnation:
                engine.receive(action.seq, action.fence, batch)
                self._start(then, action.instance)

        if engine.up:
            for at in self._ways(now, action.instance, lossy=False):
                self._at(at, _NETWORK, receive)

    def _start(self, now: float, g: int) -> None:
        engine = self.engines[g]
        tokens = engine.start()
        if tokens is None:
            return
        slow = self.plan.slow_factor if self._rng.random() < self.plan.slow else 1.0
        seconds = slow * (0.5 * self.setting.default_pass + self.per_token * tokens)
        incarnation = engine.incarnation

        def end(then: float) -> None:
            if engine.incarnation == incarnation:
                self._end(then, g, seconds)

        self._at(now + seconds, _NETWORK, end)

    def _end(self, now: float, g: int, seconds: float) -> None:
        engine = self.engines[g]
        seq = engine.pass_seq
        for work in engine.end():
            for at in self._ways(now, g, lossy=False):
                self._hear_at(at, _NETWORK, partial(FirstToken, instance=g, seq=work.seq, request=work.request))
        ended = partial(EndForward, instance=g, seq=seq, seconds=seconds, remaining=engine.remaining())
        for at in self._ways(now, g, lossy=True):
            self._hear_at(at, _NETWORK, ended)
        self._start(now, g)

    def _polled(self, now: float, g: int) -> None:
        engine = self.engines[g]
        answer = partial(PollAnswer, instance=g, seq=engine.newest, depth=len(engine.work))
        if engine.up:
            for at in self._ways(now, g, lossy=True):
                self._hear_at(at, _NETWORK, answer)

    def _poll_tick(self, now: float) -> None:
        self._hear(PollTick(now))
        self._at(now + self.poll_period, _TIMER, self._poll_tick)

    def _crash(self, now: float, g: int) -> None:
        self.engines[g].crash()

    def _restart(self, now: float, g: int) -> None:
        self.engines[g].up = True

    def _health(self, now: float, g: int, more: int) -> None:
        self._down[g] += more
        if more > 0 or self._down[g] == 0:
            self._hear(HealthCheck(now, g, more < 0))
