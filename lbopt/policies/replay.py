"""replay: the requests of a log go where its router sent them.

Which request of a trace a row of a log is about: rows read strictly, and joined with the trace's requests.

A row is about the request of its place. Where the log says how long its requests were or when they came, that is
compared; where the rows agree in another order, and no two requests are alike, the log is put into the trace's order.

replay: a router's own log, followed request by request.

The log gives, for each request of the trace in order, the worker and the step (`start_step`) or the time in seconds
(`start_time`) at which it started; CSV with these column names or NPZ with these arrays (`req_worker` and
`req_start_step` are accepted too). A row that cannot be followed, because the request is not yet known, the worker
does not exist or has no free slot, is named.

A log of other requests, or in another order, would be followed without a word and mean nothing. So it must have as many
rows as the trace has requests, and where it also says how long its requests were or when they came, these have to be
the requests of the trace (`lbopt.policies.replay`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.columns import SECONDS, column_of, unit_in
from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.files import called, csv_table, listed, opened, read_text, shown, starts_with
from lbopt.files.npz import LARGEST_ARCHIVE, NpzFile
from lbopt.model import Trace
from lbopt.model.integers import integer_array
from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission

#: Quantities that say what a request is, and how well a column's name must fit at least.
_TOLD = {"prompt": 1, "output": 1, "arrival": 0}

#: Arrivals, in seconds after the first, are alike where they are within this.
_MILLISECOND = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class RequestsOfLog:
    """What a log says of its requests.

    Parameters
    ----------
    columns
        float64 (N,) by "prompt" and "output" (tokens) and "arrival" (s after the first), where the log has them.
    """

    columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def read(cls, columns: Mapping[str, Any], size: int, source: str) -> RequestsOfLog:
        """Return what columns of a file say of requests.

        Parameters
        ----------
        columns
            Columns of the file by name.
        """
        found = {}
        for kind, least in _TOLD.items():
            name = column_of(kind, columns, least)
            if name is None:
                continue
            try:
                values = np.asarray(columns[name], dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"{source}: {name} is not a column of numbers") from None
            if values.shape != (size,):
                raise InputError(f"{source} has {size} workers but {values.size} values of {name}")
            found[kind] = values * SECONDS[unit_in(name) or "s"] if kind == "arrival" else values
        return cls(found)

    def rows_of(self, trace: Trace, size: int, name: str) -> NDArray[np.int64] | None:
        """Return the row of each request, int64 (N,); None where the rows stand in the order of the requests.

        Raises
        ------
        InputError
            Where it is not a log of these requests, or it cannot be told which row is whose.
        """
        if size != len(trace):
            raise InputError(
                f"{name} has {size:,} rows, but the trace has {len(trace):,} requests; expected one row each"
            )
        known: dict[str, NDArray[Any]] = {"prompt": trace.prompt, "output": trace.output}
        if trace.arrival is not None:
            known["arrival"] = trace.arrival
        both = [
            (kind, _key(kind, self.columns[kind]), _key(kind, known[kind])) for kind in known if kind in self.columns
        ]
        if not both:
            return None
        alike = np.logical_and.reduce([log == own for _, log, own in both])
        if alike.all():
            return None
        by_log = np.lexsort([log for _, log, _ in both])
        by_own = np.lexsort([own for _, _, own in both])
        what = ", ".join(kind for kind, _, _ in both)
        if all((log[by_log] == own[by_own]).all() for _, log, own in both):
            apart = np.logical_or.reduce([np.diff(own[by_own]) != 0 for _, _, own in both])
            if not apart.all():
                raise InputError(
                    f"{name} has the requests of the trace in another order, and {int((~apart).sum()):,} of them equal "
                    f"another one by {what}; sort it in the order of the trace"
                )
            rows = np.empty(size, dtype=np.int64)
            rows[by_own] = by_log
            return rows
        raise InputError(
            f"{int(alike.sum()):,} of {size:,} rows of {name} agree with the trace by {what}; expected a log of the "
            "trace's requests"
        )


def _key(kind: str, values: NDArray[Any]) -> NDArray[Any]:
    if kind != "arrival":
        return values
    rounded: NDArray[Any] = np.round((values - values.min()) / _MILLISECOND)
    return rounded


def csv_columns(file: Path, name: str) -> dict[str, list[str]]:
    """Return the columns of a CSV file as text; blank lines are skipped.

    Raises
    ------
    InputError
        Where a row is not as wide as the header, which then would be about other columns, or the header is repeated.
    """
    header, rows = csv_table(read_text(file, name), name)
    columns = zip(*(row for _, row in rows), strict=True)
    return {column: list(cells) for column, cells in zip(header, columns, strict=True)}


_WORKER = ("worker", "req_worker")
_STEP = ("start_step", "req_start_step")
_TIME = ("start_time", "req_start_time")


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """A log to be followed.

    Parameters
    ----------
    worker
        int64 (N,).
    start
        int64 (N,) steps, or float64 (N,) seconds.
    by_time
        Whether `start` is in seconds: a request then starts at the first decision at or after its time.
    requests
        What the log says of its requests.
    """

    name: str
    worker: NDArray[np.int64]
    start: NDArray[Any]
    by_time: bool
    requests: RequestsOfLog = field(default_factory=RequestsOfLog)

    def of(self, trace: Trace) -> Replay:
        """Return the log with its rows in the order of the trace's requests.

        Raises
        ------
        InputError
            Where it is not a log of these requests.
        """
        rows = self.requests.rows_of(trace, self.worker.size, self.name)
        return self if rows is None else replace(self, worker=self.worker[rows], start=self.start[rows])

    @property
    def admission(self) -> Admission:
        """Pooled: a logged start is a late binding."""
        return "pooled"

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Start exactly the requests that the log starts now."""
        rows = observation.requests
        if rows.size and int(rows.max()) >= self.worker.size:
            raise InfeasibleDecisionError(
                f"{self.name} has {self.worker.size} rows but the trace has a request {int(rows.max())}"
            )
        now = observation.clock if self.by_time else observation.step
        due = self.start[rows] <= now
        if not self.by_time:
            self._refuse_missed(rows, observation)
        workers = np.where(due, self.worker[rows], -1)
        self._refuse_crowded(rows, workers, observation)
        return workers

    def _refuse_missed(self, rows: NDArray[np.int64], observation: Observation) -> None:
        missed = rows[self.start[rows] < observation.step]
        if missed.size:
            row = int(missed[0])
            waited = int(observation.waited[np.flatnonzero(rows == row)[0]])
            raise InfeasibleDecisionError(
                f"{self.name} row {row}: starts in step {self.start[row]} on worker {self.worker[row]}, but it "
                f"joined the pool in step {observation.step - waited} and had not started by step {observation.step}"
            )

    def _refuse_crowded(self, rows: NDArray[np.int64], workers: NDArray[np.int64], observation: Observation) -> None:
        taken = np.zeros_like(observation.free_slots)
        for row, worker in zip(rows[workers >= 0].tolist(), workers[workers >= 0].tolist(), strict=True):
            if worker >= taken.size:
                raise InfeasibleDecisionError(
                    f"{self.name} row {row}: names worker {worker}; the fleet has workers 0..{taken.size - 1}"
                )
            taken[worker] += 1
            if taken[worker] > observation.free_slots[worker]:
                raise InfeasibleDecisionError(
                    f"{self.name} row {row}: starts on worker {worker} in step {observation.step}, "
                    f"which has {observation.free_slots[worker]} free slots then"
                )


