"""Step time and power: worked values and refusals."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, PowerLaw


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


def test_power_by_hand():
    law = PowerLaw(idle_watts=100.0, peak_watts=400.0, exponent=0.5)
    # shares 1 and 1/4, then 1 and 0, then nothing resident
    assert law.fleet_watts(np.array([[16, 4], [0, 7], [0, 0]])).tolist() == [400 + 250, 100 + 400, 200]


def test_the_default_power_is_the_papers():
    watts = PowerLaw().fleet_watts(np.array([[10, 5, 0]]))
    assert watts.tolist() == pytest.approx([400 + 100 + 300 * 0.5**0.7 + 100])


def test_power_depends_on_shares_only_and_lies_between_idle_and_peak():
    loads = np.random.default_rng(5).integers(0, 1000, (50, 7))
    law = PowerLaw()
    watts = law.fleet_watts(loads)
    assert np.allclose(watts, law.fleet_watts(loads * 13), rtol=1e-12)
    assert ((watts >= 7 * 100) & (watts <= 7 * 400)).all()
    assert np.allclose(PowerLaw(50.0, 50.0).fleet_watts(loads), 7 * 50.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"idle_watts": -1.0}, r"idle_watts is -1\.0; expected between 0 and peak_watts = 400\.0"),
        ({"idle_watts": 500.0}, r"idle_watts is 500\.0"),
        ({"idle_watts": float("nan")}, "idle_watts is nan"),
        ({"peak_watts": float("nan")}, "peak_watts is nan"),
        ({"peak_watts": float("inf")}, "peak_watts"),
        ({"exponent": 0.0}, r"exponent is 0\.0; expected in \(0, 1\]"),
        ({"exponent": 1.5}, r"exponent is 1\.5"),
        ({"exponent": float("nan")}, "exponent is nan"),
    ],
)
def test_powers_that_cannot_be_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        PowerLaw(**values)
