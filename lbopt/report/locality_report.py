"""How a locality study is shown."""

from __future__ import annotations

from matplotlib.axes import Axes

from lbopt.report.locality_figures import draw_routers, locality_figures
from lbopt.report.locality_rows import constant_rows, law_rows, question_rows, run_rows, signature_rows
from lbopt.report.locality_tables import locality_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.locality import LocalityOutcome


def draw_first_workload(outcome: LocalityOutcome, axes: Axes) -> None:
    """Draw the change of the median latency against the rate, a line for each router, on the first workload."""
    draw_routers(outcome, axes, next(iter(outcome.answers)), "p50")
    axes.set_xlabel("requests/s")
    axes.set_ylabel("change against round-robin (%)")
    axes.legend(frameon=False)


REPORT = StudyReport(
    tables=locality_tables,
    csv={
        "claims": question_rows,
        "runs": run_rows,
        "signatures": signature_rows,
        "constants": constant_rows,
        "laws": law_rows,
    },
    figures=locality_figures,
    draw=draw_first_workload,
)
