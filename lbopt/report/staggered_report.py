"""How a staggering study is shown: pictures of service, waits and the limit of Table 1, beside tables and files.

Bars are 95 % intervals over seeds, where there are at least two. `device_figure` is what figure 6 of SBS plots, with a
latency: time to first token and wait on the device against load.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from lbopt.report.figures import COLOURS, GREY, error_line, half_interval, legend_of, panels_of
from lbopt.report.staggered_pivot import change_of, mean_at, mean_of, share, short, values_of
from lbopt.report.staggered_questions import item_rows, question_rows
from lbopt.report.staggered_tables import SHOWN_BASELINES, exact_scaled, scaled_wait, staggered_tables
from lbopt.report.study_report import StudyReport
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import IMMEDIATE, LATE, PLACES, StaggeredOutcome
from lbopt.studies.staggered.items import fleet, law
from lbopt.studies.staggered.places import HELD_BACK
from lbopt.studies.staggered.rows import Key
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
    figure, panels = panels_of(1, len(fleets), 4.6)
    fine = np.geomspace(min(law.LOADS) / 1.3, 1.3 * max(law.LOADS), 100)
    for axes, N in zip(panels[0], fleets, strict=True):
        for index, policy in enumerate(law.POLICIES):
            exact = [exact_scaled(policy, float(load), float(N)) for load in fine]
            if None not in exact:
                axes.plot(fine, np.array(exact, dtype=np.float64), color=COLOURS[index], linewidth=1.0)
            keys: list[dict[str, Key]] = [
                {"instances": N, "capacity": "none", "load": load, "policy": policy} for load in law.LOADS
            ]
            values = [mean_at(outcome, "law", scaled_wait, one) for one in keys]
            places = [load * 1.04 ** (index - 3) for load in law.LOADS]
            style: dict[str, Any] = {"color": COLOURS[index], "marker": _MARKS[index], "label": policy}
            error_line(axes, values, x=places, linestyle="none", **style)
        axes.set(xscale="log", yscale="log", ylim=(0.005, 40))
        axes.set_xticks(law.LOADS, [f"{load:g}" for load in law.LOADS])
        axes.minorticks_off()
        axes.set_xlabel("requests of an instance in a pass")
        axes.set_title(f"N = {N}", fontsize=10, loc="left")
    panels[0][0].set_ylabel("N × mean wait (passes)")
    panels[0][0].plot([], [], color=GREY, linewidth=1.0, label="exact")
    legend_of(figure, panels[0][0], len(law.POLICIES) + 1 if len(fleets) > 1 else 4)
    return figure


def load_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a panel a place: time to first token against the rate, of two baselines and of all that holds back."""
    places = [str(place) for place in values_of(outcome, "load", "place")]
    figure, panels = panels_of(1, len(places), 4.8)
    for axes, place in zip(panels[0], places, strict=True):
        draw_load(outcome, axes, place)
    panels[0][0].set_ylabel(f"{_TTFT} (s)")
    legend_of(figure, panels[0][0], 4 if len(places) > 1 else 3)
    return figure


def draw_load(outcome: StaggeredOutcome, axes: Axes, place: str) -> None:
    """Draw time to first token against the rate at one place: two baselines and the rules that hold prompts back."""
    for index, contender in enumerate((*SHOWN_BASELINES, *_DRAWN[outcome.config.sending])):
        points = _points(outcome, place, contender)
        style = _style(index, "--" if contender in IMMEDIATE else "-")
        error_line(axes, [ttft for _, ttft in points], x=[rate for rate, _ in points], label=contender, **style)
    limit = PLACES[place].limit
    axes.axhline(limit, color=GREY, linewidth=0.8, linestyle=":", label="limit")
    axes.set(yscale="log", ylim=(limit / _BEYOND, limit * _BEYOND))
    axes.yaxis.set_major_locator(FixedLocator([share * limit for share in (0.25, 0.5, 1.0, 2.0, 4.0)]))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(place, fontsize=10, loc="left")
    axes.set_xlabel("requests/s of an instance")


