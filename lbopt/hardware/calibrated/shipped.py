"""The posterior that comes with lbopt: fitted to all sources but those that are held out, kept as plain numbers.

`python -m lbopt.hardware.calibrated.shipped` fits it again and writes the file; a test compares it with a fit.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.hardware.calibrated.law import PARAMETERS
from lbopt.hardware.calibrated.posterior import Posterior, Scatter, calibrate_steps
from lbopt.hardware.published import MeasuredStep, held_out_sources, measured_steps

_FILE = "posterior.json"


def steps_to_learn_from() -> tuple[MeasuredStep, ...]:
    """Return the measured steps of all sources that are not held out."""
    held = held_out_sources()
    return tuple(step for step in measured_steps() if step.source not in held)


def shipped_posterior() -> Posterior:
    """Return what is believed after the measured steps that come with lbopt."""
    data = json.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return from_plain(data)


def to_plain(posterior: Posterior) -> dict[str, Any]:
    """Return the posterior as plain data; numbers keep six digits, the lower triangle of the covariance is enough."""
    scatter = posterior.scatter
    return {
        "rows": posterior.rows,
        "scatter": {"noise": scatter.noise, "dispatch": scatter.dispatch, "work": scatter.work},
        "parameters": [parameter.name for parameter in PARAMETERS],
        "mean": [float(f"{value:.6g}") for value in posterior.mean],
        "covariance": [
            [float(f"{value:.6g}") for value in row[: place + 1]] for place, row in enumerate(posterior.covariance)
        ],
    }


def from_plain(data: dict[str, Any]) -> Posterior:
    """Return the posterior that `to_plain` wrote."""
    if data["parameters"] != [parameter.name for parameter in PARAMETERS]:
        raise ValueError(f"{_FILE} is of other parameters; write it anew: python -m lbopt.hardware.calibrated.shipped")
    size = len(data["mean"])
    covariance = np.zeros((size, size))
    for place, row in enumerate(data["covariance"]):
        covariance[place, : place + 1] = covariance[: place + 1, place] = row
    return Posterior(np.array(data["mean"]), covariance, Scatter(**data["scatter"]), data["rows"])


def main() -> None:
    """Fit again and write the file."""
    text = json.dumps(to_plain(calibrate_steps(steps_to_learn_from())))
    Path(str(files(__package__).joinpath(_FILE))).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
