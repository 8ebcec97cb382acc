"""Which column of a log holds which quantity: as its export says (`known`), by names and content; cells as numbers.

A format whose columns have names of their own, or need another way in, is one entry more.

Cells of a column: numbers with thousands separators and decimal commas, dates, words that say that there is nothing.

NumPy's arrays of texts take the room of the longest one in every row, and lose a NUL at an end; so columns stay lists,
and `coded` makes numbers of the distinct texts.

Which column holds which quantity: named by an option, or recognised by its name and confirmed by its content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import QUANTITIES, UNIT_OF, canonical, quantity_of, unit_in
from lbopt.exceptions import InputError
from lbopt.files import listed
from lbopt.instances.router_log.cells import Table
from lbopt.instances.router_log.known import NO_TOKENS, NO_WORKER, Export, columns_in, export_of
from lbopt.spec import did_you_mean

#: A date-time as it begins.
IS_DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d.*)?\s*", re.DOTALL)

#: Cells that hold nothing, in lower case.
NOTHING = frozenset({"", "nan", "null", "none", "na", "n/a", "nat", "<na>", "-", "--", "\\n"})

_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_GROUPED_DOTS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
_SPACES = re.compile(r"(?<=\d)[ \u00a0\u2009\u202f'’_](?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A column of numbers.

    Parameters
    ----------
    real
        float64 (N,); NaN where the cell holds nothing or no number.
    whole
        int64 (N,), exact, where every number is written as a whole one; else None.
    missing
        bool (N,), cells that hold nothing.
    bad
        bool (N,), cells that hold something else than a finite number.
    """

    real: NDArray[np.float64]
    whole: NDArray[np.int64] | None
    missing: NDArray[np.bool_]
    bad: NDArray[np.bool_]


def missing_cells(texts: list[str]) -> NDArray[np.bool_]:
    """Return bool (N,), which cells hold nothing."""
    return np.fromiter((text.strip().lower() in NOTHING for text in texts), dtype=bool, count=len(texts))


def read_numbers(texts: list[str], *, comma: str = "decimal") -> Numbers:
    """Return the numbers of a column; `comma` is "decimal" or "thousands", as `comma_of_times` tells."""
    missing = missing_cells(texts)
    there = texts if not missing.any() else [text for text, gone in zip(texts, missing, strict=True) if not gone]
    bad = np.zeros(len(texts), dtype=bool)
    if not any("," in text for text in there):
        for kind, dtype in ((int, np.int64), (float, np.float64)):
            try:
                found = np.fromiter(map(kind, there), dtype=dtype, count=len(there))
            except (ValueError, OverflowError):
                continue
            if kind is float and not np.isfinite(found).all():
                break
            real = np.full(len(texts), np.nan)
            real[~missing] = found
            if kind is float:
                return Numbers(real, None, missing, bad)
            whole = np.zeros(len(texts), dtype=np.int64)
            whole[~missing] = found
            return Numbers(real, whole, missing, bad)
    real = np.array([np.nan if gone else _number(text, comma) for text, gone in zip(texts, missing, strict=True)])
    bad = ~missing & ~np.isfinite(real)
    real[bad] = np.nan
    return Numbers(real, None, missing, bad)


def _number(text: str, comma: str) -> float:
    bare = _SPACES.sub("", text.strip())
    if "," in bare:
        last_is_dot = bare.rfind(".") > bare.rfind(",")
        if comma == "thousands" or last_is_dot or bare.count(",") > 1:
            bare = bare.replace(",", "") if _GROUPED.fullmatch(bare.split(".")[0]) else "?"
        else:
            bare = bare.replace(".", "").replace(",", ".") if "." not in bare or _GROUPED_DOTS.fullmatch(bare) else "?"
    elif bare.count(".") > 1 and _GROUPED_DOTS.fullmatch(bare):
        bare = bare.replace(".", "")
    try:
        return float(bare)
    except ValueError:
        return np.nan


def comma_of_times(texts: list[str], unit: str | None) -> str:
    """Return what a comma means in a column of times: "12,345" is 12.345 unless the column says otherwise."""
    with_comma = [text.strip() for text in texts if "," in text]
    if any(text.count(",") > 1 or text.rfind(".") > text.rfind(",") for text in with_comma):
        return "thousands"
    if all(_GROUPED.fullmatch(text) for text in with_comma) and unit in ("ms", "us", "ns"):
        return "thousands"
    return "decimal"


def comma_of_counts(texts: list[str]) -> str:
    """Return what a comma means in a column of whole numbers: "1,234" is 1234 unless all end in ",000"."""
    with_comma = [text.strip() for text in texts if "," in text]
    if all(_GROUPED.fullmatch(text) for text in with_comma) and not (
        len(with_comma) > 1 and all(text.endswith(",000") for text in with_comma)
    ):
        return "thousands"
    return "decimal"


