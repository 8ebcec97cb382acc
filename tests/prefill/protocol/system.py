"""One state of everything that the explorer looks at: scheduler, engines, messages on their way, timers, the time."""

from __future__ import annotations

import copy
import math
from collections import Counter
from dataclasses import dataclass

from prefill.protocol.monitor import Monitor
from prefill.protocol.quotient import ahead
from prefill.protocol.reckoned import reckoned

from lbopt.prefill.protocol.faults import Engine
from lbopt.prefill.protocol.state import SchedulerState

#: Tokens of the requests: the second one takes two passes.
TOKENS = (60, 150, 60)
CHUNK, PASS, LATE = 100, 1.0, 2.0
#: s, that every timer takes: sums of times are rounded, and time has to go on where one rings too early by that.
SOON = 1e-9
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
    tokens: tuple[int, ...] = TOKENS
    arrived: int = 0
    ended: frozenset[int] = frozenset()
    now: float = 0.0
    skew: float = 0.0
    faults: int = 0

    def copied(self) -> System:
        return System(
            self.state,
            _watching(self.monitor),
            [_copied(engine) for engine in self.engines],
            list(self.ends),
            list(self.net),
            dict(self.timers),
            self.tokens,
            self.arrived,
            self.ended,
            self.now,
            self.skew,
            self.faults,
        )

    def key(self) -> tuple:
        """Everything but the monitor, what was counted, and the time itself; times count from now."""
        state, now = self.state, self.state.now
        instances = tuple(
            (
                at.phase,
                at.seq,
                ahead(at.deadline, now) if at.due < math.inf else None,
                at.in_flight,
                at.backlog,
                at.known_empty,
                at.measured,
                at.fence,
                at.epoch,
                at.acknowledged,
                at.answered,
                tuple((*batch[:3], ahead(batch.gone, now)) for batch in at.batches),
                at.on_trial,
                ahead(at.armed, now),
            )
            for at in state.instances
        )
        ledger = state.ledger
        books = tuple(sorted(ledger.entries.items())), ledger.back, ledger.first, tuple(sorted(ledger.finished))
        last = None if state.last_dispatch is None else round(max(state.last_dispatch - now, -150.0), 6)
        due = round(max(state.due - now, -150.0), 6)
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
                ahead(end, self.now),
            )
            for engine, end in zip(self.engines, self.ends, strict=True)
        )
        timers = tuple(sorted((which, ahead(at, self.now)) for which, at in self.timers.items()))
        lag = round(self.now + self.skew + state.ahead - now, 6)
        scheduler = (
            instances,
            books,
            state.pace.in_order(self.monitor.setting.window),
            due,
            last,
            state.turn,
            reckoned(state),
        )
        return scheduler, engines, tuple(sorted(self.net, key=repr)), timers, self.arrived, lag


def _watching(monitor: Monitor) -> Monitor:
    """A copy that shares nothing that is changed in place."""
    new = copy.copy(monitor)
    for name, value in vars(monitor).items():
        if isinstance(value, dict | list | set):
            setattr(new, name, copy.copy(value))
    new.claims = monitor.claims.copied()
    return new


def _copied(engine: Engine) -> Engine:
    new = copy.copy(engine)
    new.done = Counter()
    works = {id(work): copy.copy(work) for work in engine.work}
    new.work = [works[id(work)] for work in engine.work]
    if engine.running is not None:
        new.running = [(works[id(work)], tokens) for work, tokens in engine.running]
    return new
