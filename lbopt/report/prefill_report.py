"""How a comparison of prefill rules is shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lbopt import numbers
from lbopt.prefill import PrefillRun
from lbopt.prefill.messages import MessageRun
from lbopt.report.figures import COLOURS
from lbopt.report.study_report import StudyReport
from lbopt.studies.prefill import PrefillOutcome, RuleRun
from lbopt.table import Table

_MILLISECONDS = numbers.fixed(0, 1e3)
_TOKENS: tuple[tuple[str, str], ...] = (
    ("first_token_mean_seconds", "mean (ms)"),
    ("first_token_p50_seconds", "P50"),
    ("first_token_p95_seconds", "P95"),
    ("first_token_p99_seconds", "P99"),
    ("wait_mean_seconds", "of it wait"),
    ("wait_at_scheduler_mean_seconds", "at scheduler"),
    ("wait_on_device_mean_seconds", "on device"),
)
_INSTANCES: tuple[tuple[str, str, numbers.Format], ...] = (
    ("throughput_requests_per_second", "requests / s", numbers.fixed(1)),
    ("throughput_tokens_per_second", "tokens / s", numbers.tokens),
    ("chunk_utilisation", "chunk used", numbers.fixed(1, 100, " %")),
    ("requests_per_pass", "requests a pass", numbers.fixed(1)),
    ("pass_mean_seconds", "pass (ms)", _MILLISECONDS),
    ("pass_cycle_seconds", "cycle (ms)", _MILLISECONDS),
    ("idle_share", "idle", numbers.fixed(1, 100, " %")),
    ("passes_per_request", "passes a request", numbers.fixed(2)),
    ("refused", "refused", numbers.whole),
)


def prefill_tables(outcome: PrefillOutcome) -> list[Table]:
    """Return what a terminal shows; nothing where no rule has ended."""
    if not outcome.runs:
        return []
    setting, traffic = outcome.config.setting, outcome.traffic
    chunk = "no chunk" if setting.chunk_tokens is None else f"chunk of {setting.chunk_tokens:,} tokens a unit"
    first = [
        (str(one.rule), _mean(one.metrics), *(_MILLISECONDS(getattr(one.metrics, name)) for name, _ in _TOKENS[1:]))
        for one in outcome.runs
    ]
    second = [
        (str(one.rule), *(form(getattr(one.metrics, name)) for name, _, form in _INSTANCES)) for one in outcome.runs
    ]
    return [
        *_what_went_wrong(outcome),
        Table(
            f"Time to first token: {len(traffic):,} prompts of {traffic.name}, {_rate(outcome)}",
            f"{setting.num_instances} instances of {setting.units_per_instance} units, {chunk}. The first tenth is "
            "left out; ± is a 95 % batch-means interval. What is not wait is passes"
            + (", and the way there." if setting.latency else "."),
            ("rule", *(header for _, header in _TOKENS)),
            first,
        ),
        Table(
            "Instances",
            "Chunk used: of passes that serve a request. Cycle: from start to start on one instance.",
            ("rule", *(header for _, header, _ in _INSTANCES)),
            second,
        ),
    ]


def _what_went_wrong(outcome: PrefillOutcome) -> list[Table]:
    told = [(str(one.rule), one.run) for one in outcome.runs if isinstance(one.run, MessageRun)]
    if not told:
        return []
    return [
        Table(
            f"Faults: {', '.join(outcome.config.faults)}",
            "Stranded: never answered, and in no time below. Rules that bind on arrival send again only what a health "
            "check takes away.",
            ("rule", "stranded", "sent to a dead instance", "queued again", "computed twice", "watchdogs"),
            [(name, *map(numbers.whole, _counts(run))) for name, run in told],
        )
    ]


def _counts(run: MessageRun) -> tuple[int, ...]:
    counts = run.outcome.state.counts
    return run.stranded.size, run.sent_to_dead, counts.again, run.computed_twice, counts.faults


def _rate(outcome: PrefillOutcome) -> str:
    if math.isinf(outcome.rate):
        return "all at one time"
    rate = f"{outcome.rate:,.1f} a second"
    if math.isinf(outcome.saturation):
        return rate
    return f"{rate}, {numbers.share(outcome.rate / outcome.saturation)} of full passes"


def _mean(metrics: object) -> str:
    mean, ends = getattr(metrics, _TOKENS[0][0]), getattr(metrics, f"{_TOKENS[0][0]}_interval")
    text = _MILLISECONDS(mean)
    return text if ends is None else f"{text} ± {_MILLISECONDS((ends[1] - ends[0]) / 2)}"


def rule_rows(outcome: PrefillOutcome) -> list[dict[str, Any]]:
    """Return one row per rule with every metric, intervals as two columns."""
    return [_row(one) for one in outcome.runs]


def _row(one: RuleRun) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": one.rule.policy, "allocation": one.rule.allocation}
    for name, value in one.metrics.to_dict().items():
        if name.endswith("_interval"):
            short = name.removesuffix("_interval")
            row[f"{short}_low"], row[f"{short}_high"] = value or (None, None)
        else:
            row[name] = value
    return row


def _of_rules(name: str, table: Callable[[PrefillRun], pd.DataFrame]) -> Callable[[PrefillOutcome], pd.DataFrame]:
    """Return what puts a table of every rule below the other, with the rule's name."""

    def joined(outcome: PrefillOutcome) -> pd.DataFrame:
        tables = {str(one.rule): table(one.run) for one in outcome.runs}
        return pd.concat(tables, names=["rule", name]).reset_index(level=0)

    return joined


def draw_first_tokens(outcome: PrefillOutcome, axes: Axes) -> None:
    """Draw the mean time to first token of each rule as a bar, and its 99th percentile as a mark."""
    names = [str(one.rule) for one in outcome.runs]
    places = np.arange(len(names))
    axes.barh(places, [one.metrics.first_token_mean_seconds for one in outcome.runs], color=COLOURS[0], label="mean")
    axes.plot([one.metrics.first_token_p99_seconds for one in outcome.runs], places, "D", color=COLOURS[1], label="P99")
    axes.set_yticks(places, names)
    axes.set_xlabel("time to first token (s)")
    axes.legend(frameon=False)


REPORT = StudyReport(
    tables=prefill_tables,
    csv={
        "rules": rule_rows,
        "requests": _of_rules("request", PrefillRun.request_table),
        "passes": _of_rules("passe", PrefillRun.pass_table),
    },
    draw=draw_first_tokens,
    written="tables",
)
