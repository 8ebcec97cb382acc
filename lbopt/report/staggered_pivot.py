"""Pivots of the rows of a staggering study: a line has the keys of a row, a column says what of it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lbopt import numbers
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import Rows, StaggeredOutcome
from lbopt.studies.staggered.rows import Key

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
