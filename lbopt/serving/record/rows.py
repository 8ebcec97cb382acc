"""Rows of a record as data from outside: what is no row of a router is left out and counted, whatever it holds.

A record may be cut by a kill, and may come from anybody. Numbers are bounded here, so that nothing behind it overflows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import JsonFault, called, json_value, read_text, shown
from lbopt.serving.record.writer import FORMAT, VERSION
from lbopt.serving.state import Ending

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
