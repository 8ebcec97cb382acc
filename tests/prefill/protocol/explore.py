"""All interleavings of two instances and three requests up to a depth, with faults: a model checker over the pure
`step`.

    cd tests && python -m prefill.protocol.explore --depth 9 --faults 2

A *system* is the scheduler's state, the two engines, the messages on their way, the timers that are set and the true
time. What may happen next: a request comes; a message on its way is delivered, whichever; time goes on to what is due
first, a timer or the end of a pass. As often as there are faults left: a message is lost or doubled; an instance
restarts unnoticed, forgets under its epoch, or dies (not both); all that is on its way to and from an instance is
lost; a timer fires early, or late; a pass is reported as 3,600 s; the clock steps back or forward.

Breadth first: each system is reached by a shortest path, and expanded once; systems that differ only in the time at
which they are reached, or in what was counted, are one. Two things are checked.

Safety
    the monitor watches the first path to each system.
Liveness
    from every system that is reached, once nothing more goes wrong, all requests are served or refused within X (see
    `lbopt.prefill.protocol.monitor`). What then happens is determined: messages arrive at once and in order, requests
    come now, timers and passes end when they are due. These continuations run into each other, so that each is
    followed only until it meets a system whose time is known.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from prefill.protocol.reckoned import reckoned

from lbopt.prefill.protocol import Monitor, ProtocolSetting, TripleCheck, initial_state
from lbopt.prefill.protocol.engine import Engine, Work
from lbopt.prefill.protocol.messages import (
    ArmWatchdog,
    Arrival,
    Deliver,
    EndForward,
    FirstToken,
    IntervalTick,
    Poll,
    PollAnswer,
    PollTick,
    Refuse,
    Send,
    WakeAt,
    Watchdog,
)
from lbopt.prefill.protocol.state import SchedulerState

#: Tokens of the requests: the second one takes two passes.
TOKENS = (60, 150, 60)
CHUNK, PASS, LATE = 100, 1.0, 2.0
#: Timers beside those of the instances.
INTERVAL, POLLS = -1, -2


@dataclass(slots=True)
class System:
    """One state of everything; copied before it is changed."""

    state: SchedulerState
    monitor: Monitor
    engines: list[Engine]
    ends: list[float]
    net: list[tuple]
    timers: dict[int, float]
    arrived: int = 0
    ended: frozenset[int] = frozenset()
    now: float = 0.0
    skew: float = 0.0
    faults: int = 0

    def copied(self) -> System:
        monitor = copy.copy(self.monitor)
        for name in (
            "tokens",
            "where",
            "waits_since",
            "requeued",
            "live",
            "sent_at",
            "timer",
            "joined",
            "sums",
            "gone",
        ):
            setattr(monitor, name, dict(getattr(monitor, name)))
        monitor.epoch, monitor.open, monitor.tried = list(monitor.epoch), set(monitor.open), set(monitor.tried)
        return replace(
            self,
            monitor=monitor,
            engines=[_copied(engine) for engine in self.engines],
            ends=list(self.ends),
            net=list(self.net),
            timers=dict(self.timers),
        )

    def key(self) -> tuple:
        """What decides the future; times count from now."""
        state, now = self.state, self.state.now
        instances = tuple(
            (
                at.phase,
                at.seq,
                _ahead(at.deadline, now) if at.due < math.inf else None,
                at.in_flight,
                at.backlog,
                at.known_empty,
                at.measured,
                at.fence,
                at.epoch,
                at.acknowledged,
                at.answered,
                tuple((*batch[:3], _ahead(batch.gone, now)) for batch in at.batches),
                at.on_trial,
                _ahead(at.armed, now),
            )
            for at in state.instances
        )
        ledger = state.ledger
        books = tuple(sorted(ledger.entries.items())), ledger.back, ledger.first, tuple(sorted(ledger.finished))
        last = None if state.last_dispatch is None else round(max(state.last_dispatch - now, -150.0), 6)
        engines = tuple(
            (
                engine.up,
                engine.epoch,
                engine.newest,
                engine.fence,
                engine.missing,
                engine.pass_seq,
                tuple((work.seq, work.request, work.tokens) for work in engine.work),
                None if engine.running is None else tuple((work.request, n) for work, n in engine.running),
                _ahead(end, self.now),
            )
            for engine, end in zip(self.engines, self.ends, strict=True)
        )
        timers = tuple(sorted((which, _ahead(at, self.now)) for which, at in self.timers.items()))
        lag = round(self.now + self.skew + state.ahead - now, 6)
        scheduler = instances, books, state.pace.measured, _ahead(state.due, now), last, state.turn, reckoned(state)
        return scheduler, engines, tuple(sorted(self.net, key=repr)), timers, self.arrived, lag, self.faults


class Explorer:
    """All that may happen to a scheduler.

    Parameters
    ----------
    scheduler
        The one to check.
    polls
        Whether instances are polled every second pass.
    monitored
        Whether the monitor watches.
    """

    def __init__(self, scheduler: TripleCheck, polls: bool, monitored: bool = True) -> None:
        self.scheduler, self.polls, self.monitored = scheduler, polls, monitored
        self.remaining: dict[tuple, float] = {}
        self.worst = 0.0
        self.closest = 0.0

    def start(self, faults: int) -> System:
        setting = self.scheduler.setting
        system = System(
            initial_state(setting),
            Monitor(setting, late=math.inf),
            [Engine(CHUNK) for _ in range(setting.num_instances)],
            [math.inf] * setting.num_instances,
            [],
            {POLLS: 2 * PASS} if self.polls else {},
            faults=faults,
        )
        self.hear(system, IntervalTick(0.0))
        return system

    def hear(self, system: System, event) -> None:
        before = system.state
        system.state, actions = self.scheduler.step(before, event)
        if self.monitored:
            system.monitor.after(before, event, system.state, actions, system.now)
        for action in actions:
            match action:
                case Send():
                    engine = system.engines[action.instance]
                    if engine.up:
                        system.net.append(("batch", action.instance, engine.epoch, action))
                case ArmWatchdog():
                    system.timers[action.instance] = max(system.now, action.deadline - system.skew)
                case WakeAt():
                    system.timers[INTERVAL] = max(system.now, action.time - system.skew)
                case Poll():
                    system.net.append(("poll", action.instance, 0, action.asked))
                case Deliver() | Refuse():
                    assert action.request not in system.ended, f"request {action.request} ends twice"
                    system.ended |= {action.request}

    def clock(self, system: System) -> float:
        return system.now + system.skew

    # What may happen.

    def arrive(self, system: System) -> None:
        request = system.arrived
        system.arrived += 1
        self.hear(system, Arrival(self.clock(system), request, TOKENS[request]))

    def deliver(self, system: System, message: tuple) -> None:
        system.net.remove(message)
        kind, g, epoch, what = message
        engine = system.engines[g]
        if kind == "event":
            self.hear(system, replace(what, time=self.clock(system)))
        elif engine.up and kind == "poll":
            self.answer(system, g, what)
        elif engine.up and engine.epoch == epoch:
            batch = [(request, TOKENS[request]) for request in what.requests]
            if engine.receive(what.seq, what.fence, what.epoch, batch):
                self.begin(system, g)
            else:
                self.answer(system, g, 0)

    def answer(self, system: System, g: int, asked: int) -> None:
        engine = system.engines[g]
        told = PollAnswer(0.0, g, engine.newest, len(engine.work), engine.epoch, engine.oldest, engine.missing, asked)
        system.net.append(("event", g, 0, told))

    def begin(self, system: System, g: int) -> None:
        if system.engines[g].start() is not None:
            system.ends[g] = system.now + PASS

    def end(self, system: System, g: int, seconds: float = PASS) -> None:
        engine = system.engines[g]
        system.now, system.ends[g] = system.ends[g], math.inf
        seq = engine.pass_seq
        for work in engine.end():
            system.net.append(("event", g, 0, FirstToken(0.0, g, work.seq, work.request, engine.epoch)))
        ended = EndForward(0.0, g, seq, seconds, engine.remaining(), engine.epoch, engine.oldest, engine.missing)
        system.net.append(("event", g, 0, ended))
        self.begin(system, g)

    def ring(self, system: System, which: int, at: float) -> None:
        del system.timers[which]
        system.now = max(system.now, at)
        now = self.clock(system)
        if which == POLLS:
            system.timers[POLLS] = system.now + 2 * PASS
            self.hear(system, PollTick(now))
        else:
            self.hear(system, IntervalTick(now) if which == INTERVAL else Watchdog(now, which))

    def forget(self, system: System, g: int, kind: str) -> None:
        engine = system.engines[g]
        system.ends[g] = math.inf
        if kind == "lapses":
            engine.forget()
            return
        engine.crash()
        engine.up = kind == "restarts"
        if engine.up:
            self.answer(system, g, 0)

    def due(self, system: System) -> list[tuple[float, str, int]]:
        """What is due first: timers, then passes."""
        coming = [(at, "timer", which) for which, at in system.timers.items()]
        coming += [(at, "pass", g) for g, at in enumerate(system.ends) if at < math.inf]
        first = min((at for at, _, _ in coming), default=math.inf)
        return sorted((one for one in coming if one[0] <= first), key=lambda one: (one[1] != "timer", one[2]))

    def moves(self, system: System) -> Iterator[tuple[str, tuple, bool]]:
        """All that may happen: the method's name, its arguments, and whether it is a fault."""
        if system.arrived < len(TOKENS):
            yield "arrive", (), False
        for message in dict.fromkeys(system.net):
            yield "deliver", (message,), False
        due = self.due(system)
        for at, kind, which in due:
            yield ("ring", (which, at), False) if kind == "timer" else ("end", (which,), False)
        if not system.faults:
            return
        for message in dict.fromkeys(system.net):
            yield "lose", (message,), True
            if message[0] != "poll":
                yield "double", (message,), True
        alive = [g for g, engine in enumerate(system.engines) if engine.up]
        for g in alive:
            yield "forget", (g, "restarts"), True
            yield "forget", (g, "lapses"), True
            if len(alive) == len(system.engines):
                yield "forget", (g, "dies"), True
            if sum(message[1] == g for message in system.net) > 1:
                yield "cut", (g,), True
        for which, at in system.timers.items():
            if which != POLLS and at > system.now:
                yield "ring", (which, system.now), True
                yield "postpone", (which,), True
        for _, kind, which in due:
            if kind == "pass":
                yield "end", (which, 3600.0), True
        for step in (-1.5, 20.0):
            yield "step", (step,), True

    def lose(self, system: System, message: tuple) -> None:
        system.net.remove(message)

    def double(self, system: System, message: tuple) -> None:
        system.net.append(message)

    def cut(self, system: System, g: int) -> None:
        system.net = [message for message in system.net if message[1] != g]

    def postpone(self, system: System, which: int) -> None:
        system.timers[which] += LATE

    def step(self, system: System, step: float) -> None:
        system.skew += step

    def after(self, system: System, name: str, arguments: tuple, fault: bool) -> System:
        new = system.copied()
        new.faults -= fault
        getattr(self, name)(new, *arguments)
        return new

    # Liveness.

    def settles(self, system: System) -> float:
        """Return after how many seconds all requests have ended if nothing more goes wrong."""
        path: list[tuple[tuple, float]] = []
        began, rest = system.now, None
        system = system.copied()
        system.faults = 0
        while rest is None:
            if system.arrived == len(TOKENS) and len(system.ended) == len(TOKENS):
                rest = 0.0
                break
            key = system.key()
            if key in self.remaining:
                rest = self.remaining[key]
                break
            path.append((key, system.now))
            if system.now - began > 1000 * PASS or len(path) > 5000:
                raise AssertionError(f"requests {set(range(len(TOKENS))) - system.ended} are stranded: {system}")
            if system.net:
                self.deliver(system, system.net[0])
            elif system.arrived < len(TOKENS):
                self.arrive(system)
            else:
                at, kind, which = self.due(system)[0]
                self.ring(system, which, at) if kind == "timer" else self.end(system, which)
        until = system.now + rest
        for key, now in path:
            self.remaining[key] = until - now
        return until - began

    def check(self, system: System) -> None:
        took = self.settles(system)
        work = sum(len(engine.work) for engine in system.engines)
        passes = 2 * (len(TOKENS) + work)
        setting = self.scheduler.setting
        late, system.monitor.late = system.monitor.late, 0.0
        bound = system.monitor.served_within(len(TOKENS), passes, 2 * PASS)
        system.monitor.late = late
        self.worst, self.closest = max(self.worst, took), max(self.closest, took / bound)
        assert took <= bound, f"served after {took:g} s, bound {bound:g} s, {setting}"


