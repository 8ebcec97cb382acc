"""How a study of hindsight is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.hindsight_figure import hindsight_figure
from lbopt.report.hindsight_tables import hindsight_csv, hindsight_sentences, hindsight_tables, searches_csv
from lbopt.report.study_report import StudyReport
from lbopt.studies.hindsight import HindsightOutcome


def hindsight_contents(outcome: HindsightOutcome, _made: Made) -> Contents:
    """Return hindsight.csv, searches.csv and the picture."""
    return Contents(
        tables={"hindsight": hindsight_csv(outcome), "searches": searches_csv(outcome)},
        figures={"hindsight": hindsight_figure(outcome)},
    )


REPORT = StudyReport(
    tables=hindsight_tables, lead=hindsight_sentences, contents=hindsight_contents, written="tables and picture"
)
