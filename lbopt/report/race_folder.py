"""The output folder of a race: the store that runs are resumed from, and what is made of it.

The store has to be there while the race runs, and the rest appears whole when it has ended. So the folder is made
first, with an account that names the store's files as its own; at the end a folder with the store (a second link to
the same file) and the results takes its place.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.report.folder import check_target, write_csv, write_json, write_whole
from lbopt.report.provenance import provenance
from lbopt.report.race_page import race_pictures, render_race_page
from lbopt.report.race_tables import race_csv
from lbopt.studies.race import RaceConfig, RaceOutcome

FORMAT = "lbopt-race"
FORMAT_VERSION = 1

STORE = "race.sqlite"
#: What SQLite and the writer's lock may leave beside it.
_STORE_FILES = (STORE, f"{STORE}-lock", f"{STORE}-journal")


def prepare_race_folder(folder: Path, config: RaceConfig, command: str) -> Path:
    """Make the folder if there is none, and return the path of its store."""
    check_target(folder, FORMAT)
    if not folder.exists():
        write_whole(folder, FORMAT, lambda _: _account(config, command, finished=False, files=_STORE_FILES))
    return folder / STORE


def write_race_folder(outcome: RaceOutcome, folder: Path, command: str) -> None:
    """Write results.csv, summary.json, the pictures, report.html and run.json; the store stays. It must be closed."""
    if (folder / f"{STORE}-lock").exists():
        raise InputError(f"'{folder / STORE}' is being written by another race; wait for that to end")
    how = provenance(command)

    def write(target: Path) -> dict[str, Any]:
        _keep_store(folder / STORE, target / STORE)
        write_csv(target / "results.csv", race_csv(outcome))
        write_json(target / "summary.json", outcome.to_dict() | how)
        drawn = race_pictures(outcome)
        for picture in drawn:
            (target / picture.file).write_bytes(picture.data)
            (target / picture.svg_file).write_bytes(picture.svg)
        page = render_race_page(outcome, drawn, how, command)
        (target / "report.html").write_text(page, encoding="utf-8")
        files = {path.name for path in target.iterdir()} | set(_STORE_FILES)
        return _account(outcome.config, command, finished=not outcome.interrupted, files=sorted(files))

    write_whole(folder, FORMAT, write)


def _account(config: RaceConfig, command: str, *, finished: bool, files: Any) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        **provenance(command),
        "configuration": config.to_dict(),
        "finished": finished,
        "files": list(files),
    }


def _keep_store(store: Path, target: Path) -> None:
    """Give the store a second name in the new folder; where the file system has no links, copy it."""
    try:
        os.link(store, target)
    except OSError:
        shutil.copy2(store, target)
