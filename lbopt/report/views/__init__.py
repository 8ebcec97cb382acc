"""What each result shows when it is asked for a data frame, a picture or HTML: one entry a class, loaded on use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lbopt.report.views.view import View
from lbopt.spec import unknown

#: Name of the class, and the module here whose `VIEWS` has it.
_HOME = {
    "Result": "result",
    "Run": "run",
    "Trace": "trace",
    **dict.fromkeys(
        (
            "AuditOutcome",
            "BatchesOutcome",
            "CheckOutcome",
            "CostOutcome",
            "GapOutcome",
            "HindsightOutcome",
            "LocalityOutcome",
            "MispredictionOutcome",
            "PlacementOutcome",
            "PredictionOutcome",
            "PrefillOutcome",
            "ReproductionOutcome",
            "ScalingOutcome",
            "StaggeredOutcome",
            "StaleOutcome",
        ),
        "studies",
    ),
}


def view_of(name: str) -> View[Any]:
    """Return the view of the class called `name`.

    Raises
    ------
    InputError
        If no view of that class is declared.
    """
    if name not in _HOME:
        raise unknown("result", name, _HOME)
    views: dict[str, View[Any]] = import_module(f"lbopt.report.views.{_HOME[name]}").VIEWS
    return views[name]


__all__ = ["View", "view_of"]
