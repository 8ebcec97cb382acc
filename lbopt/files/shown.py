"""Values and names from a file as an error shows them: escaped, short, and at a bounded cost whatever they are."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from itertools import islice

#: Bits of the largest whole number that is written out; Python refuses to write those of thousands of digits.
_BITS_SHOWN = 200


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


def _name(name: object) -> str:
    return name if isinstance(name, str) and name.isprintable() and len(name) <= 100 else shown(name, 100)
