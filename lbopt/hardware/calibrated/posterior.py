"""What is believed of the calibrated law: the fit, the one that is shipped, and sources left out.

The posterior of the calibrated law: least squares with priors, and the normal law around its solution.

With y the logarithm of a measured step, D and W the law's dispatch and work, u and v the effects of a run (one engine,
version and machine) and d the doubt of a row:

    y_i = log(D_i(theta) e^u + W_i(theta) e^v) + e_i,   e_i ~ N(0, d_i^2 + noise^2)
    (u, v) ~ t_4(0, diag(dispatch^2, work^2)),   theta ~ N(prior)

Effects of runs follow Student's law with four degrees of freedom, because a few engines are far off: one that serves
experts without a fast exchange takes four times as long as others. That is a normal law whose precision is multiplied
by a weight of the run, and the weight has a gamma law. Both are approximated together (Tipping and Lawrence,
Neurocomputing 69 (2005) 123), with E the mean under what is believed:

    w = (4 + 2) / (4 + E[u^2] / dispatch^2 + E[v^2] / work^2),

so that a run that is far off says little of all others. Weights and least squares (`scipy.optimize.least_squares`) take
turns until the weights stand; the covariance is that of Laplace's approximation, the inverse of J'J of the stacked,
whitened residuals. `noise`, `dispatch` and `work` maximise the bound of the evidence that belongs to it (as MacKay,
Neural Computation 4 (1992) 415), with a weak prior that keeps them off zero.

The posterior that comes with lbopt: fitted to all sources but those that are held out, kept as plain numbers.

`python -m lbopt.hardware.calibrated.posterior` fits it again and writes the file; a test compares it with a fit.

Sources left out: what the calibrated law, fitted to all other sources, says of one that it has not seen.

For every source in turn the law is calibrated by the rows of all others, and the source's rows are forecast with 90 %
intervals. Every run of the source left out has an effect of its own, of which nothing is known. The error of a row is
|forecast / measured - 1|; that of a source is the median over its rows, so that a source of many rows counts once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.calibrated.law import DEVIATIONS, MEANS, PARAMETERS, StepFeatures, step_parts
from lbopt.hardware.published import MeasuredStep, held_out_sources, measured_steps

Numbers = NDArray[np.float64]

#: Where the search for the standard deviations starts, and by which factor they are believed to lie from it.
_START = (0.06, 0.3, 0.2)
_BELIEVED = 2.0

#: Degrees of freedom of the effects of a run.
FREEDOM = 4.0

#: Weights of runs stand when none changes by more; that takes some ten turns.
_STANDS = 1e-3
_TURNS = 40

#: Half of the step of central differences; parameters are of order one in their transformed form.
_NUDGE = 1e-5


@dataclass(frozen=True, slots=True)
class Scatter:
    """Of logarithms: the standard deviation of a row, and the scales of a run's effects on dispatch and on work."""

    noise: float
    dispatch: float
    work: float

    @property
    def run(self) -> Numbers:
        """float64 (2,), of a run's effects."""
        return np.array([self.dispatch, self.work])


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What is believed of the parameters and of the effects of the next run, normal in their transformed form.

    Parameters
    ----------
    mean, covariance
        float64 (Q + 2,) and (Q + 2, Q + 2): parameters in the order of `PARAMETERS`, then the effects of the run that
        is forecast on dispatch and work. These are independent of the parameters until rows of that run are known.
    scatter
        Of rows and runs.
    rows
        Rows that it rests on.
    seen
        Whether rows of the run that is forecast are among them: its effects are normal then, else Student's with
        their covariance as the square of the scales.
    """

    mean: Numbers
    covariance: Numbers
    scatter: Scatter
    rows: int = 0
    seen: bool = False

    @property
    def reach(self) -> float:
        """95 % quantile of an effect of the run that is forecast, in its standard deviations or scales.

        Of Student's law with four degrees of freedom it has a closed form (Shaw, J. Comput. Finance 9 (2006) 37).
        """
        if self.seen:
            return 1.6449
        root = math.sqrt(4 * 0.95 * 0.05)
        return 2 * math.sqrt(math.cos(math.acos(root) / 3) / root - 1)

    def draws(self, count: int, seed: int | Sequence[int]) -> tuple[Numbers, Numbers]:
        """Return draws of the parameters (count, Q), and of the effects of the run (count, 2)."""
        rng = np.random.default_rng(seed)
        drawn = rng.multivariate_normal(self.mean, self.covariance, size=count)
        effects = drawn[:, -2:]
        if not self.seen:
            effects = effects * np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(count, 1)))
        return drawn[:, :-2], effects

    def nominal(self, features: StepFeatures) -> Numbers:
        """Return the seconds (P,) by the mean of what is believed."""
        return step_parts(self.mean[:-2], features).of_run(self.mean[-2:])

    def forecast(self, features: StepFeatures, draws: int = 4000, seed: int = 0) -> Numbers:
        """Return draws (draws, P) of the seconds, effects of the run and scatter of a row included."""
        parameters, effects = self.draws(draws, [seed, 1])
        noise = self.scatter.noise * np.random.default_rng([seed, 2]).standard_normal((draws, len(features)))
        return step_parts(parameters, features).of_run(effects[:, None, :]) * np.exp(noise)


def prior(scatter: Scatter | None = None) -> Posterior:
    """Return what is believed before any step was seen."""
    scatter = scatter or Scatter(*_START)
    variances = np.concatenate([DEVIATIONS, scatter.run]) ** 2
    return Posterior(np.append(MEANS, [0.0, 0.0]), np.diag(variances), scatter)


def calibrate_steps(steps: Sequence[MeasuredStep], scatter: Scatter | None = None) -> Posterior:
    """Return what is believed after these steps of many runs; the run that is forecast is none of them.

    Parameters
    ----------
    steps
        Measured steps; rows with the same source and run share their effects.
    scatter
        Of rows and runs; None finds it from the steps.

    Raises
    ------
    InputError
        Where there is no step.
    """
    _check(steps)
    from scipy.optimize import minimize

    problem = _Problem(steps)
    if scatter is None:
        start = np.log(_START)

        def unlikely(x: Numbers) -> float:
            believed = 0.5 * float(((x - start) ** 2).sum()) / math.log(_BELIEVED) ** 2
            return believed - problem.evidence(Scatter(*np.exp(x)))

        found = minimize(
            unlikely,
            start,
            method="Nelder-Mead",
            options={"xatol": 0.02, "fatol": 0.02, "maxfev": 120},
        )
        scatter = Scatter(*(float(x) for x in np.exp(found.x)))
    x, _, jacobian, _ = problem.solve(scatter)
    covariance = _inverse(jacobian)
    count = MEANS.size
    whole = np.zeros((count + 2, count + 2))
    whole[:count, :count] = covariance[:count, :count]
    whole[count:, count:] = np.diag(scatter.run**2)
    return Posterior(np.append(x[:count], [0.0, 0.0]), whole, scatter, len(steps))


def update(known: Posterior, steps: Sequence[MeasuredStep]) -> Posterior:
    """Return what is believed after steps of the run that is to be forecast: one engine on one machine."""
    _check(steps)
    x, _, jacobian, _ = _Problem(steps, known).solve(known.scatter)
    return Posterior(x, _inverse(jacobian), known.scatter, known.rows + len(steps), seen=True)


def _inverse(jacobian: Numbers) -> Numbers:
    """Return the covariance of Laplace's approximation."""
    return np.asarray(np.linalg.inv(jacobian.T @ jacobian), dtype=np.float64)


