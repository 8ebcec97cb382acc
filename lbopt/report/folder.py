"""A folder of results that appears whole or not at all.

Files are written into `NAME.partial` beside the target, which is renamed at the end; an existing target is replaced
only if an earlier study made it. A full disk or a kill leaves the old folder as it was.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError

#: The file by which a folder is known to be ours.
MARK = "run.json"


def check_target(folder: Path) -> None:
    """Refuse, before any work, a folder that could not be written or is somebody else's."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output folder '{folder}' is a file; give another name")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError(f"output folder '{folder}' holds other files; give a new or an earlier output folder")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise InputError(f"output folder '{folder}' cannot be made: '{parent}' does not exist")
    if not os.access(parent, os.W_OK):
        raise InputError(f"output folder '{folder}' cannot be made: '{parent}' is not writable")


def write_whole(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a fresh folder, then put it in place of `folder`."""
    check_target(folder)
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        write(partial)
        old = folder.with_name(folder.name + ".old.partial")
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise InputError(f"cannot write output folder '{folder}': {error}") from None


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write rows with full precision; None and NaN become empty cells."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]) if rows else ["empty"])
        writer.writeheader()
        for row in rows:
            writer.writerow({name: "" if _missing(value) else value for name, value in row.items()})


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(data, indent=2, sort_keys=False) + "\n", encoding="utf-8")


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
