"""The tables of a gap study: which columns, under which header, in which unit. One table, many faces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from lbopt import numbers
from lbopt.studies.gap import GapOutcome, PolicyGap
from lbopt.studies.gap.decisions import ALL, summarise
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.outcome import Comparison
from lbopt.studies.gap.study import baseline_of
from lbopt.table import Table

_GAP_COLUMNS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("gap_mean_tokens", "mean gap (tokens)", numbers.tokens),
    ("gap_median_tokens", "median", numbers.tokens),
    ("gap_p95_tokens", "P95", numbers.tokens),
    ("gap_max_tokens", "max", numbers.tokens),
    ("gap_mean_share", "of barrier", numbers.share),
    ("optimal_share", "optimal", numbers.share),
    ("barrier_mean_seconds", "barrier (ms)", numbers.fixed(3, 1e3)),
    ("microseconds_per_decision", "µs / decision", numbers.microseconds),
)

_BALANCE_COLUMNS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("imbalance_tokens", "imbalance (tokens)", numbers.tokens),
    ("occupancy", "occupancy", numbers.share),
    ("mean_load_tokens", "mean load (tokens)", numbers.tokens),
    ("spread_tokens", "max − min (tokens)", numbers.tokens),
    ("waiting_max_steps", "longest wait (steps)", numbers.steps),
    ("idle_share", "idle", numbers.share),
    ("throughput_tokens_per_second", "tokens / s", numbers.tokens),
    ("whole_run_tokens_per_second", "tokens / s, whole run", numbers.tokens),
    ("whole_run_share_of_ceiling", "of the ceiling", numbers.share),
    ("energy_joules", "energy (kJ)", numbers.kilojoules),
    ("real_choice_share", "real choices", numbers.share),
)

_LATENCY_COLUMNS: tuple[tuple[str, str, numbers.Format], ...] = (
    ("tpot_mean_seconds", "TPOT mean (ms)", numbers.milliseconds),
    ("tpot_p50_seconds", "P50", numbers.milliseconds),
    ("tpot_p95_seconds", "P95", numbers.milliseconds),
    ("tpot_p99_seconds", "P99", numbers.milliseconds),
    ("waiting_mean_steps", "wait mean (steps)", numbers.steps),
    ("waiting_p99_steps", "wait P99", numbers.steps),
    ("waiting_max_steps", "wait max", numbers.steps),
    ("first_token_mean_seconds", "first token (ms)", numbers.milliseconds),
    ("slo_share", "within limits", numbers.share),
    ("goodput_tokens_per_second", "goodput (tokens / s)", numbers.tokens),
)

#: What the share of the ceiling is of.
_CEILING = "the ceiling is what no rule can pass over a whole run"

_DIFFERENCE_COLUMNS = (*_BALANCE_COLUMNS[:10], _LATENCY_COLUMNS[0])


def gap_rows(outcome: GapOutcome) -> list[PolicyGap]:
    """Return one row per policy over all states, then per behaviour where there are several."""
    policies = list(dict.fromkeys(name for solved in outcome.solved for name in solved.decisions))
    asked = [
        outcome.config.build(spec).name for spec in outcome.config.policies
    ]  # in the order in which they were asked for
    policies.sort(key=lambda name: asked.index(name) if name in asked else len(asked))
    behaviours = list(dict.fromkeys(solved.state.behaviour for solved in outcome.solved))
    groups = [ALL, *behaviours] if len(behaviours) > 1 else [ALL]
    rows = [summarise(outcome.solved, policy, behaviour) for behaviour in groups for policy in policies]
    return [row for row in rows if row.states > 0]


def gap_tables(outcome: GapOutcome) -> list[Table]:
    """Return the one-step tables, one per group of states; each also shows the longest wait under the policy."""
    rows = gap_rows(outcome)
    waits = _longest_waits(outcome)
    wait_header = ("longest wait (own runs)",) if waits else ()
    tables = []
    for behaviour in dict.fromkeys(row.behaviour for row in rows):
        chosen = sorted((r for r in rows if r.behaviour == behaviour), key=lambda r: (r.gap_mean_tokens, r.policy))
        widest = max(chosen, key=lambda r: r.states)  # a log decides its own states alone
        where = "over all states" if behaviour == ALL else f"in states under {behaviour}"
        count = "1 state" if widest.states == 1 else f"{widest.states} states"
        some_open = any(row.open for row in chosen)
        interval = (
            "Open states enter no average but *all, from … to*, where their optimum is the best value known, and the "
            "bound: they are harder than the others. "
        )
        caption = (
            f"{count}: {widest.proved} proved, {widest.searched} by the search, {widest.claimed} claimed by a solver, "
            f"{widest.open} open. {interval if some_open else ''}"
            "All rules decide in pooled form; the optimum may keep any request waiting."
        )
        tables.append(
            Table(
                title=f"One step: gap to the optimum, {where}",
                caption=caption,
                headers=(
                    *("policy", "states", *(("all, from … to",) if some_open else ())),
                    *(header for _, header, _ in _GAP_COLUMNS),
                    *wait_header,
                ),
                rows=[
                    (
                        *(r.policy, _counted(r), *((_interval(r),) if some_open else ())),
                        *(form(getattr(r, name)) for name, _, form in _GAP_COLUMNS),
                        *((waits.get(r.policy, "–"),) if waits else ()),
                    )
                    for r in chosen
                ],
            )
        )
    return tables


def _counted(row: PolicyGap) -> str:
    """Return how many states the averages are over, and of how many."""
    counted = numbers.whole(row.states - row.open)
    return f"{counted} of {numbers.whole(row.states)}" if row.open else counted


def _interval(row: PolicyGap) -> str:
    return f"{numbers.tokens(row.gap_mean_low_tokens)} … {numbers.tokens(row.gap_mean_high_tokens)}"


def _longest_waits(outcome: GapOutcome) -> dict[str, str]:
    longest: dict[str, int] = {}
    for run in outcome.long_runs:
        longest[run.policy] = max(longest.get(run.policy, 0), run.metrics.waiting_max_steps)
    return {policy: numbers.whole(steps) for policy, steps in longest.items()}


def long_run_tables(outcome: GapOutcome) -> list[Table]:
    """Return the long-run tables, and the one of paired differences to the baseline."""
    if not outcome.long_runs:
        return []
    baseline = baseline_of(outcome.config)
    comparisons = compare(outcome.long_runs, baseline)
    if not comparisons:
        return []
    by_policy: dict[str, dict[str, Comparison]] = {}
    for comparison in comparisons:
        by_policy.setdefault(comparison.policy, {})[comparison.metric] = comparison
    order = sorted(by_policy, key=lambda p: by_policy[p]["imbalance_tokens"].value.mean)
    admission = {run.policy: run.admission for run in outcome.long_runs}
    measured = {comparison.metric for comparison in comparisons}  # goodput only where limits were set
    seeds = len({run.seed for run in outcome.long_runs})
    spread = f"mean over {seeds} seeds ± half a 95 % interval" if seeds > 1 else "one seed"
    tables = [
        Table(
            title=title,
            caption=f"Same requests for all, {spread}; {over}.",
            headers=("policy", "admission", *(header for name, header, _ in columns if name in measured)),
            rows=[
                (
                    policy,
                    admission[policy],
                    *(
                        numbers.with_interval(by_policy[policy][name].value, form)
                        for name, _, form in columns
                        if name in measured
                    ),
                )
                for policy in order
            ],
        )
        for title, over, columns in (
            (
                "Long run: balance and speed",
                f"steps up to the last admission, but for the whole run; {_CEILING}",
                _BALANCE_COLUMNS,
            ),
            ("Long run: latency and waiting", "over all requests", _LATENCY_COLUMNS),
        )
    ]
    others = [policy for policy in order if policy != baseline]
    if others:
        tables.append(
            Table(
                title=f"Long run: difference to {baseline}",
                caption="Paired by seed: policy minus baseline on the same requests.",
                headers=("policy", *(header for _, header, _ in _DIFFERENCE_COLUMNS)),
                rows=[
                    (
                        policy,
                        *(
                            numbers.with_interval(
                                by_policy[policy][name].difference,
                                numbers.points if form is numbers.share else form,
                                signed=True,
                            )
                            for name, _, form in _DIFFERENCE_COLUMNS
                        ),
                    )
                    for policy in others
                ],
            )
        )
    return tables


def gap_csv(outcome: GapOutcome) -> list[dict[str, object]]:
    """Return the one-step rows with full precision."""
    return [{f.name: getattr(row, f.name) for f in fields(row)} for row in gap_rows(outcome)]


def long_run_csv(outcome: GapOutcome) -> list[dict[str, object]]:
    """Return one row per policy and seed with every metric, intervals as two columns."""
    rows: list[dict[str, object]] = []
    for run in outcome.long_runs:
        row: dict[str, object] = {
            "policy": run.policy,
            "admission": run.admission,
            "seed": run.seed,
            "steps": run.steps,
        }
        for name, value in run.metrics.to_dict().items():
            if name.endswith("_interval"):
                row[f"{name}_low"], row[f"{name}_high"] = value or (None, None)
            else:
                row[name] = value
        row |= {
            f"decisions_{standing}": run.tally.get(standing) for standing in ("proved", "searched", "claimed", "open")
        }
        row["simulation_seconds"] = run.seconds
        rows.append(row)
    return rows


def comparison_csv(comparisons: Sequence[Comparison]) -> list[dict[str, object]]:
    """Return one row per policy and metric: mean over seeds, difference to the baseline, intervals."""
    return [
        {
            "policy": c.policy,
            "metric": c.metric,
            "mean": c.value.mean,
            "low": c.value.low,
            "high": c.value.high,
            "difference": c.difference.mean,
            "difference_low": c.difference.low,
            "difference_high": c.difference.high,
        }
        for c in comparisons
    ]
