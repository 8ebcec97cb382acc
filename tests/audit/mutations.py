"""Router logs as people send them: rows shuffled, columns renamed, units mixed, rows lost.

`mutate` writes a log with one such change and says what an audit may answer: `SAME`, the answer of the clean log, up to
the resolution of its times; `REFUSE`, an error that says what is wrong; `EITHER`, one of the two, where "same" is meant
within the audit's own interval when rows were lost. A wrong answer without a warning is none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

import numpy as np
from audit.logs import (
    CLOCKS,
    COLUMNS,
    TIMES,
    Row,
    date_time,
    hours,
    milliseconds,
    seconds,
    to_fields,
    to_text,
)

SAME, EITHER, REFUSE = "same", "same-or-refuse", "refuse"

#: Names that routers and engines give to the columns.
ALIASES = {
    "id": ("request_id", "req_id", "rid", "uuid"),
    "arrival": ("created_at", "arrival_time", "arrived_at", "received_at", "submit_time"),
    "start": ("decode_start", "start_time", "started_at", "scheduled_at"),
    "finish": ("end_time", "finish_time", "finished_at", "completed_at", "end"),
    "prompt_tokens": ("input_tokens", "prompt_len", "input_length", "num_prompt_tokens"),
    "output_tokens": ("completion_tokens", "output_len", "generated_tokens", "num_output_tokens"),
    "worker": ("dp_rank", "worker_id", "rank", "replica", "instance"),
}

Rng = np.random.Generator
Mutated = tuple[str, str]


def plain(rows: list[Row]) -> str:
    """The clean log of rows."""
    return to_text(rows[0], to_fields(rows))


def some(rows: list[Row], rng: Rng, low: float = 0.01, high: float = 0.1) -> list[int]:
    """Indices of some rows: a random share between two bounds, at least one."""
    count = max(1, round(rng.uniform(low, high) * len(rows)))
    return sorted(rng.choice(len(rows), count, replace=False).tolist())


def changed(rows: list[Row], rng: Rng, change: Callable[[Row], Row]) -> list[Row]:
    """Rows of which some are changed."""
    picked = set(some(rows, rng))
    return [{**row, **change(row)} if i in picked else row for i, row in enumerate(rows)]


def any_worker(rows: list[Row], rng: Rng) -> int:
    """One of the workers of the rows."""
    return int(rng.choice(sorted({row["worker"] for row in rows})))


def shuffled(rows: list[Row], rng: Rng) -> Mutated:
    """Rows in another order."""
    return plain([rows[i] for i in rng.permutation(len(rows))]), SAME


def reordered(rows: list[Row], rng: Rng) -> Mutated:
    """Columns in another order."""
    names = [list(rows[0])[i] for i in rng.permutation(len(rows[0]))]
    return plain([{name: row[name] for name in names} for row in rows]), SAME


def renamed(rows: list[Row], rng: Rng) -> Mutated:
    """Columns with other common names."""
    header = [str(rng.choice(ALIASES[name])) if name in ALIASES else name for name in rows[0]]
    return to_text(header, to_fields(rows)), SAME


def in_unit(unit: str, expectation: str) -> Callable[[list[Row], Rng], Mutated]:
    """A mutation that writes all times in another way."""

    def written(rows: list[Row], rng: Rng) -> Mutated:
        """All times in another unit."""
        return to_text(rows[0], to_fields(rows, CLOCKS[unit])), expectation

    return written


def ms_named(rows: list[Row], rng: Rng) -> Mutated:
    """Milliseconds, which the columns' names say."""
    header = [f"{name}_ms" if name in TIMES else name for name in rows[0]]
    return to_text(header, to_fields(rows, milliseconds)), SAME


def zulu(rows: list[Row], rng: Rng) -> Mutated:
    """Dates and times that end in Z."""
    return plain_iso(rows).replace("+00:00", "Z"), SAME


def plain_iso(rows: list[Row]) -> str:
    """The log with dates and times of UTC."""
    return to_text(rows[0], to_fields(rows, CLOCKS["iso"]))


def semicolons(rows: list[Row], rng: Rng) -> Mutated:
    """A semicolon between fields."""
    return to_text(rows[0], to_fields(rows), ";"), SAME


def tabs(rows: list[Row], rng: Rng) -> Mutated:
    """A tabulator between fields."""
    return to_text(rows[0], to_fields(rows), "\t"), SAME


def quoted(rows: list[Row], rng: Rng) -> Mutated:
    """Each field in quotes."""
    lines = [list(rows[0]), *to_fields(rows)]
    return "".join(",".join(f'"{field}"' for field in line) + "\n" for line in lines), SAME


def byte_order_mark(rows: list[Row], rng: Rng) -> Mutated:
    """A byte-order mark at the head of the file."""
    return "\ufeff" + plain(rows), SAME


