"""Predict a group that the law has never seen from the others, and say by how much it misses.

*In level*: intercept and slope from the other groups; the intercept is the mean of theirs. *In differences*: a user
has measured one row of the new fleet, the anchor, and asks what another imbalance would cost: the law predicts
y_anchor + k (f(x) − f(x_anchor)). The anchor is the row of largest x - today's router - and, so that nothing hangs on
that row, all rows in turn. Beside it stands the miss of predicting no change, which a law must beat to be of use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.observations import Observations, Rows
from lbopt.hardware.fit.pooled import feature_of, features_for, fit_pooled


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the other groups say of one; all errors are root mean squares in the unit of the response.

    Parameters
    ----------
    group, feature
        The group left out, and what the common slope multiplies.
    slope, own_slope
        Of the others, and of the group itself.
    level, level_bias
        Error with the mean intercept of the others, and its mean part (predicted less observed).
    anchored
        Error over the other rows with the row of largest x as anchor; `anchor` is its label.
    anchored_all
        The same over all ordered pairs of rows.
    no_change, no_change_all
        The same errors of predicting the anchor's own value.
    """

    group: str
    feature: str
    slope: float
    own_slope: float
    level: float
    level_bias: float
    anchor: str
    anchored: float
    anchored_all: float
    no_change: float
    no_change_all: float


def hold_out(rows: Rows, group: str) -> tuple[HeldOut, ...]:
    """Predict one group from all others, by every feature that all groups have."""
    held = rows.of(group)
    others = tuple(one for one in rows.groups if one.group != group)
    if not others:
        raise InputError(f"{rows.source} has one group; holding out '{group}' leaves nothing to learn from")
    if "x" not in rows.regressors:
        raise InputError(f"{rows.source} has no column imbalance or spread; groups are held out by such a measure")
    return tuple(_predict(held, others, feature) for feature in features_for(rows.groups))


def _predict(held: Observations, others: tuple[Observations, ...], feature: str) -> HeldOut:
    pooled = fit_pooled(feature, others)
    own = fit_pooled(feature, (held,))
    slope = pooled.slope[0]
    intercept = float(pooled.numbers.estimates[:-1].mean())
    f = feature_of(feature, held)
    level = intercept + slope * f - held.y
    step = held.y[:, None] - held.y[None, :]  # [row, anchor]: what the change of imbalance did
    missed = slope * (f[:, None] - f[None, :]) - step
    pairs = ~np.eye(held.y.size, dtype=bool)
    anchor = int(np.argmax(held.columns["x"]))
    return HeldOut(
        group=held.group,
        feature=feature,
        slope=slope,
        own_slope=own.slope[0],
        level=_rms(level),
        level_bias=float(level.mean()),
        anchor=held.labels[anchor],
        anchored=_rms(missed[pairs[:, anchor], anchor]),
        anchored_all=_rms(missed[pairs]),
        no_change=_rms(step[pairs[:, anchor], anchor]),
        no_change_all=_rms(step[pairs]),
    )


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
