"""The output folder of a gap study, and reading it back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.report.folder import MARK, write_csv, write_whole
from lbopt.report.gap_page import gap_pictures, render_gap_page
from lbopt.report.gap_tables import comparison_csv, gap_csv, long_run_csv
from lbopt.report.provenance import provenance
from lbopt.studies.gap import GapConfig, GapOutcome, SolvedState
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.study import baseline_of

FORMAT = "lbopt-gap"
FORMAT_VERSION = 1
_NEEDED = ("version", "configuration", "interrupted", "trace", "command", "versions")


def write_gap_folder(outcome: GapOutcome, folder: Path, command: str) -> None:
    """Write gap.csv, long_runs.csv, differences.csv, steps.jsonl, the pictures, report.html and run.json."""
    how = provenance(command)

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "gap.csv", gap_csv(outcome))
        if outcome.long_runs:
            write_csv(target / "long_runs.csv", long_run_csv(outcome))
            differences = compare(outcome.long_runs, baseline_of(outcome.config))
            write_csv(target / "differences.csv", comparison_csv(differences))
        write_states(target / "steps.jsonl", outcome.solved)
        pictures = gap_pictures(outcome)
        for picture in pictures:
            (target / picture.file).write_bytes(picture.data)
            (target / picture.svg_file).write_bytes(picture.svg)
        page = render_gap_page(outcome, pictures, how, str(folder))
        (target / "report.html").write_text(page, encoding="utf-8")
        return {
            "version": FORMAT_VERSION,
            **how,
            "configuration": outcome.config.to_dict(),
            "trace": outcome.trace,
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
            "seconds": outcome.seconds,
            "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(target.iterdir())},
        }

    write_whole(folder, FORMAT, write)


def write_states(path: Path, solved: Sequence[SolvedState]) -> None:
    """Write solved states, one line each, as `lbopt gap --problems` reads them."""
    path.write_text("".join(f"{json.dumps(step_record(state))}\n" for state in solved), encoding="utf-8")


def step_record(solved: SolvedState) -> dict[str, Any]:
    """Return one line of steps.jsonl: the frozen state, its optimum, and every policy's value."""
    return solved.state.to_dict() | {
        "standing": solved.standing,
        "result": solved.result.to_dict(),
        "decisions": {name: decision.objective for name, decision in solved.decisions.items()},
    }


def read_run(folder: Path) -> tuple[GapConfig, dict[str, Any]]:
    """Return the configuration of an output folder, and all of its run.json."""
    data = read_account(folder, FORMAT, FORMAT_VERSION)
    return GapConfig.from_dict(data["configuration"], source=str(folder / MARK)), data


def format_of(folder: Path) -> object:
    """Return the format that the folder's run.json names, None where there is none."""
    try:
        data = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return data.get("format") if isinstance(data, dict) else None


def read_account(folder: Path, format: str, version: int) -> dict[str, Any]:
    """Return the run.json of an output folder of `lbopt gap`, which has to be of this format and version."""
    path = folder / MARK
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"'{folder}' is not an output folder of lbopt gap: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' is not valid JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != format:
        raise InputError(f"'{path}' was not written by lbopt gap")
    if data.get("version") != version:
        raise InputError(f"'{path}' has version {data.get('version')!r}; this lbopt reads version {version}")
    missing = [name for name in _NEEDED if name not in data]
    if missing or not isinstance(data["trace"], dict) or not isinstance(data["versions"], dict):
        raise InputError(f"'{path}' lacks {', '.join(missing) or 'an account of its trace or versions'}")
    return data
