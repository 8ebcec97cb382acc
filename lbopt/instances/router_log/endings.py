"""A log as it is read, and how its attempts ended.

`RouterLog`: what a router's log says of each attempt to serve a request, checked, in seconds and whole tokens.

How each attempt ended, by the words of status columns and by later attempts under the same id.

Words are finish reasons of engines, states of routers, codes of HTTP and of spans. Rows with one id are the same row
written twice, attempts of which all but the last were in vain, or the sign of a wrong column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.router_log.cells import Table
from lbopt.instances.router_log.guess import NOTHING, Choice, coded
from lbopt.instances.router_log.times import Times

#: How an attempt ended. Attempts that were finished alone say how long a token takes; the others still held memory.
FINISHED, CANCELLED, TIMED_OUT, PREEMPTED, RETRIED, RUNNING = ENDINGS = (
    "finished",
    "cancelled",
    "timed out",
    "pre-empted",
    "retried",
    "still running",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReading:
    """Which column of the file a quantity was read from, and how.

    Parameters
    ----------
    quantity
        "id", "arrival", "start", "finish", "prompt", "output", "worker", "status", ...
    column
        Its name in the file; for a quantity made of several, these with a sign between, ``arrival + ttft``.
    unit
        "s", "ms", "us", "ns", "date-time", "tokens", "" and the like.
    given
        Whether an option named the column; otherwise its name and content were recognised.
    """

    quantity: str
    column: str
    unit: str = ""
    given: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RouterLog:
    """Attempts to serve requests, in the order in which their decoding started.

    Parameters
    ----------
    name
        What to call the log.
    ids
        (N,) texts. Confidential: no page shows one.
    arrival, start, finish
        float64 (N,), seconds since the first arrival: request known, decoding started, last token out. `finish` of an
        attempt that still ran is NaN.
    prompt
        int64 (N,), tokens in memory when decoding started.
    output
        int64 (N,), decode steps between start and finish, >= 1; of an attempt that still ran or did not finish, as many
        as are known, possibly 0.
    worker
        int64 (N,), 0 .. G - 1.
    ending
        (N,), of `ENDINGS`.
    workers
        (G,), the workers' names in the file.
    columns
        How the file was read.
    left_out
        Why rows are not here, and how many: {"doubled": 3}.
    notes
        Sentences for the reader of a report.
    origin
        Date-time of second 0, ISO 8601, where the file has one.
    labels
        (N,) texts each, by "model", "adapter", "tenant" and "group", where the file has them; "" where a row has none.
    rule
        The rule that wrote the log, where a record says it.
    counted
        (K, 2), moments in seconds and the steps until then, where a router counted them; None where none did.
    """

    name: str
    ids: NDArray[Any]
    arrival: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    worker: NDArray[np.int64]
    ending: NDArray[Any]
    workers: tuple[str, ...]
    columns: tuple[ColumnReading, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    origin: str | None = None
    labels: dict[str, NDArray[Any]] = field(default_factory=dict)
    rule: str | None = None
    counted: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name).shape for name in _ARRAYS}
        sizes |= {name: texts.shape for name, texts in self.labels.items()}
        if len(set(sizes.values())) > 1 or len(next(iter(sizes.values()))) != 1:
            raise InputError(f"the columns of log '{self.name}' differ in length: {sizes}")
        if self.ids.size == 0:
            raise InputError(f"log '{self.name}' holds no request that started to decode")
        if self.worker.min() < 0 or self.worker.max() >= len(self.workers):
            raise InputError(f"log '{self.name}' names workers outside 0..{len(self.workers) - 1}")
        if (np.diff(self.start) < 0).any():
            raise InputError(f"log '{self.name}' is not in the order of start")

    def __repr__(self) -> str:
        return f"<RouterLog {self.name}: {len(self):,} attempts, {len(self.workers)} workers, {self.span:,.0f} s>"

    def __len__(self) -> int:
        return int(self.ids.size)

    @property
    def is_finished(self) -> NDArray[np.bool_]:
        """(N,), whether the attempt ran to its end."""
        return np.asarray(self.ending == FINISHED)

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last start or finish."""
        return float(np.nanmax(np.concatenate([self.start, self.finish])))


_ARRAYS = ("ids", "arrival", "start", "finish", "prompt", "output", "worker", "ending")


UNKNOWN = "unknown"

#: Share of rows with an unknown word from which on the log is refused.
LARGEST_UNKNOWN = 0.01

_WORDS = {
    FINISHED: "finished finish stop stopped length lengthcapped ok success successful succeeded complete completed "
    "done eos eostoken endoftext endturn maxtokens stopsequence stopstring toolcalls toolcall tooluse functioncall "
    "contentfilter finishedstopped finishedlengthcapped statuscodeok true served matched unset statuscodeunset "
    "default debug warning",
    CANCELLED: "abort aborted cancel canceled cancelled clientdisconnect clientdisconnected disconnect disconnected "
    "clientclosedrequest finishedaborted interrupted killed incomplete",
    TIMED_OUT: "timeout timedout deadlineexceeded gatewaytimeout requesttimeout expired",
    PREEMPTED: "preempt preempted preemption evict evicted recompute recomputed swapped retracted",
    RETRIED: "retry retried resubmitted redispatched rerouted",
    "error": "error errored failed fail failure exception internalerror internalservererror statuscodeerror rejected "
    "dropped unavailable serviceunavailable badgateway oom crashed false finishederror finishedignored ignored",
    "": "running inprogress active decoding pending streaming started",
}
#: Cells of a column of errors that say that there was none.
_NO_ERROR = NOTHING | {"false", "0", "no", "ok", "{}", "[]"}

