"""How a misprediction study is shown.

Picture: gap and long-run imbalance against the strength of the error, one row of panels a rule.

Noise and shuffling are drawn at their own strengths, a bias at abs(log2 bias), with a line for outputs believed too
short and one for those believed too long. All lines begin at the exact oracle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import StrMethodFormatter

from lbopt import numbers
from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.report.gap_tables import GAP_COLUMNS, long_run_csv, step_record
from lbopt.report.study_report import StudyReport
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.gap import GapOutcome
from lbopt.studies.misprediction import Case, ForecastVariant, MispredictionOutcome
from lbopt.studies.misprediction.forecasts import EXACT, MYOPIC, NO_WINDOW
from lbopt.studies.misprediction.study import METRICS, ForecastCost
from lbopt.table import Column, Table, table_of

_GAP = [
    one
    for one in GAP_COLUMNS
    if one.name in ("gap_mean_tokens", "gap_median_tokens", "gap_p95_tokens", "gap_mean_share", "optimal_share")
]
_OTHERS = (
    Column("throughput_tokens_per_second", "", "tokens / s", numbers.tokens),
    Column("tpot_mean_seconds", "", "TPOT mean (ms)", numbers.milliseconds),
    Column("waiting_max_steps", "", "longest wait (steps)", numbers.steps),
)
#: What stands behind the name of a metric, and the part of `LongRunCost`.
_SIDES = {"": "value", "_minus_exact": "to_exact", "_minus_no_window": "to_no_window", "_minus_myopic": "to_myopic"}
#: Columns of a gap that are given by the case.
_GIVEN = ("policy", "behaviour", "microseconds_per_decision")


def misprediction_tables(outcome: MispredictionOutcome) -> list[Table]:
    """Return for each rule the table of states and the one of long runs, as far as there is something in them."""
    costs = outcome.costs()
    tables = []
    for rule in outcome.config.rules:
        own = [cost for cost in costs if cost.case.rule is None or cost.case.rule.name == rule.name]
        tables += [_gap_table(rule.name, own, outcome), _long_run_table(rule.name, own)]
    return [table for table in tables if table.rows]


_CASE = (
    Column("forecast", of=lambda _, cost: _shown(cost.case)),
    Column("gate", of=lambda _, cost: _gate(cost.case)),
)


def _gap_table(rule: str, costs: Sequence[ForecastCost], outcome: MispredictionOutcome) -> Table:
    gaps = [
        cost
        for cost in costs
        if cost.gap is not None and not (cost.case.variant is not None and cost.case.variant.of_runs_alone)
    ]
    caption = ""
    if gaps:
        first: Any = gaps[0].gap
        caption = (
            "Imbalance summed over the window, above the optimum of one who knows all ends; "
            f"{first.states} states under {outcome.config.behaviour}: {first.proved} proved, "
            f"{first.searched} by the search, {first.claimed} claimed, {first.open} open. "
            "Open ones enter no average. Forecasts are made there and then."
        )
    title = f"{rule}: gap over a window of {outcome.config.horizon} steps, by forecast"
    columns = [*_CASE, *(Column(one.header, shown=one.shown, of=f"gap.{one.name}") for one in _GAP)]
    return table_of(title, caption, columns, outcome, gaps)


def _long_run_table(rule: str, costs: Sequence[ForecastCost]) -> Table:
    ran = [cost for cost in costs if cost.metrics]
    seeds = max((cost.seeds for cost in ran), default=0)
    spread = f"Means over {seeds} seeds ± half a 95 % interval" if seeds > 1 else "One seed"
    caption = f"{spread}; differences are paired, on the same requests."
    return table_of(f"{rule}: long runs, by forecast", caption, _LONG_RUN, None, ran)


def _metric(column: Column) -> Column:
    """Return the column of a metric of long runs with its interval."""
    return Column(
        column.header, of=lambda _, cost: numbers.with_interval(cost.metrics[column.name].value, column.shown)
    )


def _against(what: str, name: str) -> Column:
    """Return the column of the difference of the imbalance to that of another case."""
    return Column(f"− {what}", of=lambda _, cost: _difference(getattr(cost.metrics["imbalance_tokens"], name)))


_LONG_RUN = (
    *_CASE,
    _metric(Column("imbalance_tokens", "", "imbalance (tokens)", numbers.tokens)),
    *(_against(EXACT, "to_exact"), _against(NO_WINDOW, "to_no_window"), _against(MYOPIC, "to_myopic")),
    *map(_metric, _OTHERS),
)


def lead(outcome: MispredictionOutcome) -> list[str]:
    """Return which forecasts leave a rule worse than itself without a window, and worse than br-0."""
    costs = [cost for cost in outcome.costs() if cost.metrics]
    said = []
    for rule in outcome.config.rules:
        own = [c for c in costs if c.case.rule is not None and c.case.rule.name == rule.name]
        imbalance = [(c.case.forecast, c.metrics["imbalance_tokens"]) for c in own if c.case.forecast != NO_WINDOW]
        for against, found in (
            ("itself with horizon 0", [(name, m.to_no_window) for name, m in imbalance]),
            (MYOPIC, [(name, m.to_myopic) for name, m in imbalance]),
        ):
            known = [(name, difference) for name, difference in found if difference is not None]
            worse = [name for name, difference in known if _is_worse(difference)]
            if known:
                sure = "" if known[0][1].low is None else " (interval of the difference above zero)"
                said.append(
                    f"{rule.name}: more imbalance than {against} with {len(worse)} of {len(known)} forecasts{sure}"
                    f"{': ' if worse else ''}{'; '.join(worse)}."
                )
    return said


def _is_worse(difference: MeanOverSeeds) -> bool:
    return (difference.mean if difference.low is None else difference.low) > 0


def misprediction_csv(outcome: MispredictionOutcome) -> list[dict[str, object]]:
    """Return one row per rule and forecast with full precision."""
    names = [one.name for one in GAP_COLUMNS if one.name not in _GIVEN]
    return [
        _case_columns(cost.case, outcome)
        | {name: getattr(cost.gap, name, None) for name in names}
        | {"seeds": cost.seeds}
        | {
            f"{name}{suffix}{end}": getattr(getattr(cost.metrics.get(name), of, None), part, None)
            for name in METRICS
            for suffix, of in _SIDES.items()
            for end, part in (("", "mean"), ("_low", "low"), ("_high", "high"))
        }
        for cost in outcome.costs()
    ]


def misprediction_long_run_csv(outcome: MispredictionOutcome) -> list[dict[str, object]]:
    """Return one row per rule, forecast and seed with every metric."""
    cases = {cost.case.name: cost.case for cost in outcome.costs()}
    ran = long_run_csv(GapOutcome(outcome.config.gap, outcome.trace, long_runs=outcome.long_runs))
    return [
        _case_columns(cases[run.policy], outcome) | {name: value for name, value in row.items() if name != "policy"}
        for run, row in zip(outcome.long_runs, ran, strict=True)
    ]


def _case_columns(case: Case, outcome: MispredictionOutcome) -> dict[str, object]:
    variant = case.variant
    learns = variant is not None and variant.learns
    source = outcome.config.scenario.requests
    return {
        "policy": case.policy,
        "forecast": case.forecast,
        "kind": MYOPIC if variant is None else variant.kind,
        "strength": None if variant is None else variant.strength,
        "predictor": (variant.predictor or None) if variant is not None else None,
        "trained_on": None
        if variant is None or not learns
        else outcome.config.other
        if variant.other
        else source.train_on or source.trace,
        "gate": case.gate,
        "refresh": case.refresh,
    }


def _shown(case: Case) -> str:
    return f"({case.forecast})" if case.forecast in (MYOPIC, NO_WINDOW) else case.forecast


def _gate(case: Case) -> str:
    return f"{case.gate:g}" if case.gate is not None and case.variant is not None and case.variant.learns else ""


def _difference(value: MeanOverSeeds | None) -> str:
    return "" if value is None else numbers.with_interval(value, numbers.tokens, signed=True)


_GREY = "#57606a"
_LINES = ("noise (σ)", "too short (|log2 bias|)", "too long (|log2 bias|)", "shuffled (share)")
_LEGEND_COLUMNS = 5
#: Least distance of two ticks, in square roots of strengths.
_TICKS_APART = 0.12

Point = tuple[float, float, float]  # strength, value, half an interval


def misprediction_figure(outcome: MispredictionOutcome) -> Figure:
    """Return the two panels of each rule, with one legend."""
    costs, rules = outcome.costs(), outcome.config.rules
    figure, first = new_figure(9.5, 1.6 + 3.6 * len(rules))
    grid = GridSpec(len(rules), 2, figure=figure)
    for row, rule in enumerate(rules):
        own = [cost for cost in costs if cost.case.rule is None or cost.case.rule.name == rule.name]
        left = first if row == 0 else figure.add_subplot(grid[row, 0])
        left.set_subplotspec(grid[row, 0])
        right = figure.add_subplot(grid[row, 1])
        for axes in (left, right):
            axes.grid(visible=True, alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel("strength of the error")
        draw_by_strength(own, axes=left, long_run=False)
        draw_by_strength(own, axes=right, long_run=True)
        left.set_ylabel("mean gap over the window (tokens)")
        right.set_ylabel("imbalance of the long run (tokens)")
        left.set_title(rule.name, fontsize=10, loc="left")
    handles, labels = _legend(figure)
    figure.legend(handles, labels, loc="outside lower center", ncols=_LEGEND_COLUMNS, frameon=False, fontsize=9)
    where = f"{outcome.trace['name']}, window of {outcome.config.horizon} steps"
    figure.suptitle(f"What a wrong forecast costs: {where}", fontsize=11)
    return figure


def draw_by_strength(costs: Sequence[ForecastCost], axes: Axes, *, long_run: bool) -> None:
    """Draw a line for each kind of error, and level lines for the rule that does not look and learnt forecasts."""
    lines: dict[str, list[Point]] = {name: [] for name in _LINES}
    levels: list[tuple[Case, float]] = []
    for cost in costs:
        value, half = _value(cost, long_run=long_run)
        variant = cost.case.variant
        if value is None or (variant is not None and variant.of_runs_alone and not long_run):
            continue
        if variant is None:
            levels.append((cost.case, value))
        elif variant.kind == "exact":
            for points in lines.values():
                points.append((0.0, value, half))
        elif variant.strength is not None:
            for name in _lines_of(variant):
                lines[name].append((_strength(variant), value, half))
        elif not variant.other and variant.hold_anchor is None:  # held ones are nearly fresh ones
            levels.append((cost.case, value))
    for index, (name, points) in enumerate(lines.items()):
        if len(points) > 1:
            x, y, half_widths = zip(*sorted(points), strict=True)
            axes.errorbar(
                x, y, half_widths, marker="o", markersize=4, linewidth=1.4, capsize=2, label=name, **line_style(index)
            )
    for case, value in levels:
        axes.axhline(value, label=case.forecast if case.variant is not None else MYOPIC, **_level_style(case.variant))
    _scale_strengths(axes, {strength for points in lines.values() for strength, _, _ in points})
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _level_style(variant: ForecastVariant | None) -> dict[str, Any]:
    """Return the style of a level line: a colour by kind; dotted without a gate, dash-dotted where fresh."""
    if variant is None:
        return {"color": COLOURS[7], "linestyle": "-", "linewidth": 1.8}
    if variant.kind == "no window":
        return {"color": COLOURS[6], "linestyle": "-", "linewidth": 1.8}
    colour = {"survival": COLOURS[4], "memorised": COLOURS[5], "stale": COLOURS[6]}.get(variant.kind, _GREY)
    dash = ":" if variant.gate == 0 or variant.kind == "stale" else "-." if variant.refresh is not None else "--"
    return {"color": colour, "linestyle": dash, "linewidth": 1.4}


def _scale_strengths(axes: Axes, strengths: set[float]) -> None:
    """Give small strengths room: by their square roots, with a tick where they stand apart."""
    axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
    axes.set_xlim(0, 1.05 * max(strengths, default=1.0) or 1.0)
    ticks: list[float] = []
    for strength in sorted(strengths):
        if not ticks or math.sqrt(strength) - math.sqrt(ticks[-1]) > _TICKS_APART:
            ticks.append(strength)
    axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])


def _value(cost: ForecastCost, *, long_run: bool) -> tuple[float | None, float]:
    if not long_run:
        known = cost.gap is not None and not math.isnan(cost.gap.gap_mean_tokens)
        return (cost.gap.gap_mean_tokens, 0.0) if known and cost.gap is not None else (None, 0.0)
    if not cost.metrics:
        return None, 0.0
    found = cost.metrics["imbalance_tokens"].value
    return found.mean, 0.0 if found.low is None else found.mean - found.low


def _lines_of(variant: ForecastVariant) -> tuple[str, ...]:
    assert variant.strength is not None
    if variant.kind == "noise":
        return _LINES[:1]
    if variant.kind == "shuffled":
        return _LINES[3:]
    return _LINES[1:2] if variant.strength < 1 else _LINES[2:3] if variant.strength > 1 else _LINES[1:3]


def _strength(variant: ForecastVariant) -> float:
    assert variant.strength is not None
    return abs(math.log2(variant.strength)) if variant.kind == "bias" else variant.strength


def _legend(figure: Figure) -> tuple[list[Artist], list[str]]:
    """Return handle and label of every line once, also where a study ended before its long runs."""
    found: dict[str, Artist] = {}
    for axes in figure.axes:
        found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    order = sorted(found, key=lambda label: label not in _LINES)
    return [found[label] for label in order], order


def draw_forecasts(outcome: MispredictionOutcome, axes: Axes) -> None:
    """Draw the mean gap of the first rule against the strength of the error of its forecasts."""
    rule = outcome.config.rules[0]
    costs = [cost for cost in outcome.costs() if cost.case.rule is None or cost.case.rule.name == rule.name]
    draw_by_strength(costs, axes=axes, long_run=False)
    axes.set_xlabel("strength of the error")
    axes.set_ylabel("mean gap over the window (tokens)")
    axes.set_title(rule.name, fontsize=10, loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


REPORT = StudyReport(
    tables=misprediction_tables,
    csv={"misprediction": misprediction_csv, "long_runs": misprediction_long_run_csv},
    records={"steps": lambda outcome: map(step_record, outcome.solved)},
    figures=lambda outcome: {"misprediction": misprediction_figure(outcome)},
    draw=draw_forecasts,
    lead=lead,
    written="tables and picture",
)
