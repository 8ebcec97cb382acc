"""The tables of a gap study: which columns, under which header, in which unit; and the records of its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lbopt import numbers
from lbopt.studies.gap import GapOutcome, PolicyGap, SolvedState
from lbopt.studies.gap.decisions import ALL, summarise
from lbopt.studies.gap.outcome import STANDINGS, Comparison, compare
from lbopt.studies.gap.study import baseline_of
from lbopt.table import Column, Table, records, table_of, with_ends

#: One-step rows: CSV has all columns, the table those with a header.
GAP_COLUMNS = (
    Column("behaviour", "policy under which the states were sampled, or all"),
    Column("policy", "the rule"),
    Column("states", "states that it decided"),
    Column("proved", "states whose optimum is proved"),
    Column("searched", "states whose optimum is by the search, not checked"),
    Column("claimed", "states whose optimum a solver claims"),
    Column("open", "states whose bound is below the best value"),
    Column("gap_mean_tokens", "imbalance above the optimum, mean", "mean gap (tokens)", numbers.tokens),
    Column("gap_mean_low_tokens", "over all states, the best value known of an open one taken for its optimum"),
    Column("gap_mean_high_tokens", "over all states, the bound of an open one taken for its optimum"),
    Column("gap_median_tokens", "imbalance above the optimum, median", "median", numbers.tokens),
    Column("gap_p95_tokens", "its 95th percentile", "P95", numbers.tokens),
    Column("gap_max_tokens", "its maximum", "max", numbers.tokens),
    Column("gap_mean_share", "the gap over G * M, mean", "of barrier", numbers.share),
    Column("optimal_share", "share of decisions without a gap", "optimal", numbers.share),
    Column("barrier_mean_seconds", "the barrier after the decisions", "barrier (ms)", numbers.fixed(3, 1e3)),
    Column("microseconds_per_decision", "median time of a decision", "µs / decision", numbers.microseconds),
)

_BALANCE = (
    Column("imbalance_tokens", "", "imbalance (tokens)", numbers.tokens),
    Column("occupancy", "", "occupancy", numbers.share),
    Column("mean_load_tokens", "", "mean load (tokens)", numbers.tokens),
    Column("spread_tokens", "", "max − min (tokens)", numbers.tokens),
    Column("waiting_max_steps", "", "longest wait (steps)", numbers.steps),
    Column("idle_share", "", "idle", numbers.share),
    Column("throughput_tokens_per_second", "", "tokens / s", numbers.tokens),
    Column("whole_run_tokens_per_second", "", "tokens / s, whole run", numbers.tokens),
    Column("whole_run_share_of_ceiling", "", "of the ceiling", numbers.share),
    Column("energy_joules", "", "energy (kJ)", numbers.kilojoules),
    Column("real_choice_share", "", "real choices", numbers.share),
)

_LATENCY = (
    Column("tpot_mean_seconds", "", "TPOT mean (ms)", numbers.milliseconds),
    Column("tpot_p50_seconds", "", "P50", numbers.milliseconds),
    Column("tpot_p95_seconds", "", "P95", numbers.milliseconds),
    Column("tpot_p99_seconds", "", "P99", numbers.milliseconds),
    Column("waiting_mean_steps", "", "wait mean (steps)", numbers.steps),
    Column("waiting_p99_steps", "", "wait P99", numbers.steps),
    Column("waiting_max_steps", "", "wait max", numbers.steps),
    Column("first_token_mean_seconds", "", "first token (ms)", numbers.milliseconds),
    Column("slo_share", "", "within limits", numbers.share),
    Column("goodput_tokens_per_second", "", "goodput (tokens / s)", numbers.tokens),
)

#: What the share of the ceiling is of.
_CEILING = "the ceiling is what no rule can pass over a whole run"


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
    rows, waits = gap_rows(outcome), _longest_waits(outcome)
    wait = Column("longest wait (own runs)", of=lambda _, row: waits.get(row.policy, numbers.UNKNOWN))
    tables = []
    for behaviour in dict.fromkeys(row.behaviour for row in rows):
        chosen = sorted((r for r in rows if r.behaviour == behaviour), key=lambda r: (r.gap_mean_tokens, r.policy))
        widest = max(chosen, key=lambda r: r.states)  # a log decides its own states alone
        where = "over all states" if behaviour == ALL else f"in states under {behaviour}"
        count = "1 state" if widest.states == 1 else f"{widest.states} states"
        some_open = any(row.open for row in chosen)
        said = (
            "Open states enter no average but *all, from … to*, where their optimum is the best value known, and the "
            "bound: they are harder than the others. "
        )
        caption = (
            f"{count}: {widest.proved} proved, {widest.searched} by the search, {widest.claimed} claimed by a solver, "
            f"{widest.open} open. {said if some_open else ''}"
            "All rules decide in pooled form; the optimum may keep any request waiting."
        )
        columns = [_POLICY, _COUNTED, *([_INTERVAL] if some_open else []), *(one for one in GAP_COLUMNS if one.header)]
        title = f"One step: gap to the optimum, {where}"
        tables.append(table_of(title, caption, [*columns, *([wait] if waits else [])], outcome, chosen))
    return tables


def _counted(_outcome: GapOutcome, row: PolicyGap) -> str:
    """Return how many states the averages are over, and of how many."""
    counted = numbers.whole(row.states - row.open)
    return f"{counted} of {numbers.whole(row.states)}" if row.open else counted


def _interval(_outcome: GapOutcome, row: PolicyGap) -> str:
    return f"{numbers.tokens(row.gap_mean_low_tokens)} … {numbers.tokens(row.gap_mean_high_tokens)}"


_POLICY = Column("policy")
_COUNTED = Column("states", of=_counted)
_INTERVAL = Column("all, from … to", of=_interval)


def _longest_waits(outcome: GapOutcome) -> dict[str, str]:
    longest: dict[str, int] = {}
    for run in outcome.long_runs:
        longest[run.policy] = max(longest.get(run.policy, 0), run.metrics.waiting_max_steps)
    return {policy: numbers.whole(steps) for policy, steps in longest.items()}


def long_run_tables(outcome: GapOutcome) -> list[Table]:
    """Return the long-run tables, and the one of paired differences to the baseline."""
    baseline = baseline_of(outcome.config)
    by_policy: dict[str, dict[str, Comparison]] = {}
    for one in compare(outcome.long_runs, baseline):
        by_policy.setdefault(one.policy, {})[one.metric] = one
    if not by_policy:
        return []
    order = sorted(by_policy, key=lambda p: by_policy[p]["imbalance_tokens"].value.mean)
    admission = {run.policy: run.admission for run in outcome.long_runs}
    seeds = len({run.seed for run in outcome.long_runs})
    spread = f"mean over {seeds} seeds ± half a 95 % interval" if seeds > 1 else "one seed"

    def columns_of(quantities: Sequence[Column], difference: bool = False) -> list[Column]:
        """Return the columns of what was measured: goodput, say, only where limits were set."""
        return [_compared(by_policy, one, difference) for one in quantities if one.name in by_policy[baseline]]

    policy = Column("policy", of=lambda _, name: name)
    bound = Column("admission", of=lambda _, name: admission[name])
    of_runs = f"steps up to the last admission, but for the whole run; {_CEILING}"
    same = f"Same requests for all, {spread}"
    balance, latency = [policy, bound, *columns_of(_BALANCE)], [policy, bound, *columns_of(_LATENCY)]
    against = [policy, *columns_of([*_BALANCE[:10], _LATENCY[0]], difference=True)]
    paired, others = "Paired by seed: policy minus baseline on the same requests.", [p for p in order if p != baseline]
    tables = [
        table_of("Long run: balance and speed", f"{same}; {of_runs}.", balance, outcome, order),
        table_of("Long run: latency and waiting", f"{same}; over all requests.", latency, outcome, order),
        table_of(f"Long run: difference to {baseline}", paired, against, outcome, others),
    ]
    return [table for table in tables if table.rows]


def _compared(by_policy: Mapping[str, Mapping[str, Comparison]], column: Column, difference: bool) -> Column:
    """Return the column of a quantity of a policy's runs, or of its difference to the baseline."""
    form = numbers.points if difference and column.shown is numbers.share else column.shown

    def shown(_outcome: GapOutcome, policy: str) -> str:
        compared = by_policy[policy][column.name]
        return numbers.with_interval(compared.difference if difference else compared.value, form, signed=difference)

    return Column(column.header, of=shown)


