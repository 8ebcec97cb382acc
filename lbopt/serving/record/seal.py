"""Seals a record: reads its rows, joins decisions with outcomes, and writes them in the forms of lbopt.

`requests.csv` has one row a request, as `lbopt audit` wants it; `steps.jsonl` one step problem a line with what the
router then did, for `lbopt gap`; `sealed.json` counts. A request that was placed and whose ending is not in
the record, because the router was killed or runs on, is *censored*: its row says "running" and no finish.

A record may be cut by a kill, and may come from anywhere. What is no row of a router is left out and counted, whatever
it holds, and numbers are bounded, so that nothing behind them overflows.

Where the record tells what prompts begin with, `trace.jsonl` has the finished requests in Mooncake's form. Mooncake
names blocks of 512 tokens, a record hashes blocks of bytes. All prompts of a model and kind get one ratio of bytes to
tokens, that of their sums, so that equal beginnings stay equal: block j of tokens gets the last hash whose bytes end
before 512 * (j + 1) tokens do. Hashes become numbers in the order in which they come up, so that a trace has nothing of
the key.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.exceptions import InputError, LbOptError
from lbopt.files import JsonFault, called, json_value, read_text, shown
from lbopt.instances.readers.formats import BLOCK_TOKENS
from lbopt.model import StepProblem
from lbopt.serving.record.writer import CURRENT, FORMAT, VERSION
from lbopt.serving.scrape import MOST_SEQUENCES
from lbopt.serving.state import Ending
from lbopt.simulator import SampledState
from lbopt.whole_file import write_file

_LARGEST = 2**30

#: Tokens, requests and steps of a row; seconds since 1970.
_MOST_COUNT = 2**40
_MOST_TIME = 1e12

_TIMES = ("arrival", "pooled", "start", "first", "finish")
_PER_WORKER = ("workers", "loads", "free", "running")
_PER_REQUEST = ("requests", "sizes", "waited", "chosen")


def rows_of(paths: list[Path], left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of all files that can be read.

    Parameters
    ----------
    paths
        The files, in the order in which they were written.
    left_out
        Lines that are left out, by reason; changed in place.

    Raises
    ------
    InputError
        Where a file cannot be read, or begins with another format.
    """
    for path in paths:
        text = read_text(path, f"the record '{called(path)}'", largest=_LARGEST)
        for number, line in enumerate(text.splitlines()):
            try:
                row = json_value(line)
            except JsonFault:
                left_out["lines that cannot be read"] += 1
                continue
            kind = row.get("kind") if isinstance(row, dict) else None
            if kind not in ("head", "decision", "outcome"):
                left_out["lines of another kind"] += 1
                continue
            if number == 0 and (row.get("format"), row.get("version")) != (FORMAT, VERSION):
                raise InputError(
                    f"'{called(path)}' begins with format {shown(row.get('format'))} version "
                    f"{shown(row.get('version'))}; this lbopt reads {FORMAT} version {VERSION}"
                )
            if (kind == "outcome" and not _is_outcome(row)) or (kind == "decision" and not _is_decision(row)):
                left_out[f"{kind}s that cannot be read"] += 1
                continue
            yield row


def _is_outcome(row: dict[str, Any]) -> bool:
    counts = [row.get(name) for name in ("prompt", "output", "prompt_bytes")]
    return (
        _is_count(row.get("request"))
        and row.get("ending") in list(Ending)
        and (row.get("sequences") is None or row["sequences"] in range(1, MOST_SEQUENCES + 1))
        and all(value is None or _is_count(value) for value in counts)
        and all(row.get(name) is None or _is_time(row[name]) for name in _TIMES)
    )


def _is_decision(row: dict[str, Any]) -> bool:
    workers: list[Any] = [row.get(name) for name in _PER_WORKER]
    requests: list[Any] = [row.get(name) for name in _PER_REQUEST]
    if not _are_lists(workers) or not _are_lists(requests):
        return False
    names, chosen = workers[0], requests[-1]
    return (
        all(isinstance(text, str) for text in (row.get("group"), row.get("rule"), *names))
        and all(_is_count(value) for values in (*workers[1:], *requests[:-1]) for value in values)
        and all(type(worker) is int and -1 <= worker < len(names) for worker in chosen)
        and _is_count(row.get("step"))
        and _is_time(row.get("at"))
    )


def _are_lists(values: list[Any]) -> bool:
    """Return whether all are lists of one length."""
    return all(isinstance(value, list) and len(value) == len(values[0]) for value in values)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_COUNT


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _MOST_TIME


