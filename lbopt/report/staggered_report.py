"""How a staggering study is shown: pictures of service, waits and the limit of Table 1, beside tables and files.

Bars are 95 % intervals over seeds, where there are at least two. `device_figure` is what figure 6 of SBS plots, with a
latency: time to first token and wait on the device against load.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, Locator, LogLocator, NullLocator

from lbopt.report.figures import COLOURS, GREY, dressed, error_bars, error_line, grid_of
from lbopt.report.staggered_questions import item_rows, question_rows
from lbopt.report.staggered_tables import (
    SHOWN_BASELINES,
    Keys,
    change_of,
    exact_scaled,
    mean_at,
    mean_of,
    scaled_wait,
    share,
    short,
    staggered_tables,
    values_of,
)
from lbopt.report.study_report import StudyReport
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import IMMEDIATE, LATE, PLACES, Rows, StaggeredOutcome
from lbopt.studies.staggered.items import fleet, law
from lbopt.studies.staggered.places import HELD_BACK
from lbopt.studies.staggered.study import ITEMS

#: Rules that have a line each: more could not be told apart.
_DRAWN = {
    "printed": tuple(rule for rule in LATE if rule != "staggered-bypass"),
    "ahead": HELD_BACK["ahead"],
    "both": ("pooled-whole", "staggered", "staggered-whole", *HELD_BACK["ahead"]),
}
_MARKS = "osD^vP*Xh<"
_BAR: dict[str, Any] = {"width": 0.7, "capsize": 2, "ecolor": GREY, "alpha": 0.8}
#: Fleets of the waiting law that are drawn.
_FLEETS = (2, 10, 32)
#: Beyond so many times the limit, a queue that grows without end tells nothing but the length of the run.
_BEYOND = 4.2
#: The same for changes, in %.
_WORST_CHANGE = 60.0
_TTFT = "mean time to first token"


def staggered_figures(outcome: StaggeredOutcome) -> dict[str, Figure]:
    """Return the pictures of the items that have ended, by their names."""
    drawn = {
        "waits": ("law", "policy", wait_figure),
        "load": ("load", "contender", load_figure),
        "fleet": ("fleet", "contender", fleet_figure),
        "limit": ("limit", "contender", limit_figure),
        "device": ("ahead", "contender", device_figure),
    }
    return {name: draw(outcome) for name, (item, key, draw) in drawn.items() if values_of(outcome, item, key)}


def wait_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a panel a fleet: N times the wait against load, a mark a policy, exact curves as lines."""
    ended = values_of(outcome, "law", "instances")
    fleets = [N for N in _FLEETS if N in ended] or ended[:1]
    fine = np.geomspace(min(law.LOADS) / 1.3, 1.3 * max(law.LOADS), 100)

    def panel(axes: Axes, _row: int, N: int) -> None:
        for index, policy in enumerate(law.POLICIES):
            exact = [exact_scaled(policy, float(load), float(N)) for load in fine]
            if None not in exact:
                axes.plot(fine, np.array(exact, dtype=np.float64), color=COLOURS[index], linewidth=1.0)
            of = {"instances": N, "capacity": "none", "policy": policy}
            values = [mean_at(outcome, "law", scaled_wait, of | {"load": load}) for load in law.LOADS]
            places = [load * 1.04 ** (index - 3) for load in law.LOADS]
            error_line(axes, values, x=places, label=policy, **_style(index, "none"))
        axes.set(xscale="log", yscale="log", ylim=(0.005, 40))
        ticks = law.LOADS, [f"{load:g}" for load in law.LOADS]
        dressed(axes, ticks=ticks, xlabel="requests of an instance in a pass", title=f"N = {N}")
        axes.minorticks_off()
        if fleets[0] == N:
            axes.plot([], [], color=GREY, linewidth=1.0, label="exact")

    legend = len(law.POLICIES) + 1 if len(fleets) > 1 else 4
    return grid_of(fleets, ("N × mean wait (passes)",), 4.6, panel, legend=legend)


