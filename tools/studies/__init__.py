"""lbopt with the studies that only pages of results need: ``python -m tools.studies study reproduction`` and the like.

`register` adds them to the tables of lbopt, so that store, folder, rerun and command line are those of its own studies.
"""

from __future__ import annotations

from lbopt.report.study_report import REPORTS
from lbopt.studies.registry import STUDIES, Listed


def register() -> None:
    """Add the studies and items of this folder to those of lbopt."""
    from tools.studies.staggered import items

    STUDIES["reproduction"] = Listed(
        "tools.studies.reproduction.study", "Do published figures of routers reproduce?", in_group=True
    )
    REPORTS["reproduction"] = "tools.studies.reproduction.report"
    items.register()
