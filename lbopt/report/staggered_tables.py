"""The tables of a staggering study: each item's own, every printed statement beside ours, and the count of verdicts.

Pivots of the rows of a staggering study: a line has the keys of a row, a column says what of it is shown.

Most are pivots: a line has the keys of a row, a column says what of it is shown, as a mean over seeds. A baseline
stands as it was measured, every rule that holds requests back as its change against it with the same requests, paired
by seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lbopt import numbers
from lbopt.report.staggered_questions import question_tables
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import PLACES, STAGGERED, Place, Rows, StaggeredOutcome
from lbopt.studies.staggered.items import ahead, fleet, law, split
from lbopt.studies.staggered.places import AHEAD, UNITS
from lbopt.studies.staggered.rows import Key
from lbopt.table import Table

#: Contenders whose names are too long for the head of a column.
_SHORT = {
    "staggered-bypass": "bypass",
    "staggered-free": "free",
    "staggered-whole": "whole",
    "staggered-bypass-whole": "bypass, whole",
}

Keys = dict[str, Any]
#: What stands at the left of a line, and what its cells are of.
Line = tuple[tuple[str, ...], Keys]


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of a pivot: from the rows of a seed and the keys of a line to a value, and how its mean is shown."""

    header: str
    of: Callable[[Rows, Keys], float | None]
    form: numbers.Format
    signed: bool = False


def value_at(header: str, quantity: str, form: numbers.Format, **more: Key) -> Shown:
    """Return the column of a quantity, of the row with the keys of the line and `more`."""
    return Shown(header, lambda rows, keys: rows.value(quantity, **keys | more), form)


def change_of(base: str, **more: Key) -> Callable[[Rows, Keys], float | None]:
    """Return the change of the mean time to first token against the contender `base`, in %, as a function of rows."""
    return lambda rows, keys: rows.change("ttft", base, **keys | more)


def pivot(outcome: StaggeredOutcome, item: str, lines: Iterable[Line], shown: Sequence[Shown]) -> list[tuple[str, ...]]:
    """Return a row a line: what stands at its left, and each column over the seeds of an item."""

    def cell(one: Shown, keys: Keys) -> str:
        return numbers.with_interval(mean_at(outcome, item, one.of, keys), one.form, signed=one.signed)

    return [(*label, *(cell(one, keys) for one in shown)) for label, keys in lines]


def heads(first: Sequence[str], shown: Iterable[Shown]) -> tuple[str, ...]:
    """Return the heads of a pivot."""
    return (*first, *(one.header for one in shown))


def share(value: Key) -> str:
    """Return a share as whole percent."""
    return numbers.fixed(0, 100, " %")(float(value))


def short(contender: str) -> str:
    """Return the name of a contender as heads of columns have it."""
    return _SHORT.get(contender, contender)


def interval_said(outcome: StaggeredOutcome, item: str) -> str:
    """Return what ± is in the tables of an item, or that there is none."""
    seeds = len(outcome.rows[item])
    return "One seed: no interval." if seeds < 2 else f"± is half of a 95 % interval over {seeds} seeds."


def mean_at(
    outcome: StaggeredOutcome, item: str, of: Callable[[Rows, Keys], float | None], keys: Keys
) -> MeanOverSeeds | None:
    """Return a value of the rows of a seed and these keys, over seeds."""
    return outcome.mean(item, lambda rows: of(rows, keys))


def mean_of(outcome: StaggeredOutcome, item: str, quantity: str, keys: Keys) -> MeanOverSeeds | None:
    """Return a quantity of the row of an item with these keys, over seeds."""
    return outcome.mean(item, lambda rows: rows.value(quantity, **keys))


def values_of(outcome: StaggeredOutcome, item: str, key: str) -> list[Any]:
    """Return the values that a key takes in the rows of an item, in their order, each once."""
    by_seed = outcome.rows.get(item, {}).values()
    return list(dict.fromkeys(keys[key] for rows in by_seed for keys, _ in rows if key in keys))


