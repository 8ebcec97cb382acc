"""A calibration: what published step times of a whole cluster say of a model on a device, read from a TOML file.

    seconds = balanced_step + per_token * (max L - mean L)

It knows nothing of bytes and rates: the step of a balanced fleet and the slope in what the heaviest worker holds above
the mean are both taken from published measurements, with wide ends. It stands beside the roofline because the two need
not agree, and where they do not, the difference is what a reader should know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.hardware.quantity import Quantity

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
    note
        What it rests on.
    """

    name: str
    device: str
    model: str
    devices_per_worker: int
    balanced_step: Quantity
    per_token: Quantity
    note: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str) -> Calibration:
        """Read a calibration from what a TOML file holds; `source` is the file's name, for errors."""
        for name in ("name", "device", "model", "note"):
            if not isinstance(data.get(name), str):
                raise InputError(f"calibration '{source}' has no {name}")
        count = data.get("devices_per_worker")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"calibration '{source}' has devices_per_worker {count!r}; expected a whole number from 1")
        wrong = sorted(set(data) - {"name", "device", "model", "note", "devices_per_worker", *QUANTITIES})
        if wrong:
            raise InputError(f"calibration '{source}' has an unknown entry '{wrong[0]}'")
        found = {
            name: Quantity.from_dict(f"calibration '{source}': {name}", data.get(name), unit)
            for name, unit in QUANTITIES.items()
        }
        return cls(
            name=data["name"],
            device=data["device"],
            model=data["model"],
            devices_per_worker=count,
            note=data["note"],
            **found,
        )
