"""The tables of a race: how many were proved, how quickly, what stayed open, and the ratios to the reference."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt import numbers
from lbopt.table import Table
from tests.benchmarks.race.numbers import ratio_bracket, time_bracket
from tests.benchmarks.race.outcome import RaceOutcome
from tests.benchmarks.race.record import RaceRecord


def race_tables(outcome: RaceOutcome) -> list[Table]:
    """Return the tables that the outcome has numbers for."""
    tables = [_standings(outcome)]
    if len(outcome.config.solvers) > 1:
        tables.append(_ratios(outcome))
    failures = [record for record in outcome.records if record.status == "failed"]
    if failures:
        tables.append(_failures(failures))
    return tables


def _standings(outcome: RaceOutcome) -> Table:
    rows = []
    for s in outcome.summaries():
        counts = s.counts
        rows.append(
            (
                f"{s.group}  {s.solver}",
                f"{s.runs:,}",
                *(
                    _count(counts[name], s.runs)
                    for name in ("proved", "searched", "claimed", "open", "refuted", "failed")
                ),
                time_bracket(s.median),
                time_bracket(s.p99),
                numbers.whole(s.largest_gap),
                _permyriad(s.largest_gap_share),
                numbers.share(s.best_found),
            )
        )
    return Table(
        title="Who closed what, and how quickly",
        caption=f"Limit {outcome.config.time_limit:g} s a run. Times are those to the proof, or to a claim of "
        "optimality that no result refuted; ≥: more than half of the runs (median) or more than one in a hundred (P99) "
        "were not closed. Open gap: the largest value − bound. Best found: the placement is as good as any known.",
        headers=(
            *("group, solver", "runs", "proved", "searched", "claimed", "open", "refuted", "failed"),
            *("median", "P99", "open gap (tokens)", "of G·M", "best found"),
        ),
        rows=rows,
    )


def _ratios(outcome: RaceOutcome) -> Table:
    base = outcome.config.base
    rows = [
        (f"{r.group}  {r.solver}", f"{r.pairs:,}", f"{r.undecided:,}", ratio_bracket(r.median))
        for r in outcome.ratio_summaries()
    ]
    return Table(
        title=f"How many times longer than {base}",
        caption=f"Median of the ratios time / time of {base}, instance by instance. ≥: the median run was not closed "
        "within the limit, so its ratio is known from below only. Neither: instances that neither of the two closed, "
        "left out.",
        headers=("group, solver", "instances", "neither", "median ratio"),
        rows=rows,
    )


def _failures(failures: Sequence[RaceRecord]) -> Table:
    return Table(
        title="Runs that failed",
        caption="Stored as failures; --retry-failures makes them again.",
        headers=("instance, solver", "how", "why"),
        rows=[(f"{r.instance}  {r.solver}", r.stop, r.failure[:160]) for r in failures[:20]],
    )


def race_csv(outcome: RaceOutcome) -> list[dict[str, object]]:
    """Return one row per instance and solver, full precision; `censored` is 1 where the time is that of the limit."""
    problems = {one.name: one.problem for one in outcome.instances}
    rows: list[dict[str, object]] = []
    for r in outcome.records:
        problem = problems[r.instance]
        rows.append(
            {
                "instance": r.instance,
                "group": r.group,
                "solver": r.solver,
                "status": r.status,
                "seconds": r.seconds,
                "censored": None if r.status == "missing" else int(not r.closed),
                "building_seconds": r.building_seconds,
                "value": r.value,
                "bound": r.bound,
                "gap": r.gap,
                "gap_share": r.gap_share,
                "claim": r.claim,
                "trusted": None if r.trusted is None else int(r.trusted),
                "answered_by": r.answered_by,
                "stop": r.stop,
                "native_status": r.native_status,
                "failure": r.failure,
                "version": r.version,
                "workers": problem.num_workers,
                "requests": problem.num_requests,
                "admitted": problem.num_admitted,
                "horizon": problem.horizon,
                "digest": r.digest,
            }
        )
    return rows


def _count(count: int, of: int) -> str:
    return f"{count:,}" + (f" ({count / of:.0%})" if count and of else "")


def _permyriad(share: float | None) -> str:
    """Return a share in percent with four digits: the target for open gaps is 0.02 %."""
    return numbers.UNKNOWN if share is None else f"{100 * share:.4f} %"