def coded(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct texts in order, and int64 (N,), the place of each text among them."""
    names = sorted(set(texts))
    place = {name: code for code, name in enumerate(names)}
    return names, np.fromiter((place[text] for text in texts), dtype=np.int64, count=len(texts))


_SAMPLE = 200
#: What requests are labelled with, which only some workers may serve; a group is of workers at one barrier.
LABELS = ("model", "adapter", "tenant", "group")
_COUNTS = ("prompt", "output", "cached")
_TEXTS = ("id", "worker", "status", "model", "adapter", "tenant", "group", "error")
_TIMES = ("arrival", "start", "first_token", "finish", "ttft", "queue", "e2e", "decode", "tpot")
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
        self.table, self._said = table, given
        self.export: Export = export_of(table)
        self.given = {quantity: self._named(quantity, column) for quantity, column in given.items()}
        taken = {name for choice in self.given.values() if choice for name in choice.names}
        self._like: dict[str, list[tuple[int, str]]] = {quantity: [] for quantity in QUANTITIES}
        for name in table.columns:
            if name not in taken and (found := quantity_of(name)):
                self._like[found[0]].append((found[1], name))

    def of(self, table: Table) -> Chooser:
        """Return the columns of another table of the same caller."""
        return Chooser(table, self._said)

    def find(self, quantity: str) -> Choice | None:
        """Return the column of a quantity, None where there is none; refuse two that fit equally well."""
        if quantity in self.given:
            return self.given[quantity]
        if quantity in self.export.reads:
            names = self.export.reads[quantity]
            columns = () if names is None else columns_in(self.table, names, self._holds(quantity))
            if columns or names is None or quantity in _TIMES:
                return Choice(columns) if columns else None
        for rank in sorted({rank for rank, _ in self._like[quantity]}):
            if choice := self.find_at(quantity, rank):
                return choice
        return None

    def _holds(self, quantity: str) -> Callable[[str], bool]:
        """Return what tells of a column whether its content can be the quantity."""
        return lambda name: self.fault(quantity, name) is None

    def unit_of(self, choice: Choice, quantity: str) -> str | None:
        """Return the unit that the export, the name of a column or a column beside it says; None where none does."""
        if not choice.given and (unit := self.export.units.get(quantity)):
            return unit
        beside = self.table.columns.get(f"{choice.name.removesuffix('.value')}.unit", [])
        said = {UNIT_OF.get(text.strip().lower()) for text in beside if text.strip()}
        return said.pop() if len(said) == 1 else unit_in(choice.name)

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
            if quantity not in (*LABELS, "cached") and self.table.columns[other] != self.table.columns[names[0]]:
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
        if quantity == "worker":
            times = " --arrivals trace" * bool(self.find("arrival"))
            ask = f"lbopt gap {self.table.source} --fleet 8x64 --rule round-robin{times}"
            if self.export.by_client:
                return InputError(f"{self.table.source} is a file of {self.export.name}: {NO_WORKER}: {ask}")
            hint = hint or self.export.hints.get(quantity, f"; it serves as a trace: {ask}")
        if quantity in ("prompt", "output") and self.export.of_gateway and not self._like[quantity]:
            return InputError(f"{self.table.source} ({self.export.name}): {NO_TOKENS}")
        faults = [(name, self.fault(quantity, name)) for _, name in self._like[quantity]]
        why = f"column {faults[0][0]!r} {faults[0][1]}" if faults and faults[0][1] else "no column is called like it"
        return InputError(
            f"{self.table.source} does not say {_SAID.get(quantity, quantity)}: {why}; name it with --column "
            f"{quantity}=NAME{_OTHER_WAYS.get(quantity, '')}; the columns are {listed_names(self.table)}"
            f"{hint or self.export.hints.get(quantity, '')}"
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
    """Return the names of the columns for an error: those that are called like a quantity first, then the others."""
    names = sorted(table.columns, key=lambda name: not _TELLING & set(re.split(r"[^a-z]+", name.lower())))
    if sum(map(len, names)) < 400 and "".join(names).isprintable():
        return ", ".join(table.columns)
    telling = [name for name in names if _TELLING & set(re.split(r"[^a-z]+", name.lower())) and name.isprintable()]
    short = listed(name for name in names if name not in telling[:16])
    return ", ".join([*(name[:80] for name in telling[:16]), short])


#: Words of names that are shown before others where not all can be.
_TELLING = {"token", "tokens", "input", "output", "prompt", "completion", "length", "len", "lens", "sequence", "worker"}
_TELLING |= {"start", "end", "first", "finish"}