_ENDING_OF = {word: ending for ending, words in _WORDS.items() for word in words.split()}


def read_endings(
    table: Table, choice: Choice | None, failed: Choice | None = None
) -> tuple[NDArray[np.object_], list[str]]:
    """Return the ending that the status columns say of each row, and notes.

    An ending is "" where no word is or the word says that the request still ran, and `UNKNOWN` for few unknown words.

    Parameters
    ----------
    choice
        The columns of status.
    failed
        The column of errors: what stands in it says that the attempt failed.
    """
    said = np.full(len(table), "", dtype=object)
    notes: list[str] = []
    errors = np.zeros(len(table), dtype=bool)
    for name in choice.names if choice else ():
        words, codes = coded(table.columns[name])
        meanings = np.array([_meaning(word) for word in words], dtype=object)
        found = meanings[codes]
        unknown = found == UNKNOWN
        if unknown.mean() >= LARGEST_UNKNOWN:
            row = int(np.argmax(unknown))
            raise InputError(
                f"{table.where(row)}: {name} is {shown(table.columns[name][row])}, which says no ending that is known; "
                "expected words such as finished, cancelled, timeout, or name another column: --column status=NAME "
                "(--column status=- reads none)"
            )
        errors |= found == "error"
        found[found == "error"] = CANCELLED
        better = (said == "") | ((said == FINISHED) & (found != ""))
        said[better] = found[better]
    if failed is not None:
        cells = table.columns[failed.name]
        broken = np.array([text.strip().lower() not in _NO_ERROR for text in cells])
        said[broken & ((said == "") | (said == FINISHED))] = CANCELLED
        errors |= broken
    if count := int(np.count_nonzero(errors)):
        notes.append(f"{count:,} attempts failed with an error; they count as cancelled")
    return said, notes


def _meaning(text: str) -> str:
    bare = text.strip().lower()
    if bare in NOTHING:
        return ""
    if match := re.search(r"['\"]type['\"]\s*:\s*['\"](\w+)['\"]", bare):  # a dictionary written as text
        bare = match[1]
    if re.fullmatch(r"[1-5]\d\d(\.0)?", bare):
        code = int(bare[:3])
        if code in (408, 504):
            return TIMED_OUT
        return CANCELLED if code == 499 else FINISHED if code < 400 else "error"
    word = re.sub(r"[^a-z0-9]", "", bare.rsplit(".", 1)[-1])
    return _ENDING_OF.get(word, UNKNOWN)


#: Share of wholly identical rows from which on a log without ids is refused.
LARGEST_IDENTICAL = 0.01


def first_of_each(table: Table) -> NDArray[np.bool_]:
    """Return bool (N,), which rows are not wholly identical to an earlier one."""
    seen: set[tuple[str, ...]] = set()
    fresh = np.zeros(len(table), dtype=bool)
    for index, row in enumerate(zip(*table.columns.values(), strict=True)):
        if row not in seen:
            seen.add(row)
            fresh[index] = True
    return fresh


def identical_note(table: Table) -> str | None:
    """Return a note about identical rows of a log without ids; refuse more than `LARGEST_IDENTICAL` of them."""
    again = ~first_of_each(table)
    count = int(again.sum())
    if count > LARGEST_IDENTICAL * len(table):
        raise InputError(
            f"{table.where(int(np.argmax(again)))} is identical to an earlier one, as are {count:,} of {len(table):,}; "
            "without a column of ids they may be doubled rows: name it, --column id=NAME"
        )
    return f"{count:,} rows are identical to another; without ids they are kept as requests" if count else None


def settle_attempts(
    table: Table,
    rows: NDArray[np.int64],
    ids: list[str],
    times: Times,
    worker: NDArray[np.int64],
    ending: NDArray[np.object_],
) -> list[str]:
    """Mark all but the last attempt of an id as retried (`ending` is changed in place), and return notes.

    Parameters
    ----------
    rows
        int64 (K,), the rows to look at.
    ids
        (N,), never shown.
    worker
        int64 (N,).
    ending
        (N,), of `ENDINGS`.
    """
    _, codes = coded([ids[row] for row in rows])
    several = np.bincount(codes)[codes] > 1
    chosen = rows[several]
    order = np.lexsort((times.start[chosen], codes[several]))
    chosen, groups = chosen[order], codes[several][order]
    in_turn = 0
    for group in np.split(chosen, np.flatnonzero(np.diff(groups)) + 1) if chosen.size else []:
        finished = 0
        for place, row in enumerate(group[:-1]):
            if ending[row] != FINISHED:
                ending[row] = ending[row] if ending[row] == PREEMPTED else RETRIED
                continue
            later = group[place + 1 :]
            overlapping = later[times.start[later] < times.finish[row]]
            for other in overlapping:
                if ending[other] == FINISHED and worker[other] != worker[row]:
                    raise InputError(
                        f"{table.where(int(row))} and {table.where(int(other)).rsplit(', ', 1)[1]} have one id, and "
                        "both finished on different workers at the same time; ids are not unique per request: name "
                        "the column of the ids, --column id=NAME"
                    )
            if overlapping.size:
                ending[row] = RETRIED
            else:
                finished += 1
        in_turn += bool(finished)
    return [f"{in_turn:,} ids name several finished requests, one after the other"] if in_turn else []
