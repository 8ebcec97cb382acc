"""What a `Result` shows: its placements, its workers, and the loads as bars under the barrier."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lbopt.report.figures import COLOURS, GREY
from lbopt.report.views.view import View
from lbopt.solvers import Result


def placements(result: Result) -> pd.DataFrame:
    """Return one row per request: its work in the first step of the window, and its worker (missing: it waits)."""
    problem, assignment = result.answered(), result.placed()
    return pd.DataFrame(
        {
            "request": np.arange(problem.num_requests),
            "tokens": problem.work[:, 0],
            "admitted": assignment >= 0,
            "worker": pd.array(np.where(assignment < 0, 0, assignment), dtype="Int64").copy(),
        }
    ).assign(worker=lambda frame: frame["worker"].where(frame["admitted"]))


def workers(result: Result) -> pd.DataFrame:
    """Return one row per worker: load before and after, free slots, requests that it gets."""
    problem, assignment = result.answered(), result.placed()
    return pd.DataFrame(
        {
            "worker": np.arange(problem.num_workers),
            "load_before": problem.base[:, 0],
            "free_slots": problem.slots,
            "placed": np.bincount(assignment[assignment >= 0], minlength=problem.num_workers),
            "load_after": result.loads[:, 0],
        }
    )


def draw_loads(result: Result, axes: Axes) -> None:
    """Draw the loads in the first step of the window: before, what is placed, the barrier and the mean."""
    table = workers(result)
    before, after = table["load_before"].to_numpy(), table["load_after"].to_numpy()
    axes.bar(table["worker"], before, color=GREY, alpha=0.6, label="load before")
    axes.bar(table["worker"], after - before, bottom=before, color=COLOURS[0], label="placed requests")
    axes.axhline(float(after.max()), color=COLOURS[1], linewidth=1.2, label="barrier (largest load)")
    axes.axhline(float(after.mean()), color=COLOURS[6], linewidth=1.0, linestyle="--", label="mean load")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("worker")
    axes.set_ylabel("load (tokens)")
    axes.set_title(f"imbalance {result.objective:,} tokens ({result.status})", fontsize=10)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


VIEW: View[Result] = View(tables={"placements": placements, "workers": workers}, draw=draw_loads)
