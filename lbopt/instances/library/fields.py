"""Strict reading of one JSON object: exactly the fields that belong to it, each of its type."""

from __future__ import annotations

from typing import Any

from lbopt.exceptions import InputError


def strict_fields(data: Any, source: str, expected: dict[str, tuple[type | None, ...]]) -> dict[str, Any]:
    """Return `data` if it has the expected fields and no others; None among the types stands for null.

    Raises
    ------
    InputError
        Naming the source, the field, and what was expected.
    """
    if not isinstance(data, dict):
        raise InputError(f"{source} is a {type(data).__name__}; expected an object with {', '.join(expected)}")
    missing = [name for name in expected if name not in data]
    if missing:
        raise InputError(f"{source} lacks {', '.join(missing)}")
    unknown = [str(name) for name in data if name not in expected]
    if unknown:
        raise InputError(f"{source} has the unknown field {unknown[0]!r}; expected {', '.join(expected)}")
    for name, types in expected.items():
        value = data[name]
        if type(value) not in types and not (value is None and None in types):  # a truth value is no whole number
            wanted = " or ".join("null" if one is None else one.__name__ for one in types)
            raise InputError(f"{source}: {name} is of type {type(value).__name__}; expected {wanted}")
    return dict(data)
