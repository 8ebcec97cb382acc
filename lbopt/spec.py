"""The text in which users name one of several things with options: ``name:option=value,option=value``.

Which options there are, and of which kind, is read from the signature of the thing's factory.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown

_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
_TRUTH = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_DURATION = re.compile(r"(\d+(?:\.\d*)?(?:e-?\d+)?)\s*([a-zµ]*)")


def duration(what: str, text: str) -> float:
    """Read a duration such as 100ms, 2s or 0.5; return seconds.

    Raises
    ------
    InputError
        Naming `what`, where `text` is no duration.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or found[2] not in _SECONDS:
        raise InputError(f"{what} is {shown(text)}; expected a duration such as 100ms, 2s or 0.5")
    return float(found[1]) * _SECONDS[found[2]]


def unknown(kind: str, name: str, known: Iterable[str], remark: str = "") -> InputError:
    """Return the error for a `name` that is not among the `known` ones, with the nearest of them.

    Parameters
    ----------
    kind
        What the name is of, such as "policy".
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return InputError(f"unknown {kind} {shown(name, 80)}: {hint}{remark}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the nearest known names, or nothing where none is near."""
    by_lower = {entry.lower(): entry for entry in known}
    word = name.lower()[:100]
    near = difflib.get_close_matches(word, by_lower, n=2, cutoff=0.6)
    if not near and word:  # the beginning of a name is near, however long the rest
        near = [entry for entry in by_lower if entry.startswith(word)][:2]
    if not near:
        return ""
    return "; did you mean " + " or ".join(repr(by_lower[entry]) for entry in near) + "?"


def options_of(
    kind: str,
    name: str,
    text: str,
    factory: Callable[..., Any],
    given: Mapping[str, Any] | None = None,
    read: Mapping[str, Callable[[str, str], Any]] | None = None,
) -> dict[str, Any]:
    """Read ``option=value,option=value`` by the defaults of `factory`.

    Parameters
    ----------
    kind, name
        Kind and name of the thing, for error messages.
    text
        ``option=value,option=value``.
    factory
        Function whose parameters with defaults are the options.
    given
        Options set by the caller; those that the factory lacks are left out.
    read
        Readers of options whose text the default does not tell how to read, such as `duration`: of what it is, for
        error messages, and the text.
    """
    known = {
        option: parameter
        for option, parameter in inspect.signature(factory).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    chosen: dict[str, Any] = {option: value for option, value in (given or {}).items() if option in known}
    named = set()
    for part in filter(None, text.split(",")):
        option, equals, value = part.partition("=")
        if option in named:
            raise InputError(f"{kind} '{name}': option {option} is given twice")
        named.add(option)
        if option not in known:
            raise InputError(f"{kind} '{name}' has no option {shown(option)}; it takes {', '.join(known) or 'none'}")
        if not equals:
            raise InputError(f"{kind} '{name}': option {option} has no value; expected {option}=VALUE")
        default, said = known[option].default, str(known[option].annotation)
        reader = (read or {}).get(option)
        if reader is not None and not (value == "none" and default is None):
            chosen[option] = reader(f"{name}: {option}", value)
            continue
        one = said if default is None else f"{type(default).__name__}{' or None' if 'None' in said else ''}"
        chosen[option] = value_of(f"{kind} '{name}': {option}", value, one)
    return chosen


def value_of(what: str, text: str, kind: object) -> Any:
    """Return the value that a text says: a text, a number, yes or no, or none where that can be.

    Parameters
    ----------
    what
        What is given, for error messages.
    kind
        Its type, such as ``int | None``, or the name of that.
    """
    said = str(kind)
    if text == "none" and "None" in said:
        return None
    if "str" in said or "Path" in said:
        return text
    if "bool" in said:
        if text.lower() not in _TRUTH:
            raise InputError(f"{what} is {shown(text)}; expected yes or no")
        return _TRUTH[text.lower()]
    number: Callable[[str], Any] = float if "float" in said else int
    try:
        return number(text)
    except ValueError:
        raise InputError(f"{what} is {shown(text)}; expected a number") from None
