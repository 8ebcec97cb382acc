"""The report of a check: a page that needs nothing else, and a table of verdicts in Markdown for the manual."""

from __future__ import annotations

import re
import shlex
from typing import Any

from lbopt.report.page import render_page
from lbopt.report.theory_tables import finding_table, verdict_lead, verdict_table
from lbopt.studies.check import CheckOutcome, ClaimOutcome
from lbopt.theory.proofs import PROOFS, how_proved

#: What Markdown, or MyST, would take for markup in a cell.
_MARKUP = re.compile(r"[\\`*_{\[<$|]")


def render_theory_page(outcome: CheckOutcome, provenance: dict[str, Any], command: str) -> str:
    """Return the page as HTML."""
    return render_page(
        "theory_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        machine=f"{provenance['processor']}, {provenance['cpu_count']} cores",
        lead=verdict_lead(outcome),
        interrupted=outcome.interrupted,
        notes=outcome.notes,
        verdicts=verdict_table(outcome),
        claims=[
            {
                "name": one.claim.name,
                "verdict": one.verdict.value,
                "table": finding_table(one),
                "again": again(one, outcome),
                "proof": how_proved(one.claim.name) if one.claim.name in PROOFS else "",
                "claim": one.claim,
            }
            for one in outcome.claims
        ],
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def theory_markdown(outcome: CheckOutcome, provenance: dict[str, Any], command: str) -> str:
    """Return the verdicts as Markdown, a row a claim; statements are on the HTML page, findings in findings.csv."""
    table = verdict_table(outcome)
    shown = [table.headers.index(name) for name in ("claim", "verdict", "where", "measured", "claimed", "detects")]
    lines = [[_plain(row[at]) for at in shown] for row in table.rows]
    cells = [[table.headers[at] for at in shown], ["---"] * len(shown)]
    cells += [[f"[{name}](#{name})", *rest] for name, *rest in lines]
    parts = [
        "# The theory, checked",
        f"{verdict_lead(outcome)} Made by `{command}` in {outcome.seconds:.0f} s with lbopt "
        f"{provenance['versions']['lbopt']}; {provenance['processor']}, {provenance['cpu_count']} cores.",
        *(["Interrupted. This report covers the part that was finished."] if outcome.interrupted else []),
        *(f"Note: {_plain(note)}" for note in outcome.notes),
        "All findings are in `findings.csv`. A row shows the finding that decides its claim: a violation, or the least "
        "probable of its averages. *Detects* is the smallest planted error that it would refute.",
        "\n".join("| " + " | ".join(line) + " |" for line in cells),
    ]
    return "\n\n".join(parts) + "\n"


def again(one: ClaimOutcome, outcome: CheckOutcome) -> str:
    """Return the command that measures a claim again."""
    return f"lbopt check {shlex.join(one.chosen.specs)} --{outcome.config.level} --seed {outcome.config.seed}"


def _plain(cell: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", cell.replace("\n", " "))
