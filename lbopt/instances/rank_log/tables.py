"""The same loads as a table: one row a rank and moment, or one column a rank."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lbopt.exceptions import InputError
from lbopt.files import csv_records, shown
from lbopt.instances.rank_log.lines import RankLine, clock_of

#: Names of the columns of a long table, in small letters without marks.
LONG = {
    "rank": ("dprank", "rank", "engine", "engineid", "engineindex", "dp", "worker", "replica", "globalrank"),
    "time": ("time", "timestamp", "ts", "seconds", "t", "date", "datetime", "moment"),
    "tokens": ("tokens", "token", "load", "numtokens", "usedtokens", "numusedtokens", "kvtokens", "heldtokens"),
    "share": ("share", "tokenusage", "kvcacheusage", "kvcacheusageperc", "gpucacheusage", "kvusage", "kvcacheutil"),
    "running": ("running", "runningreq", "numrunningreqs", "numrequestsrunning", "runningreqs", "batchsize"),
    "waiting": ("waiting", "queue", "queuereq", "numqueuereqs", "numrequestswaiting", "queued", "waitingreqs"),
    "made": ("made", "genthroughput", "generationthroughput", "tokenspersecond"),
    "prefill": ("prefill", "newtoken", "newtokens", "prefilltokens"),
}
_WIDE = re.compile(
    r"(?i)^(?:dp|rank|worker|engine|load|tokens|gpu|dp_?rank)[ _#:-]?(\d{1,5})(?:[ _-]?(?:tokens|load))?$"
)
#: A column of requests: a table that has it is none of ranks.
_OF_REQUESTS = re.compile(r"(?i)prompt|input|output|completion|request.?id|arriv|finish|ttft|latency")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def columns_of(header: Sequence[str]) -> dict[str, int] | None:
    """Return the columns of a table of ranks by quantity, those of a wide one by rank; None where it is none."""
    names = [name.strip().lstrip("\ufeff") for name in header]
    if any(_OF_REQUESTS.search(name) for name in names):
        return None
    plain = [_plain(name) for name in names]
    found = {
        quantity: next(plain.index(one) for one in known if one in plain)
        for quantity, known in LONG.items()
        if any(one in plain for one in known)
    }
    if "rank" in found and {"tokens", "share", "running"} & found.keys():
        return found
    wide = {f"#{match[1]}": k for k, name in enumerate(names) if (match := _WIDE.match(name))}
    if len(wide) < 2 or any("step" in name.lower() for name in names):
        return None
    return wide | ({"time": found["time"]} if "time" in found else {})


def read_table(text: str, source: str) -> Iterator[RankLine]:
    """Yield what the rows say."""
    rows = csv_records(text, source, delimiter=delimiter_of(text))
    columns: dict[str, int] = {}
    for line, row in rows:
        if not columns:
            columns = columns_of(row) or {}
            continue
        if not any(cell.strip() for cell in row) or columns_of(row) == columns:
            continue
        if len(row) <= max(columns.values()):
            raise InputError(f"{source}, line {line:,}: {len(row)} fields; expected more, as in the header")
        when = row[columns["time"]].strip() if "time" in columns else ""
        seconds = _time(when, source, line) if when else None
        wide = {name[1:]: row[k] for name, k in columns.items() if name.startswith("#")}
        if wide:
            for rank, cell in wide.items():
                if cell.strip():
                    yield RankLine(rank, "", seconds, {"tokens": _number(cell, source, line, "load")})
            continue
        values = {
            name: _number(row[k], source, line, name)
            for name, k in columns.items()
            if name not in ("rank", "time") and row[k].strip() not in ("", "-", "nan", "NaN")
        }
        if values.get("share", 0.0) > 1.0:
            raise InputError(f"{source}, line {line:,}: a share of {values['share']:g}; expected 0 to 1")
        if values:
            yield RankLine(row[columns["rank"]].strip(), "", seconds, values)


def delimiter_of(text: str) -> str:
    """Return what separates the names of the first line."""
    first = text.lstrip("\ufeff\r\n ").split("\n", 1)[0]
    return max(",;\t|", key=first.count)


def _number(cell: str, source: str, line: int, name: str) -> float:
    try:
        value = float(cell.strip().rstrip("%")) * (0.01 if cell.strip().endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2**53:
        raise InputError(f"{source}, line {line:,}: {name} is {shown(cell)}; expected a number of zero or more")
    return value


def _time(cell: str, source: str, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        found = clock_of(cell)
        if found is None:
            raise InputError(
                f"{source}, line {line:,}: time is {shown(cell)}; expected seconds or a date-time"
            ) from None
        return found
    for factor in (1e18, 1e15, 1e12):  # epochs in nano-, micro- and milliseconds
        if value >= factor:
            return value / (factor / 1e9)
    return value
