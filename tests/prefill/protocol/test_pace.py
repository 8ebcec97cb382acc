"""The typical pass is the median, and the proved bound holds for all windows and outliers."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.prefill.pace import Pace
from lbopt.prefill.protocol import ProtocolSetting

HONEST = st.floats(0.5, 2.0)
OUTLIER = st.sampled_from([1e-9, 1e-3, 30.0, 3600.0, 1e9])


def paces(setting, passes, instances=4):
    pace = Pace.cold(setting)
    for seconds in passes:
        pace = pace.after_pass(seconds, instances, setting)
        yield pace


@given(st.integers(3, 9), st.lists(st.one_of(HONEST, OUTLIER), max_size=30))
def test_it_is_the_median_of_the_window(window, passes):
    setting = ProtocolSetting(4, window=window)
    heard = [1.0, 1.0]
    for seconds, pace in zip(passes, paces(setting, passes), strict=True):
        heard = [*heard, min(max(seconds, 0.01), 100.0)][-window:]
        assert pace.typical == pytest.approx(statistics.median(heard))
        assert list(pace.in_order(window)) == heard


@given(st.integers(3, 9), st.data())
def test_a_minority_of_outliers_moves_nothing_beyond_the_others(window, data):
    """As the module proves: with at most (n - 1) // 2 outliers among the n values of each window."""
    setting = ProtocolSetting(4, window=window, latency=0.1)
    passes, odd = [], []
    for _ in range(20):
        recent = [False, False, *odd][-(window - 1) :]
        may = sum(recent) + 1 <= len(recent) // 2
        is_odd = may and data.draw(st.booleans())
        odd.append(is_odd)
        passes.append(data.draw(OUTLIER if is_odd else HONEST))
    for pace in paces(setting, passes):
        assert 0.5 <= pace.typical <= 2.0
        assert pace.interval <= (2.0 + 0.1) / 4
        assert setting.timeout(pace.typical) <= setting.watchdog * 2.0


def test_a_majority_of_outliers_is_held_between_the_ends():
    setting = ProtocolSetting(2, default_pass=0.2, spread=10.0, window=3)
    *_, slow = paces(setting, [3600.0] * 5)
    *_, fast = paces(setting, [1e-9] * 5)
    assert (slow.typical, fast.typical) == (2.0, pytest.approx(0.02))


def test_no_instance_leaves_the_interval():
    setting = ProtocolSetting(2)
    pace = Pace.cold(setting)
    assert pace.after_change(0, setting).interval == pace.interval == 0.5
    assert pace.after_change(1, setting).interval == 1.0
