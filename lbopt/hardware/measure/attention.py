"""Attention in decode, timed: its shapes and sizes, its barrier of unequal workers, a plain read.

What is timed: one layer of attention in decode, one query token a request over the request's resident KV.

Two kinds. *Latent*: all heads read one vector per token, whose first part serves as value too, as in DeepSeek-V3 after
absorption (512 latent and 64 rotary values, 128 heads). *Grouped-query*: a group of heads shares the key and the value
of one KV head, as in Qwen3 and Llama 3. Both read every resident value once, which is why time should be linear in
resident tokens; their ratios of arithmetic to bytes differ by an order of magnitude.

A barrier of unequal workers, emulated on one device: the workers run one after another, each timed on its own.

A step of data-parallel decode lasts as long as its slowest worker. Every worker of a load vector is timed in every
round; the step of a round is the largest of its workers' times. It is predicted from the law that was fitted to the
attention times alone: ``fixed + slope max L`` (the barrier), and beside it ``fixed + slope mean L`` (what a perfectly
divisible load would take). All vectors have the same mean, so the second prediction is the same for all of them.

The largest of G noisy times lies above the largest of their medians even if the law holds exactly; that part is
reported on its own, as the median step over the largest median.

All workers of a barrier at once on one device, each in a stream of its own: what sharing a device does to a barrier.

Workers that share a device share its memory's rate. If the device is full with one of them, eight take the time of
their total, however it is split, and imbalance between them costs next to nothing; if one alone leaves it part idle,
the step is shorter than the total. So a barrier is a matter between devices. The law of one worker predicts both ends:
``fixed + slope sum L`` (the device is shared) and ``fixed + slope max L`` (each worker has a device).

What is timed of one attention: its grid of sizes, its barrier and a plain read, in the same rounds.

A machine that changes its pace between a law and what it is to predict would be taken for a law that is wrong, and one
that does so between a read and attention for an efficiency.

KV is read from memory and not from a cache, as in serving, where a step reads the KV of all layers: every call takes
the next stretch of a pool that is larger than caches are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.measure.backend import Backend, Decode
from lbopt.hardware.measure.timing import (
    Estimate,
    Linearity,
    LinearLaw,
    Progress,
    Samples,
    Work,
    fit_line,
    judge,
    median,
    take_samples,
)
from lbopt.spec import unknown

if TYPE_CHECKING:
    from lbopt.hardware.measure.measurement import MeasureConfig


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The sizes of one attention layer; with `latent`, values are the first `value_dim` entries of the keys."""

    name: str
    title: str
    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    latent: bool

    @property
    def values_per_token(self) -> int:
        """Values that a resident token keeps in one layer."""
        return self.kv_heads * (self.key_dim if self.latent else self.key_dim + self.value_dim)

    @property
    def flops_per_token(self) -> int:
        """Floating-point operations per resident token and query token: two products, two operations each."""
        return 2 * self.heads * (self.key_dim + self.value_dim)


#: By the model that has such a layer; the numbers are those of its public configuration.
SHAPES: dict[str, AttentionShape] = {
    shape.name: shape
    for shape in (
        AttentionShape("deepseek-v3", "latent, 576 values, 128 heads", 128, 1, 576, 512, True),
        AttentionShape("qwen3-30b-a3b", "grouped, 4 KV heads of 128, 32 heads", 32, 4, 128, 128, False),
        AttentionShape("llama-3-70b", "grouped, 8 KV heads of 128, 64 heads", 64, 8, 128, 128, False),
    )
}
#: Tokens of a block: long contexts are whole blocks, which kernels take side by side without a copy.
BLOCK = 2048
DEFAULT_SHAPES = ("deepseek-v3", "qwen3-30b-a3b")


def attention_shape(name: str) -> AttentionShape:
    """Return the shape of that name."""
    if name not in SHAPES:
        raise unknown("attention", name, SHAPES)
    return SHAPES[name]


@dataclass(frozen=True, slots=True)
class Point:
    """A place of the grid: `batch` requests of `context` resident tokens each."""

    batch: int
    context: int

    @property
    def tokens(self) -> int:
        """Resident tokens of the whole batch."""
        return self.batch * self.context


