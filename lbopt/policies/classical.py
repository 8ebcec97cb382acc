"""Rules of cloud and grid scheduling, in the forms that BF-IO's appendix A.1.1 gives or leaves open.

All decide in Python over the oldest U requests of the pool, U as many as find a free slot, for comparison: none keeps
up with a compiled rule. A source describes each for jobs that can be split or timed; requests are neither, so what
stands here is the nearest rule that can be run. Random numbers are those of `seed` and of the step, so that a decision
depends on nothing before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbopt.policies.observation import Observation
from lbopt.policies.policy import LARGEST_OPTION, Admission, check_option, named

Workers = NDArray[np.int64]


@dataclass(slots=True)
class _Fleet:
    """Loads, requests and free slots of the workers while one decision is made; int64 (G,) each."""

    load: Workers
    count: Workers
    free: Workers

    @classmethod
    def of(cls, observation: Observation) -> _Fleet:
        return cls(observation.loads.copy(), observation.running.copy(), observation.free_slots.copy())

    def place(self, worker: int, size: int) -> int:
        self.load[worker] += size
        self.count[worker] += 1
        self.free[worker] -= 1
        return worker


class _Classical:
    """What the rules share: they bind from the pool, oldest first, and are named by their changed options."""

    word = ""

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        return named(self.word, self)

    @property
    def admission(self) -> Admission:
        """Pooled."""
        return "pooled"

    def decide(self, observation: Observation) -> Workers:
        """Return the worker of each waiting request, or -1."""
        chosen = np.full(observation.sizes.size, -1, dtype=np.int64)
        fleet = _Fleet.of(observation)
        for i in range(observation.num_admissible):
            worker = self._worker(i, int(observation.sizes[i]), fleet, observation)
            if worker < 0:
                break  # whoever is younger waits behind it
            chosen[i] = fleet.place(worker, int(observation.sizes[i]))
        return chosen

    def _worker(self, i: int, size: int, fleet: _Fleet, observation: Observation) -> int:
        """Return the worker of the i-th oldest request, or -1 if it has to wait; there is a free slot."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PowerOfD(_Classical):
    """The worker with the fewest requests of `d` that are drawn among those with a free slot; ties: lowest number."""

    word = "power-of-d"

    d: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        check_option(self.word, "d", self.d, 1, LARGEST_OPTION)
        check_option(self.word, "seed", self.seed, 0, LARGEST_OPTION)

    def _worker(self, i: int, size: int, fleet: _Fleet, observation: Observation) -> int:
        candidates = np.flatnonzero(fleet.free > 0)
        rng = np.random.default_rng([self.seed, observation.step, int(observation.requests[i])])
        drawn = np.sort(rng.choice(candidates, min(self.d, candidates.size), replace=False))
        return int(drawn[np.argmin(fleet.count[drawn])])


@dataclass(frozen=True, slots=True)
class Throttled(_Classical):
    """The first worker with a free slot and fewer than `threshold` requests; where there is none, requests wait.

    A threshold below the slots of a worker leaves slots empty for good; without one it is `fcfs`, request by request.
    """

    word = "throttled"

    threshold: int | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None:
            check_option(self.word, "threshold", self.threshold, 1, LARGEST_OPTION)

    def _worker(self, i: int, size: int, fleet: _Fleet, observation: Observation) -> int:
        takes = fleet.free > 0
        if self.threshold is not None:
            takes &= fleet.count < self.threshold
        return int(np.argmax(takes)) if takes.any() else -1


@dataclass(frozen=True, slots=True)
class HoneyBee(_Classical):
    """A request draws its worker, with a probability in proportion to exp(-bias · load / mean load)."""

    word = "honey-bee"

    bias: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_option(self.word, "bias", self.bias, 0, 1000)
        check_option(self.word, "seed", self.seed, 0, LARGEST_OPTION)

    def _worker(self, i: int, size: int, fleet: _Fleet, observation: Observation) -> int:
        candidates = np.flatnonzero(fleet.free > 0)
        load = fleet.load[candidates]
        weight = np.exp(-self.bias * (load - load.min()) / max(1.0, float(fleet.load.mean())))
        rng = np.random.default_rng([self.seed, observation.step, int(observation.requests[i])])
        return int(candidates[_drawn(weight, rng)])


@dataclass(frozen=True, slots=True)
class OlbLbmm(_Classical):
    """The worker with the fewest requests; once in `every` steps instead Min-Min, smallest first to the lightest.

    Opportunistic load balancing with a load-balanced Min-Min behind it; requests are not cut into pieces.
    """

    word = "olb-lbmm"

    every: int = 8

    def __post_init__(self) -> None:
        check_option(self.word, "every", self.every, 1, LARGEST_OPTION)

    def decide(self, observation: Observation) -> Workers:
        """Return the worker of each waiting request, or -1."""
        if observation.step % self.every:
            return _Classical.decide(self, observation)
        chosen = np.full(observation.sizes.size, -1, dtype=np.int64)
        fleet = _Fleet.of(observation)
        for i in np.argsort(observation.sizes[: observation.num_admissible], kind="stable").tolist():
            chosen[i] = fleet.place(_least(fleet.load, fleet.free), int(observation.sizes[i]))
        return chosen

    def _worker(self, i: int, size: int, fleet: _Fleet, observation: Observation) -> int:
        return _least(fleet.count, fleet.free)


