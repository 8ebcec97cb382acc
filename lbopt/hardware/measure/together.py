"""All workers of a barrier at once on one device, each in a stream of its own: what sharing a device does to a barrier.

Workers that share a device share its memory's rate. If the device is full with one of them, eight take the time of
their total, whoever holds how much, and imbalance between them costs next to nothing; if one alone leaves it part idle,
the step is shorter than the total. So a barrier is a matter between devices. The law of one worker predicts both ends:
``fixed + slope sum L`` (the device is shared) and ``fixed + slope max L`` (each worker has a device).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbopt.hardware.measure.barrier import LoadVector
from lbopt.hardware.measure.linearity import LinearLaw
from lbopt.hardware.measure.timing import Estimate, Samples, median


@dataclass(frozen=True, slots=True)
class SharedStep:
    """A load vector's step with all workers on one device, and its predictions, in seconds."""

    vector: LoadVector
    measured: Estimate
    by_total: float
    by_max: float

    @property
    def error_of_total(self) -> float:
        """Relative error of the prediction by the total load."""
        return self.by_total / self.measured.value - 1

    @property
    def error_of_max(self) -> float:
        """Relative error of the prediction by the heaviest load."""
        return self.by_max / self.measured.value - 1


def shared_steps(
    vectors: Sequence[LoadVector],
    samples: Samples,
    first: int,
    law: LinearLaw,
    batch: int,
    rng: np.random.Generator,
) -> list[SharedStep]:
    """Return a row per vector that has samples.

    Parameters
    ----------
    vectors
        Load vectors, one work each.
    samples
        Where they were timed.
    first
        Place of the first vector among the works.
    law
        Law of the attention time of one worker.
    batch
        Requests of a worker.
    rng
        Draws the bootstrap samples.
    """
    found = []
    for place, vector in enumerate(vectors, start=first):
        seconds = samples.of(place)
        if len(seconds):
            found.append(
                SharedStep(
                    vector=vector,
                    measured=median(seconds, rng),
                    by_total=law.seconds(batch * len(vector.loads), sum(vector.loads)),
                    by_max=law.seconds(batch, max(vector.loads)),
                )
            )
    return found
