"""Service in a staggering study as tables: against load, by size of the fleet, and the highest rate within the limit.

A baseline stands as it was measured, every rule that holds requests back as its change against it with the same
requests.
"""

from __future__ import annotations

from dataclasses import replace

from lbopt import numbers
from lbopt.report.staggered_words import (
    AHEAD_SAID,
    RULES_SAID,
    change_of,
    interval_said,
    mean_of,
    percent,
    share,
    short,
    values_of,
)
from lbopt.studies.staggered import PLACES, StaggeredOutcome
from lbopt.studies.staggered.items import fleet
from lbopt.studies.staggered.places import UNITS, Place
from lbopt.studies.staggered.rows import Key
from lbopt.table import Table

#: Baselines with tables of their own; the rest is in the files.
SHOWN_BASELINES = ("round-robin", "jsq")

milliseconds = numbers.fixed(0, 1e3)
_percent_of_one = numbers.fixed(1, 100)


def load_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place and baseline: rules against it by load."""
    tables = [
        _against_table(
            outcome, "load", place, base, "load", f"{place}: mean time to first token by load", "The load is a share of"
        )
        for place in values_of(outcome, "load", "place")
        for base in SHOWN_BASELINES
        if base in values_of(outcome, "load", "against")
    ]
    return _explained(outcome, "load", tables)


def fleet_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place and baseline: rules against it by the number of instances."""
    tables = [
        _against_table(
            outcome,
            "fleet",
            place,
            base,
            "instances",
            f"{place}: mean time to first token by instances",
            f"At {share(fleet.LOAD)} of",
            {"load": fleet.LOAD},
        )
        for place in values_of(outcome, "fleet", "place")
        for base in SHOWN_BASELINES
        if base in values_of(outcome, "fleet", "against")
    ]
    return _explained(outcome, "fleet", tables)


def limit_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place: the highest rate of every contender beside what is printed."""
    return [_limit_table(outcome, str(place)) for place in values_of(outcome, "limit", "place")]


def latency_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place: the highest rate of every contender by the time to an instance."""
    return [_latency_table(outcome, str(place)) for place in values_of(outcome, "latency", "place")]


def _latency_table(outcome: StaggeredOutcome, name: str) -> Table:
    latencies = values_of(outcome, "latency", "latency")
    rows = []
    for contender in outcome.config.contenders:
        found = (
            mean_of(outcome, "latency", "rate", {"place": name, "latency": at, "contender": contender})
            for at in latencies
        )
        rows.append((contender, *(numbers.with_interval(rate, numbers.fixed(1)) for rate in found)))
    return Table(
        f"{name}: the highest rate with a mean time to first token of {PLACES[name].limit:g} s, by latency",
        "Latency: from the scheduler to an instance. What is left over of a chunk starts its next pass at once; a "
        "batch sent at that moment comes too late for it, and two passes then share the headroom of one. "
        f"{interval_said(outcome, 'latency')}",
        ("contender", *(f"{milliseconds(float(at))} ms" for at in latencies)),
        rows,
    )


def _explained(outcome: StaggeredOutcome, item: str, tables: list[Table]) -> list[Table]:
    """Return the tables, the first with what is true of all."""
    said = f"Rate: requests/s of an instance. {interval_said(outcome, item)} {RULES_SAID}"
    said += "" if outcome.config.sending == "printed" else AHEAD_SAID
    return [replace(tables[0], caption=f"{tables[0].caption} {said}"), *tables[1:]] if tables else []


def _against_table(
    outcome: StaggeredOutcome,
    item: str,
    place: Key,
    base: Key,
    along: str,
    title: str,
    load_said: str,
    more: dict[str, Key] | None = None,
) -> Table:
    rows = []
    for at in values_of(outcome, item, along):
        keys: dict[str, Key] = {"place": place, "against": base, **(more or {}), along: at}
        own = keys | {"contender": base}
        if mean_of(outcome, item, "ttft", own) is None:
            continue
        changes = (
            change_of(outcome, item, "ttft", str(base), keys | {"contender": rule}) for rule in outcome.config.held_back
        )
        rows.append(
            (
                share(at) if along == "load" else str(at),
                numbers.with_interval(mean_of(outcome, item, "rate", own), numbers.fixed(1)),
                numbers.with_interval(mean_of(outcome, item, "ttft", own), milliseconds),
                *(numbers.with_interval(change, percent, signed=True) for change in changes),
            )
        )
    return Table(
        f"{title}, against {base}",
        f"Rules as change against {base} in %, with the same requests. {load_said} the highest rate that it serves "
        f"within {PLACES[str(place)].limit:g} s.",
        (along, "rate", f"{base} (ms)", *map(short, outcome.config.held_back)),
        rows,
    )


def _limit_table(outcome: StaggeredOutcome, name: str) -> Table:
    place = PLACES[name]
    form, used = numbers.fixed(1), _percent_of_one
    rows = [*_printed_rows(place)]
    for contender in outcome.config.contenders:
        keys: dict[str, Key] = {"place": name, "contender": contender}
        shown = (("rate", form), ("utilisation", used), ("cycle", milliseconds), ("ttft_p99", milliseconds))
        cells = (numbers.with_interval(mean_of(outcome, "limit", of, keys), how) for of, how in shown)
        rows.append((contender, *cells))
    said = "Printed cycles follow from rate and utilisation. " if place.printed else ""
    return Table(
        f"{name}: the highest rate with a mean time to first token of {place.limit:g} s",
        f"Rate: requests/s of an instance. Utilisation: share of the chunk. Cycle: from pass to pass of an instance. "
        f"P99: of the time to first token. {said}{interval_said(outcome, 'limit')}",
        ("contender", "rate", "utilisation (%)", "cycle (ms)", "P99 (ms)"),
        rows,
    )


def _printed_rows(place: Place) -> list[tuple[str, ...]]:
    if place.printed is None:
        return []
    printed = place.printed
    rows: list[tuple[str, ...]] = []
    for name, rate, used in (
        ("printed, off", printed.rate_off, printed.utilisation_off),
        ("printed, on", printed.rate_on, printed.utilisation_on),
    ):
        cycle = used * place.chunk * UNITS / (rate * place.mean)
        rows.append((name, f"{rate:g}", _percent_of_one(used), milliseconds(cycle), numbers.UNKNOWN))
    return rows
