"""The highest rate that a rule can serve with a mean time to first token within a limit, all lower ones included.

A rule may do worse at some rate than at a higher one, so the search climbs in steps until the limit is first exceeded,
and halves the last step. Requests are the same at every rate, nearer together or farther apart.
"""

from __future__ import annotations

from collections.abc import Callable

from lbopt.prefill.metrics import PrefillMetrics

#: Growth of the rate in a step, and how near the two ends come in the end.
STEP, NEAR = 1.06, 0.002


def highest_rate(
    measure: Callable[[float], PrefillMetrics], limit: float, lowest: float, highest: float
) -> tuple[float, PrefillMetrics] | None:
    """Return the rate and what was measured there; None where even the lowest rate exceeds the limit.

    Parameters
    ----------
    measure
        From a rate to what happens at it.
    limit
        s of mean time to first token.
    lowest, highest
        Where to begin and where to stop looking.
    """
    rate, found = lowest, measure(lowest)
    if not found.first_token_mean_seconds <= limit:
        return None
    while True:
        if rate >= highest:
            return rate, found
        beyond = min(highest, rate * STEP)
        above = measure(beyond)
        if not above.first_token_mean_seconds <= limit:
            break
        rate, found = beyond, above
    while beyond - rate > NEAR * rate:
        middle = (rate + beyond) / 2
        between = measure(middle)
        if between.first_token_mean_seconds <= limit:
            rate, found = middle, between
        else:
            beyond = middle
    return rate, found
