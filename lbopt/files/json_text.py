"""JSON from outside: bounded in depth, in the length of its numbers and in memory, without NaN, no field twice.

Python's parser takes NaN and Infinity, makes infinity of 1e999, keeps the last of two fields of one name, raises
RecursionError on deep nesting and refuses numbers of more than 4,300 digits with an error of its own.

TOML from outside: small, and bounded in the depth of its names and values and in the size of its whole numbers.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files.regular import LARGEST_DOCUMENT, called, repeated, shown
from lbopt.files.text import read_text, text_bytes

#: Lists and objects inside one another; what lbopt writes has at most eight.
DEEPEST = 100

#: Digits of a number; an exact total of lbopt has at most 39. Any that is shorter and has an exponent of two digits is
#: finite, as is a whole number once it is made a float.
LONGEST_NUMBER = 200

#: Estimated bytes of the parsed values.
LARGEST_VALUES = 256 * 2**20

#: Bytes of a list, of an object and of a value with its place in either.
_LIST, _OBJECT, _VALUE = 64, 232, 40

_ZEROS = "0" * LONGEST_NUMBER
_TO_ZERO = {ord(digit): "0" for digit in "123456789"}
_LARGE_EXPONENT = re.compile(r"[0-9.][eE]\+?[0-9]{3}")
_ODD_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class JsonFault(ValueError):
    """What is wrong with a JSON text, to be put after the name of the file and "is"."""


def parse_json(text: str | bytes, name: str) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    text
        The text, or its bytes in UTF-8.
    name
        What errors call it, such as "run.json" or "log.jsonl, line 7".

    Raises
    ------
    InputError
        Where it is no JSON; nested deeper than `DEEPEST`; holds NaN or Infinity, under whatever name, a number of more
        than `LONGEST_NUMBER` digits, a field twice in one object, or a NUL or half a character in a text; or would fill
        the memory.
    """
    if isinstance(text, bytes):
        text = text_bytes(text, name, "JSON as text in UTF-8").decode()
    try:
        return json_value(text)
    except JsonFault as fault:
        raise InputError(f"{name} is {fault}") from None


def read_json(path: str | os.PathLike[str], name: str | None = None, *, largest: int = LARGEST_DOCUMENT) -> Any:
    """Return the value of a JSON file.

    Parameters
    ----------
    name
        What errors call it; its path by default.
    largest
        Bytes that it may have.

    Raises
    ------
    InputError
        Where the file cannot be read, is too large, or is no text; and those of `parse_json`.
    """
    name = called(path) if name is None else name
    return parse_json(read_text(path, name, largest=largest), name)


def json_lines(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each line that holds one JSON value; empty lines are passed over.

    Parameters
    ----------
    text
        The file; lines end with a line feed.
    name
        What errors call it; they add the number of the line.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line and not line.isspace():
            yield number, parse_json(line, f"{name}, line {number:,}")


def json_value(text: str) -> Any:
    """Return the value of a JSON text, or raise `JsonFault`, for readers with a sentence of their own."""
    try:
        return _parsed(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise JsonFault(f"not valid JSON ({where}column {error.colno}: {error.msg})") from None
    except RecursionError:
        raise JsonFault(f"not usable JSON ({_too_deep()})") from None


def _parsed(text: str) -> Any:
    decoder = _COUNTING_DECODER if _LARGE_EXPONENT.search(text) else _DECODER
    if len(text) > LONGEST_NUMBER:
        _refuse_too_many(text)
        if _ZEROS in text.translate(_TO_ZERO):  # it may stand in a text, which is no number
            decoder = _COUNTING_DECODER
    value = decoder.decode(text)
    if text.count("[") + text.count("{") > DEEPEST and _is_deeper(value, DEEPEST):
        raise _unusable(_too_deep())
    if _ODD_ESCAPE.search(text):
        _refuse_odd_texts(value)
    return value


def _refuse_too_many(text: str) -> None:
    size = _LIST * text.count("[") + _OBJECT * text.count("{") + _VALUE * text.count(",")
    if size > LARGEST_VALUES:
        raise _unusable(f"its values would take {size:,} bytes; expected at most {LARGEST_VALUES:,}")


def _short(digits: str) -> str:
    if len(digits) >= LONGEST_NUMBER:
        raise _unusable(f"a number of {len(digits):,} characters; expected fewer than {LONGEST_NUMBER}")
    return digits


def _finite(digits: str) -> float:
    value = float(_short(digits))
    if math.isinf(value):
        raise _unusable(f"{digits} is beyond every number")
    return value


def _constant(constant: str) -> Any:
    raise _unusable(f"{constant} is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = repeated(name for name, _ in pairs)
        raise _unusable(f"the field {shown(twice)} stands twice in one object")
    return fields


def _is_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [inner for inner in values if isinstance(inner, dict | list)]


def _refuse_odd_texts(value: Any) -> None:
    """Refuse a NUL, which NumPy and paths lose, and half of a surrogate pair, which no file can hold."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending += one.keys()
            pending += one.values()
        elif isinstance(one, list):
            pending += one
        elif isinstance(one, str) and ("\0" in one or any("\ud800" <= c <= "\udfff" for c in one)):
            raise _unusable(f"the text {shown(one)} holds a NUL or half of a character")


def _too_deep() -> str:
    return f"nested deeper than {DEEPEST} lists or objects"


def _unusable(why: str) -> JsonFault:
    return JsonFault(f"not usable JSON ({why})")


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_object)
_COUNTING_DECODER = json.JSONDecoder(
    parse_int=lambda digits: int(_short(digits)),
    parse_float=_finite,
    parse_constant=_constant,
    object_pairs_hook=_object,
)


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


def parsed_json(text_or_path: str | Path, what: str) -> tuple[Any, str]:
    """Return the parsed data, and what to call it in messages: `what` for a text, else the file's name."""
    if isinstance(text_or_path, str):
        if not text_or_path.strip():
            raise InputError(f"{what} is an empty text; expected JSON, or the path of a file that holds it")
        if text_or_path.lstrip().startswith(("{", "[")):
            return parse_json(text_or_path, what), what
    source = called(text_or_path)
    return read_json(text_or_path, source), source
