"""How a check of the theory is shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from lbopt.report.contents import Made
from lbopt.report.figures import COLOURS, GREY
from lbopt.report.page import render_page
from lbopt.report.study_report import StudyReport
from lbopt.report.theory_tables import finding_rows, finding_table, verdict_lead, verdict_table
from lbopt.studies.check import CheckOutcome, ClaimOutcome
from lbopt.table import Table
from lbopt.theory.finding import Verdict
from lbopt.theory.ledger import PROOFS, how_proved

#: With at most so many claims the terminal also shows the findings of each.
_FEW_CLAIMS = 3


def check_tables(outcome: CheckOutcome) -> Sequence[Table]:
    """Return the findings of few claims, and the verdicts of all."""
    few = outcome.claims if len(outcome.claims) <= _FEW_CLAIMS else []
    return [*map(finding_table, few), verdict_table(outcome)]


def check_files(outcome: CheckOutcome, made: Made) -> dict[str, Any]:
    """Return report.html, theory.md, and a JSON file per counterexample."""
    return {
        "report.html": render_theory_page(outcome, made.how, made.command),
        "theory.md": theory_markdown(outcome, made.how, made.command),
        **{name: found["problem"] for name, found in outcome.refuting.items()},
    }


_VERDICT_COLOURS = {Verdict.HOLDS: COLOURS[2], Verdict.REFUTED: COLOURS[1]}


def draw_verdicts(outcome: CheckOutcome, axes: Axes) -> None:
    """Draw measured over claimed of the finding that decides each claim; claims of 0 have no ratio and no mark."""
    shown = [(one, one.tightest) for one in outcome.claims]
    names = [one.claim.name for one, _ in shown]
    for place, (one, finding) in enumerate(shown):
        if finding is not None and finding.predicted:
            ratio = finding.measured / finding.predicted
            axes.plot([ratio], [place], "o", color=_VERDICT_COLOURS.get(one.verdict, GREY))
    for verdict in dict.fromkeys(one.verdict for one, _ in shown):
        axes.plot([], [], "o", color=_VERDICT_COLOURS.get(verdict, GREY), label=verdict.value)
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("measured / claimed")
    axes.legend(frameon=False)


REPORT = StudyReport(
    tables=check_tables,
    csv={"findings": finding_rows},
    others=check_files,
    draw=draw_verdicts,
    lead=lambda outcome: [verdict_lead(outcome)],
    written="report",
    page="report.html",
)


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
