"""The same loads as a table: one row a rank and moment, one column a rank, or Grafana's exports of panels.

Grafana writes a column for each series, named by the metric and its labels, or by a legend; or rows of series, time and
value. Metrics are those of `lbopt.instances.rank_log.metrics`. What a column such as "engine 0" holds is concluded from
its values, shares or tokens; where both fit neither, it is asked.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from lbopt.exceptions import InputError
from lbopt.files import csv_records, shown
from lbopt.instances.rank_log.lines import RankLine, clock_of
from lbopt.instances.rank_log.metrics import METRIC, read_text

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
    r"(?i)^(dp|rank|worker|engine|gpu|dp_?rank|load|tokens|share|running|waiting)"
    r"[ _#:-]?(\d{1,5})(?:[ _-]?(tokens|load))?$"
)
#: What a wide column's own words say that it holds.
_HELD = {"load": "tokens", "tokens": "tokens", "share": "share", "running": "running", "waiting": "waiting"}
#: Tokens of a rank are more than this at some moment; running requests are not.
_TOKENS = 5000
_SERIES = {"series", "time", "value"}
#: A column of requests: a table that has it is none of ranks.
_OF_REQUESTS = re.compile(r"(?i)prompt|input|output|completion|request.?id|arriv|finish|ttft|latency")
_NAMELESS = re.compile(r'^\{__name__="([\w:]+)"(?:, ?)?')
_UNKNOWN = ("", "-", "nan", "NaN", "null", "undefined")


def header_of(text: str) -> tuple[list[str], str]:
    """Return the names of the first line, and what separates them; Excel's ``sep=`` line is passed over."""
    first = re.sub(r"\Asep=.\s*", "", text.lstrip("\ufeff\r\n ")).split("\n", 1)[0].strip()
    delimiter = max(",;\t|", key=re.sub(r'"(?:[^"]|"")*"', "", first).count)
    try:
        return next(csv.reader([first], delimiter=delimiter), []), delimiter
    except csv.Error:
        return [], delimiter


def columns_of(header: Sequence[str]) -> dict[str, int] | None:
    """Return the columns of a table of ranks by quantity, those of a wide one by "#" and name; None where it is none.

    A wide column's name is that of a metric, or what it holds and the rank, as in "#tokens 3".
    """
    names = [_NAMELESS.sub(r"\1{", name.strip().lstrip("\ufeff")) for name in header]
    plain = [re.sub(r"[^a-z]", "", name.lower()) for name in names]
    found = {
        quantity: next(plain.index(one) for one in known if one in plain)
        for quantity, known in LONG.items()
        if any(one in plain for one in known)
    }
    time = {"time": found["time"]} if "time" in found else {}
    if metrics := {f"#{name}": k for k, name in enumerate(names) if METRIC.match(name)}:
        return metrics | time
    if set(plain) == _SERIES:
        return time | {"series": plain.index("series"), "value": plain.index("value")}
    if any(_OF_REQUESTS.search(name) for name in names):
        return None
    if "rank" in found and {"tokens", "share", "running"} & found.keys():
        return found
    matches = {k: match for k, name in enumerate(names) if (match := _WIDE.match(name))}
    wide = {f"#{_HELD.get((one[3] or one[1]).lower(), '')} {one[2]}": k for k, one in matches.items()}
    return None if len(wide) < 2 or any("step" in name.lower() for name in names) else wide | time


def read_table(text: str, source: str) -> Iterator[RankLine]:
    """Yield what the rows say.

    Raises
    ------
    InputError
        Where a row is shorter than the header, a value is none, or columns do not say what they hold.
    """
    header, delimiter = header_of(text)
    columns = columns_of(header) or {}
    wide = {name[1:]: k for name, k in columns.items() if name.startswith("#")}
    held = _held(text, source, wide, header, delimiter) if any(name.startswith(" ") for name in wide) else ""
    for line, row in csv_records(text, source, delimiter=delimiter):
        if not any(cell.strip() for cell in row) or row[0].startswith("sep=") or columns_of(row) == columns:
            continue
        if len(row) <= max(columns.values()):
            raise InputError(f"{source}, line {line:,}: {len(row)} fields; expected more, as in the header")
        when = row[columns["time"]].strip() if "time" in columns else ""
        seconds = _time(when, source, line) if when else None
        if "series" in columns:
            wide = {_NAMELESS.sub(r"\1{", row[columns["series"]].strip()): columns["value"]}
        if wide:
            cells = {name: row[k] for name, k in wide.items() if row[k].strip() not in _UNKNOWN}
            yield from _wide({k: _number(v, source, line, k) for k, v in cells.items()}, seconds, held)
            continue
        values = {
            name: _number(row[k], source, line, name)
            for name, k in columns.items()
            if name not in ("rank", "time") and row[k].strip() not in _UNKNOWN
        }
        if values.get("share", 0.0) > 1.0:
            raise InputError(f"{source}, line {line:,}: a share of {values['share']:g}; expected 0 to 1")
        if values:
            yield RankLine(row[columns["rank"]].strip(), "", seconds, values)


def _wide(values: dict[str, float], seconds: float | None, held: str) -> Iterator[RankLine]:
    yield from read_text("".join(f"{name} {value!r}\n" for name, value in values.items()).encode(), seconds)
    for name, value in values.items():
        quantity, _, rank = name.partition(" ")
        if rank.isdigit():
            yield RankLine(rank, "", seconds, {quantity or held: value})


def _held(text: str, source: str, wide: dict[str, int], header: Sequence[str], delimiter: str) -> str:
    """Return what columns hold that name a rank alone: shares of the KV cache, or tokens."""
    rows = list(csv_records(text, source, delimiter=delimiter))
    known = [row[k].strip() for _, row in rows for k in wide.values() if k < len(row)]
    numbers = [_number(cell, source, 0, "load") for cell in known if cell[:1].isdigit()]
    most = max(numbers, default=0.0)
    if most > _TOKENS:
        return "tokens"
    if most <= 1.0 and (any(value % 1 for value in numbers) or any(cell.endswith("%") for cell in known)):
        return "share"
    names = ", ".join(header[k] for k in list(wide.values())[:3])
    raise InputError(
        f"{source}: its columns {names} ... do not say whether they hold tokens, shares of the KV cache or running "
        "requests; call them tokens_0, share_0 or running_0"
    )


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
