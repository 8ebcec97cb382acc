"""Shadow: another rule decides beside the one that forwards, on a fleet of its own that exists only as books.

The shadow sees the same arrivals. Its requests run as fast as the real group steps: one token a step, until the real
request has ended and as many tokens are made. So its imbalance, its waits and its choices can be laid beside the real
ones, without a risk. It does not say how much faster steps would have been: the real steps set the pace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric

from lbopt.model import Trace
from lbopt.serving.families import counter, gauge
from lbopt.serving.router.dispatcher import Dispatcher, rule_for, warm
from lbopt.serving.router.metrics import Course
from lbopt.serving.rule import LiveRule
from lbopt.serving.state import Ending, FleetState, Health, RequestTracker, Stage, WorkerMirror

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router


#: More steps than any request has.
_REST = 2**40


class _Course(Course):
    """The course of one fleet, and how long its requests waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0.0
        self.placed = 0

    def note(self, wait: float) -> None:
        """Note that a request was placed after so many seconds."""
        self.waits += wait
        self.placed += 1

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the means."""
        return {
            "mean_imbalance_tokens": self.imbalance / self.busy if self.busy else None,
            "idle_share_at_barrier": self.idle / self.busy if self.busy else None,
            "mean_wait_seconds": self.waits / self.placed if self.placed else None,
            "placed": self.placed,
        }


class Shadow:
    """The fleet that a rule would have made.

    Parameters
    ----------
    router
        The router that forwards.
    spec
        The rule that decides beside it.
    training
        Requests from which a predictor learns.
    """

    def __init__(self, router: Router, spec: str, training: Trace | None) -> None:
        self._router = router
        rules = {name: rule_for(spec, plan, training) for name, plan in router.groups.items()}
        self.rule_name = next(iter(rules.values())).name
        self.fleet = FleetState(seed=router.options.seed, draws=any(rule.draws for rule in rules.values()))
        for name, plan in router.groups.items():
            self.fleet.add_group(name, plan.model)
            for address in plan.workers:
                self.fleet.worker_up(name, address.name, plan.slots)
        self._dispatcher = Dispatcher(self.fleet, rules, rules, router.now, router.options, look=self._look)
        self._twins: dict[int, RequestTracker] = {}
        self._outputs: dict[int, int] = {}  # of real requests that have ended, where the twin has not
        self._steps = dict.fromkeys(router.groups, 0)
        self._at = 0.0
        self.alike = self.different = 0
        self.real, self.own = _Course(), _Course()

    @property
    def rules(self) -> list[LiveRule]:
        """The rule of each group."""
        return list(self._dispatcher.rules.values())

    def warm(self) -> None:
        """Compile what the rule needs."""
        for name, rule in self._dispatcher.rules.items():
            warm(rule, self._router.groups[name])

    def arrived(self, real: RequestTracker) -> None:
        """Let the twin of a request arrive."""
        self.advance()
        twin = self.fleet.arrived(real.pool.model, real.prompt, real.arrived_at, real.sequences)
        twin.signature = real.signature
        self._twins[real.number] = twin
        self.fleet.prefilled(twin, real.arrived_at)
        self._dispatcher.round()

    def ended(self, real: RequestTracker, worker: WorkerMirror | None) -> None:
        """Note that a real request has ended on a worker: its twin may have, too."""
        self.advance()
        twin = self._twins.get(real.number)
        if twin is None:
            return
        if real.attempt:
            self.real.note(real.dispatched_at - real.arrived_at)
            self.alike += worker is not None and worker.name == twin.payload
            self.different += worker is None or worker.name != twin.payload
        if real.ending is not Ending.FINISHED:
            self.fleet.cancelled(twin, self._router.now())
            del self._twins[real.number]
        else:
            self._outputs[real.number] = real.produced
            if real.prompt != twin.prompt and not real.recomputations:
                self.fleet.corrected(twin, real.prompt)
            self._finish_if_done(twin)
        self._dispatcher.round()

    def advance(self) -> None:
        """Bring the books to the present: steps of the real groups, workers that came and went."""
        now = self._router.now()
        passed, self._at = now - self._at if self._at else 0.0, now
        for course, fleet in ((self.real, self._router.fleet), (self.own, self.fleet)):
            for group in fleet.groups.values():
                course.add(group, passed)
        self._follow_workers(now)
        for name, group in self.fleet.groups.items():
            real = self._router.fleet.groups[name]
            made, self._steps[name] = real.step - self._steps[name], real.step
            if not any(worker.running for worker in real.workers):
                made = _REST  # the real group stands still, and the shadow has the time to end what it has left
            if made > 0:
                for worker in group.workers:
                    for twin in list(worker.running.values()):
                        self.fleet.tokens(twin, self._bounded(twin, made), twin.attempt)
                        self._finish_if_done(twin)
        if any(len(pool) for pool in self.fleet.pools.values()):
            self._dispatcher.round()

    def _bounded(self, twin: RequestTracker, made: int) -> int:
        output = self._outputs.get(twin.number)
        if output is None:
            return made * twin.sequences if made < _REST else 0
        return max(0, min(made * twin.sequences, output - twin.produced))

    def _finish_if_done(self, twin: RequestTracker) -> None:
        output = self._outputs.get(twin.number)
        if output is not None and twin.stage is Stage.RUNNING and twin.produced >= output:
            self.fleet.finished(twin, self._router.now(), twin.attempt)
            del self._twins[twin.number], self._outputs[twin.number]

    def _follow_workers(self, now: float) -> None:
        for name, group in self._router.fleet.groups.items():
            own = {worker.name: worker for worker in self.fleet.groups[name].workers}
            real = {worker.name: worker for worker in group.workers}
            for worker_name, worker in real.items():
                twin = own.get(worker_name)
                if worker.health is Health.UP and (twin is None or twin.health is not Health.UP):
                    self.fleet.worker_up(name, worker_name, worker.slots)
                elif worker.health is Health.DRAINING and twin is not None and twin.health is Health.UP:
                    self.fleet.draining(twin)
                elif worker.health is Health.DOWN and twin is not None and twin.health is not Health.DOWN:
                    self._down(twin, now)
            for worker_name in own.keys() - real.keys():
                if own[worker_name].health is not Health.DOWN:
                    self._down(own[worker_name], now)

    def _down(self, twin: Any, now: float) -> None:
        _, failed = self.fleet.down(twin, now)
        for tracker in failed:
            self._twins.pop(tracker.number, None)
            self._outputs.pop(tracker.number, None)

    def _look(self, sight: Any, decision: Any, rule: str, stages: Any) -> None:
        now = self._router.now()
        for tracker, worker in zip(sight.waiting, decision.tolist(), strict=True):
            if worker >= 0:
                self.own.note(now - tracker.arrived_at)
                tracker.payload = sight.workers[worker].name
        if self._router.record is not None:
            self._router.record.decided(sight, decision, rule, stages, [], is_shadow=True)

    def summary(self) -> dict[str, Any]:
        """Return both courses side by side."""
        return {
            "forwards": {"rule": self._router.rule_name, **self.real.to_dict()},
            "shadow": {"rule": self.rule_name, **self.own.to_dict()},
            "placements_alike": self.alike,
            "placements_different": self.different,
        }

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        with contextlib.suppress(RuntimeError):
            self.advance()
        imbalance = {name: group.imbalance for name, group in self.fleet.groups.items()}
        yield gauge("lbopt_shadow_imbalance_tokens", "Imbalance of the shadow's loads", imbalance, "group")
        yield counter("lbopt_shadow_barrier_seconds", "Time with a request running", self.own.busy)
        yield counter("lbopt_shadow_barrier_idle_seconds", "Of it idle at the barrier", self.own.idle)
        yield counter("lbopt_shadow_placed", "Placements of the shadow", self.own.placed)
        yield counter("lbopt_shadow_different", "Placements on another worker", self.different)
