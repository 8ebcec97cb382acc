"""Cards that ship as measured: they read, say how they came about, and name nobody."""

import tomllib
from importlib.resources import files

import pytest

from lbopt.hardware.cards.catalogue import DeviceCard

CARDS = {
    path.name: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in (files("lbopt") / "hardware" / "cards" / "devices").iterdir()
    if path.name.endswith(".toml")
}
MEASURED = sorted(name for name, data in CARDS.items() if data["origin"] == "measurement")


def test_one_is_shipped():
    assert MEASURED


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_card_gives_account(name):
    card = DeviceCard.from_dict(CARDS[name], name)
    assert f"{card.name}.toml" == name
    assert DeviceCard.from_dict(card.to_dict(), name) == card
    assert {"machine", "date", "method", "attention"} <= set(card.account)
    assert {quantity.basis for quantity in card.constants.values()} <= {"measured", "derived"}
    assert card["memory_bandwidth"].value * card["memory_efficiency"].value > 0
    for one in card.account["attention"].values():
        assert one["linearity"]["verdict"] in ("linear", "not linear", "undecided")
        assert len(one["tokens"]) == len(one["seconds"]) == len(one["relative_residuals"]) == len(one["batch"])
        value, low, high = one["seconds_per_token"]
        assert 0 < low <= value <= high
    assert not any("/" in value for value in card.account["machine"].values())
