"""Options of a router from three places: the table `[router]` of the fleet file, `--set NAME=VALUE`, and named options.

A later place wins. Keys are taken from the environment alone, so that they stand in no file and in no list of
processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.router.options import KEYS, RouterOptions
from lbopt.spec import unknown

_TRUTH = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def options_from(table: Mapping[str, Any], settings: Sequence[str], given: Mapping[str, Any]) -> RouterOptions:
    """Return the options.

    Parameters
    ----------
    table
        Of the fleet file.
    settings
        Texts NAME=VALUE.
    given
        Values by name; None = not given.

    Raises
    ------
    InputError
        Where a name is unknown or a value cannot be.
    """
    kinds = {field.name: str(field.type) for field in fields(RouterOptions)}
    open_names = [name for name in kinds if name not in KEYS]
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name in KEYS:
            raise InputError(f"[router] of the fleet file sets {name}; keys come from the environment alone")
        if name not in kinds:
            raise unknown("option of [router]", name, open_names)
        values[name] = _checked(name, kinds[name], value)
    for text in settings:
        name, equals, value = text.partition("=")
        if name not in open_names:
            raise unknown("option of --set", name, open_names)
        if not equals:
            raise InputError(f"--set {shown(text)} has no value; expected NAME=VALUE")
        values[name] = _read(name, kinds[name], value)
    values |= {name: value for name, value in given.items() if value is not None}
    return RouterOptions(**values)


def _checked(name: str, kind: str, value: Any) -> Any:
    """Return a value of the fleet file if it is of the kind of its option."""
    kind = kind.removesuffix(" | None")
    good = {
        "bool": isinstance(value, bool),
        "int": type(value) is int,
        "float": type(value) in (int, float),
        "str": isinstance(value, str),
    }
    if not good[kind]:
        raise InputError(f"[router] {name} is {shown(value)}; expected a value of kind {kind}")
    return float(value) if kind == "float" else value


def _read(name: str, kind: str, text: str) -> Any:
    """Return the value that a text says."""
    kind = kind.removesuffix(" | None")
    if kind == "bool":
        if text.lower() not in _TRUTH:
            raise InputError(f"--set {name}={shown(text)}; expected yes or no")
        return _TRUTH[text.lower()]
    try:
        return {"int": int, "float": float, "str": str}[kind](text)
    except ValueError:
        raise InputError(f"--set {name}={shown(text)}; expected a number") from None
