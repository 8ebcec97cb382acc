"""What of the gain is late binding, what the interval and what the balance of units, as tables."""

from __future__ import annotations

from collections.abc import Callable

from lbopt import numbers
from lbopt.report.staggered_words import interval_said, mean_of, percent, share, values_of
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import StaggeredOutcome
from lbopt.studies.staggered.items import split
from lbopt.studies.staggered.rows import Key, Rows
from lbopt.table import Table

#: Binding and allocation.
Way = tuple[str, str]
_PLAIN: Way = ("on arrival", "round-robin")
_BALANCED: Way = ("on arrival", "least-loaded")
_LATE: Way = ("late", "pbaa")
_INTERVAL: Way = ("late, interval", "pbaa")
_BYPASS: Way = ("late, interval, bypass", "pbaa")
_WHOLE: Way = ("late, interval, bypass", "pbaa:whole=yes")
#: What is changed, the way before it and after it.
STEPS: dict[str, tuple[Way, Way]] = {
    "balance on arrival: round-robin to least-loaded": (_PLAIN, _BALANCED),
    "late binding, least-loaded": (_BALANCED, ("late", "least-loaded")),
    "balance when late: round-robin to pbaa": (("late", "round-robin"), _LATE),
    "balance when late: least-loaded to pbaa": (("late", "least-loaded"), _LATE),
    "interval, pbaa": (_LATE, _INTERVAL),
    "bypass, pbaa": (_INTERVAL, _BYPASS),
    "whole requests, pbaa": (_BYPASS, _WHOLE),
    "all, from round-robin on arrival": (_PLAIN, _WHOLE),
    "all, from least-loaded on arrival": (_BALANCED, _WHOLE),
}

_milliseconds, _passes = numbers.fixed(0, 1e3), numbers.fixed(2)


def split_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return what each step is worth, and the times and waits of every binding with every allocation."""
    return [_step_table(outcome), _time_table(outcome), _wait_table(outcome)]


def worth(outcome: StaggeredOutcome, place: Key, before: Way, after: Way) -> MeanOverSeeds | None:
    """Return the change of the mean time to first token in %, paired by seeds.

    Parameters
    ----------
    outcome
        The study.
    place
        Name of the place.
    before, after
        Binding and allocation that are compared.
    """

    def change(rows: Rows) -> float | None:
        old, new = (rows.value("ttft", **_keys(place, way)) for way in (before, after))
        return None if new is None or not old else 100 * (new / old - 1)

    return outcome.mean("split", change)


def _keys(place: Key, way: Way) -> dict[str, Key]:
    return {"place": place, "binding": way[0], "allocation": way[1]}


def _step_table(outcome: StaggeredOutcome) -> Table:
    places = values_of(outcome, "split", "place")
    return Table(
        "What is worth what: change of the mean time to first token (%)",
        "Each line changes the one thing that it names and leaves the rest: the first token comes so much sooner (−) "
        f"by late binding, by the interval, by balance of units. {_load_said()} {interval_said(outcome, 'split')}",
        ("step", *map(str, places)),
        [
            (name, *(numbers.with_interval(worth(outcome, place, *ways), percent, signed=True) for place in places))
            for name, ways in STEPS.items()
        ],
    )


def _time_table(outcome: StaggeredOutcome) -> Table:
    def cell(keys: dict[str, Key]) -> str:
        return numbers.with_interval(mean_of(outcome, "split", "ttft", keys), _milliseconds)

    caption = f"Rows: when an instance is chosen; columns: who gives requests to its units. {_load_said()}"
    return Table(
        "Mean time to first token (ms) by binding and allocation",
        f"{caption} {interval_said(outcome, 'split')}",
        ("place, binding", *split.ALLOCATIONS),
        _grid(outcome, cell),
    )


def _wait_table(outcome: StaggeredOutcome) -> Table:
    def cell(keys: dict[str, Key]) -> str:
        wait, passes = (mean_of(outcome, "split", of, keys) for of in ("wait", "passes_per_request"))
        if wait is None or passes is None:
            return numbers.UNKNOWN
        return f"{_milliseconds(wait.mean)}; {_passes(passes.mean)}"

    return Table(
        "Wait (ms) and passes a request by binding and allocation",
        "Wait: from arrival to the start of the first pass. What is neither wait nor the first pass is further passes.",
        ("place, binding", *split.ALLOCATIONS),
        _grid(outcome, cell),
    )


def _grid(outcome: StaggeredOutcome, cell: Callable[[dict[str, Key]], str]) -> list[tuple[str, ...]]:
    return [
        (f"{place}: {binding}", *(cell(_keys(place, (binding, allocation))) for allocation in split.ALLOCATIONS))
        for place in values_of(outcome, "split", "place")
        for binding in split.BINDINGS
    ]


def _load_said() -> str:
    return f"At {share(split.LOAD)} of the highest rate that {split.BASELINE} serves within the limit."