def gap_csv(outcome: GapOutcome) -> list[dict[str, object]]:
    """Return the one-step rows with full precision."""
    return records(GAP_COLUMNS, outcome, gap_rows(outcome))


def long_run_csv(outcome: GapOutcome) -> list[dict[str, object]]:
    """Return one row per policy and seed with every metric, intervals as two columns."""
    return [
        {name: getattr(run, name) for name in ("policy", "admission", "seed", "steps")}
        | with_ends(run.metrics.to_dict())
        | {f"decisions_{standing}": run.tally.get(standing) for standing in STANDINGS}
        | {"simulation_seconds": run.seconds}
        for run in outcome.long_runs
    ]


#: Long runs over all seeds: a row per policy and metric.
_COMPARED = (
    Column("policy", "the rule"),
    Column("metric", "what is compared"),
    *(Column(name, "over seeds, with a 95 % interval", of=f"value.{name}") for name in ("mean", "low", "high")),
    Column("difference", "to the baseline, paired by seed", of="difference.mean"),
    *(Column(f"difference_{end}", "end of its 95 % interval", of=f"difference.{end}") for end in ("low", "high")),
)


def difference_csv(outcome: GapOutcome) -> list[dict[str, object]]:
    """Return a row per policy and metric of the long runs: its mean, and its difference to the baseline."""
    return records(_COMPARED, outcome, compare(outcome.long_runs, baseline_of(outcome.config)))


def step_record(solved: SolvedState) -> dict[str, Any]:
    """Return one line of steps.jsonl: the frozen state, its optimum, and every policy's value."""
    return solved.state.to_dict() | {
        "standing": solved.standing,
        "result": solved.result.to_dict(),
        "decisions": {name: decision.objective for name, decision in solved.decisions.items()},
    }