def _check(steps: Sequence[MeasuredStep]) -> None:
    if not steps:
        raise InputError("there is no measured step to calibrate by; give at least one row")


class _Problem:
    """Stacked residuals of rows, of what is believed of the parameters, and of the runs' effects.

    With `known` the rows are of the run that it speaks of, whose effects are the last two of its own entries.
    """

    def __init__(self, steps: Sequence[MeasuredStep], known: Posterior | None = None) -> None:
        self.features = StepFeatures.of(steps)
        self.y: Numbers = np.log([step.seconds for step in steps])
        self.doubt = np.array([step.doubt for step in steps])
        names = [f"{step.source} {step.run}" for step in steps]
        runs = list(dict.fromkeys(names)) if known is None else []
        self.num_runs = max(1, len(runs))
        run_of = np.array([runs.index(name) for name in names]) if runs else np.zeros(len(steps), dtype=np.int64)
        self.of_run = np.eye(self.num_runs)[run_of]
        self.known = known
        first = np.append(MEANS, np.zeros(2 * self.num_runs))
        self.mean = first if known is None else known.mean
        self.start = self.mean
        self.weights = np.ones(self.num_runs)

    def solve(self, scatter: Scatter) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return solution, residuals, Jacobian and standard deviations of the rows, once the weights of runs stand."""
        for _ in range(_TURNS):
            found = self._solve_weighted(scatter)
            if self.known is not None and self.known.seen:
                break  # normal, and no weight
            before, self.weights = self.weights, (FREEDOM + 2) / (FREEDOM + self._distance(found, scatter))
            if np.abs(self.weights - before).max() < _STANDS:
                break
        return found

    def _distance(self, found: tuple[Numbers, Numbers, Numbers, Numbers], scatter: Scatter) -> Numbers:
        """Return E[u^2] / dispatch^2 + E[v^2] / work^2 of every run, float64 (R,)."""
        x, _, jacobian, _ = found
        squares = x[MEANS.size :] ** 2 + np.diag(_inverse(jacobian))[MEANS.size :]
        return np.asarray((squares.reshape(-1, 2) / scatter.run**2).sum(axis=1))

    def _solve_weighted(self, scatter: Scatter) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return the same under the present weights."""
        from scipy.optimize import least_squares

        spread = np.hypot(self.doubt, scatter.noise)
        count = MEANS.size
        roots = np.repeat(np.sqrt(self.weights), 2)
        if self.known is None:
            whiten = np.diag(np.concatenate([1 / DEVIATIONS, roots / np.tile(scatter.run, self.num_runs)]))
        else:
            whiten = np.linalg.inv(np.linalg.cholesky(self.known.covariance)) @ np.diag(
                np.append(np.ones(count), roots)
            )

        def logs(theta: Numbers, effects: Numbers) -> Numbers:
            return np.log(step_parts(theta, self.features).of_run(effects[..., self.of_run.argmax(1), :]))

        def residuals(x: Numbers) -> Numbers:
            rows = (self.y - logs(x[:count], x[count:].reshape(-1, 2))) / spread
            return np.concatenate([rows, whiten @ (x - self.mean)])

        def jacobian(x: Numbers) -> Numbers:
            theta, effects = x[:count], x[count:].reshape(-1, 2)
            nudged = np.concatenate([theta + _NUDGE * np.eye(count), theta - _NUDGE * np.eye(count)])
            changed = logs(nudged, effects)  # all differences in one call
            slopes = (changed[:count] - changed[count:]).T / (2 * _NUDGE)
            parts = step_parts(theta, self.features)
            of_row = effects[self.of_run.argmax(1)]
            shares = np.stack([parts.dispatch * np.exp(of_row[:, 0]), parts.work * np.exp(of_row[:, 1])], axis=1)
            shares /= shares.sum(axis=1, keepdims=True)
            of_effects = (self.of_run[:, :, None] * shares[:, None, :]).reshape(len(self.y), -1)
            return np.vstack([-np.hstack([slopes, of_effects]) / spread[:, None], whiten])

        found = least_squares(residuals, self.start, jac=jacobian, method="lm", xtol=1e-9, ftol=1e-9)
        self.start = found.x
        return found.x, found.fun, np.asarray(found.jac), spread

    def evidence(self, scatter: Scatter) -> float:
        """Return the logarithm of the evidence, but for a constant."""
        found = self.solve(scatter)
        _, residuals, jacobian, spread = found
        _, determinant = np.linalg.slogdet(jacobian.T @ jacobian)
        scales = float(np.log(spread).sum()) + self.num_runs * float(np.log(scatter.run).sum())
        return (
            -0.5 * float(residuals @ residuals) - scales - 0.5 * float(determinant) + self._of_weights(found, scatter)
        )

    def _of_weights(self, found: tuple[Numbers, Numbers, Numbers, Numbers], scatter: Scatter) -> float:
        """Return what the weights add to the bound: E[log w] of every run less the divergence from the weights' prior.

        The prior is a gamma law of shape and rate a = 2; what is believed has shape s = 3 and rate r.
        """
        shape, prior = (FREEDOM + 2) / 2, FREEDOM / 2
        rate = (FREEDOM + self._distance(found, scatter)) / 2
        digamma = sum(1 / k for k in range(1, round(shape))) - np.euler_gamma
        divergence = (
            (shape - prior) * digamma
            - math.lgamma(shape)
            + math.lgamma(prior)
            + prior * np.log(rate / prior)
            + shape * (prior - rate) / rate
        )
        return float((digamma - np.log(rate) - divergence).sum())


