"""An independent serving engine: workers that decode in lock step behind a router.

It is written from its description alone and imports nothing of lbopt. A step that starts with L_g resident tokens on
worker g takes ``(fixed + per_token * max_g L_g) * noise``. A request of output o runs o steps on one worker; in its
k-th step it holds its prompt and k - 1 decoded tokens. Requests that arrived by a boundary are routed
at it and may start.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from audit.fleets import Fleet, Requests
from audit.routers import Workers, make_router

WAITING, RUNNING, PAUSED, DONE = range(4)


@dataclass(frozen=True)
class Faults:
    """What an audit does not model and must notice.

    Parameters
    ----------
    slow
        A worker, and the factor by which its load counts for the step time.
    replicas
        Whether each worker steps at its own pace, with its own load, without a barrier.
    restart
        A worker, a time, and seconds: at the first boundary from that time its requests end as cancelled, and it takes
        none until so many seconds after that boundary. New requests go to others, its queue waits.
    prefill
        Seconds, and seconds a token: the router gets a request so long after its arrival.
    preempt
        A probability and a number of steps: at a boundary, with that probability, a running request is paused for so
        many steps. It keeps its slot, not its tokens, and goes on on its worker.
    """

    slow: tuple[int, float] | None = None
    replicas: bool = False
    restart: tuple[int, float, float] | None = None
    prefill: tuple[float, float] = (0.0, 0.0)
    preempt: tuple[float, int] | None = None


@dataclass(frozen=True)
class Served:
    """What a run did. Times are in seconds; arrays of requests are in order of arrival.

    Parameters
    ----------
    arrival, start, finish
        Start is the boundary at which a request began; finish is the end of its last step.
    prompt, output, worker
        Tokens, decoded tokens, and the worker. A cancelled request has the output that it got.
    cancelled
        Whether the request ended by a restart of its worker.
    first, last
        Its steps are `first` to `last - 1` of its worker's group: of all steps, or of its worker's own for replicas.
    step_start, step_time, step_max, step_sum
        Each step's boundary, duration, load of the heaviest worker and tokens of all its workers.
    step_group
        Whose step it was: 0, or the worker for replicas.
    law
        `fixed` and `per_token`.
    G, B
        Workers, and slots of each.
    """

    arrival: np.ndarray
    start: np.ndarray
    finish: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    worker: np.ndarray
    cancelled: np.ndarray
    first: np.ndarray
    last: np.ndarray
    step_start: np.ndarray
    step_time: np.ndarray
    step_max: np.ndarray
    step_sum: np.ndarray
    step_group: np.ndarray
    law: tuple[float, float]
    G: int
    B: int

    @property
    def steps(self) -> int:
        """K; the steps of all workers together for replicas."""
        return len(self.step_time)

    @property
    def idle(self) -> float:
        """Mean over steps of 1 - sum L / (G max L), of steps with a token; 0 for replicas."""
        loaded = self.step_max > 0
        workers = 1 if self.step_group.any() else self.G
        return float(np.mean(1 - self.step_sum[loaded] / (workers * self.step_max[loaded])))

    @property
    def tpot(self) -> float:
        """Mean over requests of seconds for each output token."""
        return float(np.mean((self.finish - self.start) / self.output))

    @property
    def wait(self) -> float:
        """Mean seconds from arrival to start."""
        return float(np.mean(self.start - self.arrival))

    @property
    def makespan(self) -> float:
        """Seconds from the first arrival to the last finish."""
        return float(self.finish.max() - self.arrival.min())

    @property
    def occupancy(self) -> float:
        """Share of slots in use over time, between the 20th and the 80th percentile of the arrivals."""
        low, high = np.quantile(self.arrival, [0.2, 0.8])
        if high <= low:
            low, high = self.start.min(), np.quantile(self.start, 0.8)
        inside = np.clip(np.minimum(self.finish, high) - np.maximum(self.start, low), 0, None).sum()
        return float(inside / ((high - low) * self.G * self.B))

    @property
    def token_share(self) -> float:
        """Share of the time of all steps that the tokens of the heaviest worker take, without noise."""
        fixed, per_token = self.law
        return float(per_token * self.step_max.sum() / (fixed * self.steps + per_token * self.step_max.sum()))


class Noise:
    """Factors of step times: lognormal with mean 1, an autoregression of order 1 in the logarithm.

    Parameters
    ----------
    sd, rho
        Standard deviation, and correlation of neighbours.
    rng
        Random numbers.
    """

    def __init__(self, sd: float, rho: float, rng: np.random.Generator) -> None:
        self.sigma = math.sqrt(math.log1p(sd**2))
        self.rho, self.rng = rho, rng
        self.level = float(rng.standard_normal())

    def draw(self) -> float:
        """The factor of the next step."""
        self.level = self.rho * self.level + math.sqrt(1 - self.rho**2) * float(self.rng.standard_normal())
        return math.exp(self.sigma * self.level - self.sigma**2 / 2)


class Engine:
    """State of a run. Workers that meet at a barrier are a group: all of them, or each alone for replicas.

    Parameters
    ----------
    fleet
        Workers and law; its requests are not used.
    rule
        The router.
    seed
        Of the noise, random rules and faults.
    requests
        What is served.
    faults
        What else happens.
    """

    def __init__(self, fleet: Fleet, rule: str, seed: int, requests: Requests, faults: Faults) -> None:
        streams = [np.random.default_rng([seed, k]) for k in range(3)]
        self.fleet, self.requests, self.faults = fleet, requests, faults
        self.workers = Workers(fleet.G, fleet.B, streams[0])
        self.router = make_router(rule, self.workers, requests.prompt)
        self.rng = streams[1]
        size = 1 if faults.replicas else fleet.G
        self.groups = [slice(low, low + size) for low in range(0, fleet.G, size)]
        self.group_of = np.arange(fleet.G) // size
        self.noises = [Noise(fleet.noise, fleet.rho, stream) for stream in streams[2].spawn(len(self.groups))]
        self.weight = np.ones(fleet.G)
        if faults.slow:
            self.weight[faults.slow[0]] = faults.slow[1]
        self.step = [0] * len(self.groups)
        self.parked = set(range(len(self.groups)))
        self.busy: list[tuple[float, int]] = []  # boundary at which a group's step ends
        self.ending: dict[tuple[int, int], list[int]] = defaultdict(list)  # by group and step
        self.resuming: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.restart_due, self.up_again = faults.restart is not None, math.inf
        self.log: list[tuple[float, float, int, int, int]] = []
        count = len(requests.arrival)
        a, b = faults.prefill
        self.known = requests.arrival + a + b * requests.prompt
        self.order = np.argsort(self.known, kind="stable")
        self.taken = 0
        self.state = np.full(count, WAITING)
        self.start, self.finish = np.full((2, count), np.nan)
        self.output = requests.output.copy()
        self.worker, self.first, self.last = np.full((3, count), -1)
        self.done = np.zeros(count, dtype=np.int64)  # decoded tokens of a paused request
        self.cancelled = np.zeros(count, dtype=bool)

    def run(self) -> Served:
        """Serve all requests."""
        while (now := self.next_boundary()) < math.inf:
            self.boundary(now)
        assert (self.state == DONE).all()
        log = list(zip(*self.log, strict=True))
        floats, counts = (np.array(column) for column in log[:2]), (np.array(c, dtype=np.int64) for c in log[2:])
        own = (self.cancelled, self.first, self.last)
        asked = self.requests
        law = (self.fleet.fixed, self.fleet.per_token)
        return Served(
            asked.arrival, self.start, self.finish, asked.prompt, self.output, self.worker, *own, *floats, *counts, law,
            self.fleet.G, self.fleet.B,
        )  # fmt: skip

    def next_boundary(self) -> float:
        """When a step ends next, or something happens that may wake a group without requests; infinity: never."""
        now = self.busy[0][0] if self.busy else math.inf
        if self.parked:
            arrives = self.known[self.order[self.taken]] if self.taken < len(self.order) else math.inf
            now = min(now, float(arrives), self.up_again)
        return now

    def boundary(self, now: float) -> None:
        """End steps, route, start requests and begin steps."""
        ready = []
        while self.busy and self.busy[0][0] <= now:
            group = heapq.heappop(self.busy)[1]
            self.end_step(group, now)
            ready.append(group)
        ready += sorted(self.parked)
        self.parked.clear()
        self.restart(ready, now)
        self.preempt(ready)
        while self.taken < len(self.order) and self.known[self.order[self.taken]] <= now:
            self.router.take(int(self.order[self.taken]))
            self.taken += 1
        at_boundary = np.zeros(self.fleet.G, dtype=bool)
        for group in ready:
            at_boundary[self.groups[group]] = True
        for request, worker in self.router.starts(self.workers.up & at_boundary):
            self.begin(request, worker, now)
        for group in ready:
            self.begin_step(group, now)

    def begin_step(self, group: int, now: float) -> None:
        """Begin a step, or park the group when it has no requests."""
        own = self.groups[group]
        workers = self.workers
        if not workers.held[own].any():
            self.parked.add(group)
            return
        load = workers.load[own]
        heaviest = (load * self.weight[own]).max() if self.faults.slow else load.max()
        time = (self.fleet.fixed + self.fleet.per_token * float(heaviest)) * self.noises[group].draw()
        self.log.append((now, time, int(load.max()), int(load.sum()), group))
        heapq.heappush(self.busy, (now + time, group))

    def end_step(self, group: int, now: float) -> None:
        """Give each running request a token, let those with all of them go, and let paused ones go on."""
        own = self.groups[group]
        self.workers.load[own] += self.workers.active[own]
        self.step[group] += 1
        key = (group, self.step[group])
        for request in self.ending.pop(key, ()):
            if self.state[request] == RUNNING and self.last[request] == self.step[group]:
                self.leave(request, now)
        for request in self.resuming.pop(key, ()):
            if self.state[request] == PAUSED:
                self.activate(request, self.done[request])

    def begin(self, request: int, worker: int, now: float) -> None:
        """Start a request."""
        step = self.step[self.group_of[worker]]
        self.start[request], self.worker[request], self.first[request] = now, worker, step
        self.workers.held[worker] += 1
        self.activate(request, 0)

    def activate(self, request: int, decoded: int) -> None:
        """Let a request with some decoded tokens run."""
        worker = self.worker[request]
        group = int(self.group_of[worker])
        self.state[request] = RUNNING
        self.workers.load[worker] += self.requests.prompt[request] + decoded
        self.workers.active[worker] += 1
        self.last[request] = self.step[group] + self.output[request] - decoded
        self.ending[group, int(self.last[request])].append(request)

    def deactivate(self, request: int) -> int:
        """Take a running request's tokens away; returns how many of them were decoded."""
        worker = self.worker[request]
        decoded = int(self.output[request] - (self.last[request] - self.step[self.group_of[worker]]))
        self.workers.load[worker] -= self.requests.prompt[request] + decoded
        self.workers.active[worker] -= 1
        return decoded

    def leave(self, request: int, now: float) -> None:
        """End a running or a paused request, with the tokens that it has."""
        decoded = self.done[request] if self.state[request] == PAUSED else self.deactivate(request)
        worker = self.worker[request]
        self.workers.held[worker] -= 1
        self.finish[request], self.state[request] = now, DONE
        self.output[request], self.last[request] = decoded, self.step[self.group_of[worker]]

    def restart(self, ready: list[int], now: float) -> None:
        """Empty the worker that restarts, or take it back."""
        if self.restart_due:
            worker, time, seconds = self.faults.restart
            if now >= time and self.group_of[worker] in ready:
                ended = np.flatnonzero((self.worker == worker) & ((self.state == RUNNING) | (self.state == PAUSED)))
                for request in ended.tolist():
                    self.leave(request, now)
                self.cancelled[ended] = True
                self.workers.up[worker] = False
                self.restart_due, self.up_again = False, now + seconds
        elif now >= self.up_again:
            self.workers.up[:] = True
            self.up_again = math.inf

    def preempt(self, ready: list[int]) -> None:
        """Pause one running request of some groups; it has got a token since it began or went on."""
        if self.faults.preempt is None:
            return
        chance, steps = self.faults.preempt
        for group in ready:
            if self.rng.random() >= chance:
                continue
            running = np.flatnonzero(self.state == RUNNING)
            running = running[self.group_of[self.worker[running]] == group]
            decoded = self.output[running] - (self.last[running] - self.step[group])
            running = running[decoded > self.done[running]]
            if len(running):
                request = int(running[self.rng.integers(len(running))])
                self.done[request] = self.deactivate(request)
                self.state[request] = PAUSED
                self.resuming[group, self.step[group] + steps].append(request)


def run(fleet: Fleet, rule: str | None = None, seed: int = 0, requests: Requests | None = None, **faults) -> Served:
    """Serve a fleet's requests.

    Parameters
    ----------
    fleet
        Workers, law and requests.
    rule
        Of `audit.routers.RULES`; the fleet's own by default.
    seed
        Of the noise, random rules and faults.
    requests
        Others than the fleet's.
    faults
        Fields of `Faults`.
    """
    asked = fleet.draw() if requests is None else requests
    return Engine(fleet, rule or fleet.rule, seed, asked, Faults(**faults)).run()


@lru_cache(maxsize=64)
def run_once(fleet: Fleet, rule: str | None = None, seed: int = 0, **faults) -> Served:
    """Serve a fleet's own requests as `run` does; asked again, return the run that is known, which cannot be changed.

    Parameters
    ----------
    fleet
        Workers, law and requests.
    rule
        Of `audit.routers.RULES`; the fleet's own by default.
    seed
        Of the noise, random rules and faults.
    faults
        Fields of `Faults`.
    """
    served = run(fleet, rule, seed, **faults)
    for field in fields(served):
        value = getattr(served, field.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return served
