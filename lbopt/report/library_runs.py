"""The tables of the library's whole runs: all of them, and one of them."""

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
