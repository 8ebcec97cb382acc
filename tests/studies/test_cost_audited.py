"""Prices by the law of an audit: by hand, with its interval, and refused where it does not speak."""

import json

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.studies.cost import LEVEL, CostConfig, LoadPoint, run_cost
from lbopt.studies.cost.audited_law import read_audited_law

POINT = LoadPoint.of_means(85_000, 200_000, 8, 35)
LAW = {"fixed": 0.04, "per_token": 1e-7, "per_token_interval": [0.8e-7, 1.2e-7]}
FOUND = {"law": LAW, "over_time": [{"heaviest": 90_000}, {"heaviest": 110_000}], "workers": list("abcdefgh")}


def folder(place, **changes):
    (place / "audit.json").write_text(json.dumps(FOUND | changes))
    return str(place)


def test_a_price_by_hand(tmp_path):
    config = CostConfig(devices=("h200",), step_time=folder(tmp_path), draws=4000)
    (device,) = run_cost([POINT, POINT.balanced(LEVEL)], config).devices
    assert device.law == "as audited"
    step, wait = (device.points[0].figures[name] for name in ("step_milliseconds", "wait_share"))
    assert step.nominal == pytest.approx(40 + 0.1 * 110)
    assert wait.nominal == pytest.approx(0.1 * 25 / 51)
    # At the mean of the log's heaviest loads, 100,000, every draw has a step of 50 ms; at 110,000 it is off by a tenth
    # of what the slope is off by, and the wait by all of it. 90 % of a normal law are 1.645 / 1.96 of 95 %.
    off = 0.02 * 1.645 / 1.96
    assert (step.low, step.high) == pytest.approx((51 - 10 * off, 51 + 10 * off), abs=0.01)
    assert wait.high == pytest.approx((0.1 + off) * 25 / (51 + 10 * off), rel=0.01)


def test_no_part_of_a_step_is_negative(tmp_path):
    wild = read_audited_law_of(tmp_path, law=LAW | {"per_token_interval": [-9e-7, 11e-7]})
    fixed, slope = wild.draws(2000, np.random.default_rng(1))
    assert fixed.min() == pytest.approx(0, abs=1e-12) and slope.min() == 0
    assert fixed + slope * 100_000 == pytest.approx(np.full(2001, 0.05))


def read_audited_law_of(place, **changes):
    folder(place, **changes)
    return read_audited_law(str(place))


def test_fleets_that_it_does_not_speak_of(tmp_path):
    config = CostConfig(devices=("h200",), step_time=folder(tmp_path))
    with pytest.raises(InputError, match="found on 8 workers, and 32 were asked for; ask for 4 to 16"):
        run_cost([LoadPoint.of_means(85_000, 200_000, 32, 35)], config)


@pytest.mark.parametrize(
    "changes",
    [{"law": {}}, {"law": LAW | {"per_token_interval": "ab"}}, {"workers": 3}, {"over_time": [{}]}],
)
def test_files_without_a_law_are_refused(changes, tmp_path):
    with pytest.raises(InputError, match=r"audit\.json' holds no law of steps"):
        CostConfig(step_time=folder(tmp_path, **changes))


def test_of_several_groups_one_is_named(tmp_path):
    (tmp_path / "audit.json").write_text(
        json.dumps({"groups": {"model a": FOUND, "model b": FOUND | {"workers": ["i"]}}})
    )
    assert read_audited_law(f"{tmp_path}:model b").workers == 1
    for named, message in (("", "2 groups of workers; expected"), (":model c", "none of them 'model c'")):
        with pytest.raises(InputError, match=f"{message}.*model a, model b"):
            CostConfig(step_time=f"{tmp_path}{named}")
    with pytest.raises(InputError, match="laws of no groups"):
        read_audited_law(folder(tmp_path) + ":model a")


def test_a_law_with_a_part_that_is_no_number_is_refused(tmp_path):
    with pytest.raises(InputError, match="with a part that is no number"):
        CostConfig(step_time=folder(tmp_path, law=LAW | {"fixed": -1}))
