"""What is believed of the calibrated law: the posterior that is shipped, and what rows of one's own make of it.

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
whitened residuals.

`python -m tools.calibrated_law` fits what is shipped to all sources but those that are held out, and validates it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.calibrated.law import DEVIATIONS, MEANS, PARAMETERS, StepFeatures, step_parts
from lbopt.hardware.published import MeasuredStep

Numbers = NDArray[np.float64]

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


def prior(scatter: Scatter) -> Posterior:
    """Return what is believed before any step was seen."""
    variances = np.concatenate([DEVIATIONS, scatter.run]) ** 2
    return Posterior(np.append(MEANS, [0.0, 0.0]), np.diag(variances), scatter)


def update(known: Posterior, steps: Sequence[MeasuredStep]) -> Posterior:
    """Return what is believed after steps of the run that is to be forecast: one engine on one machine."""
    found = StackedRows(steps).solve(known)
    return Posterior(found.x, found.covariance, known.scatter, known.rows + len(steps), seen=True)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The parameters with the effects of all runs; residuals and Jacobian there; deviations (P,) of the rows."""

    x: Numbers
    residuals: Numbers
    jacobian: Numbers
    spread: Numbers

    @property
    def covariance(self) -> Numbers:
        """Of Laplace's approximation."""
        return np.asarray(np.linalg.inv(self.jacobian.T @ self.jacobian), dtype=np.float64)

    def distance(self, scatter: Scatter) -> Numbers:
        """Return E[u^2] / dispatch^2 + E[v^2] / work^2 of every run, float64 (R,)."""
        squares = self.x[MEANS.size :] ** 2 + np.diag(self.covariance)[MEANS.size :]
        return np.asarray((squares.reshape(-1, 2) / scatter.run**2).sum(axis=1))


class StackedRows:
    """Stacked residuals of rows, of what is believed of the parameters, and of the runs' effects.

    Parameters
    ----------
    steps
        Measured steps, at least one.
    run_of
        int64 (P,), the run of each, from 0; None = all are of the run that is forecast.
    """

    def __init__(self, steps: Sequence[MeasuredStep], run_of: Sequence[int] | None = None) -> None:
        if not steps:
            raise InputError("there is no measured step to calibrate by; give at least one row")
        self.features = StepFeatures.of(steps)
        self.y: Numbers = np.log([step.seconds for step in steps])
        self.doubt = np.array([step.doubt for step in steps])
        self.run_of = np.zeros(len(steps), dtype=np.int64) if run_of is None else np.array(run_of)
        self.weights = np.ones(self.run_of.max() + 1)
        self._start: Numbers | None = None

    def solve(self, known: Posterior) -> Solution:
        """Return the solution where this is known of every run, once the weights of runs stand."""
        for _ in range(_TURNS):
            found = self._solve_weighted(known)
            if known.seen:
                break  # normal, and no weight
            before, self.weights = self.weights, (FREEDOM + 2) / (FREEDOM + found.distance(known.scatter))
            if np.abs(self.weights - before).max() < _STANDS:
                break
        return found

    def _solve_weighted(self, known: Posterior) -> Solution:
        """Return the same under the present weights."""
        from scipy.optimize import least_squares

        spread = np.hypot(self.doubt, known.scatter.noise)
        count, runs = MEANS.size, self.weights.size
        mean = np.append(known.mean[:count], np.tile(known.mean[count:], runs))
        root = np.linalg.inv(np.linalg.cholesky(known.covariance))
        whiten = np.block(
            [
                [root[:count, :count], np.zeros((count, 2 * runs))],
                [np.tile(root[count:, :count], (runs, 1)), np.kron(np.eye(runs), root[count:, count:])],
            ]
        )
        whiten *= np.append(np.ones(count), np.repeat(np.sqrt(self.weights), 2))
        of_run = np.eye(runs)[self.run_of]

        def logs(theta: Numbers, effects: Numbers) -> Numbers:
            return np.log(step_parts(theta, self.features).of_run(effects[..., self.run_of, :]))

        def residuals(x: Numbers) -> Numbers:
            rows = (self.y - logs(x[:count], x[count:].reshape(-1, 2))) / spread
            return np.concatenate([rows, whiten @ (x - mean)])

        def jacobian(x: Numbers) -> Numbers:
            theta, effects = x[:count], x[count:].reshape(-1, 2)
            nudged = np.concatenate([theta + _NUDGE * np.eye(count), theta - _NUDGE * np.eye(count)])
            changed = logs(nudged, effects)  # all differences in one call
            slopes = (changed[:count] - changed[count:]).T / (2 * _NUDGE)
            parts = step_parts(theta, self.features)
            of_row = effects[self.run_of]
            shares = np.stack([parts.dispatch * np.exp(of_row[:, 0]), parts.work * np.exp(of_row[:, 1])], axis=1)
            shares /= shares.sum(axis=1, keepdims=True)
            of_effects = (of_run[:, :, None] * shares[:, None, :]).reshape(len(self.y), -1)
            return np.vstack([-np.hstack([slopes, of_effects]) / spread[:, None], whiten])

        start = mean if self._start is None else self._start
        found = least_squares(residuals, start, jac=jacobian, method="lm", xtol=1e-9, ftol=1e-9)
        self._start = found.x
        return Solution(found.x, found.fun, np.asarray(found.jac), spread)


#: What is shipped.
FILE = "posterior.json"


def shipped_posterior() -> Posterior:
    """Return what is believed after the measured steps that come with lbopt."""
    data = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    return from_plain(data)


def from_plain(data: dict[str, Any]) -> Posterior:
    """Return a posterior of plain data, whose covariance is its lower triangle."""
    if data["parameters"] != [parameter.name for parameter in PARAMETERS]:
        raise ValueError(f"{FILE} is of other parameters; write it anew: python -m tools.calibrated_law fit")
    size = len(data["mean"])
    covariance = np.zeros((size, size))
    for place, row in enumerate(data["covariance"]):
        covariance[place, : place + 1] = covariance[: place + 1, place] = row
    return Posterior(np.array(data["mean"]), covariance, Scatter(**data["scatter"]), data["rows"])
