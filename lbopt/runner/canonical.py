"""Canonical JSON: one value, one text.

Keys are sorted and nothing is spaced, so equal values have equal texts; 1, 1.0 and true have different ones. What JSON
does not hold exactly (NaN, infinities, keys that are not text, objects of other types) is refused by name. A tuple is
written as a list.
"""

from __future__ import annotations

import json
import math
from typing import Any

from lbopt.exceptions import InputError

#: Deeper values are refused: a text that could be written must also be readable, from any depth of calls.
DEEPEST = 100

_HELD = "None, bool, int, finite float, text, list, or dict with text keys"


def canonical_json(value: Any, name: str) -> str:
    """Return the text of `value` in ASCII; `name` is what messages call it."""
    _check(value, name, DEEPEST)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:  # an int of more digits than Python writes
        raise InputError(f"{name} cannot be written as JSON: {error}") from None


def _check(value: Any, name: str, levels: int) -> None:
    if value is None or isinstance(value, str | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{name} is {value}, which JSON does not hold; expected {_HELD}")
    elif levels == 0:
        raise InputError(f"a value nested more than {DEEPEST} levels deep, or inside itself, is at {name[:100]}...")
    elif isinstance(value, list | tuple):
        for place, entry in enumerate(value):
            _check(entry, f"{name}[{place}]", levels - 1)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise InputError(f"{name} has the key {key!r} of type {_type(key)}; JSON has text keys only")
            _check(entry, f"{name}[{key!r}]", levels - 1)
    else:
        raise InputError(f"{name} is a {_type(value)}, which JSON does not hold; expected {_HELD}")


def _type(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
