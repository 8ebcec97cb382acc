"""The tables of a staggering study: each item's own, every printed statement beside ours, and the count of verdicts."""

from __future__ import annotations

from collections.abc import Callable

from lbopt.report.staggered_ahead import ahead_tables
from lbopt.report.staggered_needs import needs_tables
from lbopt.report.staggered_others import other_tables
from lbopt.report.staggered_questions import question_tables
from lbopt.report.staggered_service import fleet_tables, latency_tables, limit_tables, load_tables
from lbopt.report.staggered_split import split_tables
from lbopt.report.staggered_waits import law_tables
from lbopt.studies.staggered import StaggeredOutcome
from lbopt.table import Table

#: Items with tables of their own; any other shows its rows as they are.
_OWN: dict[str, Callable[[StaggeredOutcome], list[Table]]] = {
    "law": law_tables,
    "load": load_tables,
    "fleet": fleet_tables,
    "limit": limit_tables,
    "latency": latency_tables,
    "ahead": ahead_tables,
    "split": split_tables,
    "needs": needs_tables,
}


def staggered_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return what a terminal shows; nothing where no part has ended."""
    found: list[Table] = []
    for item in outcome.config.items:
        if outcome.rows.get(item):
            found += _OWN[item](outcome) if item in _OWN else other_tables(outcome, item)
    return [*found, *question_tables(outcome)]
