"""What each result shows when it is asked for a data frame, a picture or HTML: one entry a class, loaded on use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from lbopt.report.views.view import View

#: Name of the class, and the module here whose `VIEW` (or `VIEWS[name]`) says what it shows.
_HOME = {
    "Result": "result",
    "Run": "run",
    "Trace": "trace",
    "GapOutcome": "gap",
}


def view_of(name: str) -> View[Any]:
    """Return the view of the class called `name`."""
    return cast("View[Any]", import_module(f"lbopt.report.views.{_HOME[name]}").VIEW)


__all__ = ["View", "view_of"]