def load_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a panel a place: time to first token against the rate, of two baselines and of all that holds back."""
    places = values_of(outcome, "load", "place")
    legend = 4 if len(places) > 1 else 3
    return grid_of(places, (f"{_TTFT} (s)",), 4.8, lambda axes, _, at: draw_load(outcome, axes, at), legend=legend)


def draw_load(outcome: StaggeredOutcome, axes: Axes, place: str) -> None:
    """Draw time to first token against the rate at one place: two baselines and the rules that hold prompts back."""
    for index, contender in enumerate((*SHOWN_BASELINES, *_DRAWN[outcome.config.sending])):
        points = _points(outcome, place, contender)
        style = _style(index, "--" if contender in IMMEDIATE else "-")
        error_line(axes, [ttft for _, ttft in points], x=[rate for rate, _ in points], label=contender, **style)
    limit = PLACES[place].limit
    axes.axhline(limit, color=GREY, linewidth=0.8, linestyle=":", label="limit")
    axes.set(yscale="log", ylim=(limit / _BEYOND, limit * _BEYOND))
    _plain_numbers(axes, FixedLocator([share * limit for share in (0.25, 0.5, 1.0, 2.0, 4.0)]))
    dressed(axes, title=place, xlabel="requests/s of an instance")


def fleet_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a panel a baseline: change of time to first token by instances, a line a rule."""
    (place, *_) = values_of(outcome, "fleet", "place")
    baselines = [base for base in SHOWN_BASELINES if base in values_of(outcome, "fleet", "against")]
    fleets = values_of(outcome, "fleet", "instances")

    def panel(axes: Axes, _row: int, base: str) -> None:
        for index, rule in enumerate(_DRAWN[outcome.config.sending]):
            of = {"place": place, "against": base, "load": fleet.LOAD, "contender": rule}
            values = [mean_at(outcome, "fleet", change_of(base), of | {"instances": N}) for N in fleets]
            error_line(axes, values, aside=0.05 * (index - 2), label=rule, **_style(index + len(SHOWN_BASELINES)))
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        low, high = axes.get_ylim()
        ylim = max(-_WORST_CHANGE, low), min(_WORST_CHANGE, high)
        title = f"{place}, against {base} at {share(fleet.LOAD)} of its peak"
        dressed(axes, ticks=(range(len(fleets)), [str(N) for N in fleets]), ylim=ylim, xlabel="instances", title=title)

    return grid_of(baselines, (f"{_TTFT}, change (%)",), 4.2, panel, legend=3)


