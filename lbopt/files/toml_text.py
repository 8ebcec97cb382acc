"""TOML from outside: small, and bounded in the depth of its names and values and in the size of its whole numbers."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files.regular import called
from lbopt.files.shown import shown
from lbopt.files.text import read_text

#: Bytes of a TOML file; a card of lbopt has some thousands.
LARGEST_TOML = 2**20

#: Parts of a dotted name; tomllib needs the square of their number in time.
_MOST_PARTS = 32

_DOTTED = re.compile(r"[\w\"'-]+(?:[ \t]*\.[ \t]*[\w\"'-]+)*")


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML text; `name` is what errors call it.

    Raises
    ------
    InputError
        Where it is no TOML, nested too deeply, or holds a date that Python cannot hold or a whole number of more than
        64 bits, of which TOML knows none.
    """
    if any(match.group().count(".") >= _MOST_PARTS for match in _DOTTED.finditer(text)):
        raise InputError(f"{name} is not usable TOML: a name of more than {_MOST_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{name} is not usable TOML: nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits, a date that is none
        raise InputError(f"{name} is not usable TOML: {error}") from None
    pending: list[Any] = [data]
    while pending:
        one = pending.pop()
        if isinstance(one, dict | list):
            pending += one.values() if isinstance(one, dict) else one
        elif isinstance(one, int) and not -(2**63) <= one < 2**63:
            raise InputError(f"{name} is not usable TOML: {shown(one)} is beyond 64 bits")
    return data


def read_toml(path: str | os.PathLike[str], name: str | None = None) -> dict[str, Any]:
    """Return the tables of a TOML file; `name` is what errors call it, its path by default."""
    name = called(path) if name is None else name
    return parse_toml(read_text(path, name, largest=LARGEST_TOML), name)
