"""How a check of the theory is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from lbopt.report.contents import Made
from lbopt.report.figures import COLOURS, GREY
from lbopt.report.study_report import StudyReport
from lbopt.report.theory_page import render_theory_page, theory_markdown
from lbopt.report.theory_tables import finding_rows, finding_table, verdict_lead, verdict_table
from lbopt.studies.check import CheckOutcome
from lbopt.table import Table
from lbopt.theory.finding import Verdict

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
