"""What is timed of one attention: its grid of sizes, its barrier and a plain read, in the same rounds.

A machine that changes its pace between a law and what it is to predict would be taken for a law that is wrong, and one
that does so between a read and attention for an efficiency.

KV is read from memory and not from a cache, as in serving, where a step reads the KV of all layers: every call takes
the next stretch of a pool that is larger than caches are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from lbopt.hardware.measure.attention import AttentionShape, Point, split
from lbopt.hardware.measure.backend import Backend, Decode
from lbopt.hardware.measure.barrier import BarrierStep, LoadVector, barrier_steps, load_vectors
from lbopt.hardware.measure.config import MeasureConfig
from lbopt.hardware.measure.linearity import Linearity, LinearLaw, fit_line, judge
from lbopt.hardware.measure.timing import Estimate, Progress, Samples, Work, median, take_samples
from lbopt.hardware.measure.together import SharedStep, shared_steps

#: Least size of the pool that calls take turns in; last-level caches have up to tens of megabytes, few have more.
COLD_BYTES = 2**28
#: What is read plainly.
READ_BYTES = 2**29
#: Variation of pace from which a bend is not believed: who shares a processor takes more of long calls than of short.
MOST_UNREST = 0.2


@dataclass(slots=True)
class AttentionTimes:
    """All that was measured of one attention shape.

    `samples` go by the places of `grid`, then by the workers of `vectors`, one vector after the other, then by the
    plain read where there is one, then by `vectors` with all their workers at once where the device has streams.
    `points` are the places that have samples, with `medians`; `read` is in bytes per second. Law and verdict are None
    where too little was measured.
    """

    shape: AttentionShape
    itemsize: int
    grid: list[Point]
    points: list[Point]
    samples: Samples
    medians: list[Estimate]
    law: LinearLaw | None = None
    linearity: Linearity | None = None
    vectors: list[LoadVector] = field(default_factory=list)
    barrier_batch: int = 0
    num_shared: int = 0
    steps: list[BarrierStep] = field(default_factory=list)
    shared: list[SharedStep] = field(default_factory=list)
    read: Estimate | None = None

    @property
    def bytes_per_token(self) -> int:
        """Bytes of KV per resident token, one layer."""
        return self.shape.values_per_token * self.itemsize

    def bandwidth(self) -> Estimate | None:
        """Return the bytes of KV per second at the slope; None where its interval does not exclude zero."""
        if self.law is None or self.law.per_token.low <= 0:
            return None
        slope = self.law.per_token
        return Estimate(*(self.bytes_per_token / end for end in (slope.value, slope.high, slope.low)))


def measure_attention(
    shape: AttentionShape,
    points: list[Point],
    config: MeasureConfig,
    backend: Backend,
    *,
    seconds: float,
    rng: np.random.Generator,
    now: Callable[[], float],
    progress: Progress,
) -> AttentionTimes:
    """Time grid, barrier and read; `fit_law` says what follows.

    Parameters
    ----------
    shape
        The attention.
    points
        Places of the grid.
    config
        What else is timed, and the target of repetition.
    backend
        The device.
    seconds
        Budget.
    rng
        Order of visits and bootstrap.
    now
        Clock, seconds.
    progress
        Shows progress.
    """
    begin = now()
    most = max(point.tokens for point in points)
    pool = pool_tokens(shape, backend, most)
    decode = backend.decode(shape, pool)
    batch = max(config.batches)
    vectors = load_vectors(config.workers, most // 8, batch) if config.barrier else []
    calls = [(point.context,) * point.batch for point in points]
    calls += [split(load, batch) for vector in vectors for load in vector.loads]
    works = [in_turn(decode, contexts, pool) for contexts in calls]
    if config.read:
        works.append(_plainly(backend.reader(READ_BYTES)))
    shared = _together(vectors, works[len(points) : len(calls)], backend)
    works += shared
    samples = take_samples(
        shape.name,
        works,
        backend,
        seconds=seconds - (now() - begin),
        target=config.target,
        rng=rng,
        now=now,
        progress=progress,
    )
    seen = [place for place in range(len(points)) if len(samples.of(place))]
    times = AttentionTimes(
        shape=shape,
        itemsize=backend.itemsize,
        grid=points,
        points=[points[place] for place in seen],
        samples=samples,
        medians=[median(samples.of(place), rng) for place in seen],
        vectors=vectors,
        barrier_batch=batch,
        num_shared=len(shared),
    )
    if config.read and len(reads := samples.of(len(calls))):
        seconds_read = median(reads, rng)
        times.read = Estimate(*(READ_BYTES / end for end in (seconds_read.value, seconds_read.high, seconds_read.low)))
    return times


def fit_law(times: AttentionTimes, rng: np.random.Generator) -> None:
    """Fit the law to the grid, judge it, and predict the barrier by it; an error where too few places were timed."""
    samples, vectors, batch = times.samples, times.vectors, times.barrier_batch
    middle = np.array([one.value for one in times.medians])
    times.law = fit_line(times.points, middle)
    times.linearity = judge(times.points, middle)
    if samples.unrest() > MOST_UNREST and times.linearity.verdict == "not linear":
        times.linearity = replace(times.linearity, verdict="undecided")
    first = len(times.grid)
    times.steps = barrier_steps(vectors, samples.whole_rounds()[:, first:], times.law, batch, rng)
    if times.num_shared:
        times.shared = shared_steps(vectors, samples, samples.num_works - times.num_shared, times.law, batch, rng)


def in_turn(decode: Decode, contexts: tuple[int, ...], pool: int) -> Work:
    """Return a call over the pool's stretches one after another."""
    tokens = sum(contexts)
    stretches = max(1, pool // tokens)
    return lambda call: decode(contexts, call % stretches * tokens)


def pool_tokens(shape: AttentionShape, backend: Backend, most: int) -> int:
    """Return the tokens of a pool that holds `most`, and more than caches do."""
    return max(most, COLD_BYTES // (shape.values_per_token * backend.itemsize))


def _together(vectors: list[LoadVector], alone: list[Work], backend: Backend) -> list[Work]:
    """Return a work per vector that does those of its workers at once; none where the device has no streams."""
    found, first = [], 0
    for vector in vectors:
        several = alone[first : first + len(vector.loads)]
        first += len(vector.loads)
        if (work := backend.at_once(several)) is not None:
            found.append(work)
    return found


def _plainly(read: Callable[[], object]) -> Work:
    """Return a call that reads the same block each time."""
    return lambda _: read()