#: Baselines with tables of their own; the rest is in the files.
SHOWN_BASELINES = ("round-robin", "jsq")
#: Rules that wait for the end of a pass, with columns of their own where others do not.
_WAITING = ("staggered", "staggered-whole")
#: Said where the short names are shown first.
_RULES_SAID = (
    "Pooled: the first free instance takes what waits. Staggered: one dispatch in T/N, as printed, instances in turn; "
    "bypass: an idle instance is served before; free: the next is who has been free the longest; whole: that too, and "
    "what would exceed the chunk is kept back."
)
_AHEAD_SAID = " Ahead: sent before the predicted end of a pass; 2, 10: with predictions so many percent off."

_milliseconds, _percent, _rate = numbers.fixed(0, 1e3), numbers.fixed(1), numbers.fixed(1)
_percent_of_one, _wait = numbers.fixed(1, 100), numbers.fixed(3)


# The waiting law: N times the wait, so that what falls as 1/N stands still.


def scaled_wait(rows: Rows, keys: Keys) -> float | None:
    """Return N times the mean wait, in passes."""
    wait = rows.value("wait", **keys)
    return None if wait is None else float(keys["instances"]) * wait


def exact_scaled(policy: str, load: float, instances: float) -> float | None:
    """Return N times the exact wait, in passes, where it is known."""
    exact = law.expected(policy, load, int(instances))
    return None if exact is None else instances * exact


def _law_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table without a capacity of passes, and one with."""
    fleets, seeds = values_of(outcome, "law", "instances"), len(outcome.rows["law"])
    said = f"Means over {seeds} seeds." if seeds > 1 else interval_said(outcome, "law")

    def cells(keys: Keys) -> tuple[str, ...]:
        of = (mean_at(outcome, "law", scaled_wait, keys | {"instances": N}) for N in fleets)
        return tuple(numbers.UNKNOWN if mean is None else _wait(mean.mean) for mean in of)

    free = [
        (f"{load:g}, {policy}", *cells({"capacity": "none", "load": load, "policy": policy}), _exact(policy, load))
        for load in law.LOADS
        for policy in law.POLICIES
    ]
    bound = [
        (f"{share(of)}, {policy}", *cells({"capacity": law.CAPACITY, "load": law.CAPACITY * of, "policy": policy}))
        for of in law.SHARES
        for policy in law.POLICIES
    ]
    return [
        Table(
            "Waiting law: N × mean wait by N, in passes, nothing binds but the gate",
            "Rows: requests of an instance in a pass, policy. Printed: N/2 of what is bound on arrival, 1/2 staggered. "
            f"{said}",
            ("load, policy", *map(str, fleets), "exact"),
            free,
        ),
        Table(
            f"Waiting law: N × mean wait by N, in passes of at most {law.CAPACITY} requests",
            f"Rows: load as a share of capacity, policy. Nothing is known exactly. {said}",
            ("load, policy", *map(str, fleets)),
            bound,
        ),
    ]


def _exact(policy: str, load: float) -> str:
    alone = exact_scaled(policy, load, 1)
    if alone is None:
        return numbers.UNKNOWN
    return _wait(alone) if exact_scaled(policy, load, 2) == alone else f"{_wait(alone)} N"


# Service: against load, by size of the fleet, and the highest rate within the limit.


def _load_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place and baseline: rules against it by load."""
    return _against(outcome, "load", "load", "The load is a share of", {})


