"""Values and names from a file as an error shows them: escaped, short, and at a bounded cost whatever they are."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import TypeVar

#: Bits of the largest whole number that is written out; Python refuses to write those of thousands of digits.
_BITS_SHOWN = 200

#: Control characters of ASCII and Latin-1, and those of Unicode that reorder what is shown.
_COMMANDS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

Name = TypeVar("Name", bound=Hashable)


class _Short(reprlib.Repr):
    """`repr` that looks at the first entries alone."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 400
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 60

    def repr_int(self, x: int, level: int) -> str:
        """Return the number, or how long it is."""
        return repr(x) if x.bit_length() <= _BITS_SHOWN else f"a whole number of {x.bit_length():,} bits"


_SHORT = _Short()


def shown(value: object, most: int = 40) -> str:
    """Return a value for an error message: its `repr`, cut to `most` characters with its last one kept."""
    text = repr(value) if isinstance(value, str) and len(value) <= most else _SHORT.repr(value)
    return text if len(text) <= most else f"{text[: most - 4]}...{text[-1]}"


def listed(names: Iterable[object], most: int = 200) -> str:
    """Return the first names of a file for an error message, on one line of `most` characters whatever they hold."""
    first = [_name(name) for name in islice(names, 9)]
    text = ", ".join([*first[:8], "..."] if len(first) > 8 else first) or "nothing"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def repeated(names: Iterable[Name]) -> Name | None:
    """Return the first name that stands a second time; None where each stands once."""
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def printable(text: str) -> str:
    """Return a text without what moves or colours a terminal: such characters are written as in a Python text.

    Tabulators and ends of lines stay. Characters that turn the direction of writing are among those that go.
    """
    return _COMMANDS.sub(lambda found: repr(found[0])[1:-1], text)


def _name(name: object) -> str:
    return name if isinstance(name, str) and name.isprintable() and len(name) <= 100 else shown(name, 100)
