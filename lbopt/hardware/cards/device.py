"""A device card: the constants of one accelerator, each with its ends and its source, read from a TOML file.

A card does not need every constant; what a law or a price needs and the card lacks is asked for by name. `origin` is
"measurement" for a card that `lbopt measure` wrote on the machine itself, and "documents" for every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lbopt.exceptions import InputError
from lbopt.hardware.quantity import Quantity, check_entries, check_known, read_quantities

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
