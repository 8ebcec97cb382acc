"""Step time and power: worked values and refusals."""

import pytest

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime


def test_step_time_by_hand():
    law = AffineStepTime(fixed_seconds=2.0, seconds_per_token=0.25)
    assert law.seconds(0) == 2.0
    assert law.seconds(8) == 4.0


def test_the_constants_of_the_bf_io_paper():
    law = AffineStepTime.of_bf_io_paper(72)
    assert law.fixed_seconds == pytest.approx(0.0048875, rel=1e-15)
    assert law.seconds_per_token == 1.0052490234375e-07
    assert AffineStepTime.of_bf_io_paper(1).fixed_seconds == pytest.approx(0.0356 / 16)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["fixed_seconds", "seconds_per_token"])
def test_step_times_that_cannot_be_are_refused(name, bad):
    with pytest.raises(InputError, match=rf"{name} is {bad}; expected a finite number of zero or more"):
        AffineStepTime(**({"fixed_seconds": 1.0, "seconds_per_token": 1.0} | {name: bad}))


def test_a_step_that_takes_no_time_is_refused():
    with pytest.raises(InputError, match="a step would take no time"):
        AffineStepTime(0.0, 0.0)
    assert AffineStepTime(0.0, 1.0).seconds(3) == 3.0
    assert AffineStepTime(1.0, 0.0).seconds(3) == 1.0
