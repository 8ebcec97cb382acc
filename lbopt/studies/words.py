"""A configuration from words: the names of options, or of fields, each with its value.

The command line gives the values of its options, Python keyword arguments. A field that is itself a configuration, as a
scenario is, takes its own words, but for those that `Without` names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.spec import unknown
from lbopt.studies.option import Option, Without

Config = TypeVar("Config")


def from_words(kind: type[Config], given: Mapping[str, Any], **parts: Any) -> Config:
    """Return the configuration; a word that was not given, or is None, leaves the field its own default.

    Parameters
    ----------
    kind
        The class of the configuration.
    given
        Values by the names of options or of fields; those that the configuration does not know are ignored.
    parts
        Values of fields that are no options.

    Raises
    ------
    InputError
        Where a number is infinite, or a whole one beyond 64 bits; and what the configuration refuses.
    """
    return _made(kind, _values(kind, given) | parts)


def refuse_unknown_words(given: Mapping[str, Any], *kinds: type[Any]) -> None:
    """Refuse a word that none of the configurations takes.

    Raises
    ------
    InputError
        Naming the word and the nearest that there is.
    """
    known = [name for kind in kinds for name in _words(kind)]
    for name in given:
        if name not in known:
            raise unknown("argument", name, known)


def fields_of(kind: type[Any]) -> Iterator[tuple[Field[Any], Any, Option | None, frozenset[str]]]:
    """Return each field with its type, its option if it is one, and those of its own fields that are no options."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        annotation, *metadata = get_args(hints[field.name]) if is_annotated(hints[field.name]) else (hints[field.name],)
        option = next((one for one in metadata if isinstance(one, Option)), None)
        without = next((one.fields for one in metadata if isinstance(one, Without)), frozenset[str]())
        yield field, annotation, option, without


def is_configuration(annotation: Any) -> bool:
    """Whether a field of this type is itself a configuration."""
    return is_dataclass(annotation) and annotation.__module__.startswith("lbopt.studies")


def is_annotated(annotation: Any) -> bool:
    """Whether a type carries metadata."""
    return get_origin(annotation) is Annotated


def _made(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """Return the configuration; it may know of a number why it cannot be, and of those beyond all kinds it need not."""
    made = kind(**values)
    for name, value in values.items():
        for one in value if isinstance(value, tuple) else (value,):
            if (isinstance(one, int) and not -(2**63) <= one < 2**63) or (isinstance(one, float) and math.isinf(one)):
                raise InputError(f"{name} is {shown(one)}; expected a finite number, whole ones of 64 bits")
    return made


def _values(kind: type[Any], given: Mapping[str, Any], leave_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field, annotation, option, without in fields_of(kind):
        if field.name in leave_out:
            continue
        if option is None and is_configuration(annotation):
            values[field.name] = _made(annotation, _values(annotation, given, without))
            continue
        key = field.name if option is None or option.key is None else option.key
        value = given.get(key, given.get(field.name))
        if isinstance(value, list | tuple):
            value = tuple(value) or None
        if value is not None or (option is not None and (field.default is None or field.default is MISSING)):
            values[field.name] = value
    return values


def _words(kind: type[Any], leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
    for field, annotation, option, without in fields_of(kind):
        if field.name in leave_out:
            continue
        if option is None and is_configuration(annotation):
            yield from _words(annotation, without)
            continue
        yield field.name
        if option is not None and option.key is not None:
            yield option.key
