"""The independent check of a clairvoyant optimum: every claim is recomputed, or named as not verified.

What it recomputes, from the rows of the timetable and in Python's integers: the placement's slots and barriers step by
step, all numbers derived from them, the bounds of single steps, and that the windows of the certificate are disjoint
and add up to the lower bound. A window of kind ``covers`` is exhausted again by another search than the one that proved
it: forward in time over all ways to share out the requests that run, workers being alike, where a way is dropped once
what it has cost and the bounds of the steps to come reach the claimed bound. It holds `MOST_WAYS` ways at most; a
window that needs more is reported as not verified. The prices of a window of kind ``surplus`` are put to all sets that
one worker can run by `lbopt.hindsight.check_surplus`. The searches count in NumPy's 64-bit integers, and refuse runs
whose tokens come near their limit.

What is claimed may be anything that a file can hold. Every number has to be an integer (a truth value is none), every
window to hold a step, and whatever else is found ends in a CertificateError.

What it trusts: Python, NumPy, and that the timetable given is the one meant, which the digest compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import CertificateError
from lbopt.hindsight.check_surplus import MOST_ROWS, Row, surplus_holds
from lbopt.solvers.certificates.format import shown, whole

if TYPE_CHECKING:
    from lbopt.hindsight.certificate import WindowBound
    from lbopt.hindsight.optimum import HindsightResult
    from lbopt.hindsight.timetable import Timetable

#: Ways to share out requests that the exhaustion holds at a time: some 2.6 million are the start of 4 x 4 slots.
MOST_WAYS = 6_000_000

_LARGEST = 2**60

_KINDS = ("steps", "covers", "surplus")


@dataclass(frozen=True, slots=True)
class HindsightReport:
    """What a check found; a false claim raises instead.

    Parameters
    ----------
    established, unverified
        Sentences: what was established, and what is claimed and was not verified.
    """

    established: tuple[str, ...]
    unverified: tuple[str, ...]

    @property
    def bound_established(self) -> bool:
        """Return whether the lower bound was recomputed in all its windows."""
        return not self.unverified

    def __str__(self) -> str:
        return "\n".join(
            [f"established: {s}" for s in self.established] + [f"not verified: {s}" for s in self.unverified]
        )


def check_optimum(
    timetable: Timetable, result: HindsightResult, *, most_ways: int = MOST_WAYS, most_rows: int = MOST_ROWS
) -> HindsightReport:
    """Check every claim of `result` against the timetable.

    Parameters
    ----------
    timetable, result
        The run, and what is claimed of it.
    most_ways
        Ways to share out requests that the exhaustion of a window may hold at a time.
    most_rows
        Beginnings of sets that the check of a window of kind ``surplus`` may take up.

    Raises
    ------
    CertificateError
        Naming the first claim that does not follow, or is none.
    """
    windows, worker = _read(result)
    workers, slots = timetable.num_workers, timetable.slots_per_worker
    columns = (timetable.start.tolist(), timetable.prompt.tolist(), timetable.output.tolist())
    text = repr((workers, slots, list(columns)))
    _demand(
        result.certificate.timetable == sha256(text.encode()).hexdigest(), "the certificate is of another timetable"
    )
    rows = [(s, p, s + o) for s, p, o in zip(*columns, strict=True)]
    barriers, total = _recount(rows, worker, workers, slots)
    _demand(barriers == result.upper, f"the placement's barriers add up to {barriers}, but {result.upper} is claimed")
    for name, bound, claimed in (
        ("lower", result.lower, result.lower_imbalance),
        ("upper", result.upper, result.upper_imbalance),
    ):
        own = workers * bound - total
        _demand(claimed == own, f"{name}_imbalance is {claimed}, but {workers} x {bound} - {total} is {own}")
    _demand(result.lower <= result.upper, f"the lower bound {result.lower} is above the placement's {result.upper}")
    _demand(
        (result.stop == "proved") == (result.lower == result.upper),
        f"the search stopped with {result.stop!r}, but its bounds are {result.lower} and {result.upper}",
    )
    established = [f"the placement keeps all slots, and its barriers add up to {barriers}"]
    unverified: list[str] = []
    last = 0
    steps = max((end for _, _, end in rows), default=0)
    for window in sorted(windows, key=lambda window: window.first):
        name = f"the window of steps {window.first} to {window.last - 1}"
        _demand(window.first >= last, f"{name} overlaps with the one before, which ends with step {last - 1}")
        _demand(window.first < window.last <= steps, f"{name} is not a part of the run's {steps} steps")
        last = window.last
        inside = _cut_off(rows, window.first, window.last)
        floors = [
            _floor([p + k - s for s, p, e in inside if s <= k < e], workers, slots) for k in range(last - window.first)
        ]
        if window.bound <= sum(floors):
            established.append(f"{name} has barriers of {window.bound} or more by the bounds of its steps")
            continue
        if window.kind == "surplus":
            cheaper = f"a set of requests that costs less than its bound of {window.bound} asks for"
            prices = (window.cuts, window.prices)
            holds = surplus_holds(inside, (workers, slots), floors, window.bound, prices, most_rows)
            _demand(holds is not False, f"the prices of {name} leave {cheaper}")
            found = established if holds else unverified
            found.append(f"{'' if holds else 'that '}the prices of {name} leave no set of requests below its bound")
            continue
        _demand(
            window.kind == "covers",
            f"{name} has a bound of {sum(floors)} from its steps, but {window.bound} is claimed",
        )
        proved = _exhaust(inside, workers, slots, window.bound, floors, most_ways)
        _demand(
            proved is not False,
            f"{name} has a placement with barriers below {window.bound}, which is claimed to be least",
        )
        if proved:
            established.append(f"{name} has no placement with barriers below {window.bound}")
        else:
            unverified.append(f"that {name} has no placement with barriers below {window.bound}")
    added = sum(window.bound for window in windows)
    _demand(added == result.lower, f"the windows' bounds add up to {added}, but the lower bound is {result.lower}")
    established.append(f"the lower bound {result.lower} is the sum of {len(windows)} disjoint windows")
    return HindsightReport(tuple(established), tuple(unverified))


def _read(result: HindsightResult) -> tuple[tuple[WindowBound, ...], list[int]]:
    """Return the windows and the placement, in which every number is an integer, as are all other numbers claimed."""
    for name in ("lower", "upper", "lower_imbalance", "upper_imbalance"):
        whole(getattr(result, name), name)
    worker = np.asarray(result.worker)
    _demand(worker.ndim == 1, f"the placement is an array of {worker.ndim} dimensions; expected 1")
    _demand(worker.dtype.kind in "iu" or worker.size == 0, f"the placement is of {worker.dtype}; expected integers")
    for number, window in enumerate(result.certificate.windows):
        name = f"window {number}"
        for field in ("first", "last"):
            whole(getattr(window, field), f"{name}: {field}", least=0)
        whole(window.bound, f"{name}: bound")
        _demand(window.kind in _KINDS, f"{name}: kind is {shown(window.kind)}; expected one of {', '.join(_KINDS)}")
        for field in ("cuts", "prices"):
            for value in getattr(window, field):
                whole(value, f"{name}: one of its {field}")
    return result.certificate.windows, worker.tolist()


def _recount(rows: Sequence[Row], worker: Sequence[int], workers: int, slots: int) -> tuple[int, int]:
    """Return the sum of the barriers and of all loads of a placement, step by step."""
    _demand(len(worker) == len(rows), f"the placement has {len(worker)} workers for {len(rows)} requests")
    steps = max((end for _, _, end in rows), default=0)
    load = [[0] * workers for _ in range(steps)]
    held = [[0] * workers for _ in range(steps)]
    for (start, prompt, end), g in zip(rows, worker, strict=True):
        _demand(0 <= g < workers, f"the placement names worker {g} of {workers}, which are counted from 0")
        for k in range(start, end):
            load[k][g] += prompt + k - start
            held[k][g] += 1
    for k, counts in enumerate(held):
        _demand(max(counts) <= slots, f"a worker holds {max(counts)} requests in step {k}, but has {slots} slots")
    return sum(map(max, load)), sum(map(sum, load))


def _cut_off(rows: Sequence[Row], first: int, last: int) -> list[Row]:
    """Return the requests that run in a window, by its own steps."""
    return [
        (max(s, first) - first, p + max(s, first) - s, min(e, last) - first)
        for s, p, e in rows
        if s < last and e > first
    ]


def _floor(sizes: Sequence[int], workers: int, slots: int) -> int:
    """Return what the largest load of a step is at least, by its sizes alone."""
    if not sizes:
        return 0
    ordered = sorted(sizes, reverse=True)
    best = -(-sum(ordered) // workers)
    held = 1
    while (held - 1) * workers + 1 <= len(ordered):
        heavy = ordered[: (held - 1) * workers + 1]  # one worker holds `held` of these
        best = max(best, sum(heavy[-held:]))
        held += 1
    with_the_largest = max(0, len(ordered) - (workers - 1) * slots - 1)
    lightest = ordered[1:][::-1][:with_the_largest]
    return max(best, ordered[0] + sum(lightest))


def _exhaust(
    rows: Sequence[Row], workers: int, slots: int, bound: int, floors: Sequence[int], most: int
) -> bool | None:
    """Return whether no placement is below the bound; None where that takes more than `most` ways at a time."""
    if not rows:
        return bound <= 0
    if sum(p * (e - s) + (e - s) * (e - s) for s, p, e in rows) >= _LARGEST:
        return None
    rest = [0]
    for floor in reversed(floors):
        rest.append(rest[-1] + floor)
    rest.reverse()  # rest[k]: what steps k and later cost at least
    ways = _Ways(workers, slots)
    marks = sorted({s for s, _, _ in rows} | {e for _, _, e in rows})
    by_start = sorted(rows)
    done = 0
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        ways.end(mark)
        while done < len(by_start) and by_start[done][0] == mark:
            if not ways.add(by_start[done], most):
                return None
            done += 1
        if following is None:
            break
        ways.pass_steps(mark, following)
        ways.drop(bound - rest[following])
        if ways.cost.size == 0:
            return True
    return False


class _Ways:
    """Ways to share out the requests that run: one row a way, with what it has cost so far."""

    def __init__(self, workers: int, slots: int) -> None:
        self.workers, self.slots = workers, slots
        self.cost = np.zeros(1, dtype=np.int64)
        self.held = np.zeros((1, workers), dtype=np.int32)
        self.load = np.zeros((1, workers), dtype=np.int64)  # in the step to come
        self.running: list[Row] = []
        self.on: list[NDArray[np.unsignedinteger]] = []  # the worker of each of these
        self.named = np.min_scalar_type(workers)

    def add(self, row: Row, most: int) -> bool:
        """Let a request start wherever a slot is free, of empty workers on the first; return whether there is room."""
        pieces: list[tuple[NDArray[np.intp], int]] = []
        empty = self.held == 0
        for g in range(self.workers):
            fits = (self.held[:, g] < self.slots) & ~(empty[:, g] & empty[:, :g].any(axis=1))
            pieces.append((np.flatnonzero(fits), g))
        if sum(ways.size for ways, _ in pieces) > most:
            return False
        picked = np.concatenate([ways for ways, _ in pieces])
        worker = np.concatenate([np.full(ways.size, g, dtype=self.named) for ways, g in pieces])
        self._keep(picked)
        self.running.append(row)
        self.on.append(worker)
        places = np.arange(worker.size)
        self.held[places, worker] += 1
        self.load[places, worker] += row[1]
        return True

    def end(self, step: int) -> None:
        """Take away the requests that have ended before a step."""
        for i in reversed([i for i, (_, _, end) in enumerate(self.running) if end == step]):
            start, prompt, end = self.running.pop(i)
            worker = self.on.pop(i)
            places = np.arange(worker.size)
            self.held[places, worker] -= 1
            self.load[places, worker] -= prompt + end - start

    def pass_steps(self, low: int, high: int) -> None:
        """Add the barriers of steps low to high - 1, in which the same requests run."""
        if len(self.running) == self.workers * self.slots:  # all loads grow alike
            steps = high - low
            self.cost += self.load.max(axis=1) * steps + self.slots * (steps * (steps - 1) // 2)
            self.load += self.slots * steps
            return
        for _ in range(low, high):
            self.cost += self.load.max(axis=1)
            self.load += self.held

    def drop(self, limit: int) -> None:
        """Drop the ways that have cost the limit or more."""
        kept = np.flatnonzero(self.cost < limit)
        if kept.size < self.cost.size:
            self._keep(kept)

    def _keep(self, rows: NDArray[np.intp]) -> None:
        self.cost, self.held, self.load = self.cost[rows], self.held[rows], self.load[rows]
        self.on = [worker[rows] for worker in self.on]


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CertificateError(otherwise)
