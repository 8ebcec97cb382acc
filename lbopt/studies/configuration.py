"""What a study is asked: a frozen dataclass whose fields say, each in one place, all that is known of a parameter.

A field is an option where its annotation carries an `Option`: spelling and help on the command line, the values that
can be, and what becomes of a list. From the fields follow

* refusal in a sentence (`Configuration.__post_init__`; what no single field shows is said in `check`),
* plain data and back, as `run.json` holds them (`to_dict`, `from_dict`),
* options of a command (`lbopt.cli.from_config`), and words of the command line or of Python (`from_words`).

A field that is itself a configuration, as a scenario is, gives its own fields, but for those that `Without` names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.kinds import plain, refuse_kinds
from lbopt.spec import unknown

Config = TypeVar("Config")

#: Entries of a list of rules, sizes or items: more than these were not written by hand.
_LONGEST_LIST = 1000


@dataclass(frozen=True, slots=True)
class Option:
    """Metadata of a field, given by ``Annotated``.

    Parameters
    ----------
    help
        One or two sentences. Names in it may be marked up: ``**closed**``.
    names
        Spellings such as ("--workers", "-G"); none = the field's name.
    key
        Name of the parameter, where it is not the field's; it is the spelling, too, where `names` is empty.
    first
        Whether it is an option of its own, as a spelling of one letter is; all others are settings: `--set NAME=VALUE`.
    argument
        Whether it is given without a spelling, by its place.
    shown
        What help says of the default; None = the default itself.
    low, high
        Least and largest value, or entry of a list; None = no limit.
    open
        Whether the limits themselves are excluded.
    expected
        What a refusal says was expected; None = the limits.
    among
        The names that can be; none = any.
    each
        Raises InputError for an entry that cannot be: a function with a name, since annotations are evaluated late.
    kept
        What becomes of a list: "as given", "once" (each entry the first time), or "sorted", which is once, too.
    empty
        Whether a list may be empty.
    later
        Where files of earlier versions lack the field: "left out" where it is the default, or always "written".
    """

    help: str
    names: tuple[str, ...] = ()
    key: str | None = None
    first: bool = False
    argument: bool = False
    shown: str | None = None
    low: float | None = None
    high: float | None = None
    open: bool = False
    expected: str | None = None
    among: tuple[str, ...] = ()
    each: Callable[[Any], object] | None = None
    kept: Literal["as given", "once", "sorted"] = "as given"
    empty: bool = False
    later: Literal["", "left out", "written"] = ""

    def ordered(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what becomes of a list."""
        once = values if self.kept == "as given" else tuple(dict.fromkeys(values))
        return tuple(sorted(once)) if self.kept == "sorted" else once

    def refuse(self, name: str, value: Any) -> None:
        """Raise InputError where a value of the field called `name` cannot be."""
        entries = value if isinstance(value, tuple) else (value,)
        called = self.key or (name.removesuffix("s") if isinstance(value, tuple) else name)
        if not entries and not self.empty and self.low is None:
            raise InputError(f"no {called} was named; give at least one")
        for one in entries:
            if self.among and one not in self.among:
                raise unknown(called, one, self.among)
            if self.each is not None:
                self.each(one)
        if (not entries and not self.empty) or not all(map(self._holds, entries)):
            given = ", ".join(shown(one) if type(one) is int else str(one) for one in entries) or "none"
            each = " each" if isinstance(value, tuple) and self.expected is None else ""
            verb = "are" if isinstance(value, tuple) and name.endswith("s") and name != "bias" else "is"
            raise InputError(
                f"{name if isinstance(value, tuple) else called} {verb} {given}; expected {self._range()}{each}"
            )

    def _holds(self, one: Any) -> bool:
        """Whether an entry is in range; NaN is in none."""
        if one is None or (self.low is None and self.high is None):
            return True
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        return bool(low < one < high if self.open else low <= one <= high)

    def _range(self) -> str:
        if self.expected is not None:
            return self.expected
        if self.low is not None and self.high is not None:
            return f"{'a number between ' * self.open}{self.low:,}{' and ' if self.open else ' to '}{self.high:,}"
        if self.low is None:
            return f"{'less than' if self.open else 'at most'} {self.high:,}"
        if self.open:
            return f"more than {self.low:,}"
        return "0 or more" if self.low == 0 else f"at least {self.low:,}"


@dataclass(frozen=True, slots=True)
class Without:
    """Metadata of a field that is itself a configuration: its fields that are no options here."""

    fields: frozenset[str]

    @classmethod
    def of(cls, *fields: str) -> Without:
        """Name the fields."""
        return cls(frozenset(fields))


