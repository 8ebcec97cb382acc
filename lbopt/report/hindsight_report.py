"""How a study of hindsight is shown."""

from __future__ import annotations

from lbopt.report.hindsight_figure import draw_hindsight, hindsight_figure
from lbopt.report.hindsight_tables import hindsight_csv, hindsight_sentences, hindsight_tables, searches_csv
from lbopt.report.study_report import StudyReport

REPORT = StudyReport(
    tables=hindsight_tables,
    csv={"hindsight": hindsight_csv, "searches": searches_csv},
    figures=lambda outcome: {"hindsight": hindsight_figure(outcome)},
    draw=draw_hindsight,
    aliases={"rules": "hindsight"},
    lead=hindsight_sentences,
    written="tables and picture",
)
