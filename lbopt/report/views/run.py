"""What a `Run` shows: its metrics, requests, steps and solved decisions, and the imbalance over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lbopt.report.figures import COLOURS
from lbopt.report.views.view import View
from lbopt.simulator import Run

#: Steps are averaged in at most so many stretches, so that a long run stays a readable line.
STRETCHES = 400


def metrics(run: Run) -> pd.DataFrame:
    """Return one row per metric over the default window: value, and the ends of its 95 % interval where it has one."""
    values = run.metrics().to_dict()
    rows = []
    for name, value in values.items():
        if not name.endswith("_interval"):
            low, high = values.get(f"{name}_interval") or (None, None)
            rows.append({"metric": name, "value": value, "low": low, "high": high})
    return pd.DataFrame(rows).astype({"low": float, "high": float})


def draw_imbalance(run: Run, axes: Axes) -> None:
    """Draw the imbalance in tokens against the decode step, averaged over stretches of the default window."""
    window = run.window
    workers, steps = run.setting.fleet.num_workers, run.steps
    values = workers * steps["read_max"][window.rows] - steps["read_sum"][window.rows]
    parts = [part for part in np.array_split(values, STRETCHES) if part.size]
    ends = np.cumsum([part.size for part in parts])
    middles = window.first + ends - np.array([part.size for part in parts]) / 2
    axes.plot(middles, [part.mean() for part in parts], color=COLOURS[0], linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("decode step")
    axes.set_ylabel("imbalance (tokens)")
    axes.set_title(f"{run.policy} on {run.trace.name}", fontsize=10)


VIEW: View[Run] = View(
    tables={
        "metrics": metrics,
        "requests": Run.request_table,
        "steps": Run.step_table,
        "decisions": Run.decision_table,
    },
    draw=draw_imbalance,
)
