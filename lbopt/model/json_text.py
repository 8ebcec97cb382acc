"""JSON that a user hands over, as a text or as the path of a file that holds one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError


def parsed_json(text_or_path: str | Path, what: str) -> tuple[Any, str]:
    """Return the parsed data, and what to call it in messages: `what` for a text, else the file's name."""
    if isinstance(text_or_path, Path) or not text_or_path.lstrip().startswith(("{", "[")):
        source = str(text_or_path)
        try:
            text = Path(text_or_path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read {source}: {error}") from None
    else:
        source, text = what, text_or_path
    try:
        return json.loads(text), source
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not valid JSON: {error}") from None