def limit_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a column a place: the highest rate above and the utilisation below, with what is printed as lines."""
    places = values_of(outcome, "limit", "place")
    names = [name for name in outcome.config.contenders if name in values_of(outcome, "limit", "contender")]
    named = next((place for place in places if PLACES[place].printed), places[0])

    def panel(axes: Axes, row: int, place: str) -> None:
        of, printed = ("rate", "utilisation")[row], PLACES[place].printed
        for where, name in enumerate(names):
            value = outcome.mean("limit", _scaled(of, 100.0 if row else 1.0, {"place": place, "contender": name}))
            error_bars(axes, [where], [value], 0.7, color=COLOURS[0 if name in IMMEDIATE else 1])
        if printed:
            levels = ((100 * one if row else one) for one in printed.numbers[2 * row : 2 * row + 2])
            for level, dash, said in zip(levels, ("--", "-"), ("printed, off", "printed, on"), strict=True):
                axes.axhline(level, color="black", linestyle=dash, linewidth=1.2, label=said)
        axes.set_xticks(range(len(names)), [short(name) if row else "" for name in names], rotation=90)
        axes.grid(visible=False, axis="x")
        dressed(axes, title="" if row else f"{place}: TTFT of {PLACES[place].limit:g} s")
        if row:
            axes.set_ylim(0, 105)
        if place == named and row == 0:
            for colour, said in zip(COLOURS, ("bound on arrival", "held back"), strict=False):
                axes.bar([0], [0], color=colour, label=said, **_BAR)

    labels = "requests/s of an instance", "chunk utilisation (%)"
    return grid_of(places, labels, 6.2, panel, legend=4 if len(places) > 1 else 2)


def _scaled(quantity: str, factor: float, keys: Keys) -> Callable[[Rows], float | None]:
    def of(rows: Rows) -> float | None:
        value = rows.value(quantity, **keys)
        return None if value is None else factor * value

    return of


def _plain_numbers(axes: Axes, where: Locator) -> None:
    """Mark the vertical axis there, in plain numbers."""
    axes.yaxis.set_major_locator(where)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _points(outcome: StaggeredOutcome, place: str, contender: str) -> list[tuple[float, MeanOverSeeds]]:
    """Return what was measured of a contender, by rate; what holds back was run at the rates of each baseline."""
    found = []
    for against, load in product(SHOWN_BASELINES, values_of(outcome, "load", "load")):
        keys: Keys = {"place": place, "against": against, "load": load, "contender": contender}
        rate, ttft = (mean_of(outcome, "load", of, keys) for of in ("rate", "ttft"))
        if rate is not None and ttft is not None:
            found.append((rate.mean, ttft))
    return sorted(found, key=lambda point: point[0])


def _style(index: int, dash: str = "-") -> dict[str, Any]:
    return {"color": COLOURS[index], "marker": _MARKS[index], "linestyle": dash}


#: Rules of `device_figure`, with their colours: two baselines, as printed, and sent ahead with predictions 10 % off.
_RULES = {"round-robin": COLOURS[7], "jsq": COLOURS[6], "staggered": COLOURS[1], "ahead-10": COLOURS[0]}
#: Lines and marks of the latencies, in ascending order.
_LINES: tuple[dict[str, Any], ...] = tuple(
    {"linestyle": line, "marker": mark} for line, mark in (((0, (1, 1)), "x"), ("-", "o"), ("--", "s"), ("-.", "^"))
)
_ROWS = {"ttft": "mean time to first token (s)", "on_device": "mean wait on the device (s)"}
#: Beyond so many times the largest value of a baseline, a queue that grows without end tells the length of the run.
_BEYOND_BASELINES = 2.0
#: s. Below that a wait on the device is none.
_LEAST = 1e-3


def device_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a column a class: time to first token above, wait on the device below; a line a rule and latency."""
    measured = values_of(outcome, "ahead", "fleet")
    fleets = [one for one in measured if one in PLACES] or measured[:3]
    latencies = sorted(float(value) for value in values_of(outcome, "ahead", "latency"))
    styles = list(zip(_LINES, latencies, strict=False))
    loads = values_of(outcome, "ahead", "load")

    def panel(axes: Axes, row: int, name: str) -> None:
        most = 0.0
        for (rule, colour), (style, latency) in product(_RULES.items(), styles):
            of = {"fleet": name, "latency": latency, "contender": rule}
            means = (mean_of(outcome, "ahead", list(_ROWS)[row], of | {"load": load}) for load in loads)
            points = {100 * at: one for at, one in zip(loads, means, strict=True) if one and math.isfinite(one.mean)}
            if rule in ("round-robin", "jsq"):
                most = max([most, *(value.mean for value in points.values())])
            error_line(axes, list(points.values()), x=list(points), color=colour, markersize=3.5, **style)
        axes.set(yscale="log", ylim=(_LEAST if row else None, _BEYOND_BASELINES * most if most else None))
        _plain_numbers(axes, LogLocator(subs=(1.0,) if row else (1.0, 2.0, 5.0)))
        dressed(axes, title="" if row else name, xlabel="load (% of saturation)" if row else "")

    figure = grid_of(fleets, tuple(_ROWS.values()), 7.0, panel, legend=0)
    handles = [Line2D([], [], color=colour, label=rule) for rule, colour in _RULES.items()]
    handles += [
        Line2D([], [], color=GREY, label=f"{1e3 * latency:g} ms", markersize=3.5, **style) for style, latency in styles
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def draw_first_place(outcome: StaggeredOutcome, axes: Axes) -> None:
    """Draw the time to first token against the rate, at the first place of item load."""
    draw_load(outcome, axes, str(values_of(outcome, "load", "place")[0]))
    axes.set_ylabel("mean time to first token (s)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


REPORT = StudyReport(
    tables=staggered_tables,
    csv={"claims": question_rows, **{item: partial(item_rows, item=item) for item in ITEMS}},
    figures=staggered_figures,
    draw=draw_first_place,
)
