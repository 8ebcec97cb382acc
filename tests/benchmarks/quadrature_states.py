"""States on which quadratures are compared: loads expected in every step, and one request to place."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from lbopt.instances import read_trace
from lbopt.kernels.routing.fast_phi.projection import count_beyond, project
from lbopt.kernels.routing.fast_phi.state import Entries
from lbopt.model import Fleet, Trace
from lbopt.policies import ActiveRequests, Observation, make_policy
from lbopt.predictors import Forecast
from lbopt.predictors.predictor import one_bucket
from lbopt.simulator import SimulationSetting, simulate
from lbopt.simulator.simulate import Look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEED, CAP, HISTORY, PER_HISTORY, ACTIVE = 20261121, 4096, 1000, 100, 60
WORKERS, SIZES = (4, 8, 16, 32), (50, 500, 3000)
FLEET = Fleet(16, 72)
AT_ONCE = 1000


@dataclass(frozen=True)
class State:
    """A request of `size` tokens before a fleet; `outputs` ascending are what is known of lengths."""

    outputs: Ints
    load: Floats  # (T, G), expected tokens in every step
    tokens: Ints  # (G,)
    size: int


def expected(outputs: Ints, worker: Ints, size: Ints, age: Ints, num_workers: int) -> Floats:
    """Return the loads in every step, float64 (T, G)."""
    counts = np.empty(int(outputs[-1]))
    count_beyond(outputs, 0, outputs.size, counts)
    load = np.empty((counts.size, num_workers))
    entries = Entries(worker, size, np.ones_like(worker), age, np.zeros_like(worker))
    project(one_bucket(outputs), counts, np.empty(0), np.arange(counts.size), 1, True, entries, load)
    return load


def expected_by_fft(outputs: Ints, worker: Ints, size: Ints, age: Ints, num_workers: int) -> Floats:
    """Return the same as two cross-correlations over ages per worker, float64 (G, T)."""
    counts = np.empty(int(outputs[-1]))
    count_beyond(outputs, 0, outputs.size, counts)
    T = counts.size
    weight = np.zeros((2, num_workers, T))
    np.add.at(weight[0], (worker, age), size / counts[age])
    np.add.at(weight[1], (worker, age), 1 / counts[age])
    n = next_fast_len(2 * T, real=True)
    held, grown = irfft(rfft(counts, n) * np.conj(rfft(weight, n)), n)[..., :T]
    load: Floats = held + np.arange(T) * grown
    return load


def drawn(count: int) -> Iterator[State]:
    """Yield states of lognormal outputs (median 200, sigma 1.1): ages length-biased, each request on the lightest."""
    rng = np.random.default_rng(SEED)
    for number in range(count):
        if number % PER_HISTORY == 0:
            outputs = np.sort(np.rint(rng.lognormal(np.log(200), 1.1, HISTORY)).clip(1, CAP).astype(np.int64))
        G = int(rng.choice(WORKERS))
        A = G * ACTIVE
        mine = rng.choice(outputs, A, p=outputs / outputs.sum())
        age = (rng.random(A) * mine).astype(np.int64)
        size = np.rint(rng.lognormal(np.log(300), 1.0, A)).astype(np.int64) + age
        worker = np.empty(A, dtype=np.int64)
        heap = [(0, g) for g in range(G)]
        heapify(heap)
        for i, tokens in enumerate(size.tolist()):
            held, g = heap[0]
            worker[i] = g
            heapreplace(heap, (held + tokens, g))
        loads = np.bincount(worker, size, minlength=G).astype(np.int64)
        yield State(outputs, expected(outputs, worker, size, age, G), loads, int(rng.choice(SIZES)))


def requests_of_trace(shared: Path) -> tuple[Trace, Trace]:
    """Return the requests to learn from and those to run: every second of the BurstGPT sample each."""
    whole = read_trace(shared / "data" / "burstgpt_8000.json")
    learn, runs = (Trace(prompt=whole.prompt[k::2], output=whole.output[k::2], name=whole.name) for k in (0, 1))
    return learn, runs


def seen(shared: Path, count: int) -> Iterator[State]:
    """Yield states along a run of jsq-load, 16 workers of 72 slots: before the first waiting request is placed."""
    learn, runs = requests_of_trace(shared)
    outputs = np.sort(learn.output)
    trace = runs.resampled(30 * count + 40_000, SEED)
    setting, rule = SimulationSetting(FLEET), make_policy("jsq-load")
    steps = np.flatnonzero(simulate(trace, rule, setting).steps["waiting"] > 0)
    steps = np.sort(np.random.default_rng(SEED).choice(steps[steps >= 500], count, replace=False))
    for part in np.array_split(steps, -(-count // AT_ONCE)):  # the run again and again, for want of memory
        observations: list[Observation] = []
        simulate(trace, rule, setting, look=Look(part, observations.append))
        for observation in observations:
            active = observation.active
            assert active is not None
            load = expected(outputs, active.worker, active.size, active.generated, observation.loads.size)
            yield State(outputs, load, observation.loads, int(observation.sizes[0]))


def busy_observation(shared: Path, num_workers: int) -> Observation:
    """Return a saturated fleet of 72 slots a worker, all ages length-biased, with samples for fast-phi."""
    learn, runs = requests_of_trace(shared)
    rng = np.random.default_rng(SEED)
    A = num_workers * FLEET.slots_per_worker
    pick = rng.choice(len(runs), A, p=runs.output / runs.output.sum())
    active = ActiveRequests(
        worker=np.arange(A) % num_workers,
        requests=np.arange(A),
        prompt=runs.prompt[pick],
        generated=(rng.random(A) * runs.output[pick]).astype(np.int64),
    )
    nothing = np.zeros(num_workers)
    samples, buckets = one_bucket(learn.output), np.zeros(A, dtype=np.int64)
    return Observation(
        step=0,
        clock=0.0,
        loads=np.bincount(active.worker, active.size, minlength=num_workers).astype(np.int64),
        free_slots=nothing,
        running=np.bincount(active.worker, minlength=num_workers),
        queued=nothing,
        queued_tokens=nothing,
        sizes=[300],
        waited=[0],
        requests=[0],
        active=active,
        forecast=Forecast(1, np.ones(A), np.ones(1), samples, buckets, buckets[:1]),
    )
