"""A fault plan from words, as a command line has them: ``lose=0.1``, ``crash=0@20-30``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from lbopt.exceptions import InputError
from lbopt.prefill.protocol.faults import FaultPlan, Outage
from lbopt.spec import unknown

#: Faults that are numbers: chances, times in s, factors.
NUMBERS = tuple(field.name for field in fields(FaultPlan) if field.type == "float")
#: Faults of an instance from one time to another, and the field that has them.
OUTAGES = {
    "mute": "mute",
    "partition": "partitions",
    "crash": "crashes",
    "restart": "restarts",
    "lapse": "lapses",
}


def faults_of(words: Iterable[str]) -> FaultPlan:
    """Build the plan that the words name, ``NUMBER=VALUE`` or ``OUTAGE=INSTANCE@START-END``, times in s."""
    given: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in OUTAGES:
            field = OUTAGES[name]
            given[field] = (*given.get(field, ()), _outage(word, value))
        elif name in NUMBERS:
            if name in given:
                raise InputError(f"fault '{name}' is given twice")
            given[name] = _number(word, value)
        else:
            raise unknown("fault", name, (*NUMBERS, *OUTAGES))
    return FaultPlan(**given)


def _outage(word: str, value: str) -> Outage:
    instance, at, times = value.partition("@")
    start, dash, end = times.partition("-")
    if not (at and dash and instance.isdecimal()):
        raise InputError(f"fault '{word}' has no instance and times; expected e.g. crash=0@20-30, in s")
    return Outage(int(instance), _number(word, start), _number(word, end))


def _number(word: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        expected = "lose=0.1 or crash=0@20-30"
        raise InputError(f"fault '{word}': '{value}' is no number; expected e.g. {expected}") from None
