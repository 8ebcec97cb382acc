"""The catalogue of cards: those shipped with lbopt by name, and a user's own or measured ones by the path of a file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lbopt.files import called, parse_toml, read_toml
from lbopt.hardware.cards.calibration import Calibration
from lbopt.hardware.cards.device import DeviceCard
from lbopt.hardware.cards.model import ModelCard
from lbopt.spec import unknown


def device_names() -> list[str]:
    """Return the names of the devices that lbopt has cards of."""
    return list(_names("devices"))


def model_names() -> list[str]:
    """Return the names of the models that lbopt has cards of."""
    return list(_names("models"))


def device_card(name_or_path: str | Path) -> DeviceCard:
    """Return the card of a device.

    Parameters
    ----------
    name_or_path
        A name of `device_names`, or the path of a file that ends in .toml.

    Raises
    ------
    InputError
        The name is unknown (with the nearest names), the file cannot be read, or it holds no card.
    """
    return _device(str(name_or_path)) if _is_shipped(name_or_path) else _own_device(name_or_path)


def model_card(name_or_path: str | Path) -> ModelCard:
    """Return the card of a model; names, files and errors as in `device_card`."""
    return _model(str(name_or_path)) if _is_shipped(name_or_path) else _own_model(name_or_path)


@cache
def calibrations() -> tuple[Calibration, ...]:
    """Return the calibrations that come with lbopt."""
    names = _names("calibrations")
    return tuple(Calibration.from_dict(*_read("calibration", names, name)) for name in names)


def calibration_of(device: str, model: str) -> Calibration | None:
    """Return the calibration of a model on a device, by the names of their cards, or None."""
    return next((one for one in calibrations() if (one.device, one.model) == (device, model)), None)


def _is_shipped(name_or_path: str | Path) -> bool:
    """Return whether a card is asked for by name: such cards do not change, and are read once."""
    return not str(name_or_path).endswith(".toml")


def _own_device(name_or_path: str | Path) -> DeviceCard:
    return DeviceCard.from_dict(*_read("device", device_names(), name_or_path))


def _own_model(name_or_path: str | Path) -> ModelCard:
    return ModelCard.from_dict(*_read("model", model_names(), name_or_path))


_device, _model = cache(_own_device), cache(_own_model)


@cache
def _names(folder: str) -> list[str]:
    entries = files("lbopt.hardware.cards").joinpath(folder).iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))


def _read(kind: str, names: list[str], name_or_path: str | Path) -> tuple[dict[str, Any], str]:
    """Return what the card's file holds, and what to call it in errors."""
    name = str(name_or_path)
    if name.endswith(".toml"):
        return read_toml(name, f"the {kind} card '{called(name)}'"), called(name)
    if name not in names:
        raise unknown(kind, name, names, remark=" (a card of your own is named by its path, which ends in .toml)")
    text = files("lbopt.hardware.cards").joinpath(f"{kind}s", f"{name}.toml").read_text(encoding="utf-8")
    return parse_toml(text, f"the {kind} card '{name}'"), name
