"""JSON as files hold it: no NaN or Infinity, no endless nesting, and errors that name the line."""

from __future__ import annotations

import json
from typing import Any

from lbopt.instances.readers.faults import RowFault, is_blank, listed, shown, tokens


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text, or raise RowFault saying what is wrong with it."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise RowFault(f"not JSON ({where}column {error.colno}: {error.msg})") from None
    except RecursionError:
        raise RowFault("not usable JSON (nested too deeply)") from None
    except ValueError as error:  # RowFault of _refuse, or a number of thousands of digits
        raise RowFault(f"not usable JSON ({error})"[:200]) from None


def lengths(record: Any) -> tuple[int, int]:
    """Return prompt and output tokens of ``{"input_length": s, "output_length": o, ...}``; o may be 0 or null."""
    prompt = field(record, "input_length")
    output = field(record, "output_length")
    return tokens("input_length", prompt), 0 if is_blank(output) else tokens("output_length", output)


def field(record: Any, name: str) -> Any:
    """Return one field of a JSON object, or raise RowFault saying what is there."""
    if not isinstance(record, dict):
        raise RowFault(f"{shown(record)} is no JSON object; expected one with input_length and output_length")
    if name not in record:
        raise RowFault(f"no field {name!r}; it has {listed(record)}")
    return record[name]


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
