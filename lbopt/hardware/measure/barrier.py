"""A barrier of unequal workers, emulated on one device: the workers run one after another, each timed on its own.

A step of data-parallel decode lasts as long as its slowest worker. Every worker of a load vector is timed in every
round; the step of a round is the largest of its workers' times. It is predicted from the law that was fitted to the
attention times alone: ``fixed + slope max L`` (the barrier), and beside it ``fixed + slope mean L`` (what a perfectly
divisible load would take). All vectors have the same mean, so the second prediction is the same for all of them.

The largest of G noisy times lies above the largest of their medians even if the law holds exactly; that part is
reported on its own, as the median step over the largest median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware.measure.attention import whole_blocks
from lbopt.hardware.measure.linearity import LinearLaw
from lbopt.hardware.measure.timing import Estimate, median


@dataclass(frozen=True, slots=True)
class LoadVector:
    """Resident tokens of each worker, under a name."""

    name: str
    loads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BarrierStep:
    """A load vector's measured step and its predictions, in seconds."""

    vector: LoadVector
    measured: Estimate
    largest_median: float
    by_max: float
    by_mean: float

    @property
    def error_of_max(self) -> float:
        """Relative error of the prediction by the heaviest load."""
        return self.by_max / self.measured.value - 1

    @property
    def error_of_mean(self) -> float:
        """Relative error of the prediction by the mean load."""
        return self.by_mean / self.measured.value - 1

    @property
    def noise(self) -> float:
        """Share by which the median step lies above the largest of the workers' medians."""
        return self.measured.value / self.largest_median - 1


def load_vectors(workers: int, mean: int, requests: int = 1) -> list[LoadVector]:
    """Return vectors from balanced to one heavy worker, all of the same mean up to rounding, none above 4 means.

    Loads are multiples of `requests`, those of a worker, which then all hold equally much, long ones in whole blocks:
    requests of unequal length are not what is asked here, and not every kernel takes them in one call.
    """
    place = np.arange(workers) / (workers - 1)
    heavy = min(4.0, workers - 0.5 * (workers - 1))  # the light ones keep at least half the mean
    shares = {
        "balanced": np.ones(workers),
        "ramp": 0.75 + 0.5 * place,
        "two groups": np.where(np.arange(workers) < workers // 2, 0.5, 1.5),
        "long tail": np.geomspace(1, 8, workers),
        "one heavy": np.array([(workers - heavy) / (workers - 1)] * (workers - 1) + [heavy]),
    }
    return [
        LoadVector(
            name,
            tuple(
                requests * whole_blocks(int(one), nearest=True)
                for one in np.rint(mean / requests * share / share.mean())
            ),
        )
        for name, share in shares.items()
    ]


def barrier_steps(
    vectors: Sequence[LoadVector], rounds: NDArray[np.float64], law: LinearLaw, batch: int, rng: np.random.Generator
) -> list[BarrierStep]:
    """Return a row per vector.

    Parameters
    ----------
    vectors
        Load vectors, one step each.
    rounds
        float64, (rounds, workers of all vectors one after the other): seconds.
    law
        Law of the attention time of one worker.
    batch
        Requests of a worker.
    rng
        Draws the bootstrap samples.
    """
    first, found = 0, []
    if not len(rounds):
        return []
    for vector in vectors:
        times = rounds[:, first : first + len(vector.loads)]
        first += len(vector.loads)
        found.append(
            BarrierStep(
                vector=vector,
                measured=median(times.max(axis=1), rng),
                largest_median=float(np.median(times, axis=0).max()),
                by_max=law.seconds(batch, max(vector.loads)),
                by_mean=law.seconds(batch, round(sum(vector.loads) / len(vector.loads))),
            )
        )
    return found
