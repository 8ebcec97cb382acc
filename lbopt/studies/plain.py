"""Configurations from plain data, as `run.json` holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from lbopt.exceptions import InputError

Config = TypeVar("Config")


def from_plain(
    kind: type[Config],
    data: Mapping[str, Any],
    *,
    what: str,
    source: str = "the configuration",
    parts: Mapping[str, Any] | None = None,
) -> Config:
    """Build a configuration of plain data: lists become tuples, and every field must be named.

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

    Raises
    ------
    InputError
        If a name is unknown or missing, or a value is not of its kind.
    """
    try:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in dict(data).items()}
        missing = {field.name for field in fields(kind)} - set(given)  # type: ignore[arg-type]
        if missing:
            raise KeyError(min(missing))
        for name, build in (parts or {}).items():
            given[name] = build(given[name])
        return kind(**given)
    except InputError as error:
        raise InputError(f"{source} cannot be used: {error}") from None
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise InputError(f"{source} is not a configuration of {what} of this version: {error}") from None
