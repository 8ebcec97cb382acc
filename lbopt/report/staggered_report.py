"""How a staggering study is shown."""

from __future__ import annotations

from functools import partial

from matplotlib.axes import Axes

from lbopt.report.staggered_figures import draw_load, staggered_figures
from lbopt.report.staggered_rows import item_rows, question_rows
from lbopt.report.staggered_tables import staggered_tables
from lbopt.report.staggered_words import values_of
from lbopt.report.study_report import StudyReport
from lbopt.studies.staggered import StaggeredOutcome
from lbopt.studies.staggered.plan import ITEMS


def draw_first_place(outcome: StaggeredOutcome, axes: Axes) -> None:
    """Draw the time to first token against the rate, at the first place of item load."""
    draw_load(outcome, axes, str(values_of(outcome, "load", "place")[0]))
    axes.set_ylabel("mean time to first token (s)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


REPORT = StudyReport(
    tables=staggered_tables,
    csv={"claims": question_rows, **{item: partial(item_rows, item=item) for item in ITEMS}},
    figures=staggered_figures,
    draw=draw_first_place,
)
