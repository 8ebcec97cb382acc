"""Groups of arrays look in Python as they were declared, and kernels write into the arrays they were given."""

import numpy as np
import pytest

from lbopt.kernels.compile import kernel
from lbopt.kernels.search.state import Step


@kernel
def double_first_load(step):
    """Write through the group."""
    step.load[0] *= 2
    return step.v.size


def made(**changed):
    arrays = {name: np.arange(3) for name in ("v", "n", "floor", "load", "slots", "rank", "sums")}
    numbers = dict.fromkeys(("workers", "total", "heaviest", "scale", "most", "least", "forced"), 1)
    return Step(**{**arrays, **numbers, **changed})


def test_fields_are_the_arrays_themselves():
    load = np.array([5, 6, 7])
    step = made(load=load)
    assert double_first_load(step) == 3
    assert load.tolist() == [10, 6, 7]
    assert step.load is load
    assert double_first_load(Step(*[load] * 7, *range(7))) == 3


def test_wrong_fields_are_named():
    with pytest.raises(TypeError, match="rank"):
        Step(*[np.arange(3)] * 5, sums=np.arange(3), workers=1)
    with pytest.raises(TypeError, match="wrong"):
        made(wrong=np.arange(3))
    with pytest.raises(AttributeError, match="worker"):
        made().worker  # noqa: B018
