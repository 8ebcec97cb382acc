"""What a cost study is asked to price, and on what."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.hardware import make_step_time
from lbopt.hardware.cards import device_card, model_card
from lbopt.hardware.price import CHARGES
from lbopt.studies.option import Option
from lbopt.studies.plain import from_plain

DEFAULT_DEVICES = ("ascend-910c", "h800")
#: How experts of a mixture are held: each worker its share of them, or each worker all.
EXPERTS = ("parallel", "local")
#: Short names of `CHARGES`, for the command line.
CHARGE_NAMES = dict(zip(("wait-idle", "split", "share"), CHARGES, strict=True))


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
        Tokens that a request makes in a step; 2 with multi-token prediction of one token, all accepted.
    step_time
        A step-time law that replaces the roofline of every device, as `make_step_time` reads it; it has no interval.
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
    tokens_per_request: Annotated[int, Option("Tokens a request makes in a step.", panel="Devices")] = 1
    step_time: Annotated[
        str | None, Option("A step-time law in place of the devices' rooflines; it has no interval.", panel="Devices")
    ] = None
    charge: Annotated[
        str, Option("How the wait is charged: **wait-idle**, **split** or **share**.", panel="Prices")
    ] = "wait-idle"
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
            make_step_time(self.step_time)
        if self.devices_per_worker is not None and not 1 <= self.devices_per_worker <= 1024:
            raise InputError(f"devices_per_worker is {self.devices_per_worker}; expected 1 to 1024")
        if self.experts not in EXPERTS:
            raise InputError(f"experts '{self.experts}' are unknown; expected {' or '.join(EXPERTS)}")
        if not 1 <= self.tokens_per_request <= 8:
            raise InputError(f"tokens_per_request is {self.tokens_per_request}; expected 1 to 8")
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"devices": list(self.devices)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> CostConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a cost study", source=source)