_FILE = "posterior.json"


def steps_to_learn_from() -> tuple[MeasuredStep, ...]:
    """Return the measured steps of all sources that are not held out."""
    held = held_out_sources()
    return tuple(step for step in measured_steps() if step.source not in held)


def shipped_posterior() -> Posterior:
    """Return what is believed after the measured steps that come with lbopt."""
    data = json.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return from_plain(data)


def to_plain(posterior: Posterior) -> dict[str, Any]:
    """Return the posterior as plain data; numbers keep six digits, the lower triangle of the covariance is enough."""
    scatter = posterior.scatter
    return {
        "rows": posterior.rows,
        "scatter": {"noise": scatter.noise, "dispatch": scatter.dispatch, "work": scatter.work},
        "parameters": [parameter.name for parameter in PARAMETERS],
        "mean": [float(f"{value:.6g}") for value in posterior.mean],
        "covariance": [
            [float(f"{value:.6g}") for value in row[: place + 1]] for place, row in enumerate(posterior.covariance)
        ],
    }


def from_plain(data: dict[str, Any]) -> Posterior:
    """Return the posterior that `to_plain` wrote."""
    if data["parameters"] != [parameter.name for parameter in PARAMETERS]:
        raise ValueError(
            f"{_FILE} is of other parameters; write it anew: python -m lbopt.hardware.calibrated.posterior"
        )
    size = len(data["mean"])
    covariance = np.zeros((size, size))
    for place, row in enumerate(data["covariance"]):
        covariance[place, : place + 1] = covariance[: place + 1, place] = row
    return Posterior(np.array(data["mean"]), covariance, Scatter(**data["scatter"]), data["rows"])


