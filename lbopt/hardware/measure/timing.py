"""Repetition: rounds over all that is to be timed, in a fresh random order each, until medians are known or time is up.

A round visits every work once, so slow drift of the machine (heat, clocks, neighbours) spreads over all of them alike
and does not look like a slope; how much there was is estimated from the times relative to their own median, by the
median of all pairwise slopes (Theil 1950, Sen 1968), with that estimator's interval.

A work that is over in microseconds is called several times in a row within one sample. A round's end is a place to
stop once half the width of every median's notch, 1.57 interquartile ranges over the root of the number of samples
(McGill, Tukey and Larsen 1978), is within the target. The intervals reported are bootstrapped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.measure.backend import Backend
from lbopt.hardware.quantity import Quantity

#: One call of what is timed; the argument counts the calls, so that each may read other memory.
Work = Callable[[int], object]
#: A sample lasts at least so long, for the clock's grain and for what starting and stopping it costs.
LEAST_SECONDS = 2e-3
MOST_CALLS = 2000
LEAST_ROUNDS = 5


class Progress(Protocol):
    """Shows progress, by the second of the budget."""

    def begin(self, what: str, total: int) -> None:
        """Say that a stage of `total` units begins."""

    def advance(self, units: int = 1) -> None:
        """Say that so many units of the present stage are done."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with a 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, quantity: Quantity) -> Estimate:
        """Return a card's constant with its ends."""
        return cls(quantity.value, quantity.low, quantity.high)

    @property
    def ends(self) -> tuple[float, float, float]:
        """Value, low, high."""
        return self.value, self.low, self.high

    def rate(self, amount: float) -> Estimate:
        """Return `amount` over this: a rate over seconds, or seconds over a rate."""
        return Estimate(amount / self.value, amount / self.high, amount / self.low)

    def times(self, other: Estimate) -> Estimate:
        """Return the product of two positive numbers, end by end."""
        return Estimate(*(one * two for one, two in zip(self.ends, other.ends, strict=True)))


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: which work, in which round, begun how long after the start, calls in a row, seconds per call."""

    work: int
    round: int
    elapsed: float
    calls: int
    seconds: float


@dataclass(slots=True)
class Samples:
    """All samples of a stage, in the order in which they were taken."""

    num_works: int
    taken: list[Sample] = field(default_factory=list)
    interrupted: bool = False

    def of(self, work: int) -> NDArray[np.float64]:
        """Return the seconds per call of one work, in order."""
        return np.array([sample.seconds for sample in self.taken if sample.work == work])

    def whole_rounds(self) -> NDArray[np.float64]:
        """Return seconds by round and work, (rounds, works), of the rounds that visited every work."""
        rounds: dict[int, dict[int, float]] = {}
        for sample in self.taken:
            rounds.setdefault(sample.round, {})[sample.work] = sample.seconds
        whole = [
            [seen[work] for work in range(self.num_works)] for seen in rounds.values() if len(seen) == self.num_works
        ]
        return np.array(whole).reshape(-1, self.num_works)

    def unrest(self) -> float:
        """Return how much the machine's pace varied from round to round; 0 for fewer than two whole rounds.

        Of the rounds' median relative times it is the 90 % quantile over the 10 % quantile, minus one.
        """
        rounds = self.whole_rounds()
        if len(rounds) < 2:
            return 0.0
        low, high = np.quantile(np.median(rounds / np.median(rounds, axis=0), axis=1), [0.1, 0.9])
        return float(high / low - 1)

    def drift(self) -> Estimate | None:
        """Return the share by which times grew from the first sample to the last; None for fewer than 10 samples."""
        from scipy.stats import theilslopes

        if len(self.taken) < 10:
            return None
        middle = {work: float(np.median(self.of(work))) for work in {sample.work for sample in self.taken}}
        relative = [sample.seconds / middle[sample.work] - 1 for sample in self.taken]
        elapsed = [sample.elapsed for sample in self.taken]
        span = max(elapsed) - min(elapsed)
        if span <= 0:
            return None
        slope, _, low, high = theilslopes(relative[:4000], elapsed[:4000], alpha=0.95)
        return Estimate(slope * span, low * span, high * span)


def take_samples(
    what: str,
    works: Sequence[Work],
    backend: Backend,
    *,
    seconds: float,
    target: float,
    rng: np.random.Generator,
    now: Callable[[], float],
    progress: Progress,
) -> Samples:
    """Time all works in rounds for at most `seconds`, or until each median's notch is within `target` of it.

    Ctrl-C ends it with what there is. Fewer than one whole round within the time is an error.

    Parameters
    ----------
    what
        Name of the stage for `progress`.
    works
        Pieces of work, each timed once a round.
    backend
        The device that runs them.
    target
        Half-width of the notch of a median, as a share of it, at which timing ends.
    rng
        Shuffles the order of works in each round.
    now
        Clock, seconds.
    """
    begin, shown, samples = now(), 0, Samples(len(works))
    progress.begin(what, max(1, round(seconds)))

    def late() -> bool:
        nonlocal shown
        passed = min(int(now() - begin), max(1, round(seconds)))
        progress.advance(passed - shown)
        shown = passed
        return now() - begin > seconds

    count = [0] * len(works)

    def sample(work: int, calls: int) -> float:
        def several() -> None:
            for _ in range(calls):
                count[work] += 1
                works[work](count[work])

        return backend.clock(several) / calls

    try:
        calls = []
        for work in range(len(works)):
            sample(work, 1)  # memory is taken and code is made ready
            once = max(sample(work, 1), 1e-9)
            calls.append(min(MOST_CALLS, max(1, math.ceil(LEAST_SECONDS / once))))
            if late():
                raise _too_little(what, seconds, 0, len(works))
        turn = 0
        while turn < LEAST_ROUNDS or not _settled(samples, target):
            for work in rng.permutation(len(works)).tolist():
                if late():
                    if turn == 0:
                        raise _too_little(what, seconds, len(samples.taken), len(works))
                    return samples
                at = now() - begin
                samples.taken.append(Sample(work, turn, at, calls[work], sample(work, calls[work])))
            turn += 1
    except KeyboardInterrupt:
        samples.interrupted = True
    finally:
        progress.advance(max(1, round(seconds)) - shown)
    return samples


def median(seconds: NDArray[np.float64], rng: np.random.Generator) -> Estimate:
    """Return the median with its 95 % percentile bootstrap interval; one sample alone has no width to give."""
    from scipy.stats import bootstrap

    middle = float(np.median(seconds))
    if seconds.size < 2 or np.ptp(seconds) == 0:
        return Estimate(middle, middle, middle)
    found = bootstrap((seconds,), np.median, n_resamples=999, method="percentile", rng=rng).confidence_interval
    return Estimate(middle, min(middle, float(found.low)), max(middle, float(found.high)))


def _settled(samples: Samples, target: float) -> bool:
    seconds = samples.whole_rounds()
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75], axis=0)
    return bool((1.57 * (high - low) / math.sqrt(len(seconds)) <= target * middle).all())


def _too_little(what: str, seconds: float, done: int, works: int) -> InputError:
    return InputError(
        f"the budget is too small: {max(0.0, seconds):.3g} s for {what} ended when {done} of {works} places had been "
        "timed once; give more --budget, or a smaller --most"
    )
