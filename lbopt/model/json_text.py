"""JSON that a user hands over, as a text or as the path of a file that holds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import called, parse_json, read_json


def parsed_json(text_or_path: str | Path, what: str) -> tuple[Any, str]:
    """Return the parsed data, and what to call it in messages: `what` for a text, else the file's name."""
    if isinstance(text_or_path, str):
        if not text_or_path.strip():
            raise InputError(f"{what} is an empty text; expected JSON, or the path of a file that holds it")
        if text_or_path.lstrip().startswith(("{", "[")):
            return parse_json(text_or_path, what), what
    source = called(text_or_path)
    return read_json(text_or_path, source), source