def _fleet_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place and baseline: rules against it by the number of instances."""
    return _against(outcome, "fleet", "instances", f"At {share(fleet.LOAD)} of", {"load": fleet.LOAD})


def _against(outcome: StaggeredOutcome, item: str, along: str, load_said: str, more: Keys) -> list[Table]:
    tables = []
    for place in values_of(outcome, item, "place"):
        for base in (base for base in SHOWN_BASELINES if base in values_of(outcome, item, "against")):
            keys = [{"place": place, "against": base, **more, along: at} for at in values_of(outcome, item, along)]
            lines = [
                ((share(of[along]) if along == "load" else str(of[along]),), of)
                for of in keys
                if mean_of(outcome, item, "ttft", of | {"contender": base}) is not None
            ]
            shown = [
                value_at("rate", "rate", _rate, contender=base),
                value_at(f"{base} (ms)", "ttft", _milliseconds, contender=base),
                *(
                    Shown(short(rule), change_of(base, contender=rule), _percent, signed=True)
                    for rule in outcome.config.held_back
                ),
            ]
            tables.append(
                Table(
                    f"{place}: mean time to first token by {along}, against {base}",
                    f"Rules as change against {base} in %, with the same requests. {load_said} the highest rate that "
                    f"it serves within {PLACES[place].limit:g} s.",
                    heads((along,), shown),
                    pivot(outcome, item, lines, shown),
                )
            )
    said = f"Rate: requests/s of an instance. {interval_said(outcome, item)} {_RULES_SAID}"
    said += "" if outcome.config.sending == "printed" else _AHEAD_SAID
    return [replace(one, caption=f"{one.caption} {said}") if one is tables[0] else one for one in tables]


def _limit_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place: the highest rate of every contender beside what is printed."""
    shown = [
        value_at("rate", "rate", _rate),
        value_at("utilisation (%)", "utilisation", _percent_of_one),
        value_at("cycle (ms)", "cycle", _milliseconds),
        value_at("P99 (ms)", "ttft_p99", _milliseconds),
    ]
    tables = []
    for name in values_of(outcome, "limit", "place"):
        place, lines = PLACES[name], [((one,), {"place": name, "contender": one}) for one in outcome.config.contenders]
        said = "Printed cycles follow from rate and utilisation. " if place.printed else ""
        tables.append(
            Table(
                f"{name}: the highest rate with a mean time to first token of {place.limit:g} s",
                "Rate: requests/s of an instance. Utilisation: share of the chunk. Cycle: from pass to pass of an "
                f"instance. P99: of the time to first token. {said}{interval_said(outcome, 'limit')}",
                heads(("contender",), shown),
                [*_printed_rows(place), *pivot(outcome, "limit", lines, shown)],
            )
        )
    return tables


def _printed_rows(place: Place) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    if place.printed is not None:
        rate_off, rate_on, used_off, used_on = place.printed.numbers
        for name, rate, used in (("printed, off", rate_off, used_off), ("printed, on", rate_on, used_on)):
            cycle = used * place.chunk * UNITS / (rate * place.mean)
            rows.append((name, f"{rate:g}", _percent_of_one(used), _milliseconds(cycle), numbers.UNKNOWN))
    return rows


def _latency_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a place: the highest rate of every contender by the time to an instance."""
    latencies = values_of(outcome, "latency", "latency")
    shown = [value_at(f"{_milliseconds(float(at))} ms", "rate", _rate, latency=at) for at in latencies]
    tables = []
    for name in values_of(outcome, "latency", "place"):
        lines = [((one,), {"place": name, "contender": one}) for one in outcome.config.contenders]
        tables.append(
            Table(
                f"{name}: the highest rate with a mean time to first token of {PLACES[name].limit:g} s, by latency",
                "Latency: from the scheduler to an instance. What is left over of a chunk starts its next pass at "
                "once; a batch sent at that moment comes too late for it, and two passes then share the headroom of "
                f"one. {interval_said(outcome, 'latency')}",
                heads(("contender",), shown),
                pivot(outcome, "latency", lines, shown),
            )
        )
    return tables


# Rules that send ahead of the end of a pass: time to first token by latency and load, wait on devices.


def _against_better(rows: Rows, keys: Keys, rule: str) -> float | None:
    """Return by how many percent the mean time to first token of a rule exceeds that of the better baseline."""
    ours = rows.value("ttft", **keys, contender=rule)
    others = [rows.value("ttft", **keys, contender=base) for base in ahead.BASELINES]
    told = [value for value in others if value is not None]
    return None if ours is None or len(told) < len(others) else 100 * (ours / min(told) - 1)


def _without_latency(rows: Rows, keys: Keys) -> float | None:
    """Return the same of the best staggered rule where there is no latency."""
    found = [_against_better(rows, keys | {"latency": 0.0}, rule) for rule in STAGGERED]
    return min((value for value in found if value is not None), default=None)


def _ahead_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return two tables a class of fleets."""
    service = [
        *(value_at(f"{base} (ms)", "ttft", _milliseconds, contender=base) for base in ahead.BASELINES),
        Shown("at 0 ms", _without_latency, _percent, signed=True),
        *(Shown(one, partial(_against_better, rule=one), _percent, signed=True) for one in (*_WAITING, *AHEAD)),
    ]
    names = (*ahead.BASELINES, "pooled", *_WAITING, *AHEAD)
    device = [value_at(name, "on_device", _milliseconds, contender=name) for name in names]
    latencies, loads = (values_of(outcome, "ahead", key) for key in ("latency", "load"))
    tables = []
    for name in values_of(outcome, "ahead", "fleet"):
        lines = [
            ((_milliseconds(float(latency)), share(load)), {"fleet": name, "latency": latency, "load": load})
            for latency in latencies
            if latency
            for load in loads
        ]
        tables.append(
            Table(
                f"{name}: mean time to first token by latency and load",
                "Rules as change in % against the better of the two baselines, seed by seed; load: of saturation. At "
                f"0 ms: the best staggered rule where there is no latency. {interval_said(outcome, 'ahead')}"
                f"{_AHEAD_SAID}",
                heads(("ms", "load"), service),
                pivot(outcome, "ahead", lines, service),
            )
        )
        tables.append(
            Table(
                f"{name}: wait on the device by latency and load",
                "Mean time from the moment a prompt reaches its instance to the start of the first pass that serves "
                "it, ms.",
                heads(("ms", "load"), device),
                pivot(outcome, "ahead", lines, device),
            )
        )
    return tables


