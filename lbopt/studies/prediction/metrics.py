"""How good are predicted chances? AUC, ROC curve, Brier score and calibration (BalanceRoute, section 4.4).

The area under the ROC curve is the chance that of a row that ends and one that does not the first has the higher
prediction, equal predictions counting half: the rank statistic of Mann and Whitney.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.studies.prediction.outcome import CalibrationBin

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TENTHS = 10
#: Points that a picture can show.
_MOST_POINTS = 400


def area_under_curve(ends: Flags, p: Floats) -> float | None:
    """Return the AUC of chances `p` for what happened; None where all rows end, or none."""
    from scipy.stats import rankdata

    positive = int(ends.sum())
    negative = ends.size - positive
    if positive == 0 or negative == 0:
        return None
    ranks = float(rankdata(p)[ends].sum())
    return (ranks - positive * (positive + 1) / 2) / (positive * negative)


def brier_score(ends: Flags, p: Floats) -> float:
    """Return the mean squared error of the chances."""
    return float(np.mean((p - ends) ** 2))


def roc_curve(ends: Flags, p: Floats) -> Floats:
    """Return false and true positive rates, float64 (n, 2), from (0, 0) to (1, 1), thinned out where there are many."""
    if ends.all() or not ends.any():
        return np.empty((0, 2))
    order = np.argsort(-p, kind="stable")
    last_of_equals = np.append(np.flatnonzero(np.diff(p[order])), p.size - 1)
    true = np.cumsum(ends[order])[last_of_equals]
    false = last_of_equals + 1 - true
    curve = np.column_stack([false / false[-1], true / true[-1]])
    curve = np.vstack([[0.0, 0.0], curve])
    if len(curve) > _MOST_POINTS:
        curve = curve[np.unique(np.linspace(0, len(curve) - 1, _MOST_POINTS).round().astype(int))]
    return curve


def calibration_bins(ends: Flags, p: Floats) -> tuple[CalibrationBin, ...]:
    """Return the rows by tenths of the predicted chance."""
    tenth = np.minimum((p * TENTHS).astype(np.int64), TENTHS - 1)
    rows = np.bincount(tenth, minlength=TENTHS)
    predicted = np.bincount(tenth, weights=p, minlength=TENTHS)
    observed = np.bincount(tenth, weights=ends, minlength=TENTHS)
    return tuple(
        CalibrationBin(
            low=i / TENTHS,
            high=(i + 1) / TENTHS,
            rows=int(rows[i]),
            predicted=float(predicted[i] / rows[i]) if rows[i] else None,
            observed=float(observed[i] / rows[i]) if rows[i] else None,
        )
        for i in range(TENTHS)
    )


def calibration_error(bins: tuple[CalibrationBin, ...]) -> float:
    """Return the mean over the rows of abs(predicted - observed) of their tenth."""
    off = sum(
        b.rows * abs(b.predicted - b.observed) for b in bins if b.predicted is not None and b.observed is not None
    )
    return off / sum(b.rows for b in bins)
