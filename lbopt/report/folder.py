"""A folder of results that appears whole or not at all.

Files are written into a fresh folder beside the target, which then takes its place. The folder it replaces is moved
aside first, to `NAME.old.partial`, and comes back if anything fails, also in the next run after a kill. Replaced is
only a folder that holds nothing but files that an earlier study of the same kind wrote, as its `run.json` lists them.
"""

from __future__ import annotations

import csv
import json
import math
import os
import platform
import secrets
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lbopt
from lbopt.exceptions import InputError
from lbopt.files import called, check_name, read_json
from lbopt.runner.execute import noted_interrupts
from lbopt.whole_file import flush, one_at_a_time, unfinished_folder

#: The file by which a folder is known to be ours; it names its format and the other files.
MARK = "run.json"


def check_target(folder: Path, format: str) -> None:
    """Refuse, before any work, a folder that could not be written or holds anything that is not ours."""
    check_name(folder, f"output folder '{called(folder)}'")
    with one_at_a_time(folder.resolve().parent), noted_interrupts(act=False):
        _check(folder, format)


def _check(folder: Path, format: str) -> None:
    place = folder.resolve()
    if not place.name:
        raise InputError(f"output folder '{folder}' is the root of the file system; name a folder")
    _restore(place, format)
    if _old(place).exists():
        raise InputError(f"output folder '{folder}' needs the name '{_old(place)}' for a moment, which is taken")
    if place == Path.cwd().resolve():
        raise InputError(f"output folder '{folder}' is the working directory; name a folder inside it")
    if place.exists() and not place.is_dir():
        raise InputError(f"output folder '{folder}' is a file; give another name")
    if place.is_dir():
        foreign = sorted({entry.name for entry in place.iterdir()} - _own_files(place, format))
        if foreign:
            raise InputError(
                f"output folder '{folder}' holds '{foreign[0]}', which no earlier run of this kind wrote; "
                "give a new folder"
            )
    if not place.parent.is_dir():
        raise InputError(f"output folder '{folder}' cannot be made: '{place.parent}' does not exist")
    if not os.access(place.parent, os.W_OK):
        raise InputError(f"output folder '{folder}' cannot be made: '{place.parent}' is not writable")
    trial = place.parent / f".lbopt-{secrets.token_hex(8)}.partial"
    try:  # a file system may refuse what the permissions allow
        trial.mkdir()
    except OSError as error:
        raise InputError(f"output folder '{folder}' cannot be made: {error.strerror or error}") from None
    with suppress(OSError):
        trial.rmdir()


def write_whole(folder: Path, format: str, write: Callable[[Path], dict[str, Any]]) -> None:
    """Let `write` fill a fresh folder and return its account of it, then put that folder in place of `folder`.

    The account is written last, as run.json, with `format` and the names of all other files.
    """
    check_target(folder, format)
    place = folder.resolve()
    try:
        with unfinished_folder(place.parent) as partial:
            account = write(partial)
            files = sorted(path.name for path in partial.iterdir())
            write_json(partial / MARK, {"format": format, "files": files, **account})
            for path in (*partial.iterdir(), partial):
                flush(path)
            _put_in_place(partial, folder, format)
            flush(place.parent)
    except OSError as error:
        raise InputError(f"cannot write output folder '{folder}': {error}") from None


def _put_in_place(partial: Path, folder: Path, format: str) -> None:
    """Let a folder take the place of another; runs that end at the same moment do so one after the other."""
    place = folder.resolve()
    with one_at_a_time(place.parent), noted_interrupts(act=False):
        _check(folder, format)  # again: another run may have ended meanwhile
        try:
            if place.exists():
                place.rename(_old(place))
            partial.rename(place)
        finally:
            _restore(place, format)


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write rows, at least one, with full precision; None and NaN become empty cells."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({name: "" if _missing(value) else value for name, value in row.items()})


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON; NaN becomes null, which every reader understands."""
    path.write_text(json.dumps(without_nan(data), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _old(place: Path) -> Path:
    return place.with_name(place.name + ".old.partial")


def _restore(place: Path, format: str) -> None:
    """Bring back a folder of ours that was moved aside and not replaced, or drop it where it was replaced."""
    old = _old(place)
    if old.is_dir() and {entry.name for entry in old.iterdir()} <= _own_files(old, format):
        if not place.exists():
            old.rename(place)
            return
        # a kill in its midst must not leave a folder that has lost its run.json, and belongs to no run
        with suppress(OSError), unfinished_folder(place.parent) as dropped:
            old.rename(dropped / "old")


def _own_files(place: Path, format: str) -> set[str]:
    try:
        account = read_json(place / MARK)
    except InputError:
        return set()
    files = account.get("files") if isinstance(account, dict) and account.get("format") == format else None
    if not isinstance(files, list) or not all(isinstance(name, str) for name in files):
        return set()
    return {MARK, *files}


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def without_nan(data: Any) -> Any:
    """Return plain data in which None stands for NaN."""
    if isinstance(data, dict):
        return {name: without_nan(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [without_nan(value) for value in data]
    return None if _missing(data) else data


_PACKAGES = ("numpy", "numba", "scipy", "pandas", "highspy", "ortools", "pulp")


def provenance(command: str, packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return command, versions of everything that can move a number, and the machine.

    Parameters
    ----------
    packages
        Packages that can move a number of this study alone.
    """
    from lbopt.policies.editions import present_edition  # the policies take a third of a second to import

    return {
        "command": command,
        "versions": {
            "lbopt": lbopt.__version__,
            "rules": str(present_edition()),
            "python": platform.python_version(),
        }
        | _installed(packages),
        "platform": platform.platform(),
        "processor": _processor(),
        "cpu_count": os.cpu_count(),
        "byte_order": sys.byteorder,
    }


def _installed(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in (*_PACKAGES, *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:  # noqa: PTH123
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()
