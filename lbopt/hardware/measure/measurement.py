"""The measurement as a whole: for each attention its grid, its barrier and a plain read, within one budget.

The three are timed in the same rounds: a machine that changes its pace between a law and what it is to predict would be
taken for a law that is wrong, and one that does so between a read and attention for an efficiency.

KV is read from memory and not from a cache, as in serving, where a step reads the KV of all layers: every call takes
the next stretch of a pool that is larger than caches are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware.measure.attention import AttentionShape, Point, attention_shape, grid, split
from lbopt.hardware.measure.backend import Backend, Decode
from lbopt.hardware.measure.barrier import BarrierStep, LoadVector, barrier_steps, load_vectors
from lbopt.hardware.measure.config import MeasureConfig
from lbopt.hardware.measure.linearity import Linearity, LinearLaw, fit_line, judge
from lbopt.hardware.measure.timing import Estimate, Progress, Samples, Work, median, take_samples

#: Least size of the pool that calls take turns in; last-level caches have up to tens of megabytes, few have more.
COLD_BYTES = 2**28
#: What is read plainly.
READ_BYTES = 2**29
#: Variation of pace from which a bend is not believed: who shares a processor takes more of long calls than of short.
MOST_UNREST = 0.2
_MARGIN = 1.1


@dataclass(slots=True)
class AttentionTimes:
    """All that was measured of one attention shape.

    `samples` go by the places of `grid`, then by the workers of `vectors`, one vector after the other, then by the
    plain read where there is one; `points` are the places that have samples, with `medians`; `read` is in bytes per
    second. Law and verdict are None where too little was measured.
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
    steps: list[BarrierStep] = field(default_factory=list)
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


@dataclass(slots=True)
class Measurement:
    """What was asked, of which device, and what was found."""

    config: MeasureConfig
    backend: str
    device: str
    dtype: str
    machine: dict[str, str]
    date: str
    attention: list[AttentionTimes] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def measure(
    config: MeasureConfig, backend: Backend, progress: Progress, now: Callable[[], float] = time.monotonic
) -> Measurement:
    """Measure within the budget. Ctrl-C ends it with what has been measured.

    Parameters
    ----------
    config
        Sizes, batches, attention shapes and the budget in seconds.
    backend
        The device.
    progress
        Shows progress.
    now
        Clock, seconds.
    """
    least, most = config.tokens(backend.is_host)
    shapes = [attention_shape(name) for name in config.attention]
    points = grid(least, most, config.points, config.batches)
    _check_memory(config, backend, shapes, most)
    found = Measurement(
        config=config,
        backend=backend.name,
        device=backend.device,
        dtype=backend.dtype,
        machine=backend.account(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )
    rng, begin = np.random.default_rng(config.seed), now()
    try:
        for place, shape in enumerate(shapes):
            if found.interrupted:
                break
            share = max(config.budget - (now() - begin), 0.0) / (len(shapes) - place)
            try:
                _attention(found, shape, points, share, backend, rng, now, progress)
            except InputError as error:  # what is measured is kept
                if not any(one.law for one in found.attention) and not found.interrupted:
                    raise
                found.notes.append(f"{shape.name}: {error}")
    except KeyboardInterrupt:  # between two samples, while memory is filled
        found.interrupted = True
    found.seconds = now() - begin
    return found


def _attention(
    found: Measurement,
    shape: AttentionShape,
    points: list[Point],
    seconds: float,
    backend: Backend,
    rng: np.random.Generator,
    now: Callable[[], float],
    progress: Progress,
) -> None:
    """Time grid, barrier and read, fit the law to the grid, and predict the barrier by it."""
    config, begin = found.config, now()
    most = max(point.tokens for point in points)
    pool = _pool_tokens(shape, backend, most)
    decode = backend.decode(shape, pool)
    batch = max(config.batches)
    vectors = load_vectors(config.workers, most // 8, batch) if config.barrier else []
    calls = [(point.context,) * point.batch for point in points]
    calls += [split(load, batch) for vector in vectors for load in vector.loads]
    works = [_in_turn(decode, contexts, pool) for contexts in calls]
    if config.read:
        works.append(_plainly(backend.reader(READ_BYTES)))
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
    found.interrupted |= samples.interrupted
    seen = [place for place in range(len(points)) if len(samples.of(place))]
    if not seen:
        return
    times = AttentionTimes(
        shape=shape,
        itemsize=backend.itemsize,
        grid=points,
        points=[points[place] for place in seen],
        samples=samples,
        medians=[median(samples.of(place), rng) for place in seen],
        vectors=vectors,
        barrier_batch=batch,
    )
    found.attention.append(times)
    if config.read and len(reads := samples.of(len(calls))):
        seconds_read = median(reads, rng)
        times.read = Estimate(*(READ_BYTES / end for end in (seconds_read.value, seconds_read.high, seconds_read.low)))
    middle = np.array([one.value for one in times.medians])
    times.law = fit_line(times.points, middle)
    times.linearity = judge(times.points, middle)
    unrest = samples.unrest()
    if unrest > MOST_UNREST and times.linearity.verdict == "not linear":
        times.linearity = replace(times.linearity, verdict="undecided")
    if unrest > MOST_UNREST:
        found.notes.append(
            f"{shape.name}: the machine's pace varied by {unrest:.0%} from round to round, so other work shares it; a "
            "bend cannot be told from that, nor is the slope the device's own: measure again when it is idle"
        )
    times.steps = barrier_steps(vectors, samples.whole_rounds()[:, len(points) :], times.law, batch, rng)


def _in_turn(decode: Decode, contexts: tuple[int, ...], pool: int) -> Work:
    """Return a call over the pool's stretches one after another."""
    tokens = sum(contexts)
    stretches = max(1, pool // tokens)
    return lambda call: decode(contexts, call % stretches * tokens)


def _plainly(read: Callable[[], object]) -> Work:
    """Return a call that reads the same block each time."""
    return lambda _: read()


def _pool_tokens(shape: AttentionShape, backend: Backend, most: int) -> int:
    return max(most, COLD_BYTES // (shape.values_per_token * backend.itemsize))


def _check_memory(config: MeasureConfig, backend: Backend, shapes: list[AttentionShape], most: int) -> None:
    """Refuse in advance what does not fit."""
    free = backend.free_bytes()
    if free is None:
        return
    where = f"{backend.name} on {backend.device} has {_size(free)} free"
    for shape in shapes:
        pool = _pool_tokens(shape, backend, most) * shape.values_per_token * backend.itemsize
        need = int(_MARGIN * (pool + backend.scratch_bytes(shape, most)))
        if need > free:
            raise InputError(
                f"the KV of {most:,} tokens of {shape.name} in {backend.dtype} and its scratch need {_size(need)}, and "
                f"{where}; give a smaller --most"
            )
        if config.read and need + _MARGIN * READ_BYTES > free:
            raise InputError(
                f"the KV of {shape.name} and a plain read need {_size(need + _MARGIN * READ_BYTES)}, and {where}; "
                "leave the read out with --no-read"
            )


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:,.2f} GB"
