"""How a study of hindsight is shown."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt import numbers
from lbopt.hindsight.interval import Ends
from lbopt.report.figures import COLOURS, GREY, legend_below, new_figure
from lbopt.report.study_report import StudyReport
from lbopt.studies.hindsight import HindsightOutcome, RuleInHindsight
from lbopt.table import Table

_THICK = 9.0


def hindsight_figure(outcome: HindsightOutcome) -> Figure | None:
    """Return the figure of `draw_hindsight`; None where no rule was run."""
    if not outcome.rules:
        return None
    figure, axes = new_figure(8.0, 1.6 + 0.42 * len(outcome.rules))
    draw_hindsight(outcome, axes)
    return figure


def draw_hindsight(outcome: HindsightOutcome, axes: Axes) -> None:
    """Draw, for each rule, its seconds, the interval of the optimum of its starts, and the least of any rule."""
    names = [one.rule for one in outcome.rules]
    rows = list(range(len(names)))
    axes.hlines(
        rows,
        [one.optimum_seconds.low for one in outcome.rules],
        [one.optimum_seconds.high for one in outcome.rules],
        color=COLOURS[5],
        linewidth=_THICK,
        label="best placement of the same starts lies here",
    )
    axes.plot([one.seconds for one in outcome.rules], rows, "o", color=COLOURS[1], label="the rule")
    least = outcome.rules[0].share_of_ceiling * outcome.rules[0].seconds
    axes.axvline(least, color=GREY, linewidth=1.0, linestyle=":", label="least of any rule")
    axes.set_yticks(rows, names)
    axes.invert_yaxis()
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("seconds of all steps")
    legend_below(axes, columns=3)


_seconds, _ratio, _percent = numbers.fixed(1), numbers.fixed(4), numbers.fixed(1, 100)


def hindsight_tables(outcome: HindsightOutcome) -> list[Table]:
    """Return the table of rules; none where no rule was run."""
    if not outcome.rules:
        return []
    config, trace = outcome.config, outcome.trace
    return [
        Table(
            title=f"In hindsight: {trace['name']}, {trace['requests']:,} requests, {config.scenario.num_workers} "
            f"workers × {config.scenario.slots_per_worker} slots",
            caption=(
                "Imbalance in tokens, mean over the steps. Optimum: the best placement of the same requests in the "
                "steps in which they started, by a router that knows all lengths; it lies between the two ends, of "
                "which the lower is a bound and the upper is a placement that was found. Where they are one number: "
                "checked, step by step; by the search, which tried all and which nothing checks; or claimed by a "
                "solver. Above it: imbalance less that of the optimum. Rule / optimum: seconds over seconds. First "
                "come: the same with the starts of first come, first served. Of the ceiling: tokens a second over what "
                "no rule can pass, whomever it admits and when."
            ),
            headers=(
                *("rule", "imbalance", "optimum", "above it", "time (s)", "optimum (s)", "rule / optimum"),
                *("rule / optimum, first come", "tokens / s", "of the ceiling"),
            ),
            rows=[_line(rule) for rule in outcome.rules],
        )
    ]


def hindsight_sentences(outcome: HindsightOutcome) -> list[str]:
    """Return what the table comes to, for the fastest rule."""
    if not outcome.rules:
        return []
    best = outcome.fastest
    longer = best.ratio
    return [
        f"{best.rule}, the fastest of these rules, takes {_longer(longer)} longer than a router that had known all "
        "lengths and started the same requests in the same steps; "
        f"no rule, whomever it admits and when, is more than {_percent(1 / best.share_of_ceiling - 1)} % faster than it"
    ]


def hindsight_csv(outcome: HindsightOutcome) -> list[dict[str, object]]:
    """Return one row per rule with full precision; an end that is infinite is left empty."""
    return [
        {
            "rule": one.rule,
            "admission": one.admission,
            "tokens": one.tokens,
            "steps": one.steps,
            "barrier_tokens": one.barriers,
            "imbalance_tokens": one.imbalance,
            "seconds": one.seconds,
            "tokens_per_second": one.tokens_per_second,
            "share_of_ceiling": one.share_of_ceiling,
            **_ends("optimum_imbalance_tokens", one.optimum_imbalance),
            "optimum_proved": one.is_proved,
            "optimum": one.optimum,
            **_ends("imbalance_above_tokens", one.imbalance_above),
            **_ends("optimum_seconds", one.optimum_seconds),
            **_ends("ratio", one.ratio),
            **_ends("imbalance_ratio", one.imbalance_ratio),
            **_ends("first_come_ratio", one.first_come_ratio),
            "timetable": one.timetable,
        }
        for one in outcome.rules
    ]


def searches_csv(outcome: HindsightOutcome) -> list[dict[str, Any]]:
    """Return one row per timetable and placement that was tried on it."""
    return [
        {
            "timetable": place,
            "found_by": name,
            "barrier_tokens": barriers,
            "lower_bound_tokens": int(interval.barriers.low),
            "best": name == interval.placed.found_by,
        }
        for place, interval in enumerate(outcome.intervals)
        for name, barriers in interval.placed.tried.items()
    ]


def _line(rule: RuleInHindsight) -> tuple[str, ...]:
    return (
        rule.rule,
        numbers.tokens(rule.mean_imbalance),
        _between(rule.optimum_imbalance, numbers.tokens, 1 / rule.steps)
        + ("" if rule.optimum == "open" else f", {rule.optimum}"),
        _between(rule.imbalance_above, numbers.tokens, 1 / rule.steps),
        _seconds(rule.seconds),
        _between(rule.optimum_seconds, _seconds),
        _between(rule.ratio, _ratio),
        _between(rule.first_come_ratio, _ratio),
        numbers.tokens(rule.tokens_per_second),
        numbers.share(rule.share_of_ceiling),
    )


def _between(ends: Ends, form: numbers.Format, factor: float = 1.0) -> str:
    low, high = form(factor * ends.low), "∞" if math.isinf(ends.high) else form(factor * ends.high)
    return low if low == high else f"{low} … {high}"


def _longer(ratio: Ends) -> str:
    low, high = _percent(ratio.low - 1), _percent(ratio.high - 1)
    return f"{low} %" if low == high else f"{low} to {high} %"


def _ends(name: str, ends: Ends) -> dict[str, float | None]:
    low, high = ends.to_list()
    return {f"{name}_low": low, f"{name}_high": high}


REPORT = StudyReport(
    tables=hindsight_tables,
    csv={"hindsight": hindsight_csv, "searches": searches_csv},
    figures=lambda outcome: {"hindsight": hindsight_figure(outcome)},
    draw=draw_hindsight,
    aliases={"rules": "hindsight"},
    lead=hindsight_sentences,
    written="tables and picture",
)
