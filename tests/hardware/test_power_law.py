"""The power law and its four readings, by hand."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hardware.energy import READINGS, PowerLaw, PrintedUtilisation


def watts(law, loads, seconds=None, per_token=0.0, active=None):
    """Power of steps that last a second unless said otherwise."""
    loads = np.array(loads)
    steps = len(loads)
    return law.fleet_watts(
        loads,
        np.ones(steps) if seconds is None else np.array(seconds),
        per_token,
        np.full(steps, 10) if active is None else np.array(active),
    )


def test_share_by_hand():
    law = PowerLaw(idle_watts=100.0, peak_watts=400.0, exponent=0.5)
    # shares 1 and 1/4, then 1 and 0, then nothing resident
    assert watts(law, [[16, 4], [0, 7], [0, 0]]).tolist() == [400 + 250, 100 + 400, 200]


def test_split_by_hand():
    law = PowerLaw(reading="split")
    assert watts(law, [[16, 4], [0, 7], [0, 0]]).tolist() == [400 + 175, 100 + 400, 200]


def test_split_with_the_fixed_part_busy_by_hand():
    law = PowerLaw(reading="split-fixed-busy")
    # 1 s + 1/16 s a token: half of the first step is fixed, and the lighter worker waits for 12 tokens, 3/4 s of 2 s
    found = watts(law, [[16, 4], [0, 7], [0, 0]], seconds=[2.0, 4.0, 1.0], per_token=1 / 16)
    assert found.tolist() == pytest.approx([400 + 400 - 300 * 0.75 / 2, 400 - 300 * 7 / 16 / 4 + 400, 200])


def test_the_printed_reading_by_hand():
    law = PowerLaw(reading="mfu", exponent=0.5, printed=PrintedUtilisation(1e9, 1e12, 0.5))
    # 2 workers, 10 tokens a step: 5 tokens a worker in 0.1 s are 50 tokens/s, 1e11 FLOP/s, mfu 0.1, 0.2 of saturation
    assert watts(law, [[16, 4]], seconds=[0.1]).tolist() == pytest.approx([2 * (100 + 300 * 0.2**0.5)])
    assert watts(law, [[16, 4]], seconds=[0.001]).tolist() == [800]  # saturated


def test_the_printed_utilisation_exceeds_one_at_the_published_throughput():
    """Why eq. (56) cannot have produced the energy column: 5,000 tokens/s on every GPU."""
    assert PrintedUtilisation().of(5000.0) == pytest.approx(2.2436, abs=1e-4)


def test_the_default_power_is_the_papers():
    assert watts(PowerLaw(), [[10, 5, 0]]).tolist() == pytest.approx([400 + 100 + 300 * 0.5**0.7 + 100])


@pytest.mark.parametrize("reading", READINGS)
def test_power_lies_between_idle_and_peak(reading):
    rng = np.random.default_rng(5)
    loads, seconds, active = rng.integers(0, 1000, (50, 7)), rng.uniform(0.01, 1, 50), rng.integers(1, 500, 50)
    found = watts(PowerLaw(reading=reading), loads, seconds, 1e-5, active)
    assert ((found >= 7 * 100 - 1e-9) & (found <= 7 * 400 + 1e-9)).all()
    assert np.allclose(watts(PowerLaw(50.0, 50.0, reading=reading), loads, seconds, 1e-5, active), 7 * 50.0)


@pytest.mark.parametrize("reading", ["share", "split", "split-fixed-busy"])
def test_power_depends_on_shares_alone_and_never_falls_with_balance(reading):
    rng = np.random.default_rng(6)
    loads, seconds = rng.integers(1, 1000, (50, 7)), np.full(50, 0.5)
    law = PowerLaw(reading=reading)
    found = watts(law, loads, seconds, 4e-4)
    assert np.allclose(found, watts(law, loads * 13, seconds, 4e-4 / 13), rtol=1e-12)
    nearer = loads + (loads.max(axis=1, keepdims=True) - loads) // 2  # every worker half as far from the heaviest
    assert (watts(law, nearer, seconds, 4e-4) >= found - 1e-9).all()


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
        ({"reading": "shares"}, "unknown reading of the power law 'shares': did you mean share"),
    ],
)
def test_powers_that_cannot_be_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        PowerLaw(**values)


@pytest.mark.parametrize("name", ["parameters", "peak_flops", "saturation"])
def test_a_printed_utilisation_that_cannot_be_is_refused(name):
    with pytest.raises(InputError, match=f"{name} is 0"):
        PrintedUtilisation(**{name: 0.0})
