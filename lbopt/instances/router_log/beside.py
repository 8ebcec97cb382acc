"""What a router of lbopt recorded beside the requests of a log: its rule, and the steps of its engines that it counted.

`lbopt serve --record` writes `decisions.jsonl`, and `lbopt export` makes `requests.csv` of it in the same folder. A
decision names the moment and the steps so far: the most tokens that a request has seen since the step at which it was
placed. That is a lower bound, since a new request makes no token during its prefill.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.files import JsonFault, json_value, read_text
from lbopt.instances.router_log.endings import RouterLog

_RECORD, _FORMAT = "decisions*.jsonl", "lbopt-decisions"
_LARGEST = 2**30


def with_record(log: RouterLog, path: str | os.PathLike[str]) -> RouterLog:
    """Return a log with what the record in its folder says of it; the same log where there is none.

    Parameters
    ----------
    path
        The log's file, one that `lbopt export` wrote; beside any other file no record is looked for.
    """
    file = Path(path)
    beside = sorted(file.parent.glob(_RECORD)) if file.name == "requests.csv" else []
    # decisions-000001.jsonl and those that follow were written before decisions.jsonl.
    rows = [row for one in sorted(beside, key=lambda one: (one.stem == "decisions", one.name)) for row in _rows(one)]
    if not rows or rows[0].get("format") != _FORMAT:
        return log
    rules = {str(row["versions"].get("rule")) for row in rows if isinstance(row.get("versions"), dict)}
    decisions = [row for row in rows if row.get("kind") == "decision" and not row.get("shadow")]
    log = replace(log, rule=rules.pop() if len(rules) == 1 else None)
    if log.origin is None or len({row.get("group") for row in decisions}) != 1:
        return log
    zero = float(np.datetime64(log.origin.rstrip("Z"), "ns").astype(np.int64)) / 1e9
    moments = np.array([(row["at"] - zero, row["step"]) for row in decisions if _is_moment(row)], dtype=np.float64)
    return replace(log, counted=moments.reshape(-1, 2))


def _rows(file: Path) -> list[dict[str, Any]]:
    rows = []
    for line in read_text(file, f"the record '{file.name}'", largest=_LARGEST).splitlines():
        try:
            row = json_value(line)
        except JsonFault:  # cut off by a kill
            continue
        rows += [row] if isinstance(row, dict) else []
    return rows


def _is_moment(row: dict[str, Any]) -> bool:
    return all(isinstance(row.get(name), int | float) and abs(row[name]) < 1e12 for name in ("at", "step"))
