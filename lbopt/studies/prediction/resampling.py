"""How far scores would move with other requests of the same kind: the bootstrap over test requests.

All rows of a request go together, because they are right or wrong together: a request is drawn with replacement, with
all its rows. The draws are the same for every predictor, so differences between two of them can be taken draw by draw.
Requests count as independent of each other, which within bursts they are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
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
    num_requests
        Number of requests.
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
