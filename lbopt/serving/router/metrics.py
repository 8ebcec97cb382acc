"""What the router tells Prometheus: imbalance and idle time at the barrier first, which no engine exports.

What can be read off the state is read when somebody scrapes; what happens is counted when it happens. The registry is
the router's own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from lbopt.serving.router.locality_metrics import locality_metrics
from lbopt.serving.router.tally import Tally
from lbopt.serving.state import Ending, Health, RequestTracker

if TYPE_CHECKING:
    from lbopt.serving.router.dispatcher import Stages
    from lbopt.serving.router.service import Router

_WAITS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_DECISIONS = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2)
_ERRORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)


class RouterMetrics(Collector):
    """Counters, and what is read off a router when it is scraped."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self.registry = CollectorRegistry()
        self.retries = 0
        self.refused: Counter[str] = Counter()
        self.stopped: Counter[str] = Counter()
        self.tokens = 0  # of requests that have ended
        self._ends: deque[float] = deque(maxlen=256)
        self._idle: dict[str, list[float]] = {}  # by group: time of the last sample, busy seconds, idle share of them
        self._wait, self._first, self._per_token = Tally(_WAITS), Tally(_WAITS), Tally(_WAITS)
        self._stages = {stage: Tally(_DECISIONS) for stage in ("observe", "decide", "send")}
        self._error = Tally(_ERRORS)
        self.registry.register(self)

    # -- what happens

    def note_decision(self, stages: Stages) -> None:
        """Note the seconds of one decision."""
        self._stages["observe"].note(stages.observe)
        self._stages["decide"].note(stages.decide)
        self._stages["send"].note(stages.send)

    def note_wait(self, tracker: RequestTracker) -> None:
        """Note how long a request was in the pool."""
        self._wait.note(tracker.dispatched_at - tracker.pooled_at)

    def note_estimate(self, estimated: int, counted: int) -> None:
        """Note estimated prompt tokens, and those that the engine counted."""
        self._error.note(abs(estimated - counted) / max(counted, 1))

    def note_end(self, tracker: RequestTracker) -> None:
        """Note that a request has ended."""
        self.tokens += tracker.produced
        self._ends.append(tracker.ended_at)
        if tracker.first_at:
            self._first.note(tracker.first_at - tracker.arrived_at)
            if tracker.ending is Ending.FINISHED and tracker.produced > 1:
                self._per_token.note((tracker.ended_at - tracker.first_at) / (tracker.produced - 1))

    def seconds_to_place(self, waiting: int) -> float:
        """Return about how long so many waiting requests will take to be placed, 1 to 60 s."""
        if len(self._ends) < 2 or self._ends[-1] <= self._ends[0]:
            return 1.0
        rate = (len(self._ends) - 1) / (self._ends[-1] - self._ends[0])
        return min(60.0, max(1.0, waiting / rate))

    def sample_barrier(self, now: float) -> None:
        """Add to the time that workers were idle at the barrier, as the loads of this moment have it."""
        for name, group in self._router.fleet.groups.items():
            last = self._idle.setdefault(name, [now, 0.0, 0.0])
            workers = group.at_barrier
            peak = max((worker.load for worker in workers), default=0)
            if peak > 0:
                passed = now - last[0]
                last[1] += passed
                last[2] += passed * group.imbalance / (len(workers) * peak)
            last[0] = now

    # -- what is read

    def text(self) -> bytes:
        """Return all of it as Prometheus reads it."""
        return generate_latest(self.registry)

    def describe(self) -> Iterator[Metric]:
        """Name nothing before the first scrape: the state may be empty then."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Read the state."""
        self.sample_barrier(self._router.now())
        yield from self._of_tallies()
        yield from self._of_workers()
        yield from self._of_groups()
        yield from self._of_requests()
        router = self._router
        if router.fleet.prefillers:
            share = GaugeMetricFamily("lbopt_prefiller_cache_share", "KV cache in use", labels=["prefiller"])
            held = GaugeMetricFamily("lbopt_prefiller_blocks_held", "Blocks held there", labels=["prefiller"])
            for name, prefiller in router.fleet.prefillers.items():
                share.add_metric([name], prefiller.share)
                held.add_metric([name], prefiller.blocks)
            yield from (share, held)
        if router.signatures is not None:
            yield from locality_metrics(router.signatures)
        if router.shadow is not None:
            yield from router.shadow.collect()

    def _of_tallies(self) -> Iterator[Metric]:
        for name, text, tally in (
            ("lbopt_pool_wait_seconds", "Time in the pool until a worker was chosen", self._wait),
            ("lbopt_time_to_first_token_seconds", "From the arrival to the first chunk of an engine", self._first),
            ("lbopt_time_per_output_token_seconds", "From the first chunk to the end, per token", self._per_token),
            (
                "lbopt_prompt_estimate_error",
                "Share by which the estimated prompt tokens differ from those that the engine counted",
                self._error,
            ),
        ):
            yield HistogramMetricFamily(name, text, buckets=tally.buckets(), sum_value=tally.sum)
        stages = HistogramMetricFamily("lbopt_dispatch_seconds", "One decision, by stage", labels=["stage"])
        for stage, tally in self._stages.items():
            stages.add_metric([stage], tally.buckets(), tally.sum)
        yield stages

    def _of_workers(self) -> Iterator[Metric]:
        labels = ["group", "worker"]
        load = GaugeMetricFamily("lbopt_worker_tokens", "Tokens that the worker holds", labels=labels)
        running = GaugeMetricFamily("lbopt_worker_running", "Requests in its slots", labels=labels)
        queued = GaugeMetricFamily("lbopt_worker_queued", "Requests bound to it without a slot", labels=labels)
        up = GaugeMetricFamily(
            "lbopt_worker_up", "1 = takes requests, 0.75 = rests, 0.5 = drains, 0 = down", labels=labels
        )
        drift = GaugeMetricFamily(
            "lbopt_mirror_drift_tokens", "Tokens by the engine's metrics minus those of the mirror", labels=labels
        )
        drifted = GaugeMetricFamily(
            "lbopt_mirror_drift_requests", "Requests by the engine's metrics minus those of the mirror", labels=labels
        )
        states = {Health.UP: 1.0, Health.RESTING: 0.75, Health.DRAINING: 0.5, Health.DOWN: 0.0}
        for worker, endpoint in self._router.endpoints.items():
            names = [worker.group.name, worker.name]
            load.add_metric(names, worker.load)
            running.add_metric(names, len(worker.running))
            queued.add_metric(names, len(worker.queue))
            up.add_metric(names, states[worker.health])
            if endpoint.read_at >= 0:
                drifted.add_metric(names, endpoint.drift_requests)
            if endpoint.drift_tokens is not None:
                drift.add_metric(names, endpoint.drift_tokens)
        yield from (load, running, queued, up, drift, drifted)

    def _of_groups(self) -> Iterator[Metric]:
        imbalance = GaugeMetricFamily(
            "lbopt_imbalance_tokens", "Workers times the largest load, minus the sum of loads", labels=["group"]
        )
        busy = CounterMetricFamily("lbopt_barrier_seconds", "Time with a request running", labels=["group"])
        idle = CounterMetricFamily(
            "lbopt_barrier_idle_seconds", "The same times the share that workers wait at the barrier", labels=["group"]
        )
        steps = CounterMetricFamily("lbopt_steps", "Steps of the group, by its tokens", labels=["group"])
        for name, group in self._router.fleet.groups.items():
            imbalance.add_metric([name], group.imbalance)
            _, seconds, share = self._idle.get(name, (0.0, 0.0, 0.0))
            busy.add_metric([name], seconds)
            idle.add_metric([name], share)
            steps.add_metric([name], group.step)
        yield from (imbalance, busy, idle, steps)

    def _of_requests(self) -> Iterator[Metric]:
        router = self._router
        pool = GaugeMetricFamily("lbopt_pool_requests", "Requests that wait in the pool", labels=["model"])
        oldest = GaugeMetricFamily("lbopt_pool_oldest_seconds", "Wait of the oldest of them", labels=["model"])
        now = router.now()
        for model, requests in router.fleet.pools.items():
            pool.add_metric([model], len(requests))
            oldest.add_metric([model], max((now - tracker.pooled_at for tracker in requests), default=0.0))
        yield from (pool, oldest)
        yield GaugeMetricFamily("lbopt_held_bytes", "Bytes of bodies and whole answers", router.budget.held)
        yield GaugeMetricFamily("lbopt_live_requests", "Requests between arrival and end", len(router.fleet.live))
        ended = CounterMetricFamily("lbopt_requests", "Requests that have ended, by ending", labels=["ending"])
        for ending in Ending:
            ended.add_metric([ending.value], router.fleet.endings[ending])
        yield ended
        refused = CounterMetricFamily("lbopt_refused_requests", "Requests not taken, by reason", labels=["reason"])
        stopped = CounterMetricFamily("lbopt_stopped_requests", "Requests ended by a limit", labels=["reason"])
        for family, counts in ((refused, self.refused), (stopped, self.stopped)):
            for reason, count in counts.items():
                family.add_metric([reason], count)
            yield family
        running = sum(tracker.produced for tracker in router.fleet.live.values())
        dispatcher = router.dispatcher
        for name, help_text, value in (
            ("lbopt_output_tokens", "Tokens that went to clients", self.tokens + running),
            ("lbopt_retries", "Further attempts", self.retries),
            ("lbopt_recomputations", "Requests that an engine pre-empted", router.fleet.recomputations),
            ("lbopt_late_events", "Events about requests that had ended", router.fleet.late_events),
            (
                "lbopt_late_decisions",
                "Decisions of the fall-back rule because of the deadline",
                dispatcher.late_decisions,
            ),
            (
                "lbopt_failed_decisions",
                "Decisions of the fall-back rule because of an error",
                dispatcher.failed_decisions,
            ),
            ("lbopt_rounds", "Rounds of the dispatcher", dispatcher.rounds),
            ("lbopt_failed_rounds", "Rounds in which requests were placed by load", dispatcher.failed_rounds),
            ("lbopt_lost_records", "Rows of the record that could not be written", self._lost_records()),
        ):
            yield CounterMetricFamily(name, help_text, value)

    def _lost_records(self) -> int:
        return 0 if self._router.record is None else self._router.record.lost
