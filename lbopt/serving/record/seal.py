"""Seals a record: joins decisions with outcomes, and writes them in the forms that the rest of lbopt reads.

`requests.csv` has one row a request, as `lbopt audit` wants it; `steps.jsonl` one step problem a line with what the
router then did, for `lbopt gap --problems`; `sealed.json` counts. Where the record tells what prompts begin with,
`trace.jsonl` has the finished requests with their prefixes (see `prefix_trace`). A request that was placed and whose
ending is not in the record, because the router was killed or runs on, is *censored*: its row says "running" and no
finish.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.exceptions import InputError, LbOptError
from lbopt.files import called
from lbopt.model import StepProblem
from lbopt.serving.record.prefix_trace import prefix_trace
from lbopt.serving.record.rows import rows_of
from lbopt.serving.record.writer import CURRENT
from lbopt.simulator import SampledState
from lbopt.whole_file import write_file

_LARGEST_BLOCK = 2**30
_COLUMNS = ("id", "arrival", "decode_start", "finish", "prompt_tokens", "output_tokens", "worker", "status")


@dataclass(slots=True)
class Sealed:
    """What a record holds.

    Parameters
    ----------
    requests, steps, prefixes
        Rows of `requests.csv`, of `steps.jsonl` and of `trace.jsonl`.
    endings
        Requests by ending; "censored" are those without one.
    left_out
        Rows and decisions that are in no file, by reason.
    """

    requests: int = 0
    steps: int = 0
    prefixes: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "requests": self.requests,
            "steps": self.steps,
            "prefixes": self.prefixes,
            "endings": dict(self.endings),
            "left_out": dict(self.left_out),
        }


def seal(folder: str, out: str | None = None) -> Sealed:
    """Join the record in a folder.

    Parameters
    ----------
    folder
        Where the router wrote.
    out
        Folder for the files; None = the same.

    Raises
    ------
    InputError
        Where there is no record, or one of another version.
    """
    source = Path(folder)
    paths = [*sorted(source.glob("decisions-*.jsonl")), source / CURRENT]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise InputError(f"'{called(folder)}' holds no {CURRENT}; expected the folder that --record named")
    sealed = Sealed()
    life, block = 0, 0
    told: list[tuple[dict[str, Any], int]] = []
    placed: dict[tuple[int, int], dict[str, Any]] = {}
    outcomes: dict[tuple[int, int], dict[str, Any]] = {}
    steps: list[str] = []
    for row in rows_of(paths, sealed.left_out):
        if row["kind"] == "head":
            life += row.get("began") is not None
            block = _block_of(row)
        elif row["kind"] == "outcome":
            outcomes[life, row["request"]] = row
            told.append((row, block))
        elif row["kind"] == "decision":
            try:
                _read_decision(row, life, placed, steps, sealed)
            except LbOptError:  # its numbers are good one by one, and no step problem
                sealed.left_out["decisions that cannot be read"] += 1
    target = source if out is None else Path(out)
    target.mkdir(parents=True, exist_ok=True)
    write_file(target / "requests.csv", _requests(placed, outcomes, sealed))
    write_file(target / "steps.jsonl", "".join(steps))
    sealed.steps = len(steps)
    trace, sealed.prefixes = prefix_trace(told)
    if sealed.prefixes:
        write_file(target / "trace.jsonl", trace)
    write_file(target / "sealed.json", json.dumps(sealed.to_dict(), indent=1) + "\n")
    return sealed


def _block_of(head: dict[str, Any]) -> int:
    """Return the bytes of a block of hashes; 0 where the record has none."""
    prefixes = head.get("prefixes")
    block = prefixes.get("bytes") if isinstance(prefixes, dict) else None
    return block if type(block) is int and 0 < block <= _LARGEST_BLOCK else 0


def _read_decision(
    row: dict[str, Any],
    life: int,
    placed: dict[tuple[int, int], dict[str, Any]],
    steps: list[str],
    sealed: Sealed,
) -> None:
    """Note who was placed by a decision, and the step problem that it faced.

    Parameters
    ----------
    row
        The decision.
    life
        The run of the router.
    placed
        By run and request the last placement; changed in place.
    steps
        Lines of `steps.jsonl`; changed in place.
    sealed
        Counts; changed in place.
    """
    chosen, requests = row["chosen"], row["requests"]
    if not row.get("shadow"):
        for position, worker in enumerate(chosen):
            if worker >= 0:
                placed[life, requests[position]] = {
                    "worker": f"{row['group']}/{row['workers'][worker]}",
                    "start": row["at"],
                    "prompt": row["sizes"][position],
                }
    free = np.array(row["free"], dtype=np.int64)
    if not requests or free.sum() == 0:
        sealed.left_out["decisions without a free slot"] += 1
        return
    problem = StepProblem.now(row["loads"], free, row["sizes"])
    counts = np.bincount([worker for worker in chosen if worker >= 0], minlength=free.size)
    within = bool((counts <= free).all())
    state = SampledState(
        problem=problem,
        running=np.array(row["running"], dtype=np.int64),
        waited=np.array(row["waited"], dtype=np.int64),
        behaviour=str(row["rule"]),
        step=int(row["step"]),
        chosen=np.array(chosen, dtype=np.int64) if within else None,
    )
    steps.append(json.dumps(state.to_dict(), separators=(",", ":")) + "\n")


def _requests(
    placed: dict[tuple[int, int], dict[str, Any]], outcomes: dict[tuple[int, int], dict[str, Any]], sealed: Sealed
) -> str:
    """Return `requests.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for key in sorted(placed.keys() | outcomes.keys()):
        life, number = key
        outcome, place = outcomes.get(key), placed.get(key)
        ending = "censored" if outcome is None else str(outcome.get("ending"))
        sealed.endings[ending] += 1
        if place is None:
            sealed.left_out["requests that were never placed"] += 1
            continue
        start = place["start"]
        if outcome is not None:  # the first chunk of a stream is the first token; of another answer nobody knows
            first = outcome.get("first") if outcome.get("streams") else None
            start = first or outcome.get("start") or start
        arrival = start if outcome is None else outcome.get("arrival") or start
        finish = "" if outcome is None else outcome.get("finish", "")
        prompt = place["prompt"] if outcome is None else outcome.get("prompt")
        output = "" if outcome is None else outcome.get("output")
        status = "running" if outcome is None else ending
        writer.writerow((f"{life}-{number}", arrival, start, finish, prompt, output, place["worker"], status))
        sealed.requests += 1
    return text.getvalue()
