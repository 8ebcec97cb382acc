"""The rows of a locality study's files, with full precision: statements, runs, signatures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from lbopt.report.locality_sweeps import BASE, workloads_of
from lbopt.report.locality_tables import NO_ANSWER, answered
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.locality import LocalityOutcome

#: What is known of a run, and its unit.
UNITS = {"p50": "s", "p99": "s", "experts": "", "running": "requests", "busiest_over_mean": ""}

#: The item that looks at the wait for the first step, and its unit.
WAITS = {"first-token": {"wait": "s"}}


def question_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a printed statement; an open end of its range is empty."""
    return [
        {
            "item": asked.item,
            "workload": asked.workload,
            "quantity": asked.quantity,
            "unit": asked.printed.unit,
            "printed": asked.printed.text,
            "printed_low": None if math.isinf(asked.printed.low) else asked.printed.low,
            "printed_high": None if math.isinf(asked.printed.high) else asked.printed.high,
            **_interval("ours", judged.ours if judged else None),
            "worlds": len(judged.values) if judged else 0,
            "verdict": judged.verdict if judged else NO_ANSWER,
            "calibrated": asked.printed.calibrated,
        }
        for asked, judged in answered(outcome)
    ]


def run_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a workload, run and quantity; its change is against round-robin, in %, paired by worlds.

    Where some runs have another step time than the default, a column names it.
    """
    found, runs = [], outcome.config.runs
    units = UNITS | {of: unit for item in outcome.config.items for of, unit in WAITS.get(item, {}).items()}
    laws = any(run.law for run in runs)
    for workload in workloads_of(outcome):
        for run in runs:
            for of, unit in units.items():
                change = None if run.policy == BASE else outcome.change(workload, run, of)
                found.append(
                    {
                        "workload": workload,
                        "fleet": run.fleet,
                        "workers": run.workers,
                        "requests_per_second": run.rate,
                        "policy": run.policy,
                        **({"law": run.law} if laws else {}),
                        "quantity": of,
                        "unit": unit,
                        **_interval("mean", outcome.mean(workload, run, of)),
                        **_interval("change_percent", change, "change_"),
                        "worlds": len(outcome.answers[workload]),
                    }
                )
    return found


def constant_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a statement and pair of the assumed constants; the assumed ones come first."""
    return [
        {
            "workload": band.question.workload,
            "quantity": band.question.quantity,
            "other_seconds": point.other,
            "seconds_per_request": point.per_request,
            "unit": band.question.printed.unit,
            **_interval("ours", point.judged.ours),
            "worlds": len(point.judged.values),
            "verdict": point.judged.verdict,
        }
        for band in outcome.constant_bands()
        for point in band.points
    ]


def law_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a statement and step time that was given."""
    return [
        {
            "workload": found.judged.question.workload,
            "quantity": found.judged.question.quantity,
            "law": found.law,
            "unit": found.judged.question.printed.unit,
            **_interval("ours", found.judged.ours),
            "worlds": len(found.judged.values),
            "verdict": found.judged.verdict,
        }
        for found in outcome.at_laws()
    ]


def signature_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a workload and quantity of signatures; `of` is the transform, batch or width that it is of."""
    found = []
    for workload in workloads_of(outcome):
        for path in _paths(outcome.answers[workload][0]["signatures"]):
            value = outcome.signature(workload, *path)
            quantity, of = (*path, "")[:2]
            found.append({"workload": workload, "quantity": quantity, "of": of, **_interval("mean", value)})
    return found


def _paths(signatures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in signatures.items():
        if isinstance(value, dict):
            yield from ((name, of) for of in value)
        else:
            yield (name,)


def _interval(name: str, value: MeanOverSeeds | None, ends: str = "") -> dict[str, float | None]:
    if value is None:
        return {name: None, f"{ends}low": None, f"{ends}high": None}
    return {name: value.mean, f"{ends}low": value.low, f"{ends}high": value.high}
