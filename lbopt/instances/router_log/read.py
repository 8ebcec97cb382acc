"""`read_router_log`: from a file to a checked `RouterLog`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS
from lbopt.exceptions import InputError
from lbopt.files import listed
from lbopt.instances.router_log.endings import (
    FINISHED,
    RUNNING,
    UNKNOWN,
    ColumnReading,
    RouterLog,
    first_of_each,
    identical_note,
    read_endings,
    settle_attempts,
)
from lbopt.instances.router_log.guess import LABELS, Choice, Chooser, missing_cells
from lbopt.instances.router_log.order import loose_lengths, odd_paces, out_of_order, refuse_swapped_tokens, remarks
from lbopt.instances.router_log.quantities import Clock, read_clock, read_counts, read_workers
from lbopt.instances.router_log.table import read_table
from lbopt.instances.router_log.times import Plan, check_pace, plan_times, seconds_of, settle_units

#: Characters of an id; an array of ids takes the room of the longest in every row.
LONGEST_ID = 512


def read_router_log(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    name: str | None = None,
) -> RouterLog:
    """Read a router's log: one row an attempt to serve a request, with the worker that served it.

    Parameters
    ----------
    path
        CSV (comma, semicolon, tab or bar), plain or gzip, Parquet, JSON lines, a JSON array, one JSON object with a
        list of records or with arrays over requests, or OpenTelemetry spans.
    columns
        Column by quantity where names are not recognised: ``{"worker": "pod", "first_token": "t1"}``. Columns joined
        by "+" make one worker together, or counts that are added; "" or "-" says that there is none. "rows" names the
        list of a JSON file that holds the records, where it has several.
    unit
        "s", "ms", "us" or "ns", the unit of all numeric times, whatever names and magnitudes say.
    name
        What to call the log; the name of the file by default.

    Raises
    ------
    InputError
        Where the file cannot be read, a quantity is missing or may be one of several columns, or rows contradict
        one another. The message gives the line, and never an id.
    """
    if unit is not None and unit not in SECONDS:
        raise InputError(f"unit is {unit!r}; expected s, ms, us or ns")
    given = dict(columns or {})
    chooser = open_log(path, given)
    table = chooser.table
    notes = list(table.notes)
    ids = chooser.find("id")
    if ids is None and (note := identical_note(table)):
        notes.append(note)
    rows = _Rows(chooser, ids, unit, notes)
    return rows.log(name or Path(path).name, {**table.left_out, **rows.left_out})


def open_log(path: str | os.PathLike[str], given: dict[str, str]) -> Chooser:
    """Return the table of a file with its columns, without the rows that its export says are no requests, or doubled.

    Parameters
    ----------
    given
        Columns by quantity; "rows" is taken out of them.
    """
    chooser = Chooser(read_table(path, given.pop("rows", None)), given)
    chooser = _kept(chooser, *_requests(chooser))
    return chooser if chooser.find("id") is None else _kept(chooser, first_of_each(chooser.table), "doubled")


def _kept(chooser: Chooser, rows: NDArray[np.bool_], reason: str) -> Chooser:
    """Return some rows, and count the others for a reason."""
    if rows.all():
        return chooser
    table = chooser.table.take(rows)
    table.left_out[reason] = int(rows.size - rows.sum())
    return chooser.of(table)


def _requests(chooser: Chooser) -> tuple[NDArray[np.bool_], str]:
    """Return bool (N,), which rows of a table are requests as its export says, and why the others are none."""
    table, only = chooser.table, chooser.export.only
    if only is not None and only[0] in table.columns:
        pattern = re.compile(only[1], re.IGNORECASE)
        return np.array([bool(pattern.fullmatch(text.strip())) for text in table.columns[only[0]]]), only[2]
    counts = [chooser.find(quantity) for quantity in ("prompt", "output")] if chooser.export.of_gateway else []
    silent = [missing_cells(chooser.texts(choice)) for choice in counts if choice is not None]
    return ~(silent[0] & silent[1]) if len(silent) == 2 else np.ones(len(table), dtype=bool), "calls without tokens"


class _Rows:
    """The rows of a table, read and checked.

    Parameters
    ----------
    chooser
        The table and its columns.
    ids
        The column of ids, if any.
    unit
        The unit that an option named.
    notes
        Where notes go (changed in place).
    """

    def __init__(self, chooser: Chooser, ids: Choice | None, unit: str | None, notes: list[str]) -> None:
        self.chooser, self.table, self.notes = chooser, chooser.table, notes
        self.left_out: dict[str, int] = {}
        prompt_at, output_at = chooser.need("prompt"), chooser.need("output")
        worker_at = chooser.need("worker")
        self.plan = plan_times(chooser)
        if (caveat := chooser.export.caveat) and caveat[0] in self.plan.begin_column.names:
            notes.append(caveat[1])
        self.status, failed = chooser.find("status"), chooser.find("error")
        self.choices = {"id": ids, "prompt": prompt_at, "output": output_at, "worker": worker_at, "status": self.status}
        self.choices["error"] = failed

        found = ((quantity, chooser.find(quantity)) for quantity in LABELS)
        self.labels = {quantity: chooser.texts(choice) for quantity, choice in found if choice is not None}

        shift = int(self.plan.after_first_token)
        prompt, no_prompt = read_counts(chooser, prompt_at)
        output, no_output = read_counts(chooser, output_at)
        self.worker, self.workers, no_worker = read_workers(chooser, worker_at)
        self.prompt, self.output = prompt + shift, np.maximum(output - shift, 0)
        self.ids = self._ids(ids)
        steps = np.where(no_output | (self.output < 1), np.nan, self.output).astype(np.float64)
        self.clocks = _clocks(chooser, self.plan, unit)
        notes += settle_units(self.clocks, self.plan, steps, max(len(self.workers), 1))
        times = seconds_of(self.clocks, self.plan, steps)
        if self.plan.after_first_token:  # an answer that does not stream is called first and last token at its end
            times = replace(times, start=np.where((times.start >= times.finish) & (steps > 1), np.nan, times.start))

        if silent := int(np.sum(no_output & ~np.isnan(times.finish))):
            notes.append(f"{silent:,} attempts have a finish and no output; they count as running")
        said, more = read_endings(self.table, self.status, failed)
        notes += more
        unfinished = np.isnan(times.finish) | no_output
        if claimed := int(np.sum(np.isnan(times.finish) & (said == FINISHED) & ~np.isnan(times.start))):
            notes.append(f"{claimed:,} attempts are called finished without a finish; they count as running")
        self.ending = np.where((said == "") | (said == FINISHED), np.where(unfinished, RUNNING, FINISHED), said)
        times = replace(times, finish=np.where(no_output & (self.ending == RUNNING), np.nan, times.finish))

        unstarted = np.isnan(times.start)
        kept = self._leave_out(unstarted & (self.ending == FINISHED), "no start of decoding", np.ones_like(unstarted))
        if dark := self.left_out.get("no start of decoding"):
            notes.append(f"{dark:,} finished requests do not say when decoding started; workers held more than is seen")
        kept = self._leave_out(unstarted, "never started to decode", kept)
        kept = self._leave_out(self.ending == UNKNOWN, "unknown status", kept)
        for what, gone in (("prompt", no_prompt), ("worker", no_worker), ("arrival", np.isnan(times.arrival))):
            if (kept & gone).any():
                row = int(np.argmax(kept & gone))
                raise InputError(
                    f"{self.table.where(row)}: no {what}; expected one in every row{self.table.hint_at(row)}"
                )
        kept = self._leave_out((self.ending == FINISHED) & np.isnan(steps), "no decode step", kept)
        if not kept.any():
            raise InputError(
                f"{self.table.source} holds no request that says when its decoding started ({listed(self.left_out)})"
                f"{chooser.export.hints.get('start', '')}"
            )
        broken = out_of_order(self.table, times, kept, self.clocks)
        if broken.any():
            notes.append(f"{int(broken.sum()):,} rows are left out, since arrival <= start <= finish does not hold")
        kept = self._leave_out(broken, "times out of order", kept)
        finished = kept & (self.ending == FINISHED)
        at_end = replace(times, finish=np.where(finished, times.finish, np.nan))
        took = (times.finish - times.start)[finished]
        refuse_swapped_tokens(self.table, took, self.prompt[finished], self.output[finished])
        odd = check_pace(at_end, steps, self.clocks) or odd_paces(self.table, times, finished, steps)
        loose = loose_lengths(self.table, took, self.output[finished])
        notes += [note for note in (odd, loose) if note]
        if ids is not None:
            notes += settle_attempts(self.table, np.flatnonzero(kept), self.ids, times, self.worker, self.ending)
        notes += remarks(chooser, self.plan, times, kept, prompt, len(self.workers))
        self.times, self.kept = times, kept

    def log(self, name: str, left_out: dict[str, int]) -> RouterLog:
        """Return the rows that are kept in the order of start, seconds from the first arrival."""
        kept, times = np.flatnonzero(self.kept), self.times
        order = kept[np.lexsort((times.finish[kept], self.worker[kept], times.arrival[kept], times.start[kept]))]
        start = times.start[order]
        arrival = np.minimum(times.arrival[order], start)
        first = float(arrival.min())
        used, worker = np.unique(self.worker[order], return_inverse=True)
        origin = None if times.origin is None else times.origin + round(first * 1e9)
        return RouterLog(
            name=name,
            ids=np.array([self.ids[row] for row in order], dtype=np.str_),
            arrival=arrival - first,
            start=start - first,
            finish=np.maximum(times.finish[order], start) - first,
            prompt=self.prompt[order],
            output=self.output[order],
            worker=worker.astype(np.int64),
            ending=self.ending[order].astype(np.str_),
            workers=tuple(self.workers[index] for index in used),
            columns=tuple(_readings(self.choices, self.plan, self.clocks, self.chooser)),
            left_out=left_out,
            notes=tuple(self.notes),
            origin=None if origin is None else str(np.datetime64(origin, "ns")) + "Z",
            labels={quantity: np.array(texts, dtype=np.str_)[order] for quantity, texts in self.labels.items()},
        )

    def _ids(self, choice: Choice | None) -> list[str]:
        """Return the ids; a row without one is called by its number."""
        texts = [] if choice is None else self.chooser.texts(choice)
        numbers = (f"#{place}" for place in self.table.places)
        long = next((row for row, text in enumerate(texts) if len(text) > LONGEST_ID), None)
        if long is not None:
            raise InputError(
                f"{self.table.where(long)}: the id has {len(texts[long]):,} characters; expected at most {LONGEST_ID}: "
                "name another column, --column id=NAME"
            )
        if not texts:
            return list(numbers)
        return [text.strip() or number for text, number in zip(texts, numbers, strict=True)]

    def _leave_out(self, rows: NDArray[np.bool_], reason: str, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Count the rows that go for a reason, and return those that stay.

        Parameters
        ----------
        rows
            bool (N,), the rows that go.
        kept
            bool (N,), the rows that were left so far.
        """
        if count := int(np.sum(kept & rows)):
            self.left_out[reason] = count
        return kept & ~rows


