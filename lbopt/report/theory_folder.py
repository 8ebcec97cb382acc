"""The output folder of a check: report.html, theory.md, findings.csv, counterexamples, run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.folder import write_csv, write_json, write_whole
from lbopt.report.provenance import provenance
from lbopt.report.theory_page import render_theory_page, theory_markdown
from lbopt.studies.check import CheckOutcome

FORMAT = "lbopt-check"
FORMAT_VERSION = 1


def write_theory_folder(outcome: CheckOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""
    how = provenance(command)

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "findings.csv", _rows(outcome))
        (target / "report.html").write_text(render_theory_page(outcome, how, command), encoding="utf-8")
        (target / "theory.md").write_text(theory_markdown(outcome, how, command), encoding="utf-8")
        for name, found in _counterexamples(outcome).items():
            write_json(target / name, found["problem"])
        return {
            "version": FORMAT_VERSION,
            **how,
            "configuration": outcome.config.to_dict(),
            "verdicts": {one.claim.name: one.verdict.value for one in outcome.claims},
            "counterexamples": {
                name: {"says": found["says"], "assignment": found.get("assignment")}
                for name, found in _counterexamples(outcome).items()
            },
            "interrupted": outcome.interrupted,
            "seconds": outcome.seconds,
        }

    write_whole(folder, FORMAT, write)


def _counterexamples(outcome: CheckOutcome) -> dict[str, dict[str, Any]]:
    """Return what refutes, by the name of its file."""
    return {
        f"counterexample-{one.claim.name}-{place}.json": finding.counterexample
        for one in outcome.claims
        for place, finding in enumerate(one.findings)
        if finding.counterexample is not None
    }


def _rows(outcome: CheckOutcome) -> list[dict[str, object]]:
    rows = []
    for one in outcome.claims:
        for finding in one.findings:
            row: dict[str, object] = {"claim": one.claim.name, **finding.to_dict()}
            del row["counterexample"]
            low, high = finding.interval(one.share) or (None, None)
            rows.append(
                row | {"low": low, "high": high, "p_value": finding.p_value(), "verdict": str(one.judged(finding))}
            )
    return rows