def grid(least: int, most: int, points: int, batches: Sequence[int]) -> list[Point]:
    """Return `points` resident totals in geometric steps from `least` to `most` for every batch size.

    A total is rounded to a multiple of its batch, long contexts down to whole blocks; totals that become equal by that
    are taken once.

    Parameters
    ----------
    least, most
        Smallest and largest resident total, tokens.
    points
        Totals in geometric steps.
    """
    if max(batches) > least:
        raise InputError(f"batch {max(batches)} has more requests than the least number of tokens, {least}")
    totals = np.geomspace(least, most, points)
    return [
        Point(batch, context)
        for batch in sorted(set(batches))
        for context in sorted({whole_blocks(int(total)) for total in np.floor(totals / batch + 0.5)})
        if batch * context <= most
    ]


def whole_blocks(context: int, nearest: bool = False) -> int:
    """Return a context of at least a token; one of 8 blocks or more in whole blocks, rounded down or to the nearest."""
    if context < 8 * BLOCK:
        return max(1, context)
    return (context + (BLOCK // 2 if nearest else 0)) // BLOCK * BLOCK


def split(load: int, batch: int) -> tuple[int, ...]:
    """Return the contexts of `batch` requests that hold `load` tokens together, as equal as integers allow."""
    base, more = divmod(load, batch)
    return tuple(base + 1 if place < more else base for place in range(batch))


@dataclass(frozen=True, slots=True)
class LoadVector:
    """Resident tokens of each worker, under a name."""

    name: str
    loads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BarrierStep:
    """A load vector's measured step, and its seconds by the law of the heaviest load and of the mean or total one.

    `noise` is the share by which the median step lies above the largest of the workers' medians: of maxima of noisy
    times, not of the law. It is 0 where all workers were timed at once.
    """

    vector: LoadVector
    measured: Estimate
    by_max: float
    by_other: float
    noise: float = 0.0

    @property
    def error_of_max(self) -> float:
        """Relative error of the prediction by the heaviest load."""
        return self.by_max / self.measured.value - 1

    @property
    def error_of_other(self) -> float:
        """Relative error of the prediction by the mean load; by the total one where workers share a device."""
        return self.by_other / self.measured.value - 1


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
    rounds
        float64, (rounds, workers of all vectors one after the other): seconds.
    law
        Law of the attention time of one worker.
    """
    found: list[BarrierStep] = []
    if not len(rounds):
        return found
    for vector, times in zip(vectors, _by_vector(vectors, rounds.T), strict=True):
        step = median(times.max(axis=0), rng)
        mean = round(sum(vector.loads) / len(vector.loads))
        noise = step.value / float(np.median(times, axis=1).max()) - 1
        found.append(BarrierStep(vector, step, law.seconds(batch, max(vector.loads)), law.seconds(batch, mean), noise))
    return found


def shared_steps(
    vectors: Sequence[LoadVector],
    times: Sequence[NDArray[np.float64]],
    law: LinearLaw,
    batch: int,
    rng: np.random.Generator,
) -> list[BarrierStep]:
    """Return a row per vector that was timed with all its workers at once.

    Parameters
    ----------
    times
        Seconds of each work's samples.
    law
        Law of the attention time of one worker.
    """
    return [
        BarrierStep(
            vector,
            median(seconds, rng),
            law.seconds(batch, max(vector.loads)),
            law.seconds(batch * len(vector.loads), sum(vector.loads)),
        )
        for vector, seconds in zip(vectors, times, strict=True)
        if len(seconds)
    ]


def _by_vector(vectors: Sequence[LoadVector], of_workers: Any) -> list[Any]:
    """Return the part of each vector out of a sequence over the workers of all, one vector after the other."""
    ends = np.cumsum([len(vector.loads) for vector in vectors])
    return [of_workers[end - len(vector.loads) : end] for vector, end in zip(vectors, ends.tolist(), strict=True)]


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
    shared: list[BarrierStep] = field(default_factory=list)
    read: Estimate | None = None

    @property
    def bytes_per_token(self) -> int:
        """Bytes of KV per resident token, one layer."""
        return self.shape.values_per_token * self.itemsize

    def bandwidth(self) -> Estimate | None:
        """Return the bytes of KV per second at the slope; None where its interval does not exclude zero."""
        if self.law is None or self.law.per_token.low <= 0:
            return None
        return self.law.per_token.rate(self.bytes_per_token)


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
    config
        What else is timed, and the target of repetition.
    now
        Clock, seconds.
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
        read = backend.reader(READ_BYTES)
        works.append(lambda _: read())
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
        times.read = median(reads, rng).rate(READ_BYTES)
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
        at_once = [samples.of(place) for place in range(samples.num_works - times.num_shared, samples.num_works)]
        times.shared = shared_steps(vectors, at_once, times.law, batch, rng)


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
    works = (backend.at_once(several) for several in _by_vector(vectors, alone))
    return [work for work in works if work is not None]
