"""A calibration: what published step times of a whole cluster say of a model on a device, read from a TOML file.

    seconds = balanced_step + per_token * (max L - mean L)

It knows nothing of bytes and rates: the step of a balanced fleet and the slope in what the heaviest worker holds above
the mean are both taken from published measurements, with wide ends. Nothing in it follows from the batch or the fleet,
so it speaks only of running requests and workers within the ranges that were measured, and refuses all others.
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
        for name in ("name", "device", "model", "note"):
            if not isinstance(data.get(name), str):
                raise InputError(f"calibration '{source}' has no {name}")
        count = data.get("devices_per_worker")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"calibration '{source}' has devices_per_worker {count!r}; expected a whole number from 1")
        wrong = sorted(set(data) - {"name", "device", "model", "note", "devices_per_worker", "range", *QUANTITIES})
        if wrong:
            raise InputError(f"calibration '{source}' has an unknown entry '{wrong[0]}'")
        ends = data.get("range")
        if not isinstance(ends, dict) or set(ends) != {"running", "workers", "source"}:
            raise InputError(f"calibration '{source}' has no range; expected a table of running, workers and source")
        found = {
            name: Quantity.from_dict(f"calibration '{source}': {name}", data.get(name), unit)
            for name, unit in QUANTITIES.items()
        }
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
