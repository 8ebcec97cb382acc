"""Times of pieces of work: taken in rounds until medians are known, and judged against a straight line.

Repetition: rounds over all that is to be timed, in a fresh random order each, until medians are known or time is up.

A round visits every work once, so slow drift of the machine (heat, clocks, neighbours) spreads over all of them alike
and does not look like a slope; how much there was is estimated from the times relative to their own median, by the
median of all pairwise slopes (Theil 1950, Sen 1968), with that estimator's interval.

A work that is over in microseconds is called several times in a row within one sample. A round's end is a place to
stop once half the width of every median's notch, 1.57 interquartile ranges over the root of the number of samples
(McGill, Tukey and Larsen 1978), is within the target. The intervals reported are bootstrapped.

Is time linear in resident tokens? A straight law, two curved rivals, and a verdict that may be "undecided".

The law is ``fixed + per_request n + per_token N`` for n requests with N resident tokens in all (the middle term only
where several batch sizes were timed), fitted to medians by least squares of *relative* errors: times span orders of
magnitude, and what disturbs them is proportional to them. Intervals are Student's, from the scatter of the places
about the law, so they contain whatever the law does not explain and not only the noise of repetition.

The rivals add a term in N² or bend the last term to N^γ. The criterion has an effect size, not only a p-value:

- the *departure* is the largest relative difference over the grid between the quadratic fit and the straight one;
  by Frisch, Waugh and Lovell it is |q| max|z|, z being N² with the other terms regressed out, which gives it an upper
  end too: the largest departure that the data leave possible;
- **linear**: even that upper end is within the tolerance;
- **not linear**: a rival predicts left-out places better, its extra term is significant at 1 % (F test), and its
  departure is beyond the tolerance;
- **undecided** otherwise: the data cannot tell at this tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.law import least_squares, relative_least_squares
from lbopt.hardware.measure.backend import Backend
from lbopt.hardware.quantity import Quantity
from lbopt.statistics import student_quantile

if TYPE_CHECKING:
    from lbopt.hardware.measure.attention import Point


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


Verdict = Literal["linear", "not linear", "undecided"]
#: Relative departure from a straight line that is called a bend.
TOLERANCE = 0.05
_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinearLaw:
    """The straight law with 95 % intervals, relative residuals by place, and the spread about it."""

    fixed: Estimate
    per_request: Estimate
    per_token: Estimate
    calls: dict[int, Estimate]
    residuals: _Array
    left_out_error: float

    def seconds(self, batch: int, tokens: float) -> float:
        """Return the predicted seconds of one call."""
        return self.fixed.value + self.per_request.value * batch + self.per_token.value * tokens


@dataclass(frozen=True, slots=True)
class Linearity:
    """The verdict and what it rests on; errors are root mean squares of relative left-out errors."""

    verdict: Verdict
    departure: float
    departure_high: float
    p_value: float
    exponent: float
    left_out_error: float
    quadratic_error: float
    power_error: float


def fit_line(points: Sequence[Point], seconds: _Array) -> LinearLaw:
    """Fit the law to a median per place; at least two more places than terms are needed.

    `calls` is the fixed part by batch size: ``fixed + per_request n`` with its own interval.
    """
    design = _design(points)
    if len(points) < design.shape[1] + 2:
        raise InputError(
            f"{len(points)} places of the grid were timed; a straight law with its error needs at least "
            f"{design.shape[1] + 2}"
        )
    if not (seconds > 0).all():
        raise InputError("a call took no time; the clock is too coarse for these sizes: give a larger --least")
    fit = relative_least_squares(design, seconds)
    reach = student_quantile(fit.degrees)

    def combined(*factors: float) -> Estimate:
        take = np.array(factors)
        value = float(take @ fit.estimates)
        half = reach * float(np.sqrt(max(0.0, take @ fit.covariance @ take)))
        return Estimate(value, value - half, value + half)

    several = design.shape[1] == 3
    return LinearLaw(
        fixed=combined(1, *([0] if several else []), 0),
        per_request=combined(0, 1, 0) if several else Estimate(0.0, 0.0, 0.0),
        per_token=combined(*([0] * (design.shape[1] - 1)), 1),
        calls={n: combined(1, *([n] if several else []), 0) for n in sorted({point.batch for point in points})},
        residuals=-fit.residuals,
        left_out_error=_rms(fit.left_out),
    )


def judge(points: Sequence[Point], seconds: _Array, tolerance: float = TOLERANCE) -> Linearity:
    """Compare the straight law with its rivals; `tolerance` is the relative departure that counts as a bend."""
    from scipy.stats import f

    design = _design(points)
    if len(points) < design.shape[1] + 3:
        raise InputError(f"{len(points)} places are too few to tell a bend; at least {design.shape[1] + 3} are needed")
    tokens = design[:, -1] / design[:, -1].max()
    line = relative_least_squares(design, seconds)
    bent = relative_least_squares(np.column_stack([design, tokens**2]), seconds)
    # What is left of the square when the other terms are taken out carries the whole bend.
    reach = np.abs(least_squares(design / seconds[:, None], tokens**2 / seconds).residuals).max()
    departure = abs(float(bent.estimates[-1])) * reach
    departure_high = departure + float(bent.high[-1] - bent.estimates[-1]) * reach

    weighted = design / seconds[:, None]
    exponent = _exponent(weighted, tokens, seconds)
    power = least_squares(_with_power(weighted, tokens, seconds, exponent), np.ones(len(points)))
    rivals = {
        "quadratic": (bent.sum_of_squares, departure, _rms(bent.left_out)),
        "power": (
            power.sum_of_squares,
            float(np.abs(power.fitted - line.fitted).max()),
            _rms(_left_out_power(weighted, tokens, seconds)),
        ),
    }
    remaining, bend, best = min(rivals.values(), key=lambda rival: rival[2])
    line_error = _rms(line.left_out)
    gain = (line.sum_of_squares - remaining) / max(remaining / bent.degrees, 1e-300)
    p_value = float(f.sf(max(gain, 0.0), 1, bent.degrees))
    verdict: Verdict = "undecided"
    if best < line_error and p_value < 0.01 and bend > tolerance:
        verdict = "not linear"
    elif departure_high <= tolerance:
        verdict = "linear"
    return Linearity(
        verdict,
        departure,
        departure_high,
        p_value,
        exponent,
        line_error,
        rivals["quadratic"][2],
        rivals["power"][2],
    )


def _design(points: Sequence[Point]) -> _Array:
    """Return a row per place: 1, the requests where they vary, the tokens."""
    batch = np.array([point.batch for point in points], float)
    tokens = np.array([point.tokens for point in points], float)
    columns = [np.ones(len(points)), *([batch] if np.ptp(batch) else []), tokens]
    return np.column_stack(columns)


def _solve(design: _Array) -> tuple[_Array, _Array]:
    """Return coefficients and what is left of ones, also where the places left tell some terms not apart."""
    scale = np.linalg.norm(design, axis=0)
    ones = np.ones(len(design))
    found = np.linalg.lstsq(design / scale, ones, rcond=None)[0] / scale
    return found, ones - design @ found


def _left_out_power(weighted: _Array, tokens: _Array, seconds: _Array) -> _Array:
    """Return every place's error when the power law is fitted without it, its exponent anew each time."""
    errors = []
    for place in range(len(tokens)):
        others = np.arange(len(tokens)) != place
        exponent = _exponent(weighted[others], tokens[others], seconds[others])
        design = _with_power(weighted, tokens, seconds, exponent)
        found, _ = _solve(design[others])
        errors.append(1 - float(design[place] @ found))
    return np.array(errors)


def _with_power(weighted: _Array, tokens: _Array, seconds: _Array, exponent: float) -> _Array:
    return np.column_stack([weighted[:, :-1], tokens**exponent / seconds])


def _exponent(weighted: _Array, tokens: _Array, seconds: _Array) -> float:
    """Return the exponent of tokens that fits best, between 1/4 and 3."""
    from scipy.optimize import minimize_scalar

    def remaining(exponent: float) -> float:
        _, left = _solve(_with_power(weighted, tokens, seconds, exponent))
        return float(left @ left)

    return float(minimize_scalar(remaining, bounds=(0.25, 3.0), method="bounded").x)


def _rms(errors: _Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))
