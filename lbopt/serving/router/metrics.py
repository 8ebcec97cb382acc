"""What the router tells Prometheus: imbalance and idle time at the barrier first, which no engine exports.

What can be read off the state is read at a scrape; what happens is counted when it happens. The registry is
the router's own.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from lbopt.serving.families import Tally, counter, gauge, histogram
from lbopt.serving.state import BarrierGroup, Ending, Health, RequestTracker, WorkerMirror

if TYPE_CHECKING:
    from lbopt.serving.router.dispatcher import Stages
    from lbopt.serving.router.endpoint import Endpoint
    from lbopt.serving.router.service import Router
    from lbopt.serving.router.signatures import Signatures

_WAITS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
_DECISIONS = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2)
_ERRORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)

_UP = {Health.UP: 1.0, Health.RESTING: 0.75, Health.DRAINING: 0.5, Health.DOWN: 0.0}
_SAID_OF_HEALTH = "1 = takes requests, 0.75 = rests, 0.5 = drains, 0 = down"
_OF_DRIFT = {
    "similarity": "Cosine to the nearest centroid",
    "band_workers": "Workers in the band",
    "strange_share": "Share of choices at experts that no calibration request used",
}


class Course:
    """What was seen of loads over time, token seconds and seconds: how long workers were idle at the barrier."""

    def __init__(self) -> None:
        self.busy = 0.0
        self.idle = 0.0
        self.imbalance = 0.0

    def add(self, group: BarrierGroup, seconds: float) -> None:
        """Take in so many seconds of the present loads of a group."""
        workers = group.at_barrier
        peak = max((worker.load for worker in workers), default=0)
        if peak > 0:
            imbalance = group.imbalance
            self.busy += seconds
            self.idle += seconds * imbalance / (len(workers) * peak)
            self.imbalance += seconds * imbalance


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
        self._courses: defaultdict[str, Course] = defaultdict(Course)  # by group
        self._sampled_at: float | None = None
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
        if tracker.first_at and tracker.ending is not Ending.REJECTED:
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
        for group in self._router.fleet.groups.values():
            self._courses[group.name].add(group, 0.0 if self._sampled_at is None else now - self._sampled_at)
        self._sampled_at = now

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
        if self._router.fleet.prefillers:
            yield from self._of_prefillers()
        if self._router.signatures is not None:
            yield from _of_locality(self._router.signatures)
        if self._router.shadow is not None:
            yield from self._router.shadow.collect()

    def _of_tallies(self) -> list[Metric]:
        return [
            histogram("lbopt_pool_wait_seconds", "Time in the pool until a worker was chosen", self._wait),
            histogram(
                "lbopt_time_to_first_token_seconds", "From the arrival to the first chunk of an engine", self._first
            ),
            histogram(
                "lbopt_time_per_output_token_seconds", "From the first chunk to the end, per token", self._per_token
            ),
            histogram(
                "lbopt_prompt_estimate_error",
                "Share by which the estimated prompt tokens differ from those that the engine counted",
                self._error,
            ),
            histogram("lbopt_dispatch_seconds", "One decision, by stage", self._stages, "stage"),
        ]

    def _of_workers(self) -> list[Metric]:
        workers = {(worker.group.name, worker.name): (worker, e) for worker, e in self._router.endpoints.items()}

        def of(name: str, text: str, read: Callable[[WorkerMirror, Endpoint], float | None]) -> Metric:
            values = {names: value for names, both in workers.items() if (value := read(*both)) is not None}
            return gauge(name, text, values, "group", "worker")

        return [
            of("lbopt_worker_tokens", "Tokens that the worker holds", lambda w, _: w.load),
            of("lbopt_worker_running", "Sequences in its slots", lambda w, _: w.seated),
            of("lbopt_worker_queued", "Sequences bound to it without a slot", lambda w, _: w.bound - w.seated),
            of(
                "lbopt_worker_up",
                "1 = takes requests, 0.75 = rests, 0.5 = drains, 0 = down",
                lambda w, _: _UP[w.health],
            ),
            of(
                "lbopt_mirror_drift_tokens",
                "Tokens by the engine's metrics minus those of the mirror",
                lambda _, endpoint: endpoint.drift_tokens,
            ),
            of(
                "lbopt_mirror_drift_requests",
                "Sequences by the engine's metrics minus those of the mirror",
                lambda _, endpoint: endpoint.drift_requests if endpoint.read_at >= 0 else None,
            ),
        ]

    def _of_groups(self) -> list[Metric]:
        groups, courses = self._router.fleet.groups, self._courses
        return [
            gauge(
                "lbopt_imbalance_tokens",
                "Workers times the largest load, minus the sum of loads",
                {name: group.imbalance for name, group in groups.items()},
                "group",
            ),
            counter(
                "lbopt_barrier_seconds",
                "Time with a request running",
                {name: courses[name].busy for name in groups},
                "group",
            ),
            counter(
                "lbopt_barrier_idle_seconds",
                "The same times the share that workers wait at the barrier",
                {name: courses[name].idle for name in groups},
                "group",
            ),
            counter(
                "lbopt_steps",
                "Steps of the group, by its tokens",
                {name: group.step for name, group in groups.items()},
                "group",
            ),
        ]

    def _of_requests(self) -> list[Metric]:
        router, fleet, dispatcher = self._router, self._router.fleet, self._router.dispatcher
        now, pools = router.now(), fleet.pools.items()
        made = self.tokens + sum(tracker.produced for tracker in fleet.live.values())
        return [
            gauge(
                "lbopt_pool_requests",
                "Requests that wait in the pool",
                {model: len(pool) for model, pool in pools},
                "model",
            ),
            gauge(
                "lbopt_pool_oldest_seconds",
                "Wait of the oldest of them",
                {model: max((now - tracker.pooled_at for tracker in pool), default=0.0) for model, pool in pools},
                "model",
            ),
            gauge("lbopt_held_bytes", "Bytes of bodies and whole answers", router.budget.held),
            gauge("lbopt_live_requests", "Requests between arrival and end", len(fleet.live)),
            counter(
                "lbopt_requests",
                "Requests that have ended, by ending",
                {ending.value: fleet.endings[ending] for ending in Ending},
                "ending",
            ),
            counter("lbopt_refused_requests", "Requests not taken, by reason", self.refused, "reason"),
            counter("lbopt_stopped_requests", "Requests ended by a limit", self.stopped, "reason"),
            counter("lbopt_output_tokens", "Tokens that went to clients", made),
            counter("lbopt_retries", "Further attempts", self.retries),
            counter("lbopt_recomputations", "Requests that an engine pre-empted", fleet.recomputations),
            counter("lbopt_late_events", "Events about requests that had ended", fleet.late_events),
            counter(
                "lbopt_late_decisions",
                "Decisions of the fall-back rule because of the deadline",
                dispatcher.late_decisions,
            ),
            counter(
                "lbopt_failed_decisions",
                "Decisions of the fall-back rule because of an error",
                dispatcher.failed_decisions,
            ),
            counter("lbopt_rounds", "Rounds of the dispatcher", dispatcher.rounds),
            counter("lbopt_failed_rounds", "Rounds in which requests were placed by load", dispatcher.failed_rounds),
            counter(
                "lbopt_lost_records",
                "Rows of the record that could not be written",
                0 if router.record is None else router.record.lost,
            ),
        ]

    def _of_prefillers(self) -> list[Metric]:
        prefillers = self._router.fleet.prefillers.items()
        return [
            gauge(
                "lbopt_prefiller_cache_share", "KV cache in use", {name: p.share for name, p in prefillers}, "prefiller"
            ),
            gauge(
                "lbopt_prefiller_blocks_held",
                "Blocks held there",
                {name: p.blocks for name, p in prefillers},
                "prefiller",
            ),
        ]


def _of_locality(signatures: Signatures) -> Iterator[Metric]:
    """Read what is known of signatures and drift, by model; of several groups of a model, by their number."""
    rules = {(model, str(n)): rule for model, rules in signatures.rules.items() for n, rule in enumerate(rules)}
    readings = {names: rule.watch.reading() for names, rule in rules.items() if rule.watch is not None}
    group = ("model", "group")
    yield counter("lbopt_locality_requests", "Requests by where their signature was from", signatures.sources, "source")
    yield counter("lbopt_locality_learned", "Signatures that were remembered", signatures.learned)
    yield gauge("lbopt_locality_remembered", "Entries that are remembered", signatures.remembered, "model")
    yield gauge(
        "lbopt_locality_table_info",
        "1 for the routing table that decides",
        {(*names, rule.table_id): 1 for names, rule in rules.items()},
        *(*group, "table"),
    )
    yield gauge(
        "lbopt_locality_watched_requests",
        "Requests since the watch on drift began",
        {names: reading.requests for names, reading in readings.items()},
        *group,
    )
    for number, (name, text) in enumerate(_OF_DRIFT.items()):
        live = {(*names, "live"): (r.similarity, r.band, r.strange)[number] for names, r in readings.items()}
        expected = {(*names, "calibration"): reading.expected[number] for names, reading in readings.items()}
        yield gauge(f"lbopt_locality_{name}", text, live | expected, *group, "of")
    yield gauge(
        "lbopt_locality_drift_level",
        "A chart over its threshold; 1 sounds the alarm",
        {(*names, of): level for names, reading in readings.items() for of, level in reading.levels.items()},
        *(*group, "statistic"),
    )
    yield gauge(
        "lbopt_locality_drift_alarm",
        "1 after an alarm",
        {names: float(reading.alarm is not None) for names, reading in readings.items()},
        *group,
    )
