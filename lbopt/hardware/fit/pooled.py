"""All groups at once: does one slope, on x, on x per worker, or on ln x, serve every group with its own intercept?

    y = c_group + k f(x),   f(x) = x, x / G, √x or ln x

against own slopes for every group, by the F test of nested laws. "A fixed overhead and one slope" is a claim about all
fleets at once; a good fit in each group does not support it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.least_squares import LeastSquares, least_squares
from lbopt.hardware.fit.observations import Observations

#: Names of what the common slope multiplies.
FEATURES = ("x", "x / G", "√x", "ln x")


@dataclass(frozen=True, slots=True)
class PooledFit:
    """Own intercepts and a common slope on `feature`; the slope is the last of the parameters."""

    feature: str
    groups: tuple[str, ...]
    numbers: LeastSquares
    own_slopes: tuple[float, ...]
    own_slopes_rmse: float
    f_statistic: float
    p_value: float

    @property
    def slope(self) -> tuple[float, float]:
        """The common slope and its standard error."""
        return float(self.numbers.estimates[-1]), float(self.numbers.errors[-1])


def feature_of(name: str, observed: Observations) -> NDArray[np.float64]:
    """Return f(x), float64 (n,).

    Raises
    ------
    InputError
        For one and the same x in all rows, x / G of a group whose number of workers is not known, and ln x of a row
        where x is zero.
    """
    x = observed.columns["x"]
    if np.ptp(x) == 0:
        raise InputError(f"group '{observed.group}' has the same x in all rows; no slope can be estimated from it")
    if name == "x / G":
        if observed.workers is None:
            raise InputError(f"group '{observed.group}' does not say its number of workers; add a column 'workers'")
        return x / observed.workers
    if name == "ln x":
        if (x <= 0).any():
            raise InputError(f"group '{observed.group}' has a row with x = 0, which has no logarithm")
        return np.log(x)
    return np.sqrt(x) if name == "√x" else x


def features_for(groups: tuple[Observations, ...]) -> tuple[str, ...]:
    """Return the features that every group has."""
    found = []
    for name in FEATURES:
        try:
            for one in groups:
                feature_of(name, one)
        except InputError:
            continue
        found.append(name)
    return tuple(found)


def fit_pooled(feature: str, groups: tuple[Observations, ...]) -> PooledFit:
    """Fit own intercepts and a common slope, float64 design (rows of all groups, groups + 1)."""
    from scipy.stats import f as f_distribution

    values = [feature_of(feature, one) for one in groups]
    y = np.concatenate([one.y for one in groups])
    member = np.repeat(np.arange(len(groups)), [one.y.size for one in groups])
    intercepts = (member[:, None] == np.arange(len(groups))).astype(np.float64)
    common = least_squares(np.column_stack([intercepts, np.concatenate(values)]), y)
    own = least_squares(np.column_stack([intercepts, intercepts * np.concatenate(values)[:, None]]), y)
    more = len(groups) - 1
    statistic, p_value = float("nan"), float("nan")
    if more and own.sum_of_squares > 0:
        statistic = (common.sum_of_squares - own.sum_of_squares) / more / (own.sum_of_squares / own.degrees)
        p_value = float(f_distribution.sf(statistic, more, own.degrees))
    return PooledFit(
        feature=feature,
        groups=tuple(one.group for one in groups),
        numbers=common,
        own_slopes=tuple(own.estimates[len(groups) :].tolist()),
        own_slopes_rmse=own.rmse,
        f_statistic=statistic,
        p_value=p_value,
    )