def _clocks(chooser: Chooser, plan: Plan, unit: str | None) -> dict[str, Clock]:
    clocks = {
        "arrival": read_clock(chooser, plan.arrival, "arrival", absolute=True),
        "begin": read_clock(chooser, plan.begin_column, plan.begin, absolute=plan.begin in ("start", "first_token")),
        "end": read_clock(chooser, plan.end_column, plan.end, absolute=plan.end == "finish"),
    }
    if unit is not None:
        for clock in clocks.values():
            if clock.unit != "date-time":
                clock.unit, clock.said = unit, "option"
    return clocks


def _readings(
    choices: dict[str, Choice | None], plan: Plan, clocks: dict[str, Clock], chooser: Chooser
) -> list[ColumnReading]:
    """Say how each quantity was read.

    Parameters
    ----------
    choices
        Columns of what is no time.
    plan, clocks
        Columns of the times.
    chooser
        Finds the columns that are only remarked on.
    """
    units = {"prompt": "tokens", "output": "tokens", "cached": "tokens"}
    extra = {quantity: chooser.find(quantity) for quantity in ("cached", *LABELS)}
    said = [
        ColumnReading(
            quantity=quantity, column=" + ".join(choice.names), unit=units.get(quantity, ""), given=choice.given
        )
        for quantity, choice in {**choices, **extra}.items()
        if choice is not None
    ]
    arrival, begin, end = clocks["arrival"], clocks["begin"], clocks["end"]
    parts = {
        "arrival": [arrival],
        plan.begin if plan.begin in ("start", "first_token") else "start": [begin],
        "finish": [end],
    }
    if plan.begin in ("ttft", "queue"):
        parts["start"] = [arrival, begin]
    if plan.end != "finish":
        parts["finish"] = [arrival, end] if plan.end == "e2e" else [*parts.get("start", [begin]), end]
    for quantity, clock in parts.items():
        units_of = list(dict.fromkeys(one.unit or "" for one in clock))
        said.append(
            ColumnReading(
                quantity=quantity,
                column=" + ".join(one.name for one in clock)
                + (" x output" if quantity == "finish" and plan.end == "tpot" else ""),
                unit=" + ".join(units_of),
                given=any(one.given for one in clock),
            )
        )
    return said
