"""What a task of the study answers: rows of quantities, each under the keys that say what it is of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lbopt.statistics import MeanOverSeeds, over_seeds

Key = str | int | float
#: As it is stored: keys, quantities; a quantity that could not be had is None.
Row = tuple[dict[str, Key], dict[str, float | None]]


@dataclass(slots=True)
class Rows:
    """The rows of one item and seed."""

    _by_keys: dict[tuple[tuple[str, Key], ...], Row] = field(default_factory=dict)

    def add(self, rows: Iterable[Any]) -> None:
        """Take rows as they are stored."""
        for keys, values in rows:
            self._by_keys[_sorted(keys)] = (dict(keys), dict(values))

    def value(self, quantity: str, **keys: Key) -> float | None:
        """Return a quantity of the row with exactly these keys; None where there is no such row, or no value."""
        _, values = self._by_keys.get(_sorted(keys), ({}, {}))
        return values.get(quantity)

    def change(self, quantity: str, base: str, **keys: Key) -> float | None:
        """Return by how many percent a quantity exceeds that of the contender `base` in the same place."""
        ours, other = self.value(quantity, **keys), self.value(quantity, **keys | {"contender": base})
        return None if ours is None or not other else 100 * (ours / other - 1)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._by_keys.values())


@dataclass(frozen=True, slots=True)
class Averaged:
    """A row over seeds.

    Parameters
    ----------
    values
        By quantity, over the seeds that have one; None where none has.
    seeds
        How many have one, by quantity.
    """

    keys: dict[str, Key]
    values: dict[str, MeanOverSeeds | None]
    seeds: dict[str, int]


def averaged(by_seed: Iterable[Rows]) -> list[Averaged]:
    """Return every row over the seeds, in the order of the first seed that has it."""
    gathered: dict[tuple[tuple[str, Key], ...], list[dict[str, float | None]]] = {}
    order: dict[tuple[tuple[str, Key], ...], dict[str, Key]] = {}
    for rows in by_seed:
        for keys, values in rows:
            gathered.setdefault(_sorted(keys), []).append(values)
            order.setdefault(_sorted(keys), keys)
    return [_averaged(order[name], found) for name, found in gathered.items()]


def _averaged(keys: dict[str, Key], rows: list[dict[str, float | None]]) -> Averaged:
    quantities = dict.fromkeys(quantity for row in rows for quantity in row)  # one seed may have more than another
    told = {of: [value for row in rows if (value := row.get(of)) is not None] for of in quantities}
    means = {of: over_seeds(values) if values else None for of, values in told.items()}
    return Averaged(keys, means, {of: len(values) for of, values in told.items()})


def _sorted(keys: dict[str, Key]) -> tuple[tuple[str, Key], ...]:
    return tuple(sorted(keys.items()))
