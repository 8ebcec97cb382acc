"""Device cards, and the catalogue of cards and of calibrations.

A device card: the constants of one accelerator, each with its ends and its source, read from a TOML file.

A card does not need every constant; what a law or a price needs and the card lacks is asked for by name. `origin` is
"measurement" for a card that `lbopt measure` wrote on the machine itself, and "documents" for every other.

The catalogue of cards and of calibrations.

A calibration: what published step times of a whole cluster say of a model on a device, read from a TOML file.

    seconds = balanced_step + per_token * (max L - mean L)

It knows nothing of bytes and rates: the step of a balanced fleet and the slope in what the heaviest worker holds above
the mean are both taken from published measurements, with wide ends. Nothing in it follows from the batch or the fleet,
so it speaks only of running requests and workers within the ranges that were measured, and refuses all others.

The catalogue of cards: those shipped with lbopt by name, and a user's own or measured ones by the path of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from lbopt.exceptions import InputError
from lbopt.files import called, parse_toml, read_toml
from lbopt.hardware.cards.model import ModelCard
from lbopt.hardware.quantity import Quantity, check_entries, check_known, read_quantities
from lbopt.kinds import whole
from lbopt.spec import unknown

#: The constants that a card may hold: unit and meaning.
CONSTANTS: dict[str, tuple[str, str]] = {
    "memory_bandwidth": ("B/s", "peak rate at which device memory is read"),
    "memory_efficiency": ("1", "share of that rate which memory-bound kernels reach"),
    "memory_capacity": ("B", "device memory"),
    "flops_16bit": ("FLOP/s", "dense matrix arithmetic in bf16 or fp16"),
    "flops_8bit": ("FLOP/s", "dense matrix arithmetic in fp8 or int8"),
    "flops_4bit": ("FLOP/s", "dense matrix arithmetic in fp4; none where weights of 4 bits are unpacked to 16"),
    "compute_efficiency": ("1", "share of that arithmetic which compute-bound kernels reach"),
    "link_bandwidth": ("B/s", "rate, one direction, at which the device sends to others of its group"),
    "link_domain": ("1", "devices that reach each other at the high end of link_bandwidth"),
    "collective_latency": ("s", "one all-to-all or all-reduce of no payload"),
    "attention_call": ("s", "one attention kernel over no tokens"),
    "step_overhead": ("s", "part of a decode step that no term accounts for: launches, sampling, scheduling"),
    "idle_power": ("W", "drawn while nothing is computed"),
    "peak_power": ("W", "drawn by a device that works; the board's limit where nothing else is known"),
    "rental": ("USD/h", "price of one device for an hour"),
}

ORIGINS = ("documents", "measurement")

#: What a user calls the kinds of entries.
_KINDS = {str: "text", dict: "a table"}


@dataclass(frozen=True, slots=True)
class DeviceCard:
    """One accelerator.

    Parameters
    ----------
    name, title
        As users type it, and in full.
    part
        What one device is: "board", "package" or "die"; two dies in a package make a factor of two.
    origin
        "documents" or "measurement".
    constants
        Quantities by the names of `CONSTANTS`.
    account
        Of a measured card: machine, date, method, residuals, as plain data.
    note
        One or two sentences on what the constants rest on.
    """

    name: str
    title: str
    part: str
    origin: Literal["documents", "measurement"]
    constants: Mapping[str, Quantity]
    account: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise InputError(f"device card '{self.name}': origin '{self.origin}'; expected {' or '.join(ORIGINS)}")
        if self.origin == "measurement" and not self.account:
            raise InputError(f"device card '{self.name}' is measured but has no account of machine, date and method")
        idle, peak = self.constants.get("idle_power"), self.constants.get("peak_power")
        if idle is not None and peak is not None and idle.value > peak.value:
            raise InputError(
                f"device card '{self.name}': idle_power is {idle.value:g} W, above peak_power, {peak.value:g} W; "
                "are they exchanged?"
            )

    def __getitem__(self, constant: str) -> Quantity:
        if constant not in self.constants:
            unit, meaning = CONSTANTS[constant]
            raise InputError(
                f"device card '{self.name}' has no {constant} ({meaning}, {unit}); add it to the card, or take another "
                "device"
            )
        return self.constants[constant]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str) -> DeviceCard:
        """Read a card from what a TOML file holds; `source` is the file's name, for errors."""
        what = f"device card '{source}'"
        wanted = {"name": str, "title": str, "part": str, "origin": str, "constants": dict}
        check_entries(what, data, wanted, ("account", "note"))
        for name, kind in {"account": dict, "note": str}.items():
            if not isinstance(data.get(name, kind()), kind):
                raise InputError(f"{what}: {name} is {data[name]!r}; expected {_KINDS[kind]}")
        check_known(what, "constant", data["constants"], CONSTANTS)
        constants = read_quantities(what, data["constants"], {name: unit for name, (unit, _) in CONSTANTS.items()})
        return cls(
            name=data["name"],
            title=data["title"],
            part=data["part"],
            origin=data["origin"],
            constants=constants,
            account=data.get("account", {}),
            note=data.get("note", ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads."""
        data: dict[str, Any] = {"name": self.name, "title": self.title, "part": self.part, "origin": self.origin}
        if self.note:
            data["note"] = self.note
        if self.account:
            data["account"] = dict(self.account)
        return data | {"constants": {name: value.to_dict() for name, value in self.constants.items()}}


#: The quantities of a calibration and their units.
QUANTITIES = {"balanced_step": "s", "per_token": "s"}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Step time of one model on one device, from published cluster measurements.

    Parameters
    ----------
    name, device, model
        The file's name, and the cards that it speaks of.
    devices_per_worker
        Devices of one worker of the cluster that was measured; the law speaks of no other.
    balanced_step
        s, step of a fleet whose workers all hold the same.
    per_token
        s per token that the heaviest worker holds above the mean.
    running, workers
        Lowest and highest running requests of a worker, and number of workers, of which it speaks.
    range_source
        Where these ranges are from.
    note
        What it rests on.
    """

    name: str
    device: str
    model: str
    devices_per_worker: int
    balanced_step: Quantity
    per_token: Quantity
    running: tuple[float, float]
    workers: tuple[float, float]
    range_source: str
    note: str

    def refusal(self, workers: int, running: float) -> str | None:
        """Return why the law does not speak of such a fleet, or None where it does."""
        for what, value, (low, high) in (
            ("running requests a worker", running, self.running),
            ("workers", workers, self.workers),
        ):
            if not low <= value <= high:
                return f"it was measured with {low:g} to {high:g} {what}, and {value:g} were asked for"
        return None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str) -> Calibration:
        """Read a calibration from what a TOML file holds; `source` is the file's name, for errors."""
        what, texts = f"calibration '{source}'", ("name", "device", "model", "note")
        wanted = dict.fromkeys(texts, str) | dict.fromkeys(("range", *QUANTITIES), dict)
        check_entries(what, data, wanted, ("devices_per_worker",))
        count = whole(f"devices_per_worker of {what}", data.get("devices_per_worker"), 1)
        ends = data["range"]
        if set(ends) != {"running", "workers", "source"}:
            raise InputError(f"{what} has no range; expected a table of running, workers and source")
        found = read_quantities(what, {name: data[name] for name in QUANTITIES}, QUANTITIES)
        return cls(
            name=data["name"],
            device=data["device"],
            model=data["model"],
            devices_per_worker=count,
            running=_ends(source, "running", ends["running"]),
            workers=_ends(source, "workers", ends["workers"]),
            range_source=str(ends["source"]),
            note=data["note"],
            **found,
        )


def _ends(source: str, name: str, given: Any) -> tuple[float, float]:
    if not isinstance(given, list) or len(given) != 2 or not 0 < given[0] <= given[1]:
        raise InputError(f"calibration '{source}': range of {name} is {given!r}; expected a lower and an upper end")
    return float(given[0]), float(given[1])


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
