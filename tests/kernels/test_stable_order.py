"""The merge sort of kernels, against NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbopt.kernels.stable_order import ascending, stable_order


@given(st.lists(st.integers(-3, 3), max_size=130) | st.lists(st.integers(-(2**62), 2**62), max_size=60))
def test_as_numpy(values):
    keys = np.array(values, dtype=np.int64)
    kept = keys.copy()
    np.testing.assert_array_equal(stable_order(keys), np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(ascending(keys), np.sort(keys))
    np.testing.assert_array_equal(keys, kept)


def test_long_ones():
    keys = np.random.default_rng(1).integers(0, 500, 5000)
    np.testing.assert_array_equal(stable_order(keys), np.argsort(keys, kind="stable"))