@dataclass(frozen=True, slots=True)
class Carton(_Classical):
    """Each worker has credit for prompt tokens, less of it the heavier it has been; a request goes where most is left.

    At a decision the tokens of the requests to be placed are shared out as new credit, in proportion to one over the
    smoothed load of a worker. Credit that is left stays, and a request may overdraw it.

    Parameters
    ----------
    smoothing
        Weight of the present load in the smoothed one.
    """

    word = "carton"

    smoothing: float = 0.1
    _smooth: dict[int, float] = field(default_factory=dict, init=False, compare=False, repr=False)
    _credit: dict[int, float] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_option(self.word, "smoothing", self.smoothing, 0, 1)

    def decide(self, observation: Observation) -> Workers:
        """Return the worker of each waiting request, or -1."""
        if observation.step == 0 or len(self._smooth) != observation.loads.size:  # another run
            self._smooth.clear()
            self._credit.clear()
        for g, load in enumerate(observation.loads.tolist()):
            before = self._smooth.get(g, float(load))
            self._smooth[g] = before + self.smoothing * (load - before)
        tokens = float(observation.sizes[: observation.num_admissible].sum())
        share = {g: 1.0 / (1.0 + load) for g, load in self._smooth.items()}
        for g, part in share.items():
            self._credit[g] = self._credit.get(g, 0.0) + tokens * part / sum(share.values())
        return _Classical.decide(self, observation)

    def _worker(self, i: int, size: int, fleet: _Fleet, observation: Observation) -> int:
        worker = max(np.flatnonzero(fleet.free > 0).tolist(), key=lambda g: (self._credit[g], -g))
        self._credit[worker] -= size
        return int(worker)


@dataclass(frozen=True, slots=True)
class AntColony(_Classical):
    """A search by ants for the placement of least imbalance; a reference for quality, not a router.

    An ant places the requests in turn: on a worker with a probability in proportion to trail^`trail` times
    (1 / (1 + load + size))^`sight`. Trails are kept for classes of sizes (powers of two) and ranks of loads, fade by
    `fading` a round, and are renewed by the best ant so far.
    """

    word = "ant-colony"

    ants: int = 8
    rounds: int = 8
    trail: float = 1.0
    sight: float = 2.0
    fading: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for option, least, most in (
            *(("ants", 1, 10_000), ("rounds", 1, 10_000), ("trail", 0, 100), ("sight", 0, 100)),
            *(("fading", 0, 1), ("seed", 0, LARGEST_OPTION)),
        ):
            check_option(self.word, option, getattr(self, option), least, most)

    def decide(self, observation: Observation) -> Workers:
        """Return the worker of each waiting request, or -1."""
        chosen = np.full(observation.sizes.size, -1, dtype=np.int64)
        sizes = observation.sizes[: observation.num_admissible]
        if sizes.size:
            rng = np.random.default_rng([self.seed, observation.step])
            chosen[: sizes.size] = self._best(sizes, observation, rng)
        return chosen

    def _best(self, sizes: Workers, observation: Observation, rng: np.random.Generator) -> Workers:
        classes = np.array([int(size).bit_length() for size in sizes])
        trails = np.ones((int(classes.max()) + 1, observation.loads.size))
        best, ranks, least = np.zeros_like(sizes), np.zeros_like(sizes), None
        for _ in range(self.rounds):
            for _ant in range(self.ants):
                fleet = _Fleet.of(observation)
                walked = [self._walk(int(size), trails[c], fleet, rng) for size, c in zip(sizes, classes, strict=True)]
                imbalance = int(fleet.load.max())  # the sum of loads is the same for all ants
                if least is None or imbalance < least:
                    least = imbalance
                    best, ranks = (np.array(row, dtype=np.int64) for row in zip(*walked, strict=True))
            trails *= 1.0 - self.fading
            np.add.at(trails, (classes, ranks), 1.0 / sizes.size)
        return best

    def _walk(self, size: int, trails: NDArray[np.float64], fleet: _Fleet, rng: np.random.Generator) -> tuple[int, int]:
        """Place a request; return its worker and the rank of that worker's load."""
        rank = np.argsort(np.argsort(fleet.load, kind="stable"), kind="stable")
        wish = trails[rank] ** self.trail * (1.0 / (1.0 + fleet.load + size)) ** self.sight * (fleet.free > 0)
        worker = _drawn(wish, rng)
        return fleet.place(worker, size), int(rank[worker])


def _least(values: Workers, free: Workers) -> int:
    """Return the worker of least value among those with a free slot, the lowest number on ties."""
    candidates = np.flatnonzero(free > 0)
    return int(candidates[np.argmin(values[candidates])])


def _drawn(weight: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw a place with a probability in proportion to its weight."""
    upto = np.cumsum(weight)
    return int(np.searchsorted(upto, rng.random() * upto[-1], side="right"))