def main() -> None:
    """Fit again and write the file."""
    text = json.dumps(to_plain(calibrate_steps(steps_to_learn_from())))
    Path(str(files(__package__).joinpath(_FILE))).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()


LEVELS = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Forecasts of one source's steps, float64 (P,) each, in seconds.

    Parameters
    ----------
    source, steps
        Key of the source, and its rows.
    nominal
        By the mean of what is believed.
    low, median, high
        Ends between which 90 % of the draws lie, and their median.
    """

    source: str
    steps: tuple[MeasuredStep, ...]
    nominal: Numbers
    low: Numbers
    median: Numbers
    high: Numbers

    @property
    def measured(self) -> Numbers:
        """s, as published."""
        return np.array([step.seconds for step in self.steps])

    @property
    def errors(self) -> Numbers:
        """Forecast over measured less one, by row."""
        return np.asarray(self.median / self.measured - 1)

    @property
    def error(self) -> float:
        """Median over the rows of the error's size."""
        return float(np.median(np.abs(self.errors)))

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Whether the measured step lies within the interval, by row."""
        return np.asarray((self.low <= self.measured) & (self.measured <= self.high))

    @property
    def width(self) -> float:
        """Median of high over low."""
        return float(np.median(self.high / self.low))


def forecast_source(
    source: str, seen: Sequence[MeasuredStep], unseen: Sequence[MeasuredStep], scatter: Scatter | None = None
) -> Forecast:
    """Return the forecast of unseen steps by a law that is calibrated by the seen ones.

    Parameters
    ----------
    source
        Key of the source of the unseen steps.
    seen, unseen
        Steps; no source may be in both.
    scatter
        Of rows and runs; None finds it from the seen steps.
    """
    shared = {step.source for step in seen} & {step.source for step in unseen}
    if shared:
        raise InputError(f"source '{min(shared)}' is both seen and forecast; leave it out of one of the two")
    believed, features = calibrate_steps(seen, scatter), StepFeatures.of(unseen)
    low, median, high = np.quantile(believed.forecast(features), LEVELS, axis=0)
    return Forecast(source, tuple(unseen), believed.nominal(features), low, median, high)


def leave_sources_out(steps: Sequence[MeasuredStep], scatter: Scatter | None = None) -> tuple[Forecast, ...]:
    """Return the forecast of every source by the law that the other sources calibrate, the worst source first."""
    sources = dict.fromkeys(step.source for step in steps)
    found = [
        forecast_source(
            source,
            [step for step in steps if step.source != source],
            [step for step in steps if step.source == source],
            scatter,
        )
        for source in sources
    ]
    return tuple(sorted(found, key=lambda one: -one.error))
