"""Writes the table of a store to a file, whole or not at all: into a file beside it, which then takes its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.runner.store import Store
from lbopt.spec import unknown
from lbopt.whole_file import whole_file

if TYPE_CHECKING:
    from pandas import DataFrame


def _parquet(frame: DataFrame, path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise BackendUnavailableError(
            "parquet needs the package pyarrow, which is absent: pip install 'lbopt[parquet]'; csv needs none"
        ) from None
    frame.to_parquet(path, engine="pyarrow", index=False)


def _csv(frame: DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False, lineterminator="\n")


#: What writes a table, by the name of the format, which is also the ending of its files.
FORMATS: dict[str, Callable[[DataFrame, Path], None]] = {"parquet": _parquet, "csv": _csv}


def export_store(store: Path, to: str, out: Path | None = None) -> tuple[Path, int]:
    """Write the store at `store` as a table of format `to`; return where it is and how many rows it has.

    The store is opened to read only, so this works while a run goes on.

    Parameters
    ----------
    store
        The store's file.
    to
        One of `FORMATS`.
    out
        The table's file; None takes that of the store with another ending. What was there is replaced.

    Raises
    ------
    InputError
        If the format is unknown, the store is empty, or the table cannot be written there.
    StoreError
        If it is no store, or of another version.
    """
    if to not in FORMATS:
        raise unknown("format", to, FORMATS)
    place = store.with_suffix(f".{to}") if out is None else out
    with Store(store, read_only=True) as opened:
        if place.resolve() == opened.path:
            raise InputError(f"table '{place}' would take the place of the store itself; give another --out")
        frame = opened.to_frame()
    if frame.empty:
        raise InputError(f"store {store} has no results yet; there is nothing to export")
    with whole_file(place, "table") as partial:
        FORMATS[to](frame, partial)
    return place, len(frame)
