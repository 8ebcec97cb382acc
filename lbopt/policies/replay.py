"""replay: a router's own log, followed request by request.

The log gives, for each request of the trace in order, the worker and the step (`start_step`) or the time in seconds
(`start_time`) at which it started; CSV with these column names or NPZ with these arrays (`req_worker` and
`req_start_step` are accepted too). A row that cannot be followed, because the request is not yet known, the worker
does not exist or has no free slot, is named.

A log of other requests, or in another order, would be followed without a word and mean nothing. So it must have as many
rows as the trace has requests, and where it also says how long its requests were or when they came, these have to be
the requests of the trace (`lbopt.policies.log_join`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.files import called, listed, opened, shown, starts_with
from lbopt.files.npz import LARGEST_ARCHIVE, NpzFile
from lbopt.model import Trace
from lbopt.model.integers import integer_array
from lbopt.policies.log_join import RequestsOfLog, csv_columns
from lbopt.policies.observation import Observation
from lbopt.policies.policy import Admission

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
