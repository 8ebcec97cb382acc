"""Configurations from plain data, as `run.json` holds them; each value must be of the type of its field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from lbopt.exceptions import InputError
from lbopt.files import shown

Config = TypeVar("Config")

#: Entries of a list of rules, sizes or items: whoever means more has not written them by hand.
_LONGEST_LIST = 1000


def from_plain(
    kind: type[Config],
    data: Mapping[str, Any],
    *,
    what: str,
    source: str = "the configuration",
    parts: Mapping[str, Any] | None = None,
    later: Mapping[str, Any] | None = None,
) -> Config:
    """Build a configuration of plain data: lists become tuples, and every field must be named that is not `later`.

    Parameters
    ----------
    kind
        A dataclass.
    data
        By the names of its fields.
    what
        What the configuration is of, for the error.
    source
        Where the data are from, for the error.
    parts
        By name of a field, the function that builds its value from plain data.
    later
        Fields that files of earlier versions do not have, and their values there.

    Raises
    ------
    InputError
        If a name is unknown or missing, a value is not of its kind, a list is longer than anybody's, or a whole number
        is beyond 64 bits.
    """
    try:
        named = {**(later or {}), **dict(data)}
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
        missing = {field.name for field in fields(kind)} - set(given)  # type: ignore[arg-type]
        if missing:
            raise KeyError(min(missing))
        for name, build in (parts or {}).items():
            given[name] = build(given[name])
        require_kinds(kind, given)
        return kind(**given)
    except InputError as error:
        raise InputError(f"{source} cannot be used: {error}") from None
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{source} is not a configuration of {what} of this version: {error}") from None


def require_kinds(kind: type[Any], given: Mapping[str, Any]) -> None:
    """Raise TypeError where a value is not of the type that its field is declared with.

    Parameters
    ----------
    kind
        A dataclass.
    given
        Values by the names of its fields; other names are left to its constructor.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{shown(given)} stands in place of an object")
    hints = get_type_hints(kind)
    for name, value in given.items():
        if isinstance(value, tuple) and len(value) > _LONGEST_LIST:
            raise TypeError(f"{name} has {len(value):,} entries; expected at most {_LONGEST_LIST:,}")
        if name in hints and not _fits(value, hints[name]):
            raise TypeError(f"{name} is {shown(value)}; expected {_called(hints[name])}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, inside[0])
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inside)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in inside)
    if origin is tuple and inside[1:] == (...,):
        return isinstance(value, tuple) and all(_fits(one, inside[0]) for one in value)
    if origin is tuple:
        return (
            isinstance(value, tuple | list)
            and len(value) == len(inside)
            and all(_fits(one, part) for one, part in zip(value, inside, strict=True))
        )
    if hint in (int, float):
        if type(value) is int:
            return -(2**63) <= value < 2**63
        return hint is float and isinstance(value, float)
    if hint is Path:
        return isinstance(value, str | Path)
    return not isinstance(origin or hint, type) or isinstance(value, origin or hint)


def _called(hint: Any) -> str:
    """Return what a message calls a type."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_called(one) for one in inside)
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin is tuple:
        return "a list"
    names = {
        int: "a whole number of 64 bits",
        float: "a number",
        str: "a text",
        bool: "true or false",
        NoneType: "null",
    }
    return names.get(hint, getattr(hint, "__name__", str(hint)))