Group = tuple[str, str]


def prefix_trace(outcomes: Iterable[tuple[dict[str, Any], int]]) -> tuple[str, int]:
    """Return the lines of a trace, in order of arrival, and how many there are.

    Parameters
    ----------
    outcomes
        Outcomes of requests, and the bytes of a block of hashes of each.
    """
    told = [(row, block) for row, block in outcomes if _is_told(row) and block > 0]
    sums: dict[Group, list[int]] = {}
    for row, _ in told:
        sizes = sums.setdefault(_group(row), [0, 0])
        sizes[0] += row["prompt_bytes"]
        sizes[1] += row["prompt"]
    told.sort(key=lambda pair: pair[0]["arrival"])
    numbers: dict[str, int] = {}
    begun = told[0][0]["arrival"] if told else 0.0
    lines = []
    for row, block in told:
        size, tokens = sums[_group(row)]
        hashes, named = row["prefix"], []
        for j in range(row["prompt"] // BLOCK_TOKENS):
            last = int((j + 1) * BLOCK_TOKENS * size / tokens / block) - 1
            if not 0 <= last < len(hashes):
                break
            # two blocks of tokens may end in one block of bytes: the number tells their order, too
            named.append(numbers.setdefault(f"{hashes[last]}/{j}", len(numbers)))
        line = {
            "timestamp": round(1000 * (row["arrival"] - begun), 3),
            "timestamp_unit": "ms",  # beyond doubt, whatever the rate is
            "input_length": row["prompt"],
            "output_length": row["output"],
            "hash_ids": named,
        }
        lines.append(json.dumps(line, separators=(",", ":")) + "\n")
    return "".join(lines), len(lines)


def _group(row: dict[str, Any]) -> Group:
    return str(row.get("model")), str(row.get("prefix_kind"))


def _is_told(row: dict[str, Any]) -> bool:
    """Return whether an outcome is that of a whole request with hashes."""
    hashes = row.get("prefix")
    return (
        row.get("ending") == "finished"
        and not row.get("recomputations")  # its prompt has what was generated before
        and not row.get("sequences")  # nor is it one prompt
        and isinstance(hashes, list)
        and all(isinstance(one, str) for one in hashes)
        and all(type(row.get(name)) is int and row[name] > 0 for name in ("prompt", "output", "prompt_bytes"))
        and isinstance(row.get("arrival"), int | float)
    )


_LARGEST_BLOCK = 2**30
_COLUMNS = ("id", "arrival", "start", "finish", "prompt_tokens", "output_tokens", "worker", "status")


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


def _share(count: Any, part: int, many: int) -> int | None:
    """Return one of `many` shares of a count, as equal as can be."""
    return None if count is None else (count + many - 1 - part) // many


def _requests(
    placed: dict[tuple[int, int], dict[str, Any]], outcomes: dict[tuple[int, int], dict[str, Any]], sealed: Sealed
) -> str:
    """Return `requests.csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    # The first chunk of a stream is its first token: one more in memory, one less to decode. Readers know by the name.
    starts = "first_token" if all(outcome.get("streams") for outcome in outcomes.values()) else "decode_start"
    writer.writerow(starts if name == "start" else name for name in _COLUMNS)
    for key in sorted(placed.keys() | outcomes.keys()):
        life, number = key
        outcome, place = outcomes.get(key), placed.get(key)
        ending = "censored" if outcome is None else str(outcome.get("ending"))
        sealed.endings[ending] += 1
        if place is None:
            sealed.left_out["requests that were never placed"] += 1
            continue
        start = place["start"]
        if outcome is not None:  # the first chunk of a stream is the first token; of another answer it is not known
            first = outcome.get("first") if outcome.get("streams") else None
            start = first or outcome.get("start") or start
        arrival = start if outcome is None else outcome.get("arrival") or start
        finish = "" if outcome is None else outcome.get("finish", "")
        prompt = place["prompt"] if outcome is None else outcome.get("prompt")
        output = "" if outcome is None else outcome.get("output")
        status = "running" if outcome is None else ending
        many = 1 if outcome is None else outcome.get("sequences") or 1
        for part in range(many):  # each has a slot of its own
            name = f"{life}-{number}" + (f".{part}" if many > 1 else "")
            shares = [count if many == 1 else _share(count, part, many) for count in (prompt, output)]
            writer.writerow((name, arrival, start, finish, *shares, place["worker"], status))
            sealed.requests += 1
    return text.getvalue()
