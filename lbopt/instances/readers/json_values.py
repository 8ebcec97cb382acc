"""JSON as files hold it: no NaN or Infinity, no endless nesting, and errors that name the line."""

from __future__ import annotations

from typing import Any

from lbopt.files import JsonFault, json_value, listed, shown
from lbopt.instances.readers.faults import RowFault, is_blank, tokens


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text, or raise RowFault saying what is wrong with it."""
    try:
        return json_value(text if isinstance(text, str) else text.decode())
    except JsonFault as fault:
        raise RowFault(str(fault)) from None


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
