"""What each result shows when it is asked for a data frame, a picture or HTML: one entry a class, loaded on use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lbopt.report.study_report import REPORTS, report_of
from lbopt.report.views.view import View
from lbopt.spec import unknown

#: Results that are no outcome of a study, and the module here whose `VIEWS` has them.
_HOME = {"Result": "result", "Run": "run", "Trace": "trace"}


def view_of(name: str) -> View[Any]:
    """Return the view of the class called `name`, such as "Run" or, for the study of gaps, "GapOutcome".

    Raises
    ------
    InputError
        If no view of that class is declared.
    """
    study = name.removesuffix("Outcome").lower()
    if name != study and study in REPORTS:
        return report_of(study).view()
    if name not in _HOME:
        raise unknown("result", name, _HOME)
    views: dict[str, View[Any]] = import_module(f"lbopt.report.views.{_HOME[name]}").VIEWS
    return views[name]


__all__ = ["View", "view_of"]