def fleet_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a panel a baseline: change of time to first token by instances, a line a rule."""
    (place, *_) = values_of(outcome, "fleet", "place")
    baselines = [base for base in SHOWN_BASELINES if base in values_of(outcome, "fleet", "against")]
    fleets = values_of(outcome, "fleet", "instances")
    figure, panels = panels_of(1, max(1, len(baselines)), 4.2)
    for axes, base in zip(panels[0], baselines, strict=False):
        for index, rule in enumerate(_DRAWN[outcome.config.sending]):
            keys: dict[str, Key] = {"place": place, "against": base, "load": fleet.LOAD, "contender": rule}
            against = change_of(base)
            values = [mean_at(outcome, "fleet", against, keys | {"instances": N}) for N in fleets]
            error_line(axes, values, aside=0.05 * (index - 2), label=rule, **_style(index + len(SHOWN_BASELINES)))
        axes.axhline(0.0, color=GREY, linewidth=0.8)
        axes.set_xticks(range(len(fleets)), [str(N) for N in fleets])
        axes.set_ylim(top=min(_WORST_CHANGE, axes.get_ylim()[1]), bottom=max(-_WORST_CHANGE, axes.get_ylim()[0]))
        axes.set_xlabel("instances")
        axes.set_title(f"{place}, against {base} at {share(fleet.LOAD)} of its peak", fontsize=10, loc="left")
    panels[0][0].set_ylabel(f"{_TTFT}, change (%)")
    legend_of(figure, panels[0][0], 3)
    return figure


def limit_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a column a place: the highest rate above and the utilisation below, with what is printed as lines."""
    places = [str(place) for place in values_of(outcome, "limit", "place")]
    figure, panels = panels_of(2, len(places), 6.2)
    names = [name for name in outcome.config.contenders if name in values_of(outcome, "limit", "contender")]
    for column, place in enumerate(places):
        printed = PLACES[place].printed
        off = printed and (printed.rate_off, 100 * printed.utilisation_off)
        on = printed and (printed.rate_on, 100 * printed.utilisation_on)
        for row, (of, factor) in enumerate((("rate", 1.0), ("utilisation", 100.0))):
            axes = panels[row][column]
            for where, name in enumerate(names):
                value = mean_of(outcome, "limit", of, {"place": place, "contender": name})
                if value is not None:
                    style = {**_BAR, "color": COLOURS[0 if name in IMMEDIATE else 1]}
                    axes.bar(where, factor * value.mean, yerr=factor * half_interval(value), **style)
            for level, dash, said in ((off, "--", "printed, off"), (on, "-", "printed, on")):
                if level:
                    axes.axhline(level[row], color="black", linestyle=dash, linewidth=1.2, label=said)
            axes.set_xticks(range(len(names)), [short(name) if row else "" for name in names], rotation=90)
            axes.grid(visible=False, axis="x")
        panels[0][column].set_title(f"{place}: TTFT of {PLACES[place].limit:g} s", fontsize=10, loc="left")
    panels[0][0].set_ylabel("requests/s of an instance")
    panels[1][0].set_ylabel("chunk utilisation (%)")
    for axes in panels[1]:
        axes.set_ylim(0, 105)
    with_lines = next((axes for axes in panels[0] if axes.get_legend_handles_labels()[0]), panels[0][0])
    with_lines.bar([0], [0], color=COLOURS[0], label="bound on arrival", **_BAR)
    with_lines.bar([0], [0], color=COLOURS[1], label="held back", **_BAR)
    legend_of(figure, with_lines, 4 if len(places) > 1 else 2)
    return figure


def _points(outcome: StaggeredOutcome, place: str, contender: str) -> list[tuple[float, MeanOverSeeds]]:
    """Return what was measured of a contender, by rate; what holds back was run at the rates of each baseline."""
    found = []
    for against in SHOWN_BASELINES:
        for load in values_of(outcome, "load", "load"):
            keys: dict[str, Key] = {"place": place, "against": against, "load": load, "contender": contender}
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
_ROWS = (("ttft", "mean time to first token (s)"), ("on_device", "mean wait on the device (s)"))
#: Beyond so many times the largest value of a baseline, a queue that grows without end tells the length of the run.
_BEYOND_BASELINES = 2.0
#: s. Below that a wait on the device is none.
_LEAST = 1e-3


def device_figure(outcome: StaggeredOutcome) -> Figure:
    """Return a column a class: time to first token above, wait on the device below; a line a rule and latency."""
    measured = [str(name) for name in values_of(outcome, "ahead", "fleet")]
    fleets = [one for one in measured if one in PLACES] or measured[:3]
    figure, panels = panels_of(2, len(fleets), 7.0)
    latencies = sorted(float(value) for value in values_of(outcome, "ahead", "latency"))
    for column, name in enumerate(fleets):
        for row, (quantity, said) in enumerate(_ROWS):
            axes = panels[row][column]
            most = 0.0
            for rule, colour in _RULES.items():
                for style, latency in zip(_LINES, latencies, strict=False):
                    keys: dict[str, Key] = {"fleet": name, "latency": latency, "contender": rule}
                    points = _ahead_points(outcome, quantity, keys)
                    if rule in ("round-robin", "jsq"):
                        most = max([most, *(value.mean for _, value in points)])
                    loads = [100 * load for load, _ in points]
                    error_line(axes, [value for _, value in points], x=loads, color=colour, markersize=3.5, **style)
            axes.set(yscale="log", ylim=(_LEAST if row else None, _BEYOND_BASELINES * most if most else None))
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if row else (1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(NullLocator())
            if row:
                axes.set_xlabel("load (% of saturation)")
            else:
                axes.set_title(name, fontsize=10, loc="left")
            if column == 0:
                axes.set_ylabel(said)
    handles = [Line2D([], [], color=colour, label=rule) for rule, colour in _RULES.items()]
    handles += [
        Line2D([], [], color=GREY, label=f"{1e3 * latency:g} ms", markersize=3.5, **style)
        for style, latency in zip(_LINES, latencies, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _ahead_points(outcome: StaggeredOutcome, quantity: str, keys: dict[str, Key]) -> list[tuple[float, MeanOverSeeds]]:
    found = []
    for load in values_of(outcome, "ahead", "load"):
        value = mean_of(outcome, "ahead", quantity, keys | {"load": load})
        if value is not None and math.isfinite(value.mean):
            found.append((float(load), value))
    return found


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
