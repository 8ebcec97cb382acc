"""What Table 1 would need, as a table: in which configuration some pair of rules comes nearest to its numbers.

A configuration is as far off as the worst of its numbers, the rates and utilisations of both chunks with staggering off
(the baseline) and on (the rule), each relative to the printed one; it is judged by its best pair.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbopt import numbers
from lbopt.report.staggered_words import share, short, values_of
from lbopt.studies.staggered import IMMEDIATE, LATE, PLACES, StaggeredOutcome
from lbopt.studies.staggered.items import needs
from lbopt.studies.staggered.places import TableRow
from lbopt.studies.staggered.rows import Key
from lbopt.table import Table

#: Rows that the table shows.
SHOWN = 10
#: The keys of a configuration, and the one that the study takes everywhere else.
CONFIGURATION = ("reading", "law", "fixed", "spread", "instances")
PLAIN: tuple[Key, ...] = ("unit, instance", "fullest", 0.0, 1.0, 3)
#: Of a place: rate off, rate on, utilisation off, utilisation on.
Numbers = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Nearest:
    """A configuration with the pair that comes nearest.

    Parameters
    ----------
    configuration
        The values of `CONFIGURATION`.
    off_by
        The largest relative deviation of a number from the printed one.
    ours
        The numbers of the pair, by place.
    """

    configuration: tuple[Key, ...]
    baseline: str
    rule: str
    off_by: float
    ours: dict[str, Numbers]


def nearest_pairs(outcome: StaggeredOutcome) -> list[Nearest]:
    """Return every configuration with its best pair, the nearest first; one whose limit no rule keeps is left out."""
    served: dict[tuple[Key, ...], dict[tuple[Key, Key], tuple[float, float]]] = {}
    for row in outcome.averaged("needs"):
        rate, used = row.values.get("rate"), row.values.get("utilisation")
        if rate is not None and used is not None:
            of_configuration = served.setdefault(tuple(row.keys[key] for key in CONFIGURATION), {})
            of_configuration[row.keys["place"], row.keys["contender"]] = (rate.mean, used.mean)
    places = _places(outcome)
    found = []
    for configuration, values in served.items():
        pairs = [
            _judged(configuration, baseline, rule, places, values)
            for baseline in IMMEDIATE
            for rule in LATE
            if all((place, one) in values for place in places for one in (baseline, rule))
        ]
        found += [min(pairs, key=lambda pair: pair.off_by)] if pairs else []
    return sorted(found, key=lambda pair: pair.off_by)


def needs_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return the table of the nearest configurations, and of the plain one wherever it stands."""
    ranked, places = nearest_pairs(outcome), _places(outcome)
    shown = [(rank, pair) for rank, pair in enumerate(ranked, 1) if rank <= SHOWN or pair.configuration == PLAIN]
    printed = ("", "printed", *[""] * 6, *(cell for place in places for cell in _cells(_printed_numbers(place))))
    heads = (f"{place.removeprefix('short-')} {of}" for place in places for of in ("rate", "used"))
    return [
        Table(
            "What Table 1 would need: the nearest pair of each configuration, the nearest first",
            f"The best {min(SHOWN, len(ranked))} of {len(ranked)} and the plain reading. Law: whether a pass goes by "
            "its fullest or its mean unit, after a comma the reading of the columns, if a chunk is not of a unit or a "
            "rate not of an instance. Fixed: time to first token outside wait and passes. Spread: of the logarithm of "
            "prompts. Off by: the worst of the numbers at right, requests/s and utilisation (%) of the chunk off → on, "
            "relative to the "
            "printed one.",
            ("rank", "law", "fixed", "spread", "N", "baseline", "rule", "off by", *heads),
            [printed, *(_row(rank, pair, places) for rank, pair in shown)],
        )
    ]


def _places(outcome: StaggeredOutcome) -> list[str]:
    found = values_of(outcome, "needs", "place")
    return [place for place in needs.PRINTED_PLACES if place in found]


def _judged(
    configuration: tuple[Key, ...],
    baseline: str,
    rule: str,
    places: list[str],
    values: dict[tuple[Key, Key], tuple[float, float]],
) -> Nearest:
    ours: dict[str, Numbers] = {}
    for place in places:
        (rate_off, used_off), (rate_on, used_on) = values[place, baseline], values[place, rule]
        ours[place] = (rate_off, rate_on, used_off, used_on)
    off_by = max(
        abs(value / printed - 1)
        for place in places
        for value, printed in zip(ours[place], _printed_numbers(place), strict=True)
    )
    return Nearest(configuration, baseline, rule, off_by, ours)


def _printed_numbers(place: str) -> Numbers:
    printed = PLACES[place].printed
    assert isinstance(printed, TableRow), place
    return printed.rate_off, printed.rate_on, printed.utilisation_off, printed.utilisation_on


def _row(rank: int, pair: Nearest, places: list[str]) -> tuple[str, ...]:
    reading, law, fixed, spread, instances = pair.configuration
    return (
        str(rank),
        str(law) if reading == PLAIN[0] else f"{law}, {reading}",
        f"{float(fixed):.2f} s",
        f"{float(spread):g}",
        str(instances),
        pair.baseline,
        short(pair.rule),
        share(pair.off_by),
        *(cell for place in places for cell in _cells(pair.ours[place])),
    )


def _cells(of_place: Numbers) -> tuple[str, str]:
    rate_off, rate_on, used_off, used_on = of_place
    rate, used = numbers.whole, numbers.fixed(0, 100)
    return f"{rate(rate_off)} → {rate(rate_on)}", f"{used(used_off)} → {used(used_on)}"
