"""How a race is shown."""

from __future__ import annotations

from lbopt.report.contents import Contents, Made
from lbopt.report.race_page import lead, race_pictures, render_race_page
from lbopt.report.race_tables import race_csv, race_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.race import RaceOutcome


def race_contents(outcome: RaceOutcome, made: Made) -> Contents:
    """Return results.csv, summary.json, the pictures and report.html."""
    pictures = race_pictures(outcome)
    files = {name: data for picture in pictures for name, data in picture.files.items()}
    page = render_race_page(outcome, pictures, made.how, made.command)
    return Contents(
        tables={"results": race_csv(outcome)},
        others={
            "summary.json": outcome.to_dict() | made.how,
            **files,
            "report.html": page,
        },
    )


def contradictions(outcome: RaceOutcome) -> list[str]:
    """Return a sentence for every bound that excludes a placement which was found."""
    grave = [one for one in outcome.contradictions if one.grave]
    found = [f"{'CONTRADICTION' if one.grave else 'refuted claim'}: {one}" for one in outcome.contradictions]
    if grave:
        found.append(f"{len(grave)} contradictions between bounds and placements: a bound is false, see above")
    return found


REPORT = StudyReport(
    tables=race_tables,
    contents=race_contents,
    lead=lambda outcome: [lead(outcome)],
    warnings=contradictions,
    written="report",
    page="report.html",
)