class Configuration:
    """The base of every configuration: a frozen dataclass with slots and keywords alone."""

    __slots__ = ()

    #: What a message calls the study, such as "a study of stale state".
    what: ClassVar[str] = "a study"

    def __post_init__(self) -> None:
        refuse_kinds(self, {f.name: option.key for f, _, option, _ in fields_of(type(self)) if option and option.key})
        for field, _, option, _ in fields_of(type(self)):
            if option is None:
                continue
            value = plain(getattr(self, field.name))
            if isinstance(value, tuple):
                value = option.ordered(value)
            object.__setattr__(self, field.name, value)
            option.refuse(field.name, value)
        self.check()
        for field, _, option, _ in fields_of(type(self)):  # each may know better why a number cannot be
            if option is not None:
                _refuse_beyond(option.key or field.name, getattr(self, field.name))

    def check(self) -> None:
        """Refuse what no single field shows, and complete what depends on others."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON holds."""
        named = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        usual = _later(type(self), "left out")
        return {name: value for name, value in named.items() if value != usual.get(name, MISSING)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "the configuration") -> Self:
        """Rebuild a configuration; `source` says where the data are from, for errors."""
        parts = {
            field.name: build
            for field, annotation, _, _ in fields_of(cls)
            if (build := getattr(annotation, "of", getattr(annotation, "from_dict", None))) is not None
        }
        return from_plain(
            cls, data, what=cls.what, source=source, parts=parts, later=_later(cls, "left out", "written")
        )


def _later(kind: type[Any], *how: str) -> dict[str, Any]:
    """Return the fields that files of earlier versions lack, and their values there."""
    late = [field for field, _, option, _ in fields_of(kind) if option is not None and option.later in how]
    return {field.name: _plain(field.default) for field in late}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    describe = getattr(value, "to_dict", getattr(value, "describe", None))
    return value if describe is None else describe()


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
        If a name is unknown or missing, a value is not of its kind, a list has more than 1,000 entries, or a whole
        number is beyond 64 bits.
    """
    try:
        named = {**(later or {}), **dict(data)}
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
        missing = {field.name for field in fields(kind)} - set(given)  # type: ignore[arg-type]
        if missing:
            raise KeyError(min(missing))
        for name, build in (parts or {}).items():
            given[name] = build(given[name])
        for name, value in given.items():
            if isinstance(value, tuple) and len(value) > _LONGEST_LIST:
                raise TypeError(f"{name} has {len(value):,} entries; expected at most {_LONGEST_LIST:,}")
        return kind(**given)
    except InputError as error:
        raise InputError(f"{source} cannot be used: {error}") from None
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{source} is not a configuration of {what} of this version: {error}") from None


def _refuse_beyond(name: str, value: Any) -> None:
    """Refuse numbers that no study can store."""
    for one in value if isinstance(value, tuple) else (value,):
        if (isinstance(one, int) and not -(2**63) <= one < 2**63) or (
            isinstance(one, float) and not math.isfinite(one)
        ):
            raise InputError(f"{name} is {shown(one)}; expected a finite number, whole ones of 64 bits")


def from_words(kind: type[Config], given: Mapping[str, Any], **parts: Any) -> Config:
    """Return the configuration; a word that was not given, or is None, leaves the field its own default.

    Parameters
    ----------
    given
        Values by the names of options or of fields; those that the configuration does not know are ignored.
    parts
        Values of fields that are no options.

    Raises
    ------
    InputError
        Where a number is infinite, or a whole one beyond 64 bits; and what the configuration refuses.
    """
    return kind(**(_values(kind, given) | parts))


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


def _fields_of(kind: type[Any]) -> tuple[tuple[Field[Any], Any, Option | None, frozenset[str]], ...]:
    """Return each field with its type, its option if it is one, and those of its own fields that are no options."""
    hints, found = get_type_hints(kind, include_extras=True), []
    for field in fields(kind):
        annotation, *metadata = get_args(hints[field.name]) if is_annotated(hints[field.name]) else (hints[field.name],)
        option = next((one for one in metadata if isinstance(one, Option)), None)
        without = next((one.fields for one in metadata if isinstance(one, Without)), frozenset[str]())
        found.append((field, annotation, option, without))
    return tuple(found)


#: The same, read once for each class.
fields_of: Callable[[type[Any]], tuple[tuple[Field[Any], Any, Option | None, frozenset[str]], ...]]
fields_of = cache(_fields_of)  # type: ignore[assignment]  # a class is hashable


def is_configuration(annotation: Any) -> bool:
    """Whether a field of this type is itself a configuration."""
    return is_dataclass(annotation) and annotation.__module__.startswith("lbopt.studies")


def is_annotated(annotation: Any) -> bool:
    """Whether a type carries metadata."""
    return get_origin(annotation) is Annotated


def _values(kind: type[Any], given: Mapping[str, Any], leave_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field, annotation, option, without in fields_of(kind):
        if field.name in leave_out:
            continue
        if option is None and is_configuration(annotation):
            values[field.name] = annotation(**_values(annotation, given, without))
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
