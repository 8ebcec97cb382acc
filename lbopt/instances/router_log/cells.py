"""Cells of a column: numbers with thousands separators and decimal commas, dates, words that say that there is nothing.

NumPy's arrays of texts take the room of the longest one in every row, and lose a NUL at an end; so columns stay lists,
and `coded` makes numbers of the distinct texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
