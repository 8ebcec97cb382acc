"""Columns of tokens and of workers: whole numbers or a refusal with the line, and names in their natural order."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.readers.values import LARGEST_TOKENS
from lbopt.instances.router_log.distinct import coded
from lbopt.instances.router_log.guess import Choice, Chooser
from lbopt.instances.router_log.numbers import comma_of_counts, missing_cells, read_numbers


def read_counts(chooser: Chooser, choice: Choice) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return int64 (N,) tokens, 0 where the cell holds nothing, and bool (N,) where that is so."""
    table, texts = chooser.table, chooser.texts(choice)
    numbers = read_numbers(texts, comma=comma_of_counts(texts))
    there = ~numbers.missing & ~numbers.bad
    values = np.where(there, numbers.real, 0.0)
    bad = numbers.bad | (values < 0) | (values != np.floor(values)) | (values > LARGEST_TOKENS)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{table.where(row)}: {choice.name} is {shown(texts[row])}; expected a whole number of tokens, 0 or more"
            f"{table.hint_at(row)}"
        )
    return values.astype(np.int64), numbers.missing


def read_workers(chooser: Chooser, choice: Choice) -> tuple[NDArray[np.int64], tuple[str, ...], NDArray[np.bool_]]:
    """Return int64 (N,) workers (-1 where the cell holds nothing), their names, and bool (N,) where nothing is."""
    texts = [text.strip() for text in chooser.texts(choice)]
    missing = missing_cells(texts)
    names, codes = coded([text for text, gone in zip(texts, missing, strict=True) if not gone])
    if all(re.fullmatch(r"\d+\.0", name) for name in names):  # a column of whole numbers with an empty cell in pandas
        names = [name[:-2] for name in names]
    order = sorted(range(len(names)), key=lambda index: natural(names[index]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    worker = np.full(len(texts), -1, dtype=np.int64)
    worker[~missing] = rank[codes]
    return worker, tuple(names[index] for index in order), missing


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts dp2 before dp10."""
    parts = re.findall(r"\d+|\D+", name)
    # Digits without leading zeros compare like numbers by their count and then as text, however many they are.
    bare = ((part.lstrip("0"), part) for part in parts)
    return tuple((0, len(digits), digits) if part.isdecimal() else (1, 0, part) for digits, part in bare)
