"""What the theorems assume, checked: a parameter outside is refused by the name of the claim and of the assumption.

What a parameter may be is said once, where it is declared: `USUAL` for the names that mean the same in every claim, the
table `asks` of a regime or of `measured` for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.theory.chains.replete import PEAKS, POOLS
from lbopt.theory.laws.slot_law import LONGEST

#: Workers, and slots of each: beyond, numbers leave the range of floats or of memory in ways that say less.
MOST = 10**9


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a parameter: a test, and its words."""

    holds: Callable[[Any], bool]
    words: str


#: What is asked of parameters, by their names.
Asks = Mapping[str, tuple[Asked, ...]]


def between(least: float, most: float, words: str) -> tuple[Asked, ...]:
    """Ask for a number from `least` to `most`."""
    return (Asked(lambda value: least <= value <= most, words),)


def at_least(least: float, words: str) -> tuple[Asked, ...]:
    """Ask for a number of at least so much."""
    return between(least, math.inf, words)


def one_of(known: Collection[str], words: str) -> tuple[Asked, ...]:
    """Ask for one of the names, which end the words."""
    return (Asked(known.__contains__, f"{words} {', '.join(known)}"),)


USUAL: Asks = {
    "G": (*at_least(2, "at least G = 2 workers"), *between(2, MOST, f"at most {MOST:,} workers")),
    "B": (*at_least(1, "at least B = 1 slot a worker"), *between(1, MOST, f"at most {MOST:,} slots a worker")),
    "p": (Asked(lambda p: 0 < p < 1, "outputs of law Geo(p) with 0 < p < 1"),),
    "s_max": (
        *at_least(2, "prompts that vary, so s_max of at least 2"),  # every statement divides by their spread
        *between(2, LONGEST, f"prompts of at most {LONGEST:,} tokens"),
    ),
    "pool": (Asked(POOLS.__contains__, "a replete pool of 'all' sizes or of 'two'"),),
    "peak": one_of(PEAKS, "one of the peaks"),
}


def require(claim: str, holds: bool, assumes: str, found: str) -> None:
    """Refuse what the claim does not speak of: ``theorem-2 assumes 0 < p < 1; p is 1.2``.

    Parameters
    ----------
    holds
        Whether the hypothesis holds.
    """
    if not holds:
        raise InputError(f"{claim} assumes {assumes}; {found}")


def require_all(claim: str, given: Mapping[str, Any], *tables: Asks) -> None:
    """Refuse the first value that is not what `USUAL` and the tables ask of a parameter of its name."""
    for name, value in given.items():
        for asked in (one for table in (USUAL, *tables) for one in table.get(name, ())):
            require(claim, asked.holds(value), asked.words, f"{name} is {value!r}")
