"""Damaged files are read, one after the other, and what happens is counted."""

from __future__ import annotations

import os
import random
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lbopt.exceptions import LONGEST_MESSAGE, LbOptError
from tests.fuzz.formats import FORMATS


@dataclass(slots=True)
class Tally:
    """What happened to mutants of one format."""

    read: int = 0
    refused: int = 0
    cut: int = 0
    slowest: float = 0.0
    slowest_at: int = -1
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.read:,} read, {self.refused:,} refused, {len(self.failures):,} failures, "
            f"slowest {self.slowest:.2f} s (mutant {self.slowest_at})"
        )


def mutant(name: str, number: int) -> bytes:
    """The bytes of one mutant of a format."""
    form = FORMATS[name]
    rng = random.Random(f"{name} {number}")
    return form.mutate(rng.choice(_seeds(name)), rng)


_SEEDS: dict[str, list[bytes]] = {}


def _seeds(name: str) -> list[bytes]:
    if name not in _SEEDS:
        _SEEDS[name] = FORMATS[name].seeds()
    return _SEEDS[name]


def fuzz(name: str, numbers: range, folder: Path) -> Tally:
    """Read mutants of a format; a failure is an exception of another kind, or a message that is long or not printable.

    Parameters
    ----------
    name
        Of `FORMATS`.
    numbers
        Which mutants.
    folder
        Where their files are written, one at a time.
    """
    tally, form = Tally(), FORMATS[name]
    path = folder / form.file
    with _quiet():
        for number in numbers:
            path.unlink(missing_ok=True)  # ext4 writes a file that is cut and filled again at once
            path.write_bytes(mutant(name, number))
            began = time.perf_counter()
            try:
                form.read(path)
                tally.read += 1
            except LbOptError as error:
                tally.refused += 1
                message = str(error)
                tally.cut += len(message) == LONGEST_MESSAGE
                if not message or len(message) > LONGEST_MESSAGE or not message.isprintable():
                    tally.failures.append(f"{name} {number}: message {message!r:.300}")
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                tally.failures.append(
                    f"{name} {number}: {type(error).__name__} {str(error)[:150]!r} at {where.filename}:{where.lineno}"
                )
            took = time.perf_counter() - began
            if took > tally.slowest:
                tally.slowest, tally.slowest_at = took, number
    return tally


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep mutated policy files from printing, and from leaving compiled code that the next one would be read as."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    out, err = sys.stdout, sys.stderr
    try:
        with warnings.catch_warnings(), open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
            warnings.simplefilter("ignore")
            sys.stdout = sys.stderr = nowhere
            yield
    finally:
        sys.dont_write_bytecode, sys.stdout, sys.stderr = before, out, err
