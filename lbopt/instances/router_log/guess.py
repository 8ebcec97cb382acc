"""Which column holds which quantity: named by an option, or recognised by its name and confirmed by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lbopt.columns import QUANTITIES, canonical, quantity_of
from lbopt.exceptions import InputError
from lbopt.files import listed
from lbopt.instances.router_log.cells import IS_DATE, NOTHING, coded, comma_of_counts, read_numbers
from lbopt.instances.router_log.table import Table
from lbopt.spec import did_you_mean

_SAMPLE = 200
_COUNTS = ("prompt", "output", "cached")
_TEXTS = ("id", "worker", "status", "model")
_SAID = {
    "arrival": "when a request arrived",
    "start": "when decoding started",
    "finish": "when a request finished",
    "prompt": "how many tokens a prompt has",
    "output": "how many tokens were generated",
    "worker": "which worker served a request",
}
_OTHER_WAYS = {"start": " (or first_token, ttft, queue)", "finish": " (or e2e, decode, tpot)"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The column, or several, of one quantity, and whether an option named them."""

    names: tuple[str, ...]
    given: bool = False

    @property
    def name(self) -> str:
        """The columns as one text."""
        return "+".join(self.names)


class Chooser:
    """Finds the columns of quantities in one table.

    Parameters
    ----------
    table
        The log.
    given
        Column by quantity, of the caller; several are joined by "+", and "" or "-" says that there is none.
    """

    def __init__(self, table: Table, given: Mapping[str, str]) -> None:
        self.table = table
        self.given = {quantity: self._named(quantity, column) for quantity, column in given.items()}
        taken = {name for choice in self.given.values() if choice for name in choice.names}
        self._like: dict[str, list[tuple[int, str]]] = {quantity: [] for quantity in QUANTITIES}
        for name in table.columns:
            if name not in taken and (found := quantity_of(name)):
                self._like[found[0]].append((found[1], name))

    def find(self, quantity: str) -> Choice | None:
        """Return the column of a quantity, None where there is none; refuse two that fit equally well."""
        if quantity in self.given:
            return self.given[quantity]
        for rank in sorted({rank for rank, _ in self._like[quantity]}):
            if choice := self.find_at(quantity, rank):
                return choice
        return None

    def find_at(self, quantity: str, rank: int) -> Choice | None:
        """Return the column of a quantity among those whose name fits with one rank."""
        names = [name for at, name in self._like[quantity] if at == rank and self.fault(quantity, name) is None]
        if not names:
            return None
        if quantity == "worker":
            return Choice((self._finest(names),))
        if quantity == "status":
            return Choice(tuple(names))
        for other in names[1:]:
            if quantity not in ("model", "cached") and self.table.columns[other] != self.table.columns[names[0]]:
                raise InputError(
                    f"{self.table.source}: columns {names[0]!r} and {other!r} both may say "
                    f"{_SAID.get(quantity, quantity)}, and they differ; name one: --column {quantity}=NAME"
                )
        return Choice((names[0],))

    def need(self, quantity: str, hint: str = "") -> Choice:
        """Return the column of a quantity, or say in a sentence how to name it."""
        choice = self.find(quantity)
        if choice is None:
            raise self.missing(quantity, hint)
        return choice

    def refuse_unreadable(self, quantity: str) -> None:
        """Refuse a log with a column that is called like a quantity and holds something else."""
        unless = "is empty"
        if quantity not in self.given and any(self.fault(quantity, name) != unless for _, name in self._like[quantity]):
            raise self.missing(quantity)

    def missing(self, quantity: str, hint: str = "") -> InputError:
        """Return the error about a quantity that no column holds."""
        faults = [(name, self.fault(quantity, name)) for _, name in self._like[quantity]]
        why = f"column {faults[0][0]!r} {faults[0][1]}" if faults and faults[0][1] else "no column is called like it"
        return InputError(
            f"{self.table.source} does not say {_SAID.get(quantity, quantity)}: {why}; name it with --column "
            f"{quantity}=NAME{_OTHER_WAYS.get(quantity, '')}; the columns are {listed_names(self.table)}{hint}"
        )

    def texts(self, choice: Choice) -> list[str]:
        """Return the cells of a choice, those of several columns joined by "/"."""
        columns = [self.table.columns[name] for name in choice.names]
        return columns[0] if len(columns) == 1 else ["/".join(cells) for cells in zip(*columns, strict=True)]

    def fault(self, quantity: str, name: str) -> str | None:
        """Return why the content of a column cannot be the quantity, judged by its first cells; None where it can."""
        column = self.table.columns[name]
        texts = [text for text in column[: 10 * _SAMPLE] if text.strip().lower() not in NOTHING][:_SAMPLE]
        if not texts:
            return "is empty"
        if quantity == "worker":
            distinct = len(set(column))
            if len(column) >= 40 and distinct > len(column) // 2:
                return f"has {distinct:,} values in {len(column):,} rows; expected the names of workers"
        if quantity in _TEXTS:
            return None
        numbers = read_numbers(texts, comma=comma_of_counts(texts) if quantity in _COUNTS else "decimal")
        if quantity in _COUNTS:
            if numbers.bad.mean() > 0.5:
                return "holds text; expected whole numbers"
            return None
        if quantity in ("arrival", "start", "first_token", "finish") and any(map(IS_DATE.fullmatch, texts)):
            return None
        return "holds text; expected times" if numbers.bad.mean() > 0.5 else None

    def _finest(self, names: list[str]) -> str:
        """Return the column that tells all others; names of the racks of workers, for instance, follow from it."""
        codes = {name: coded(self.table.columns[name])[1] for name in names}
        finest = max(names, key=lambda name: int(codes[name].max()))
        for other in names:
            pairs = codes[finest] * (int(codes[other].max()) + 1) + codes[other]
            if np.unique(pairs).size > int(codes[finest].max()) + 1:
                raise InputError(
                    f"{self.table.source}: columns {finest!r} and {other!r} both may say which worker served a "
                    "request, and they differ; name one, --column worker=NAME, or both: "
                    f"--column worker={other}+{finest}"
                )
        return finest

    def _named(self, quantity: str, column: str) -> Choice | None:
        if quantity not in QUANTITIES:
            raise InputError(
                f"{quantity!r} is no quantity of a log; expected one of {', '.join(QUANTITIES)}"
                f"{did_you_mean(quantity, QUANTITIES)}"
            )
        if column.strip() in ("", "-") and column not in self.table.columns:
            return None
        parts = [column] if column in self.table.columns else column.split("+")
        return Choice(tuple(self._column(quantity, part.strip()) for part in parts), given=True)

    def _column(self, quantity: str, name: str) -> str:
        columns = self.table.columns
        near = [name] if name in columns else [entry for entry in columns if canonical(entry) == canonical(name)]
        if len(near) != 1:
            raise InputError(
                f"{self.table.source} has no column {name!r} for {quantity}; the columns are "
                f"{listed_names(self.table)}{did_you_mean(name, columns)}"
            )
        return near[0]


def listed_names(table: Table) -> str:
    """Return the names of the columns for an error."""
    names = list(table.columns)
    return ", ".join(names) if sum(map(len, names)) < 400 and "".join(names).isprintable() else listed(names)
