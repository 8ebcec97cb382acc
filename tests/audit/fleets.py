"""Fleets whose router logs an audit is tested on: their requests are drawn from uniform numbers and are frozen.

Nothing of lbopt is imported here or in `engine.py`, so that the package is compared with something that shares no code
with it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

#: Parameters of the prompt lengths: sigma of a lognormal, or the index of a Pareto law.
TAILS = {
    "light": ("lognormal", 0.4),
    "medium": ("lognormal", 0.9),
    "long": ("lognormal", 1.3),
    "heavy": ("pareto", 2.3),
}
AT_ONCE = math.inf


class Requests(NamedTuple):
    """What is asked of a fleet: seconds, tokens, tokens; sorted by arrival."""

    arrival: np.ndarray
    prompt: np.ndarray
    output: np.ndarray


@dataclass(frozen=True)
class Fleet:
    """Workers with a law of step times, and the requests that they serve.

    Parameters
    ----------
    G, B
        Workers, and slots of each.
    fixed, per_token
        Law of the step time: seconds, and seconds for each token of the heaviest worker.
    noise
        Relative standard deviation of a step time.
    occupancy
        Share of slots that hold a request on average. Above 1: requests arrive faster than they can be served.
        `AT_ONCE`: all arrive at time 0.
    tail
        Key of `TAILS`.
    requests, seed
        Number of requests, and the seed of their draw.
    prompt, output
        Mean tokens.
    shape
        Law of the outputs: "geometric" or "lognormal".
    rho
        Correlation of the noise of a step with that of the step before.
    rule
        The router that writes the log.
    """

    G: int
    B: int
    fixed: float
    per_token: float
    noise: float
    occupancy: float
    tail: str
    requests: int
    seed: int
    prompt: float = 1000.0
    output: float = 200.0
    shape: str = "geometric"
    rho: float = 0.0
    rule: str = "fcfs"

    def draw(self) -> Requests:
        """The requests; the same ones in each call."""
        return _draw(self)

    @property
    def rate(self) -> float:
        """Arrivals a second that give the occupancy."""
        _, prompt, output = _lengths(self)
        return self.occupancy * self.G * self.B / (float(output.mean()) * mean_step_time(self, prompt, output))

    @property
    def digest(self) -> str:
        """SHA-256 of the requests, with arrivals in whole microseconds."""
        arrival, prompt, output = self.draw()
        columns = (np.rint(arrival * 1e6), prompt, output)
        return hashlib.sha256(b"".join(c.astype("<i8").tobytes() for c in columns)).hexdigest()[:16]


def normals(uniform: np.ndarray) -> np.ndarray:
    """Standard normal values of uniform ones."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse(u) for u in np.clip(uniform, 1e-12, 1 - 1e-12)])


def lognormal(uniform: np.ndarray, mean: float, sigma: float) -> np.ndarray:
    """Lognormal values of the given mean."""
    return mean * np.exp(sigma * normals(uniform) - sigma**2 / 2)


def pareto(uniform: np.ndarray, mean: float, index: float) -> np.ndarray:
    """Pareto values of the given mean, cut at 40 times that."""
    return np.minimum(mean * (index - 1) / index * (1 - uniform) ** (-1 / index), 40 * mean)


def geometric(uniform: np.ndarray, mean: float) -> np.ndarray:
    """Geometric values 1, 2, ... of the given mean."""
    return np.ceil(np.log1p(-uniform) / math.log1p(-1 / mean))


def whole(values: np.ndarray) -> np.ndarray:
    """Whole tokens, at least one."""
    return np.maximum(1, np.rint(values)).astype(np.int64)


