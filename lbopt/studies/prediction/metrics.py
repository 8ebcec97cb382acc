"""How good are predicted chances? AUC, ROC curve, Brier score and calibration (BalanceRoute, section 4.4).

The area under the ROC curve is the chance that of a row that ends and one that does not the first has the higher
prediction, equal predictions counting half: the rank statistic of Mann and Whitney.

How far scores would move with other requests of the same kind: the bootstrap over test requests.

All rows of a request go together, because they are right or wrong together: a request is drawn with replacement, with
all its rows. The draws are the same for every predictor, so differences between two of them can be taken draw by draw.
Requests count as independent of each other, which within bursts they are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.studies.grid import Row


class CalibrationBin(Row):
    """The rows whose predicted chance lies in one tenth.

    Parameters
    ----------
    low, high
        The tenth; the last one includes 1.
    rows
        How many.
    predicted, observed
        Mean predicted chance, and share of the rows that did end within the window; None where there are no rows.
    """


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
    return float(off / sum(b.rows for b in bins))


Ints = NDArray[np.int64]

DRAWS = 200
_SEED = 20_605
_TAIL = 2.5


def resampled_scores(ends: Flags, p: Floats, requests: Ints, num_requests: int) -> tuple[Floats, Floats]:
    """Return AUC and Brier score of each draw, float64 (DRAWS,) each; an AUC is NaN where there is none.

    `ends` and `p` are the rows, `requests` says whose row it is, int64 (n,), 0 to num_requests - 1.

    Parameters
    ----------
    ends
        bool, (n,): whether the request of the row ended within the window.
    p
        float64, (n,): predicted chance.
    requests
        int64, (n,): request of the row, 0 to num_requests - 1.
    """
    rng = np.random.default_rng(_SEED)
    _, place = np.unique(p, return_inverse=True)
    squares = np.bincount(requests, weights=(p - ends) ** 2, minlength=num_requests)
    rows = np.bincount(requests, minlength=num_requests)
    auc, brier = np.full(DRAWS, np.nan), np.empty(DRAWS)
    for draw in range(DRAWS):
        times = np.bincount(rng.integers(num_requests, size=num_requests), minlength=num_requests)
        brier[draw] = (times @ squares) / (times @ rows)
        weights = times[requests].astype(np.float64)
        positive = np.bincount(place[ends], weights=weights[ends], minlength=place.max() + 1)
        negative = np.bincount(place[~ends], weights=weights[~ends], minlength=place.max() + 1)
        pairs = positive.sum() * negative.sum()
        if pairs > 0:
            below = np.cumsum(negative) - negative
            auc[draw] = positive @ (below + negative / 2) / pairs
    return auc, brier


def interval(draws: Floats) -> tuple[float, float] | None:
    """Return the 95 % interval of draws, by percentiles; None where some draw has no value."""
    if np.isnan(draws).any():
        return None
    low, high = np.percentile(draws, [_TAIL, 100 - _TAIL])
    return float(low), float(high)