def load_replay(path: str | Path) -> Replay:
    """Read a log from CSV or NPZ.

    Raises
    ------
    InputError
        Where the file cannot be read, lacks a column, or holds entries that are no workers, steps or seconds.
    """
    file = Path(path)
    name = f"replay file '{called(path)}'"
    columns = _npz_columns(file, name) if starts_with(file, b"PK") else _numbers(csv_columns(file, name), name)
    worker = integer_array(f"{name}: worker", _pick(columns, _WORKER, name), ndim=(1,))
    for names, by_time in ((_STEP, False), (_TIME, True)):
        if any(column in columns for column in names):
            raw = _pick(columns, names, name)
            start = _seconds(raw, name) if by_time else integer_array(f"{name}: {names[0]}", raw, ndim=(1,))
            if start.shape != worker.shape:
                raise InputError(f"{name} has {worker.size} workers but {start.size} starts")
            told = RequestsOfLog.read(columns, worker.size, name)
            return Replay(name=f"replay:{file.name}", worker=worker, start=start, by_time=by_time, requests=told)
    raise InputError(f"{name} lacks start_step or start_time; it has {listed(columns)}")


def _seconds(raw: Any, name: str) -> NDArray[np.float64]:
    try:
        start = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: start_time is not in seconds: {error}") from None
    if not np.isfinite(start).all():
        raise InputError(f"{name}: start_time of row {int(np.argmin(np.isfinite(start)))} is missing")
    return start


def _npz_columns(file: Path, name: str) -> dict[str, Any]:
    with opened(file, name, largest=LARGEST_ARCHIVE) as stream:
        archive = NpzFile(stream, name)
        return {column: archive.array(column) for column in archive.names}


def _numbers(texts: dict[str, list[str]], name: str) -> dict[str, Any]:
    """Return the columns that are read here as numbers; float() is exact, an ulp too much would start a step late."""
    columns: dict[str, Any] = dict(texts)
    for column in (*_WORKER, *_STEP, *_TIME):
        if column in texts:
            values = []
            for row, text in enumerate(texts[column]):
                try:
                    values.append(float(text))
                except ValueError:
                    values.append(float("nan"))
                if values[-1] != values[-1]:
                    raise InputError(f"{name}: {column} of row {row} is {shown(text)}; expected a number")
            columns[column] = np.array(values)
    return columns


def _pick(columns: dict[str, Any], names: tuple[str, ...], name: str) -> Any:
    for column in names:
        if column in columns:
            return columns[column]
    raise InputError(f"{name} lacks the column {names[0]}; it has {listed(columns)}")
