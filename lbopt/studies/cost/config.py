"""What a cost study is asked to price, and on what."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lbopt.exceptions import InputError
from lbopt.files import called, listed, read_text
from lbopt.hardware import make_step_time
from lbopt.hardware.cards import device_card, model_card
from lbopt.hardware.price import CHARGES
from lbopt.studies.configuration import Configuration, Option
from lbopt.studies.cost.audited_law import is_audit, read_audited_law

DEFAULT_DEVICES = ("ascend-910c", "h800")
#: How experts of a mixture are held: each worker its share of them, or each worker all.
EXPERTS = ("parallel", "local")
#: Short names of `CHARGES`, for the command line.
CHARGE_NAMES = dict(zip(("wait-spins", "wait-idle", "wait-busy"), CHARGES, strict=True))

_MOST, _TINY = sys.float_info.max, sys.float_info.min
_FINITE = "a finite number of zero or more"

#: What only the calibrated law takes, and the values that leave it alone.
_OF_THE_LAW = {"overlap": False, "balancedness": None, "prompt_share": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostConfig(Configuration):
    """Configuration of a cost study.

    Devices of a worker are the fewest, in powers of two, whose memory holds its part of the weights and its tokens,
    where the number is not given. `tokens_per_request` is 2 with multi-token prediction of one token. Bytes of a
    parameter are those of experts where the model's card tells them apart. `step_time` is a law as `make_step_time`
    reads it, or a folder of `lbopt audit`.
    """

    what = "a cost study"

    devices: Annotated[
        tuple[str, ...],
        Option(
            "Card, or path of one; may be given again.",
            names=("--device", "-d"),
            key="device",
            first=True,
            kept="once",
        ),
    ] = DEFAULT_DEVICES
    model: Annotated[str, Option("Model that is served: a card, or path of one.", first=True)] = "deepseek-v3"
    devices_per_worker: Annotated[
        int | None,
        Option("Devices of one worker.", shown="the fewest that hold weights and tokens", low=1, high=1024),
    ] = None
    experts: Annotated[
        str,
        Option("Experts of a mixture: **parallel** over all workers, or **local** to each.", among=EXPERTS),
    ] = "parallel"
    tokens_per_request: Annotated[int, Option("Tokens of a request that a step computes.", low=1, high=8)] = 1
    accepted: Annotated[
        float | None,
        Option("Of them, how many it keeps on average.", shown="all of them", later="left out"),
    ] = None
    kv_bytes: Annotated[
        float | None,
        Option(
            "Bytes of a cached value.",
            shown="the model card's",
            low=_TINY,
            high=8,
            expected="more than 0 and at most 8",
            later="left out",
        ),
    ] = None
    weight_bytes: Annotated[
        float | None,
        Option(
            "Bytes of a parameter.",
            shown="the model card's",
            low=_TINY,
            high=8,
            expected="more than 0 and at most 8",
            later="left out",
        ),
    ] = None
    balancedness: Annotated[
        float | None,
        Option(
            "Mean over maximum of the experts' work of devices.",
            shown="as in measured clusters",
            low=_TINY,
            high=1,
            expected="more than 0 and at most 1",
            later="left out",
        ),
    ] = None
    overlap: Annotated[bool, Option("Messages between experts overlap with computation.", later="left out")] = False
    prompt_share: Annotated[
        float,
        Option(
            "Prompt tokens that the same devices compute for every output token.",
            low=0,
            high=1000,
            expected="0 to 1000 tokens an output token",
            later="left out",
        ),
    ] = 0.0
    calibrate: Annotated[
        str | None,
        Option("A CSV of your own measured steps: they update the law.", first=True, later="left out"),
    ] = None
    step_time: Annotated[
        str | None,
        Option("A step-time law in its place, or a folder of lbopt audit: its law, with interval."),
    ] = None
    charge: Annotated[
        str,
        Option(
            "How the wait is charged: **wait-spins**, **wait-idle** or **wait-busy**.",
            among=tuple(CHARGE_NAMES),
        ),
    ] = "wait-spins"
    bill_devices: Annotated[
        int | None,
        Option("Devices that the bill is of.", shown="those of the fleet", low=1, later="left out"),
    ] = None
    carbon: Annotated[float | None, Option("Carbon intensity, g CO₂ a kWh.", low=0, high=_MOST, expected=_FINITE)] = (
        None
    )
    overhead: Annotated[
        float,
        Option(
            "Energy of the building for a joule of the devices (PUE).",
            low=1,
            high=10,
            expected="1 or more, up to 10: buildings use no less than devices",
        ),
    ] = 1.0
    rental: Annotated[
        float | None,
        Option("USD an hour and device.", shown="the card's range", low=0, high=_MOST, expected=_FINITE),
    ] = None
    draws: Annotated[
        int,
        Option(
            "Draws of the constants between their ends.",
            low=100,
            high=100_000,
            expected="100 to 100000, fewer give no interval",
        ),
    ] = 1000
    seed: Annotated[int, Option("First seed.", low=0)] = 0

    def check(self) -> None:
        """Refuse cards, laws and measured steps that cannot be read or told apart, and options that exclude others."""
        named: dict[str, str] = {}
        for device in self.devices:
            other = named.setdefault(device_card(device).name, device)
            if other != device:
                raise InputError(
                    f"the cards '{other}' and '{device}' are both named {device_card(device).name}; "
                    "give one of them another name, so that tables can tell them apart"
                )
        model_card(self.model)
        if self.accepted is not None and not 0 < self.accepted <= self.tokens_per_request:
            most = self.tokens_per_request
            raise InputError(f"accepted is {self.accepted:g}; expected more than 0 and at most {most}")
        if self.step_time is not None:
            self._check_replaced(self.step_time)
        elif self.calibrate is not None:
            read_text(self.calibrate, called(Path(self.calibrate)))  # refused before anything is shown

    def _check_replaced(self, step_time: str) -> None:
        """Refuse a law that cannot be, and options of the calibrated law, which it replaces."""
        read_audited_law(step_time) if is_audit(step_time) else make_step_time(step_time)
        if self.calibrate is not None:
            raise InputError("calibrate updates the calibrated law, and step_time replaces it; leave one of them out")
        unused = [name for name, usual in _OF_THE_LAW.items() if getattr(self, name) != usual]
        if unused:
            raise InputError(
                f"{listed(unused)} belong{'s' if len(unused) == 1 else ''} to the calibrated law, and "
                f"step_time replaces it; leave {'it' if len(unused) == 1 else 'them'} out, or give step_time a law "
                "with options of its own, such as calibrated:device=h800,overlap=yes"
            )
