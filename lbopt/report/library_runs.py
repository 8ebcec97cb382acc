"""The tables of the library's whole runs: all of them, one of them, and the worst ratio of each rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lbopt import numbers
from lbopt.instances.library import StoredRun
from lbopt.instances.library.runs import MEASURES, RUN_KIND
from lbopt.table import Table


def run_facts(run: StoredRun) -> dict[str, Any]:
    """Return the line of a run in the list, as plain values."""
    return {"name": run.name, "class": RUN_KIND, **run.to_dict(), "ratio": run.ratio, "command": run.command}


def run_table(runs: Sequence[StoredRun]) -> Table:
    """Return one line per run."""
    rows = [
        (
            run.name, run.rule, str(run.workers), str(run.slots), str(len(run.prompt)), numbers.tokens(run.reached),
            numbers.tokens(run.least), f"{run.ratio:.3f}",
        )
        for run in runs
    ]  # fmt: skip
    return Table(
        title=f"{len(runs)} whole runs of the instance library",
        caption="The worst found for each rule; every optimum is proved by exhaustion.",
        headers=("name", "rule", "G", "B", "N", "rule (tokens)", "optimum (tokens)", "ratio"),
        rows=rows,
    )


def run_explanation(run: StoredRun) -> str:
    """Say in a sentence what a run shows."""
    return f"Found by search: {run.rule} pays {run.reached:,} tokens where {run.least:,} are enough."


def run_lines(run: StoredRun) -> list[tuple[str, str]]:
    """Return the pedigree of a run and its requests, as (what, is so)."""
    excess = run.workers * (run.reached - run.least)
    return [
        ("class", RUN_KIND),
        ("rule", run.rule),
        ("measure", f"{run.measure}: {MEASURES[run.measure]}"),
        ("ratio", f"{run.ratio:.4f}"),
        ("rule (tokens)", numbers.tokens(run.reached)),
        ("optimum (tokens)", f"{numbers.tokens(run.least)}, proved by exhaustion"),
        ("a step's fixed part", f"{numbers.tokens(run.fixed)} tokens"),
        ("more imbalance", "–" if run.fixed else f"{numbers.tokens(excess)} tokens"),
        ("workers G", str(run.workers)),
        ("slots per worker B", str(run.slots)),
        ("requests N", str(len(run.prompt))),
        ("prompts", ", ".join(map(str, run.prompt))),
        ("outputs", ", ".join(map(str, run.output))),
        ("found by", run.command),
    ]


def worst_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Return a table for each measure: the worst ratio found for each rule in each fleet, best worst case first."""
    return [_worst(measure, of) for measure in MEASURES if (of := [run for run in runs if run.measure == measure])]


def _worst(measure: str, runs: Sequence[StoredRun]) -> Table:
    fleets = sorted({(run.workers, run.slots) for run in runs})
    ratios: dict[str, dict[tuple[int, int], float]] = {}
    for run in runs:
        ratios.setdefault(run.rule, {})[run.workers, run.slots] = run.ratio
    # Rules that were not searched for in every fleet come last: their worst case is of fewer runs.
    ranked = sorted((len(fleets) - len(of), max(of.values()), rule) for rule, of in ratios.items())
    best = [rule for missing, worst, rule in ranked if (missing, worst) == ranked[0][:2]]
    return Table(
        title=f"{measure}: {MEASURES[measure]}",
        caption=f"Worst ratio found; the least worst case has {', '.join(best)}. More searching can only raise ratios.",
        headers=("rule", *(f"{G}x{B}" for G, B in fleets), "worst"),
        rows=[
            (rule, *(f"{of[fleet]:.3f}" if fleet in of else "–" for fleet in fleets), f"{worst:.3f}")
            for worst, rule, of in ((worst, rule, ratios[rule]) for _, worst, rule in ranked)
        ],
    )
