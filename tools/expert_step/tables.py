"""The tables and the folder of a measured decode step with experts."""

from __future__ import annotations

import json
from pathlib import Path

from lbopt import numbers
from lbopt.hardware.measure.timing import Estimate
from lbopt.report.contents import Contents, write_folder
from lbopt.table import Table
from tools.expert_step.measured import StepTimes, is_read

FORMAT = "lbopt-step-times"
FORMAT_VERSION = 1

_NAMES = {
    "other_seconds": ("beside experts, of a step (other_seconds)", 1e3, "ms"),
    "seconds_per_request": ("a request", 1e6, "µs"),
    "seconds_per_token": ("a resident token", 1e9, "ns"),
    "layer_seconds": ("a layer of experts, fixed (c0)", 1e6, "µs"),
    "seconds_per_expert": ("an active expert of a layer (c1)", 1e6, "µs"),
}


def step_time_tables(found: StepTimes) -> list[Table]:
    """Return the constants, and the law against whole steps."""
    law, shape = found.law, found.shape
    rows = [
        (label, f"{_shown(found.law.constants()[name], factor)} {unit}")
        for name, (label, factor, unit) in _NAMES.items()
    ]
    reached = shape.expert_bytes / law.experts["active"].value
    constants = Table(
        f"Decode step of {shape.name}, bfloat16: {found.machine.get('device', 'unknown')}",
        f"{found.layers} of {shape.layers} layers in memory, constants of all. An expert is read at "
        f"{reached / 1e12:.2f} TB/s, a large block at {found.plain_read / 1e12:.2f}. Residuals: layers of experts "
        f"{law.experts.worst:.1%} at most, the rest {max(law.attention.worst, law.head.worst):.1%}. The device alone: "
        "no scheduler, no sampling.",
        ("constant", "value"),
        rows,
    )
    errors = found.errors_of_law()
    medians = {one.place: one.median for one in found.timed}
    steps = Table(
        "Whole steps against the law",
        "Beyond: more requests an expert than the law of experts is of.",
        ("requests", "context", "experts", "step (ms)", "law", "reading binds"),
        [
            (
                f"{place.requests}",
                f"{place.context:,}",
                f"{place.active}",
                f"{1e3 * medians[place]:.2f}",
                numbers.share(error),
                "yes" if is_read(place, shape) else "beyond",
            )
            for place, error in errors.items()
        ],
    )
    return [constants, steps]


def write_step_times(found: StepTimes, folder: Path, command: str) -> None:
    """Write steps.csv, law.json and run.json."""
    data = found.to_dict()
    rows = [dict(zip(data["columns"], row, strict=True)) for row in data.pop("rows")]
    contents = Contents(tables={"steps": rows}, figures={}, others={"law.json": json.dumps(data, indent=1) + "\n"})
    account = {"machine": found.machine, "date": found.date, "seconds": found.seconds}
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: contents, account)


def _shown(one: Estimate, factor: float) -> str:
    value, low, high = (factor * end for end in (one.value, one.low, one.high))
    return f"{value:.4g} ({low:.4g} … {high:.4g})"
