"""Is time linear in resident tokens? A straight law, two curved rivals, and a verdict that may be "undecided".

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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.least_squares import least_squares, relative_least_squares
from lbopt.hardware.measure.timing import Estimate
from lbopt.statistics import student_quantile

if TYPE_CHECKING:
    from lbopt.hardware.measure.attention import Point

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
