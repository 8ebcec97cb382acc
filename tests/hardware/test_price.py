"""The price of a step, by hand."""

import math

import numpy as np
import pytest

from lbopt.hardware.cards import device_card
from lbopt.hardware.price import CHARGES, SPIN, FleetConstants, price_step


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
    price = price_step(fleet(spin=0.25), grams_per_kwh=500.0)
    assert price.tokens_per_second[0] == 8000
    assert price.wait_share[0] == pytest.approx(0.2)
    waiting = 100 + 0.25 * 500  # a fifth of the time at a quarter of the way from idle to busy
    watts = waiting * 0.2 + 600 * 0.8
    assert price.kilowatts[0] == pytest.approx(16 * watts / 1e3)
    assert price.joules_per_token[0] == pytest.approx(16 * watts / 8000)
    assert price.wait_energy_share[0] == pytest.approx(0.2 * waiting / watts)
    # 1 M tokens take 125 s, so 16 * 525 W * 125 s = 1.05 MJ = 0.2917 kWh
    assert price.grams_per_million[0] == pytest.approx(500 * 16 * watts * 125 / 3.6e6)
    assert price.dollars_per_million[0] == pytest.approx(16 * 2.0 * 125 / 3600)


@pytest.mark.parametrize(("charge", "spin"), [(CHARGES[1], 0.0), (CHARGES[2], 1.0)])
def test_the_other_charges_are_the_ends(charge, spin):
    price, same = price_step(fleet(), charge), price_step(fleet(spin=spin))
    assert price.joules_per_token[0] == same.joules_per_token[0]
    assert price.wait_energy_share[0] == same.wait_energy_share[0]


@pytest.mark.parametrize("spin", [0.0, 0.3, 1.0])
def test_what_balance_saves_is_the_energy_of_the_waiting(spin):
    """The same work without its waiting: a step shorter by it, at busy power throughout."""
    today = price_step(fleet(spin=spin))
    level = price_step(fleet(spin=spin, seconds=np.array([0.04]), waited_seconds=np.array([0.0])))
    saved = 1 - level.joules_per_token[0] / today.joules_per_token[0]
    assert saved == pytest.approx(today.wait_energy_share[0])
    assert saved > 0


def test_the_building_uses_energy_too_and_what_is_unknown_stays_so():
    plain, housed = price_step(fleet()), price_step(fleet(), overhead=1.3)
    assert housed.joules_per_token[0] == pytest.approx(1.3 * plain.joules_per_token[0])
    assert math.isnan(plain.grams_per_million[0])
    assert math.isnan(price_step(fleet(dollars_per_hour=np.array([math.nan]))).dollars_per_million[0])


def test_what_a_waiting_worker_draws_has_its_sources():
    assert SPIN.low < SPIN.value < SPIN.high == 1.0
    held = device_card("h100-measured")["idle_power"].value
    assert pytest.approx(SPIN.value, abs=0.005) == (222 - held) / (397 - held)
    assert SPIN.low <= 0.013, "a board that only polls a flag was measured at 1.3 % of the way"
    for source in ("InferenceX issue 828", "cupy issue 3557", "NCCL issue 1025", "arXiv 2604.04745"):
        assert source in SPIN.source
