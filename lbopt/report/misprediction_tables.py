"""The tables of a misprediction study: one line per forecast, rules that do not look on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from lbopt import numbers
from lbopt.report.gap_tables import long_run_csv
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.gap import GapOutcome, PolicyGap
from lbopt.studies.misprediction import Case, MispredictionOutcome
from lbopt.studies.misprediction.forecasts import EXACT, MYOPIC, NO_WINDOW
from lbopt.studies.misprediction.outcome import METRICS, ForecastCost
from lbopt.table import Table

_GAP_COLUMNS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("gap_mean_tokens", "mean gap (tokens)", numbers.tokens),
    ("gap_median_tokens", "median", numbers.tokens),
    ("gap_p95_tokens", "P95", numbers.tokens),
    ("gap_mean_share", "of barrier", numbers.share),
    ("optimal_share", "optimal", numbers.share),
)
_OTHER_METRICS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("throughput_tokens_per_second", "tokens / s", numbers.tokens),
    ("tpot_mean_seconds", "TPOT mean (ms)", numbers.milliseconds),
    ("waiting_max_steps", "longest wait (steps)", numbers.steps),
)
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


def _gap_table(rule: str, costs: Sequence[ForecastCost], outcome: MispredictionOutcome) -> Table:
    gaps = [
        (cost.case, cost.gap)
        for cost in costs
        if cost.gap is not None and not (cost.case.variant is not None and cost.case.variant.of_runs_alone)
    ]
    caption = ""
    if gaps:
        first = gaps[0][1]
        caption = (
            "Imbalance summed over the window, above the optimum of one who knows all ends; "
            f"{first.states} states under {outcome.config.behaviour}: {first.proved} proved, "
            f"{first.searched} by the search, {first.claimed} claimed, {first.open} open. "
            "Open ones enter no average. Forecasts are made there and then."
        )
    return Table(
        title=f"{rule}: gap over a window of {outcome.config.horizon} steps, by forecast",
        caption=caption,
        headers=("forecast", "gate", *(header for _, header, _ in _GAP_COLUMNS)),
        rows=[
            (_shown(case), _gate(case), *(form(getattr(gap, name)) for name, _, form in _GAP_COLUMNS))
            for case, gap in gaps
        ],
    )


def _long_run_table(rule: str, costs: Sequence[ForecastCost]) -> Table:
    ran = [cost for cost in costs if cost.metrics]
    seeds = max((cost.seeds for cost in ran), default=0)
    spread = f"Means over {seeds} seeds ± half a 95 % interval" if seeds > 1 else "One seed"
    return Table(
        title=f"{rule}: long runs, by forecast",
        caption=f"{spread}; differences are paired, on the same requests.",
        headers=(
            *("forecast", "gate", "imbalance (tokens)", f"− {EXACT}", f"− {NO_WINDOW}", f"− {MYOPIC}"),
            *(header for _, header, _ in _OTHER_METRICS),
        ),
        rows=[_long_run_line(cost) for cost in ran],
    )


def _long_run_line(cost: ForecastCost) -> tuple[str, ...]:
    imbalance = cost.metrics["imbalance_tokens"]
    return (
        _shown(cost.case),
        _gate(cost.case),
        numbers.with_interval(imbalance.value, numbers.tokens),
        _difference(imbalance.to_exact),
        _difference(imbalance.to_no_window),
        _difference(imbalance.to_myopic),
        *(numbers.with_interval(cost.metrics[name].value, form) for name, _, form in _OTHER_METRICS),
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
    gap_columns = [f.name for f in fields(PolicyGap) if f.name not in _GIVEN]
    rows: list[dict[str, object]] = []
    for cost in outcome.costs():
        row = _case_columns(cost.case, outcome) | {name: getattr(cost.gap, name, None) for name in gap_columns}
        row["seeds"] = cost.seeds
        for name in METRICS:
            found = cost.metrics.get(name)
            for suffix, value in (
                ("", None if found is None else found.value),
                ("_minus_exact", None if found is None else found.to_exact),
                ("_minus_no_window", None if found is None else found.to_no_window),
                ("_minus_myopic", None if found is None else found.to_myopic),
            ):
                row[f"{name}{suffix}"] = None if value is None else value.mean
                row[f"{name}{suffix}_low"] = None if value is None else value.low
                row[f"{name}{suffix}_high"] = None if value is None else value.high
        rows.append(row)
    return rows


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
