"""The door for values: what an argument or a field can be is what its annotation says, and the rest is refused.

`typed` checks the arguments of a function, `refuse_kinds` the fields of a dataclass. A text is no number, a truth value
is no whole number, and NumPy's scalars are the numbers that they hold. What only a reader can tell is left to it:
arrays (`lbopt.model.integers`), and ranges.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, signature
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.spec import unknown

_P = ParamSpec("_P")
_R = TypeVar("_R")


def typed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the function, which refuses an argument that is not what its annotation says.

    Names of its keywords (`**more`) and their values are left to the function.
    """
    known = signature(function).parameters.values()
    places = [one.name for one in known if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in known if one.kind is Parameter.VAR_POSITIONAL), None)
    checked = {one.name for one in known if one.kind is not Parameter.VAR_KEYWORD}

    @wraps(function)
    def door(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        hints = kinds_of(function)
        for name, value in zip(places, args, strict=False):
            refuse(name, value, hints[name])
        if rest is not None:
            for value in args[len(places) :]:
                refuse(rest, value, hints[rest])
        for name, value in kwargs.items():
            if name in checked:
                refuse(name, value, hints[name])
        return function(*args, **kwargs)

    return door


def refuse_kinds(record: Any, called_as: Mapping[str, str] | None = None) -> None:
    """Refuse a field of a dataclass that is not what its annotation says; a list stands for a tuple.

    Parameters
    ----------
    called_as
        What messages call a field, where that is not its name.
    """
    for name, hint in kinds_of(type(record)).items():
        value = getattr(record, name, record)
        if value is not record:
            refuse((called_as or {}).get(name, name), value, hint)


def refuse(name: str, value: Any, hint: Any) -> None:
    """Raise InputError, naming the argument or field, where a value is not of a kind."""
    if not fits(value, hint):
        if get_origin(hint) is Literal and isinstance(value, str):
            raise unknown(name, value, get_args(hint))
        raise InputError(f"{name} is {seen(value)}; expected {_called(hint, value)}")


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return a whole number that is within its limits, or raise InputError."""
    if not fits(value, int) or value < least or (most is not None and value > most):
        limits = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} is {seen(value)}; expected a whole number {limits}")
    return int(value)


def seen(value: Any) -> str:
    """Return a value for an error message, or its type where it shows itself by an address or over many lines."""
    text = shown(value)
    return f"of type {type(value).__name__}" if text.startswith("<") or "\n" in text else text


def plain(value: Any) -> Any:
    """Return a value with Python's numbers in place of NumPy's, and a tuple in place of a list."""
    if isinstance(value, _of_numpy("generic")):
        return value.item()
    return tuple(map(plain, value)) if _is_a_list(value) else value


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inside)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inside)
    if origin is tuple and inside[1:] != (...,):
        return isinstance(value, tuple | list) and len(value) == len(inside) and all(map(fits, value, inside))
    if origin in (tuple, list, Sequence):
        return _is_a_list(value) and all(fits(one, inside[0]) for one in value)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(fits(k, inside[0]) and fits(v, inside[1]) for k, v in value.items())
    if origin is not None:
        return origin in _of_numpy("ndarray") or not isinstance(origin, type) or isinstance(value, origin)
    if hint in (int, float):
        names, numbers = (("integer",), (int,)) if hint is int else (("integer", "floating"), (int, float))
        return isinstance(value, (*numbers, *_of_numpy(*names))) and not isinstance(value, bool)
    if hint in (bool, Path):
        return isinstance(value, (bool, *_of_numpy("bool_")) if hint is bool else str | Path)
    unasked = hint is Any or not isinstance(hint, type) or _is_silent(hint)
    return unasked or isinstance(value, hint)


def _of_numpy(*names: str) -> tuple[type[Any], ...]:
    """Return types of NumPy; none where nobody has imported it, so that no value is of them."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else tuple(getattr(numpy, name) for name in names)


def _is_silent(kind: type[Any]) -> bool:
    """Whether a class is a protocol that cannot be asked."""
    return getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False)


def _is_a_list(value: Any) -> bool:
    return (
        isinstance(value, Collection)
        and not isinstance(value, str | bytes | Mapping)
        and getattr(value, "ndim", 1) == 1
    )


def _called(hint: Any, value: Any) -> str:
    """Return what a message calls a kind, in place of which there was a value."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_called(one, value) for one in inside))
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin in (tuple, list, Sequence):
        return (
            f"a list such as [{shown(value)}]"
            if isinstance(value, str)
            else f"a list, each entry {_called(inside[0], None)}"
        )
    if origin in (dict, Mapping):
        return "a mapping"
    return _NAMES.get(hint) or f"a {getattr(origin or hint, '__name__', hint)}"


_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    Path: "a path",
    PathLike: "a path",
    NoneType: "None",
}


class _Names(dict[str, Any]):
    """Names of a module; those that only a type checker imports stand for anything."""

    def __missing__(self, name: str) -> Any:
        return Any


def _kinds_of(thing: Any) -> dict[str, Any]:
    """Return the annotations of a function or a class."""
    if isinstance(thing, type):
        return get_type_hints(thing)
    return get_type_hints(thing, localns=_Names(vars(builtins) | vars(sys.modules[thing.__module__])))


#: The same, read once for each.
kinds_of: Callable[[Any], dict[str, Any]] = cache(_kinds_of)
