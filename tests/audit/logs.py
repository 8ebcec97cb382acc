"""What a router writes of a run: rows, and CSV files of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
from audit.engine import Served

COLUMNS = ("id", "arrival", "start", "finish", "prompt_tokens", "output_tokens", "worker")
TIMES = COLUMNS[1:4]

#: Second 0 of a log whose times are of the calendar.
EPOCH = 1_760_000_000

Row = dict[str, Any]
Clock = Callable[[float], str]


def seconds(time: float) -> str:
    """Seconds, to the microsecond."""
    return f"{time:.6f}"


def milliseconds(time: float) -> str:
    """Milliseconds, to the microsecond."""
    return f"{time * 1e3:.3f}"


def epoch_seconds(time: float) -> str:
    """Seconds since 1970, to the microsecond."""
    whole, micros = divmod(round(time * 1e6), 10**6)
    return f"{EPOCH + whole}.{micros:06d}"


def epoch_milliseconds(time: float) -> str:
    """Milliseconds since 1970, to the microsecond."""
    whole, micros = divmod(round(time * 1e6), 1000)
    return f"{EPOCH * 1000 + whole}.{micros:03d}"


def whole_epoch_milliseconds(time: float) -> str:
    """Whole milliseconds since 1970."""
    return str(EPOCH * 1000 + round(time * 1e3))


def date_time(zone: tzinfo = UTC, named: bool = True) -> Clock:
    """ISO dates and times of a zone, to the microsecond, with or without the zone's offset."""

    def clock(time: float) -> str:
        at = datetime.fromtimestamp(EPOCH, zone) + timedelta(microseconds=round(time * 1e6))
        return (at if named else at.replace(tzinfo=None)).isoformat(timespec="microseconds")

    return clock


def hours(offset: float) -> tzinfo:
    """The zone of an offset."""
    return timezone(timedelta(hours=offset))


#: Ways to write a time, by their names in `write_csv`.
CLOCKS: dict[str, Clock] = {
    "s": seconds,
    "ms": milliseconds,
    "epoch-s": epoch_seconds,
    "epoch-ms": epoch_milliseconds,
    "epoch-ms-whole": whole_epoch_milliseconds,
    "iso": date_time(),
    "iso-zone": date_time(hours(2)),
    "iso-naive": date_time(named=False),
}


def to_rows(served: Served, seed: int = 0, status: bool = False) -> list[Row]:
    """Rows in order of arrival, with times in seconds and random ids.

    Parameters
    ----------
    served
        The run.
    seed
        Of the ids.
    status
        Whether the rows say how the request ended: "finished" or "cancelled".
    """
    words = np.random.default_rng(seed).integers(0, 2**32, (len(served.start), 2))
    ids = [f"{high:08x}{low:08x}" for high, low in words.tolist()]
    columns = [ids, *(c.tolist() for c in (served.arrival, served.start, served.finish))]
    columns += [c.tolist() for c in (served.prompt, served.output, served.worker)]
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]
    if status:
        for row, cancelled in zip(rows, served.cancelled.tolist(), strict=True):
            row["status"] = "cancelled" if cancelled else "finished"
    return rows


def to_fields(rows: Iterable[Row], clock: Clock | dict[str, Clock] = seconds) -> list[list[str]]:
    """The fields of each row, as text; times as one clock or each column's own clock writes them."""
    clocks = dict.fromkeys(TIMES, clock) if callable(clock) else {name: clock.get(name, seconds) for name in TIMES}
    return [[clocks[k](v) if k in clocks else str(v) for k, v in row.items()] for row in rows]


def to_text(header: Iterable[str], fields: Iterable[Iterable[str]], delimiter: str = ",") -> str:
    """The text of a CSV file."""
    return "".join(delimiter.join(line) + "\n" for line in (header, *fields))


def write_csv(served: Served, path: Path | str, unit: str = "s", order: str = "arrival", **how: Any) -> Path:
    """Write the log of a run and return its path.

    Parameters
    ----------
    served
        The run.
    path
        The file.
    unit
        Of `CLOCKS`.
    order
        Column by which the rows are sorted: a router writes them as requests finish, most often.
    how
        Further parameters of `to_rows`.
    """
    rows = sorted(to_rows(served, **how), key=lambda row: row[order])
    path = Path(path)
    path.write_text(to_text(rows[0], to_fields(rows, CLOCKS[unit])), encoding="utf-8")
    return path
