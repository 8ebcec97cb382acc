"""How one simulation is shown.

The table of one simulation: every metric with its interval, under readable names.
"""

from __future__ import annotations

from lbopt import numbers
from lbopt.policies.policy import STANDINGS
from lbopt.report.study_report import StudyReport
from lbopt.simulator import Metrics, Run
from lbopt.simulator.recorder import detail_figures
from lbopt.table import Table

_LINES: tuple[tuple[str, str, numbers.Format], ...] = (
    ("imbalance_tokens", "average imbalance (tokens)", numbers.tokens),
    ("spread_tokens", "max − min load (tokens)", numbers.tokens),
    ("mean_load_tokens", "mean load (tokens)", numbers.tokens),
    ("occupancy", "occupancy of slots", numbers.share),
    ("throughput_tokens_per_second", "throughput (tokens / s)", numbers.tokens),
    ("whole_run_tokens_per_second", "throughput of the whole run (tokens / s)", numbers.tokens),
    ("whole_run_share_of_ceiling", "of what no rule can pass", numbers.share),
    ("elapsed_share_of_ceiling", "the same from the first arrival to the last end", numbers.share),
    ("energy_share_of_ceiling", "least energy of any rule / energy of the whole run", numbers.share),
    ("slo_share", "requests within the limits", numbers.share),
    ("goodput_tokens_per_second", "goodput of the whole run (tokens / s)", numbers.tokens),
    ("tpot_mean_seconds", "TPOT mean (ms)", numbers.milliseconds),
    ("tpot_p50_seconds", "TPOT P50 (ms)", numbers.milliseconds),
    ("tpot_p95_seconds", "TPOT P95 (ms)", numbers.milliseconds),
    ("tpot_p99_seconds", "TPOT P99 (ms)", numbers.milliseconds),
    ("waiting_mean_steps", "waiting mean (steps)", numbers.steps),
    ("waiting_p99_steps", "waiting P99 (steps)", numbers.steps),
    ("waiting_max_steps", "waiting max (steps)", numbers.whole),
    ("first_token_mean_seconds", "arrival to first token, mean (ms)", numbers.milliseconds),
    ("first_token_p99_seconds", "arrival to first token, P99 (ms)", numbers.milliseconds),
    ("idle_share", "idle at the barrier", numbers.share),
    ("energy_joules", "energy (kJ)", numbers.kilojoules),
    ("real_choice_share", "decisions with a real choice", numbers.share),
    ("over_capacity_share", "worker-steps above KV capacity", numbers.share),
    ("active_experts", "experts of a layer in use on a busy worker", numbers.steps),
)

#: Lines of runs in detail (`detail_figures`).
_DETAIL_LINES: tuple[tuple[str, str, numbers.Format], ...] = (
    ("preemptions", "pre-emptions", numbers.whole),
    ("recomputed_tokens", "tokens computed once more", numbers.whole),
    ("moved_tokens", "tokens moved out of memory and back", numbers.whole),
    ("memory_share", "memory in use", numbers.share),
    ("computed_tokens", "tokens of prompts computed", numbers.whole),
    ("reused_tokens", "tokens of prompts found in caches", numbers.whole),
    ("tokens_per_turn", "tokens a request makes in a step", numbers.fixed(3)),
    ("returned_requests", "requests back from workers that left", numbers.whole),
    ("pauses", "pauses", numbers.whole),
)


def run_table(run: Run, metrics: Metrics) -> Table:
    """Return one line per metric."""
    rows = []
    for name, label, form in _LINES:
        if getattr(metrics, name) is None:
            continue  # of experts that the trace does not name, or limits that are not set
        interval = getattr(metrics, f"{name}_interval", None)
        around = "" if interval is None else f"{form(interval[0])} … {form(interval[1])}"
        rows.append((label, form(getattr(metrics, name)), around))
    if run.happened is not None:
        figures = detail_figures(run)
        rows += [(label, form(figures[name]), "") for name, label, form in _DETAIL_LINES if figures[name] is not None]
    return Table(
        title=f"{run.policy} ({run.admission}) on {run.trace.name}: "
        f"{len(run.trace):,} requests, {run.num_steps:,} steps",
        caption=f"Steps {metrics.first_step} to {metrics.last_step}, loads read in {run.setting.event_order} order, "
        f"95 % batch-means intervals; step time {run.setting.law.name}; power read by {run.setting.power.reading}, "
        f"{run.setting.power.idle_watts:g} to {run.setting.power.peak_watts:g} W a worker; "
        f"simulated in {run.seconds:.3f} s{_certainty(run)}.",
        headers=("metric", "value", "interval"),
        rows=rows,
    )


def _certainty(run: Run) -> str:
    """Say how much of a run was proved, and how far from it the rest may be."""
    count = sum(run.tally.values())
    if count == 0:
        return ""
    shares = ", ".join(f"{numbers.share(run.tally[name] / count)} {name}" for name in STANDINGS if name in run.tally)
    gaps = run.open_gaps
    left = (
        f"; open by at most {numbers.tokens(gaps.sum())} tokens in all, "
        f"{numbers.tokens(gaps.mean())} on average, {numbers.tokens(gaps.max())} at worst"
        if gaps.size
        else ""
    )
    return f"; {count:,} decisions solved: {shares}{left}"


REPORT = StudyReport(
    tables=lambda outcome: [run_table(outcome.run, outcome.metrics)],
    csv={
        "requests": lambda outcome: outcome.run.request_table(),
        "steps": lambda outcome: outcome.run.step_table(),
        "decisions": lambda outcome: outcome.run.decision_table() if outcome.run.tally else None,
    },
    written="tables",
)