def _lengths(fleet: Fleet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform numbers for the arrivals; prompts; outputs."""
    uniform = np.random.default_rng(fleet.seed).random((3, fleet.requests))
    kind, parameter = TAILS[fleet.tail]
    prompt = (lognormal if kind == "lognormal" else pareto)(uniform[1], fleet.prompt, parameter)
    output = geometric(uniform[2], fleet.output)
    if fleet.shape == "lognormal":
        output = lognormal(uniform[2], fleet.output, 0.7)
    return uniform[0], whole(prompt), whole(output)


def mean_step_time(fleet: Fleet, prompt: np.ndarray, output: np.ndarray, snapshots: int = 400) -> float:
    """Seconds of a step at the fleet's occupancy, from independent snapshots of the running requests.

    A running request is met in proportion to its output, at any of its steps alike. Rules that do not look at the
    workers fill each slot by chance; under others all workers have about the same number of requests.
    """
    rng = np.random.default_rng(0)
    share = min(1.0, fleet.occupancy)
    met = np.cumsum(output) / output.sum()
    shape = (snapshots, fleet.G, fleet.B)
    drawn = np.searchsorted(met, rng.random(shape))
    tokens = prompt[drawn] + np.floor(rng.random(shape) * output[drawn])
    held = np.arange(fleet.B) < np.floor(share * fleet.B + rng.random(shape[:2]))[..., None]
    if fleet.rule in ("random", "round-robin"):
        held = rng.random(shape) < share
    loads = np.where(held, tokens, 0).sum(axis=2)
    return fleet.fixed + fleet.per_token * float(loads.max(axis=1).mean())


@lru_cache(maxsize=64)
def _draw(fleet: Fleet) -> Requests:
    """Lengths, and arrivals of a Poisson process at the fleet's rate."""
    uniform, prompt, output = _lengths(fleet)
    arrival = np.zeros(fleet.requests)
    if math.isfinite(fleet.occupancy):
        arrival = np.round(np.cumsum(-np.log1p(-uniform)) / fleet.rate, 6)
    for column in (arrival, prompt, output):
        column.setflags(write=False)
    return Requests(arrival, prompt, output)


#: The frozen fleets. A step's share that grows with the heaviest load is 20 % to 80 % in each.
FLEETS = {
    "small-at-once": Fleet(4, 16, 0.005, 5e-7, 0.0, AT_ONCE, "light", 1500, 1, 600, 100, rule="fcfs"),
    "small-over": Fleet(4, 24, 0.008, 3e-7, 0.02, 1.3, "medium", 2000, 2, 1500, 120, rule="jsq"),
    "small-busy": Fleet(4, 32, 0.010, 2e-7, 0.02, 0.8, "light", 2500, 3, 2000, 150, "lognormal", rule="round-robin"),
    "small-idle": Fleet(4, 72, 0.005, 5e-7, 0.0, 0.2, "medium", 2500, 4, 800, 100, rule="jsq-load"),
    "small-chat": Fleet(4, 40, 0.006, 5e-7, 0.05, 0.5, "medium", 3000, 5, 500, 250, rule="random"),
    "eight-at-once": Fleet(8, 16, 0.010, 5e-7, 0.02, AT_ONCE, "medium", 2500, 6, 1000, 200, rule="max-min"),
    "eight-over": Fleet(8, 32, 0.020, 1e-7, 0.01, 1.5, "heavy", 3000, 7, 3000, 150, rule="jsq-load"),
    "eight-busy": Fleet(8, 48, 0.012, 2e-7, 0.03, 0.7, "long", 4000, 8, 1200, 180, "lognormal", rule="jsq"),
    "eight-half": Fleet(8, 24, 0.006, 5e-7, 0.05, 0.5, "light", 3000, 9, 1500, 80, rule="jsq-pooled"),
    "eight-long": Fleet(8, 16, 0.008, 1e-7, 0.02, 1.2, "light", 1500, 10, 8000, 300, "lognormal", rule="fcfs"),
    "eight-drift": Fleet(8, 32, 0.010, 3e-7, 0.04, 0.9, "medium", 3000, 11, 900, 200, rho=0.9, rule="round-robin"),
    "sixteen-at-once": Fleet(16, 24, 0.008, 2e-7, 0.01, AT_ONCE, "heavy", 4000, 12, 1500, 150, rule="round-robin"),
    "sixteen-over": Fleet(16, 72, 0.014, 5e-8, 0.02, 1.3, "medium", 6000, 13, 2500, 120, rule="lightest"),
    "sixteen-busy": Fleet(16, 32, 0.012, 4e-7, 0.0, 0.85, "light", 4000, 14, 400, 500, "lognormal", rule="jsq"),
    "sixteen-idle": Fleet(16, 64, 0.006, 3e-7, 0.03, 0.25, "long", 4000, 15, 700, 150, rule="random"),
    "sixteen-tail": Fleet(16, 16, 0.010, 5e-7, 0.02, 0.6, "heavy", 3000, 16, 600, 100, rho=0.5, rule="jsq-load"),
    "thirty-over": Fleet(32, 24, 0.015, 3e-7, 0.03, 1.4, "long", 5000, 17, 1000, 120, "lognormal", rule="jsq-pooled"),
    "thirty-half": Fleet(32, 48, 0.008, 4e-7, 0.02, 0.45, "medium", 6000, 18, 500, 100, rule="round-robin"),
    "sixty-at-once": Fleet(64, 24, 0.012, 2e-7, 0.02, AT_ONCE, "medium", 8000, 19, 1200, 100, rule="fcfs"),
    "sixty-idle": Fleet(64, 72, 0.005, 5e-7, 0.05, 0.3, "light", 8000, 20, 200, 50, rule="jsq"),
}

#: Those whose runs take the engine longest: tests over all fleets leave them to the long run.
LARGE = tuple(name for name, fleet in FLEETS.items() if fleet.requests >= 5000)
