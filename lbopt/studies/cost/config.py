"""What a cost study is asked to price, and on what."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import called, listed, read_text
from lbopt.hardware import make_step_time
from lbopt.hardware.cards import device_card, model_card
from lbopt.hardware.price import CHARGES
from lbopt.studies.configuration import Option, from_plain
from lbopt.studies.cost.audited_law import is_audit, read_audited_law

DEFAULT_DEVICES = ("ascend-910c", "h800")
#: How experts of a mixture are held: each worker its share of them, or each worker all.
EXPERTS = ("parallel", "local")
#: Short names of `CHARGES`, for the command line.
CHARGE_NAMES = dict(zip(("wait-spins", "wait-idle", "wait-busy"), CHARGES, strict=True))

#: Options that run.json of version 0.1 does not have, and what they are where they are not used.
_LATER: dict[str, Any] = {
    "accepted": None,
    "kv_bytes": None,
    "weight_bytes": None,
    "balancedness": None,
    "overlap": False,
    "prompt_share": 0.0,
    "calibrate": None,
    "bill_devices": None,
}

#: Of these, what only the calibrated law takes.
_OF_THE_LAW = ("overlap", "balancedness", "prompt_share")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostConfig:
    """Configuration of a cost study.

    Parameters
    ----------
    devices
        Names of cards, or paths of cards of one's own.
    model
        The model that is served, a name or a path.
    devices_per_worker
        Devices that one worker is made of (tensor parallelism); None = the fewest, in powers of two, whose memory
        holds the worker's part of the weights and its tokens.
    experts
        "parallel" over all workers, or "local" to each.
    tokens_per_request
        Tokens of a request that a step computes; 2 with multi-token prediction of one token.
    accepted
        Of them, how many it keeps on average; None = all.
    kv_bytes, weight_bytes
        Bytes of a cached value, and of a parameter (of the experts, where the model's card tells them apart); None =
        the card's.
    balancedness
        Mean over maximum of the tokens that devices get for their experts; None = what measured clusters have.
    overlap
        Whether messages between experts overlap with computation, as with two batches or DeepEP's hooks.
    prompt_share
        Prompt tokens that the same devices compute for every output token; 0 with prefill elsewhere.
    calibrate
        A CSV of your own measured steps, which updates the calibrated law.
    step_time
        What replaces the laws of every device: a law as `make_step_time` reads it, without an interval, or an output
        folder of `lbopt audit`, whose law is taken with its interval.
    bill_devices
        Devices that the bill is of; None = those of the fleet.
    charge
        How the wait is charged, a name from `CHARGE_NAMES`.
    carbon
        g CO2 a kWh; None leaves carbon out.
    overhead
        Energy of the building for one joule of the devices (PUE), at least 1.
    rental
        USD an hour and device; None = the card's range.
    draws
        How often the constants are drawn between their ends.
    seed
        Of these draws.
    """

    devices: Annotated[
        tuple[str, ...],
        Option(
            "Card, or path of one; may be given again.",
            names=("--device", "-d"),
            key="device",
            panel="Devices",
            first=True,
        ),
    ] = DEFAULT_DEVICES
    model: Annotated[str, Option("Model that is served: a card, or path of one.", panel="Devices", first=True)] = (
        "deepseek-v3"
    )
    devices_per_worker: Annotated[
        int | None, Option("Devices of one worker.", panel="Devices", shown="the fewest that hold weights and tokens")
    ] = None
    experts: Annotated[
        str, Option("Experts of a mixture: **parallel** over all workers, or **local** to each.", panel="Devices")
    ] = "parallel"
    tokens_per_request: Annotated[int, Option("Tokens of a request that a step computes.", panel="Devices")] = 1
    accepted: Annotated[
        float | None, Option("Of them, how many it keeps on average.", panel="Devices", shown="all of them")
    ] = None
    kv_bytes: Annotated[float | None, Option("Bytes of a cached value.", panel="Devices", shown="the model card's")] = (
        None
    )
    weight_bytes: Annotated[
        float | None, Option("Bytes of a parameter.", panel="Devices", shown="the model card's")
    ] = None
    balancedness: Annotated[
        float | None,
        Option("Mean over maximum of the experts' work of devices.", panel="Devices", shown="as in measured clusters"),
    ] = None
    overlap: Annotated[bool, Option("Messages between experts overlap with computation.", panel="Devices")] = False
    prompt_share: Annotated[
        float, Option("Prompt tokens that the same devices compute for every output token.", panel="Devices")
    ] = 0.0
    calibrate: Annotated[
        str | None, Option("A CSV of your own measured steps: they update the law.", panel="Devices", first=True)
    ] = None
    step_time: Annotated[
        str | None,
        Option("A step-time law in its place, or a folder of lbopt audit: its law, with interval.", panel="Devices"),
    ] = None
    charge: Annotated[
        str, Option("How the wait is charged: **wait-spins**, **wait-idle** or **wait-busy**.", panel="Prices")
    ] = "wait-spins"
    bill_devices: Annotated[
        int | None, Option("Devices that the bill is of.", panel="Prices", shown="those of the fleet")
    ] = None
    carbon: Annotated[float | None, Option("Carbon intensity, g CO₂ a kWh.", panel="Prices")] = None
    overhead: Annotated[float, Option("Energy of the building for a joule of the devices (PUE).", panel="Prices")] = 1.0
    rental: Annotated[float | None, Option("USD an hour and device.", panel="Prices", shown="the card's range")] = None
    draws: Annotated[int, Option("Draws of the constants between their ends.", panel="Prices")] = 1000
    seed: Annotated[int, Option("First seed.", panel="Prices")] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "devices", tuple(dict.fromkeys(self.devices)))
        if not self.devices:
            raise InputError("no device was named; give at least one, such as h800")
        named: dict[str, str] = {}
        for device in self.devices:
            other = named.setdefault(device_card(device).name, device)
            if other != device:
                raise InputError(
                    f"the cards '{other}' and '{device}' are both named {device_card(device).name}; "
                    "give one of them another name, so that tables can tell them apart"
                )
        model_card(self.model)
        if self.step_time is not None:
            read_audited_law(Path(self.step_time)) if is_audit(self.step_time) else make_step_time(self.step_time)
        if self.devices_per_worker is not None and not 1 <= self.devices_per_worker <= 1024:
            raise InputError(f"devices_per_worker is {self.devices_per_worker}; expected 1 to 1024")
        if self.experts not in EXPERTS:
            raise InputError(f"experts '{self.experts}' are unknown; expected {' or '.join(EXPERTS)}")
        if not 1 <= self.tokens_per_request <= 8:
            raise InputError(f"tokens_per_request is {self.tokens_per_request}; expected 1 to 8")
        for name, least, most in (
            ("accepted", 0.0, float(self.tokens_per_request)),
            ("kv_bytes", 0.0, 8.0),
            ("weight_bytes", 0.0, 8.0),
            ("balancedness", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if value is not None and not least < value <= most:
                raise InputError(f"{name} is {value:g}; expected more than {least:g} and at most {most:g}")
        if not 0 <= self.prompt_share <= 1000:
            raise InputError(f"prompt_share is {self.prompt_share:g}; expected 0 to 1000 tokens an output token")
        if self.calibrate is not None and self.step_time is not None:
            raise InputError("calibrate updates the calibrated law, and step_time replaces it; leave one of them out")
        if self.step_time is not None:
            self._check_replaced()
        if self.calibrate is not None:
            read_text(self.calibrate, called(Path(self.calibrate)))  # refused before anything is shown
        if self.bill_devices is not None and self.bill_devices < 1:
            raise InputError(f"bill_devices is {self.bill_devices}; expected at least 1")
        if self.charge not in CHARGE_NAMES:
            raise InputError(f"charge '{self.charge}' is unknown; expected {', '.join(CHARGE_NAMES)}")
        for name in ("carbon", "rental"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number of zero or more")
        if not 1 <= self.overhead <= 10:
            raise InputError(
                f"overhead is {self.overhead:g}; buildings use no less than devices: expected 1 or more, up to 10"
            )
        if not 100 <= self.draws <= 100_000:
            raise InputError(f"draws are {self.draws}; expected 100 to 100000, fewer give no interval")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")

    def _check_replaced(self) -> None:
        """Refuse options of the calibrated law where another one replaces it."""
        unused = [name for name in _OF_THE_LAW if getattr(self, name) != _LATER[name]]
        if unused:
            raise InputError(
                f"{listed(unused)} belong{'s' if len(unused) == 1 else ''} to the calibrated law, and "
                f"step_time replaces it; leave {'it' if len(unused) == 1 else 'them'} out, or give step_time a law "
                "with options of its own, such as calibrated:device=h800,overlap=yes"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds; what is newer than version 0.1 only where it is used."""
        named = {f.name: getattr(self, f.name) for f in fields(self)} | {"devices": list(self.devices)}
        return {name: value for name, value in named.items() if name not in _LATER or value != _LATER[name]}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> CostConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a cost study", source=source, later=_LATER)