def carriage_returns(rows: list[Row], rng: Rng) -> Mutated:
    """Lines that end as on Windows."""
    return plain(rows).replace("\n", "\r\n"), SAME


def no_last_newline(rows: list[Row], rng: Rng) -> Mutated:
    """A last line without its end."""
    return plain(rows).rstrip("\n"), SAME


def blank_lines(rows: list[Row], rng: Rng) -> Mutated:
    """Empty lines here and there, and at the end."""
    lines = plain(rows).splitlines()
    for i in reversed(some(lines[1:], rng)):
        lines.insert(i + 1, "")
    return "\n".join(lines) + "\n\n\n", SAME


def more_columns(rows: list[Row], rng: Rng) -> Mutated:
    """Columns that an audit does not need."""
    models = rng.integers(0, 3, len(rows)).tolist()
    return plain([{"model": f"m-{m}", **row, "priority": 0} for row, m in zip(rows, models, strict=True)]), SAME


def header_again(rows: list[Row], rng: Rng) -> Mutated:
    """The header once more within the file, as where files were joined."""
    lines = plain(rows).splitlines()
    lines.insert(int(rng.integers(2, len(lines))), lines[0])
    return "\n".join(lines) + "\n", EITHER


def lost(rows: list[Row], rng: Rng) -> Mutated:
    """1 % to 30 % of the rows lost."""
    gone = set(some(rows, rng, 0.01, 0.3))
    return plain([row for i, row in enumerate(rows) if i not in gone]), EITHER


def doubled(rows: list[Row], rng: Rng) -> Mutated:
    """Some rows twice."""
    return plain([*rows, *(rows[i] for i in some(rows, rng))]), EITHER


def one_column_in_ms(rows: list[Row], rng: Rng) -> Mutated:
    """One time column in milliseconds, the others in seconds."""
    name = str(rng.choice(TIMES))
    expectation = EITHER if name == "finish" else REFUSE  # a late finish breaks no order
    return to_text(rows[0], to_fields(rows, {name: milliseconds})), expectation


def one_column_in_epoch(rows: list[Row], rng: Rng) -> Mutated:
    """One time column since 1970, the others since the router's start."""
    name = str(rng.choice(TIMES))
    expectation = EITHER if name == "finish" else REFUSE
    return to_text(rows[0], to_fields(rows, {name: CLOCKS["epoch-s"]})), expectation


def zones_differ(rows: list[Row], rng: Rng) -> Mutated:
    """Dates and times of several zones, each with its offset."""
    clocks = {name: date_time(hours(float(rng.choice([-5, -3.5, 0, 1, 5.5, 9])))) for name in TIMES}
    return to_text(rows[0], to_fields(rows, clocks)), SAME


def zones_lost(rows: list[Row], rng: Rng) -> Mutated:
    """One time column of another zone than the others, without offsets."""
    name, offset = str(rng.choice(TIMES)), int(rng.choice([-5, -1, 2, 9]))
    clocks = {other: date_time(hours(offset) if other == name else UTC, named=False) for other in TIMES}
    backward = (name, offset > 0) in (("arrival", True), ("finish", False)) or name == "start"
    return to_text(rows[0], to_fields(rows, clocks)), REFUSE if backward else EITHER


def clock_skew(rows: list[Row], rng: Rng) -> Mutated:
    """A clock of its own at each worker: starts and finishes are 10 ms to 5 s late or early."""
    workers = sorted({row["worker"] for row in rows})
    size = 10 ** rng.uniform(-2, np.log10(5))
    late = dict(zip(workers, rng.uniform(-size, size, len(workers)).tolist(), strict=True))
    skewed = [{**r, "start": r["start"] + late[r["worker"]], "finish": r["finish"] + late[r["worker"]]} for r in rows]
    return plain(skewed), EITHER


