"""What a folder of results holds beside `run.json`, declared; and the one function that writes such a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbopt.report.folder import provenance, write_csv, write_json, write_whole

if TYPE_CHECKING:  # Matplotlib and pandas take half a second, and most commands write no folder
    import pandas as pd
    from matplotlib.figure import Figure

    #: Rows by column, a frame, or None; a file of no records is not written, and a frame without rows is.
    Rows = Sequence[dict[str, Any]] | pd.DataFrame | None


@dataclass(frozen=True, slots=True)
class Made:
    """How a folder is made.

    Parameters
    ----------
    command
        The command line that asked for it.
    folder
        As the user names it.
    how
        Command, versions and machine, see `provenance`.
    """

    command: str
    folder: Path
    how: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of a folder by their names without endings.

    Parameters
    ----------
    tables
        Written as CSV.
    records
        Written as JSON, one record a line.
    figures
        Each drawn as PNG and SVG; None is left out.
    others
        By file name with its ending: text, bytes, or data that are written as JSON.
    """

    tables: Mapping[str, Rows] = field(default_factory=dict)
    records: Mapping[str, Iterable[dict[str, Any]]] = field(default_factory=dict)
    figures: Mapping[str, Figure | None] = field(default_factory=dict)
    others: Mapping[str, str | bytes | dict[str, Any]] = field(default_factory=dict)

    def write(self, target: Path) -> None:
        """Write every file into the folder `target`, which exists."""
        for name, rows in self.tables.items():
            if rows is None or (isinstance(rows, Sequence) and not rows):
                continue
            if isinstance(rows, Sequence):
                write_csv(target / f"{name}.csv", rows)
            else:
                rows.to_csv(target / f"{name}.csv", index=False)
        for name, records in self.records.items():
            lines = "".join(f"{json.dumps(record)}\n" for record in records)
            (target / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        for name, figure in self.figures.items():
            if figure is not None:
                from lbopt.report.figures import png_of, svg_of

                (target / f"{name}.png").write_bytes(png_of(figure))
                (target / f"{name}.svg").write_bytes(svg_of(figure, name))
        for name, content in self.others.items():
            if isinstance(content, bytes):
                (target / name).write_bytes(content)
            elif isinstance(content, str):
                (target / name).write_text(content, encoding="utf-8")
            else:
                write_json(target / name, content)


def write_folder(
    folder: Path,
    format: str,
    version: int,
    command: str,
    contents: Callable[[Made], Contents],
    account: Mapping[str, Any],
    *,
    packages: Sequence[str] = (),
    digests: bool = False,
) -> None:
    """Write a folder of results whole or not at all.

    Parameters
    ----------
    folder
        The target; what an earlier run of the same format wrote there is replaced.
    format, version
        As `run.json` names them.
    contents
        Returns the files.
    account
        Entries of `run.json` beside format, version, files and provenance.
    packages
        Packages whose versions are recorded besides the usual ones.
    digests
        Whether `run.json` holds the SHA-256 of every file.
    """
    made = Made(command, folder, provenance(command, packages))

    def write(target: Path) -> dict[str, Any]:
        contents(made).write(target)
        more: dict[str, Any] = {}
        if digests:
            names = sorted(target.iterdir())
            more["sha256"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in names}
        return {"version": version, **made.how, **account, **more}

    write_whole(folder, format, write)