# What of the gain is late binding, what the interval and what the balance of units.

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


def _worth(rows: Rows, keys: Keys, place: str) -> float | None:
    """Return the change of the mean time to first token in % from the way before to the way after."""
    old, new = (
        rows.value("ttft", place=place, binding=binding, allocation=allocation) for binding, allocation in keys["ways"]
    )
    return None if new is None or not old else 100 * (new / old - 1)


def _split_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return what each step is worth, and the times and waits of every binding with every allocation."""
    places = values_of(outcome, "split", "place")
    load_said = f"At {share(split.LOAD)} of the highest rate that {split.BASELINE} serves within the limit."
    steps = [Shown(place, partial(_worth, place=place), _percent, signed=True) for place in places]
    lines = [
        ((f"{place}: {binding}",), {"place": place, "binding": binding})
        for place in places
        for binding in split.BINDINGS
    ]
    times = [value_at(one, "ttft", _milliseconds, allocation=one) for one in split.ALLOCATIONS]

    def wait(keys: Keys) -> str:
        found, passes = (mean_of(outcome, "split", of, keys) for of in ("wait", "passes_per_request"))
        if found is None or passes is None:
            return numbers.UNKNOWN
        return f"{_milliseconds(found.mean)}; {numbers.fixed(2)(passes.mean)}"

    return [
        Table(
            "What is worth what: change of the mean time to first token (%)",
            "Each line changes the one thing that it names and leaves the rest: the first token comes so much sooner "
            f"(−) by late binding, by the interval, by balance of units. {load_said} "
            f"{interval_said(outcome, 'split')}",
            heads(("step",), steps),
            pivot(outcome, "split", [((name,), {"ways": ways}) for name, ways in STEPS.items()], steps),
        ),
        Table(
            "Mean time to first token (ms) by binding and allocation",
            f"Rows: when an instance is chosen; columns: who gives requests to its units. {load_said} "
            f"{interval_said(outcome, 'split')}",
            heads(("place, binding",), times),
            pivot(outcome, "split", lines, times),
        ),
        Table(
            "Wait (ms) and passes a request by binding and allocation",
            "Wait: from arrival to the start of the first pass. What is neither wait nor the first pass is further "
            "passes.",
            ("place, binding", *split.ALLOCATIONS),
            [(*label, *(wait(keys | {"allocation": one}) for one in split.ALLOCATIONS)) for label, keys in lines],
        ),
    ]


#: The tables of each item.
OWN: dict[str, Callable[[StaggeredOutcome], list[Table]]] = {
    "law": _law_tables,
    "load": _load_tables,
    "fleet": _fleet_tables,
    "limit": _limit_tables,
    "latency": _latency_tables,
    "ahead": _ahead_tables,
    "split": _split_tables,
}


def staggered_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return what a terminal shows; nothing where no part has ended."""
    found: list[Table] = []
    for item in outcome.config.items:
        if outcome.rows.get(item):
            found += OWN[item](outcome)
    return [*found, *question_tables(outcome)]
