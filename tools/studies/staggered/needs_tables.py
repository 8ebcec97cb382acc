"""What Table 1 would need: in which configuration some pair of rules comes nearest to its numbers.

A configuration is as far off as the worst of its numbers, the rates and utilisations of both chunks with staggering off
(the baseline) and on (the rule), each relative to the printed one; it is judged by its best pair.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbopt import numbers
from lbopt.report.staggered_tables import share, short, values_of
from lbopt.studies.staggered import IMMEDIATE, LATE, PLACES, StaggeredOutcome
from lbopt.studies.staggered.places import TableRow
from lbopt.studies.staggered.rows import Key
from lbopt.table import Table
from tools.studies.staggered import needs

#: Rows that the table shows.
_NEAREST = 10
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
    places, found = _printed_places(outcome), []
    for configuration, values in served.items():
        pairs = []
        for baseline in IMMEDIATE:
            for rule in LATE:
                if all((place, one) in values for place in places for one in (baseline, rule)):
                    ours = {place: _together(values[place, baseline], values[place, rule]) for place in places}
                    pairs.append(Nearest(configuration, baseline, rule, _off_by(ours), ours))
        found += [min(pairs, key=lambda pair: pair.off_by)] if pairs else []
    return sorted(found, key=lambda pair: pair.off_by)


def _together(off: tuple[float, float], on: tuple[float, float]) -> Numbers:
    return off[0], on[0], off[1], on[1]


def _off_by(ours: dict[str, Numbers]) -> float:
    both = (
        (value, said) for place, of in ours.items() for value, said in zip(of, _printed(place).numbers, strict=True)
    )
    return max(abs(value / said - 1) for value, said in both)


def _printed(place: str) -> TableRow:
    printed = PLACES[place].printed
    assert printed is not None, place
    return printed


def _printed_places(outcome: StaggeredOutcome) -> list[str]:
    found = values_of(outcome, "needs", "place")
    return [place for place in needs.PRINTED_PLACES if place in found]


def needs_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return the table of the nearest configurations, and of the plain one wherever it stands."""
    ranked, places = nearest_pairs(outcome), _printed_places(outcome)
    shown = [(rank, pair) for rank, pair in enumerate(ranked, 1) if rank <= _NEAREST or pair.configuration == PLAIN]
    printed = ("", "printed", *[""] * 6, *(cell for place in places for cell in _cells(_printed(place).numbers)))
    names = (f"{place.removeprefix('short-')} {of}" for place in places for of in ("rate", "used"))
    return [
        Table(
            "What Table 1 would need: the nearest pair of each configuration, the nearest first",
            f"The best {min(_NEAREST, len(ranked))} of {len(ranked)} and the plain reading. Law: whether a pass goes "
            "by its fullest or its mean unit, after a comma the reading of the columns, if a chunk is not of a unit or "
            "a rate not of an instance. Fixed: time to first token outside wait and passes. Spread: of the logarithm "
            "of prompts. Off by: the worst of the numbers at right, requests/s and utilisation (%) of the chunk off → "
            "on, relative to the printed one.",
            ("rank", "law", "fixed", "spread", "N", "baseline", "rule", "off by", *names),
            [printed, *(_row(rank, pair, places) for rank, pair in shown)],
        )
    ]


def _row(rank: int, pair: Nearest, places: list[str]) -> tuple[str, ...]:
    reading, of_pass, fixed, spread, instances = pair.configuration
    return (
        str(rank),
        str(of_pass) if reading == PLAIN[0] else f"{of_pass}, {reading}",
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
