"""Shares, quantiles and ratios of times of which some are known only to exceed the limit."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.race.profile import (
    Bracket,
    median_ratio,
    quantile,
    quickest,
    ratios,
    share_within,
    times_of,
)
from tests.benchmarks.race.small_race import record

LIMIT = 1.0
TIMES = st.lists(st.floats(0.01, 5.0), min_size=1, max_size=30)
PAIRS = st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(0.01, 5.0)), min_size=1, max_size=30)


def censored(times):
    """What a race with a limit of 1 s sees of true times."""
    return np.array([time if time <= LIMIT else np.inf for time in times])


@given(TIMES, st.floats(0.01, 1.0))
def test_a_quantile_is_the_true_one_or_at_least_the_limit(true, q):
    """Censoring at the limit never moves a quantile below the limit, and those above are said to be above."""
    found = quantile(censored(true), q, LIMIT)
    exact = sorted(true)[max(0, math.ceil(round(q * len(true), 9)) - 1)]
    if exact <= LIMIT:
        assert found == Bracket(exact, exact)
    else:
        assert found == Bracket(LIMIT, math.inf)


@given(PAIRS)
def test_the_median_ratio_lies_in_its_bracket(true):
    """Over the pairs of which one was closed, the true median lies between the two ends, whatever was censored."""
    ours, theirs = [one for one, _ in true], [other for _, other in true]
    found = median_ratio(ratios(censored(theirs), censored(ours), LIMIT))
    seen = [b / a for a, b in true if a <= LIMIT or b <= LIMIT]
    if not seen:
        assert found is None
        return
    exact = statistics.median_low(seen)
    assert found.low <= exact * (1 + 1e-12)
    assert exact <= found.high * (1 + 1e-12)
    if all(a <= LIMIT and b <= LIMIT for a, b in true):
        assert found.known
        assert found.low == pytest.approx(exact)


def test_only_closed_runs_have_a_time():
    """Open, refuted, failed and missing runs are infinite; claims are where they do not count."""
    records = [record(status=s) for s in ("proved", "claimed", "open", "refuted", "failed", "missing")]
    assert times_of(records).tolist() == [1.0, 1.0, *[math.inf] * 4]
    assert times_of(records, claims=False).tolist() == [1.0, *[math.inf] * 5]


def test_one_side_alone_closed():
    """A rival that was not closed is at least limit / ours slower; one that alone was closed at most theirs / limit."""
    assert ratios(np.array([np.inf]), np.array([0.01]), LIMIT) == [Bracket(100.0, math.inf)]
    assert ratios(np.array([0.5]), np.array([np.inf]), LIMIT) == [Bracket(0.0, 0.5)]
    assert ratios(np.array([np.inf]), np.array([np.inf]), LIMIT) == []


def test_nothing_has_no_number():
    """No runs: no quantile, no ratio, no share."""
    none = np.array([])
    assert quantile(none, 0.5, LIMIT) is None
    assert median_ratio([]) is None
    assert math.isnan(share_within(none, 1.0))


def test_the_quickest_is_chosen_run_by_run():
    """The better of two is that of each run."""
    assert quickest([np.array([1.0, np.inf]), np.array([2.0, 3.0])]).tolist() == [1.0, 3.0]