def explore(
    depth: int,
    faults: int,
    scheduler: type[TripleCheck] = TripleCheck,
    polls: bool = False,
    progress: bool = False,
    monitored: bool = True,
    **setting,
) -> tuple[Counter, Explorer]:
    """Check all systems within `depth` moves of the start; returns the number of systems by depth, and the explorer.

    Parameters
    ----------
    depth, faults
        Moves, and how many of them may be faults.
    scheduler
        The class to check.
    polls
        Whether instances are polled.
    progress
        Whether to print each depth.
    monitored
        Whether the monitor watches.
    setting
        Of the protocol.
    """
    explorer = Explorer(scheduler(ProtocolSetting(2, **{"window": 3, "watchdog": 3.0, **setting})), polls, monitored)
    start = explorer.start(faults)
    seen, layer, count = {hash(start.key())}, [start], Counter({0: 1})
    for level in range(1, depth + 1):
        began, next_layer = time.process_time(), []
        while layer:
            system = layer.pop()
            for name, arguments, fault in explorer.moves(system):
                new = explorer.after(system, name, arguments, fault)
                key = hash(new.key())
                if key in seen:
                    continue
                seen.add(key)
                count[level] += 1
                explorer.check(new)
                if level < depth:
                    next_layer.append(new)
        layer = next_layer
        if progress:
            spent = time.process_time() - began
            print(f"depth {level:2}: {count[level]:>9,} systems, {spent:7.1f} s", file=sys.stderr, flush=True)
    return count, explorer


def _copied(engine: Engine) -> Engine:
    new = replace(engine, done=Counter())
    works = {id(work): Work(work.seq, work.request, work.tokens) for work in engine.work}
    new.work = [works[id(work)] for work in engine.work]
    if engine.running is not None:
        new.running = [(works[id(work)], tokens) for work, tokens in engine.running]
    return new


def _ahead(time: float, now: float) -> float:
    return max(0.0, round(time - now, 6))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=9)
    parser.add_argument("--faults", type=int, default=2)
    parser.add_argument("--polls", action="store_true")
    parser.add_argument("--timer", default="spacing")
    parser.add_argument("--dispatch", default="ready")
    given = parser.parse_args()
    began = time.process_time()
    setting = {"timer": given.timer, "dispatch": given.dispatch}
    count, explorer = explore(given.depth, given.faults, polls=given.polls, progress=True, **setting)
    spent = time.process_time() - began
    print(
        f"{sum(count.values()):,} systems to depth {given.depth} with {given.faults} faults, {spent:.0f} s CPU; all "
        f"requests served within {explorer.worst:g} s, at most {100 * explorer.closest:.0f} % of the bound"
    )


if __name__ == "__main__":
    main()
