"""The price of a step, by hand."""

import math

import numpy as np
import pytest

from lbopt.hardware.price import CHARGES, FleetConstants, price_step


def fleet(**given):
    values = {
        "seconds": np.array([0.05]),
        "waited_seconds": np.array([0.01]),
        "tokens": 400.0,
        "devices": 16,
        "idle_watts": np.array([100.0]),
        "peak_watts": np.array([600.0]),
        "dollars_per_hour": np.array([2.0]),
    }
    return FleetConstants(**{**values, **given})


def test_every_figure_by_hand():
    price = price_step(fleet(), share_of_heaviest=0.9, duty=0.95, grams_per_kwh=500.0)
    assert price.tokens_per_second[0] == 8000
    assert price.wait_share[0] == pytest.approx(0.2)
    watts = 100 * 0.2 + 600 * 0.8  # a fifth of the time at idle power
    assert price.kilowatts[0] == pytest.approx(16 * watts / 1e3)
    assert price.joules_per_token[0] == pytest.approx(16 * watts / 8000)
    assert price.wait_energy_share[0] == pytest.approx(0.2 * 100 / watts)
    # 1 M tokens take 125 s, so 16 * 500 W * 125 s = 1 MJ = 0.2778 kWh
    assert price.grams_per_million[0] == pytest.approx(500 * 16 * watts * 125 / 3.6e6)
    assert price.dollars_per_million[0] == pytest.approx(16 * 2.0 * 125 / 3600)


@pytest.mark.parametrize(("charge", "busy"), [(CHARGES[1], 0.9), (CHARGES[2], 0.95)])
def test_the_other_charges_go_by_shares(charge, busy):
    price = price_step(fleet(), 0.9, 0.95, charge)
    assert price.joules_per_token[0] == pytest.approx(16 * (100 + 500 * busy) / 8000)
    assert price.wait_energy_share[0] == pytest.approx(
        100 * (1 - busy) / (100 + 500 * busy)
    )  # waiting as it is charged


def test_the_building_uses_energy_too_and_what_is_unknown_stays_so():
    plain, housed = price_step(fleet(), 1, 1), price_step(fleet(), 1, 1, overhead=1.3)
    assert housed.joules_per_token[0] == pytest.approx(1.3 * plain.joules_per_token[0])
    assert math.isnan(plain.grams_per_million[0])
    assert math.isnan(price_step(fleet(dollars_per_hour=np.array([math.nan])), 1, 1).dollars_per_million[0])
