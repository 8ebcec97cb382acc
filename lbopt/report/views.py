"""What each result shows when it is asked for a data frame, a picture or HTML.

A `View` holds the tables of a class of results by name, and the function that draws it on one set of axes. Outcomes of
studies have theirs from their report; a `Result` shows its placements, its workers and the loads under the barrier, a
`Run` its metrics, requests, steps and solved decisions, and the imbalance over time, a `Trace` the lengths of requests.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lbopt.exceptions import InputError
from lbopt.report.figures import COLOURS, GREY, line_style
from lbopt.report.study_report import REPORTS, report_of
from lbopt.spec import unknown

if TYPE_CHECKING:  # a result that is shown has brought its class
    from lbopt.model import Trace
    from lbopt.simulator import Run
    from lbopt.solvers import Result

Shown = TypeVar("Shown")

#: Rows of a table in a notebook; `to_frame` has all.
ROWS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class View(Generic[Shown]):
    """What one class of results shows.

    Parameters
    ----------
    tables
        Functions that return a data frame, by the name of the table; the first is the default and the notebook's.
    draw
        Draws a result on axes; None where the class has no picture.
    """

    tables: Mapping[str, Callable[[Shown], pd.DataFrame]]
    draw: Callable[[Shown, Axes], None] | None

    def frame(self, shown: Shown, table: str | None) -> pd.DataFrame:
        """Return the named table, or the first."""
        name = next(iter(self.tables)) if table is None else table
        if name not in self.tables:
            raise unknown("table", name, self.tables)
        return self.tables[name](shown)

    def picture(self, shown: Shown, ax: Axes | None) -> Axes:
        """Draw on `ax`, or on the axes of a new pyplot figure, which a notebook shows."""
        if self.draw is None:
            raise InputError(f"a {type(shown).__name__} has no picture; to_frame() has its numbers")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(figsize=(8.0, 4.5), layout="constrained")
            ax.grid(visible=True, alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
        self.draw(shown, ax)
        return ax

    def html(self, shown: Shown) -> str:
        """Return the line of `repr` over the first rows of the first table."""
        frame = self.frame(shown, None)
        more = (
            "" if len(frame) <= ROWS_SHOWN else f"<p>{len(frame) - ROWS_SHOWN} more rows: <code>to_frame()</code></p>"
        )
        table = frame.head(ROWS_SHOWN).to_html(index=False, border=0, na_rep="", float_format="{:,.4g}".format)
        return f"<p><code>{html.escape(repr(shown))}</code></p>{table}{more}"


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


def requests(trace: Trace) -> pd.DataFrame:
    """Return one row per request in order of arrival: prompt and output tokens, arrival in seconds where known."""
    columns = {"prompt": trace.prompt, "output": trace.output}
    return pd.DataFrame(columns | ({} if trace.arrival is None else {"arrival": trace.arrival}))


def draw_lengths(trace: Trace, axes: Axes) -> None:
    """Draw the share of requests that are longer than so many tokens, for prompts and for outputs."""
    for index, (label, values) in enumerate((("prompt", trace.prompt), ("output", trace.output))):
        ascending = np.sort(values)
        longer = 1 - np.arange(ascending.size) / ascending.size
        axes.step(ascending, longer, where="post", label=label, **line_style(index))
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.set_xlabel("tokens")
    axes.set_ylabel("share of requests with at least so many")
    axes.set_title(f"{trace.name}: {len(trace):,} requests", fontsize=10)
    axes.legend(frameon=False)


#: Results that are no outcome of a study.
_VIEWS: dict[str, View[Any]] = {
    "Result": View({"placements": placements, "workers": workers}, draw_loads),
    "Run": View(
        {
            "metrics": metrics,
            "requests": lambda run: run.request_table(),
            "steps": lambda run: run.step_table(),
            "decisions": lambda run: run.decision_table(),
        },
        draw_imbalance,
    ),
    "Trace": View({"requests": requests}, draw_lengths),
}


def view_of(name: str) -> View[Any]:
    """Return the view of the class called `name`: "Run", or one that begins with a study's name, as "GapOutcome" does.

    Raises
    ------
    InputError
        If no view of that class is declared.
    """
    study = next((one for one in REPORTS if name.lower().startswith(one)), None)
    if study is not None:
        return report_of(study).view()
    if name not in _VIEWS:
        raise unknown("result", name, _VIEWS)
    return _VIEWS[name]