def truncated(rows: list[Row], rng: Rng) -> Mutated:
    """A file that ends within a row."""
    lines = plain(rows).splitlines(keepends=True)
    last = int(rng.integers(len(lines) // 2, len(lines)))
    return "".join(lines[:last]) + lines[last][: int(rng.integers(3, len(lines[last]) - 3))], EITHER


def swapped(one: str, other: str) -> Callable[[list[Row], Rng], Mutated]:
    """A mutation that swaps the names of two columns."""
    names = {one: other, other: one}

    def written(rows: list[Row], rng: Rng) -> Mutated:
        """Two columns with each other's names."""
        return to_text([names.get(name, name) for name in rows[0]], to_fields(rows)), REFUSE

    return written


def field_too_many(rows: list[Row], rng: Rng) -> Mutated:
    """A row with one more field, at any place."""
    fields = to_fields(rows)
    line = fields[int(rng.integers(len(fields)))]
    line.insert(int(rng.integers(len(line) + 1)), "7")
    return to_text(rows[0], fields), EITHER


def field_too_few(rows: list[Row], rng: Rng) -> Mutated:
    """A row without one of its fields."""
    fields = to_fields(rows)
    line = fields[int(rng.integers(len(fields)))]
    del line[int(rng.integers(len(line)))]
    return to_text(rows[0], fields), EITHER


def no_worker(rows: list[Row], rng: Rng) -> Mutated:
    """Some rows without a worker."""
    return plain(changed(rows, rng, lambda row: {"worker": ""})), EITHER


def not_a_number(rows: list[Row], rng: Rng) -> Mutated:
    """Some rows with a number of tokens that is none."""
    name, word = str(rng.choice(COLUMNS[4:6])), str(rng.choice(["NaN", "nan", "null", "-", "inf"]))
    return plain(changed(rows, rng, lambda row: {name: word})), EITHER


def negative(rows: list[Row], rng: Rng) -> Mutated:
    """Some rows with a negative number of tokens."""
    name = str(rng.choice(COLUMNS[4:6]))
    return plain(changed(rows, rng, lambda row: {name: -row[name]})), EITHER


def no_finish(rows: list[Row], rng: Rng) -> Mutated:
    """Some rows that have not finished."""
    fields = to_fields(rows)
    for i in some(rows, rng):
        fields[i][list(rows[0]).index("finish")] = ""
    return to_text(rows[0], fields), EITHER


def finish_before_start(rows: list[Row], rng: Rng) -> Mutated:
    """Some rows whose finish is before their start."""
    return plain(changed(rows, rng, lambda row: {"finish": row["start"], "start": row["finish"]})), EITHER


def worker_lost(rows: list[Row], rng: Rng) -> Mutated:
    """All rows of one worker lost."""
    gone = any_worker(rows, rng)
    return plain([row for row in rows if row["worker"] != gone]), EITHER


def header_lost(rows: list[Row], rng: Rng) -> Mutated:
    """A file without its header."""
    return plain(rows).split("\n", 1)[1], REFUSE


def column_lost(rows: list[Row], rng: Rng) -> Mutated:
    """A file without one of the columns that the law needs."""
    gone = str(rng.choice([name for name in COLUMNS if name not in ("id", "arrival")]))
    return plain([{name: value for name, value in row.items() if name != gone} for row in rows]), REFUSE


def header_alone(rows: list[Row], rng: Rng) -> Mutated:
    """A file without rows."""
    return to_text(rows[0], []), REFUSE


def rounded(rows: list[Row], rng: Rng) -> Mutated:
    """Times to the whole second, in which steps cannot be told apart."""
    whole = {name: lambda time: seconds(round(time)) for name in TIMES}
    return to_text(rows[0], to_fields(rows, whole)), EITHER


KINDS: dict[str, Callable[[list[Row], Rng], Mutated]] = {
    "shuffled": shuffled,
    "reordered": reordered,
    "renamed": renamed,
    "ms": in_unit("ms", EITHER),  # nothing says so but the size of the numbers
    "ms-named": ms_named,
    "epoch-s": in_unit("epoch-s", SAME),
    "epoch-ms": in_unit("epoch-ms", SAME),
    "epoch-ms-whole": in_unit("epoch-ms-whole", EITHER),
    "iso": in_unit("iso", SAME),
    "iso-zone": in_unit("iso-zone", SAME),
    "iso-naive": in_unit("iso-naive", SAME),
    "zulu": zulu,
    "semicolons": semicolons,
    "tabs": tabs,
    "quoted": quoted,
    "byte-order-mark": byte_order_mark,
    "carriage-returns": carriage_returns,
    "no-last-newline": no_last_newline,
    "blank-lines": blank_lines,
    "more-columns": more_columns,
    "header-again": header_again,
    "lost": lost,
    "doubled": doubled,
    "one-column-in-ms": one_column_in_ms,
    "one-column-in-epoch": one_column_in_epoch,
    "zones-differ": zones_differ,
    "zones-lost": zones_lost,
    "clock-skew": clock_skew,
    "truncated": truncated,
    "start-finish-swapped": swapped("start", "finish"),
    "prompt-output-swapped": swapped("prompt_tokens", "output_tokens"),
    "arrival-start-swapped": swapped("arrival", "start"),
    "field-too-many": field_too_many,
    "field-too-few": field_too_few,
    "no-worker": no_worker,
    "not-a-number": not_a_number,
    "negative": negative,
    "no-finish": no_finish,
    "finish-before-start": finish_before_start,
    "worker-lost": worker_lost,
    "header-lost": header_lost,
    "column-lost": column_lost,
    "header-alone": header_alone,
    "rounded": rounded,
}


def mutate(rows: list[Row], kind: str, rng: Rng) -> Mutated:
    """The text of a mutated CSV file, and what an audit may answer: `SAME`, `EITHER` or `REFUSE`.

    Parameters
    ----------
    rows
        Rows of `audit.logs.to_rows`; they are not changed.
    kind
        Of `KINDS`.
    rng
        Which rows, columns and sizes.
    """
    return KINDS[kind](rows, rng)
