"""What the numbers of Table 1 would need: its limit under other laws of a pass, fleets and fixed parts of the time.

Four points of the table give a line, cycle = base + slope * mean tokens of a unit. Whether the slope is of the fullest
unit or of the mean one, the table cannot tell; nor what of the time to first token is neither wait nor pass (network,
tokenisation, the way to decode): `fixed`, which the limit is less by. The `reading` is of the table's columns: a chunk
of a unit or of an instance, rates of an instance or of a cluster of three.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbopt.prefill import PassTime
from lbopt.studies.staggered.places import PLACES, UNITS, Place
from lbopt.studies.staggered.rows import Key, Row
from lbopt.studies.staggered.trial import Trial, served_row

PRINTED_PLACES = ("short-3k", "short-5k")
LAWS = ("fullest", "mean")
FIXED = (0.0, 0.35, 0.4, 0.45)
FLEETS = (3, 10)
SPREADS = (0.0, 1.0)
#: One fleet more, for prompts that differ: it takes as long as all the rest.
LARGE_FLEET = 30
#: Units that share a printed chunk, and instances that share a printed rate.
READINGS = {
    "unit, instance": (1, 1),
    "unit, cluster": (1, 3),
    "instance, instance": (8, 1),
    "instance, cluster": (8, 3),
}
CONTENDERS = (
    "random",
    "round-robin",
    "jsq",
    "pooled",
    "staggered",
    "staggered-free",
    "staggered-whole",
    "staggered-bypass-whole",
)


def line(reading: str) -> tuple[float, float]:
    """Return base (s) and slope (s per token) of the line through the four points of the table, by least squares."""
    sharing_chunk, sharing_rate = READINGS[reading]
    tokens, cycles = [], []
    for name in PRINTED_PLACES:
        place, printed = PLACES[name], PLACES[name].printed
        assert printed is not None
        for rate, used in (
            (printed.rate_off, printed.utilisation_off),
            (printed.rate_on, printed.utilisation_on),
        ):
            tokens.append(used * place.chunk / sharing_chunk)
            cycles.append(tokens[-1] * UNITS * sharing_rate / (rate * place.mean))
    slope, base = np.polyfit(tokens, cycles, 1)
    return float(base), float(slope)


def pass_time(reading: str, law: str) -> PassTime:
    """Return the law of a pass: the line, with its slope on the fullest unit or on the mean one."""
    base, slope = line(reading)
    return PassTime(base, slope) if law == "fullest" else PassTime(base, 0.0, 0.0, slope)


def read_place(name: str, reading: str) -> Place:
    """Return the place with the chunk of a unit in this reading."""
    place = PLACES[name]
    return replace(place, chunk=place.chunk // READINGS[reading][0])


def measure(
    *,
    reading: str,
    law: str,
    fixed: float,
    spread: float,
    place: str,
    instances: int,
    requests: int,
    seed: int,
    **_of_the_key: str,
) -> list[Row]:
    """Return the highest rate of every contender, in the table's unit, and the utilisation there."""
    where, cost = read_place(place, reading), pass_time(reading, law)
    trial = Trial(where, instances, requests, seed, cost, spread=spread)
    rows: list[Row] = []
    for contender in CONTENDERS:
        keys: dict[str, Key] = {
            "reading": reading,
            "law": law,
            "fixed": fixed,
            "spread": spread,
            "place": place,
            "instances": instances,
            "contender": contender,
        }
        found = trial.highest_rate(contender, where.limit - fixed)
        of_table = None if found is None else (found[0] * READINGS[reading][1], found[1])
        rows.append(served_row(keys, of_table))
    return rows
