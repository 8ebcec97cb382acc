"""The clairvoyant optimum of a timetable: the placement whose sum of barriers is least, with a proof or an interval.

`optimum` finds a good placement by annealing (`search_start`), and proves a lower bound by covers of the requests by
sets that one worker can run (`search_cover`). Where the whole run is too long for that, its parts are taken by
themselves, requests cut off at the ends of a part: least barriers of disjoint parts add up to a lower bound. Parts are
either of about equally many requests, or two: the end of the run, in which so few requests run that covers of them are
searched, and all before it, which the surplus bound is for (`search_surplus`). The search
stops when the bounds meet or when the time is up; what is returned is always an interval that holds the optimum, and
the placement at its upper end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hindsight.bounds import step_bounds
from lbopt.hindsight.certificate import BoundCertificate, WindowBound, clip, digest
from lbopt.hindsight.halt import Halt, clock
from lbopt.hindsight.search_cover import prove
from lbopt.hindsight.search_start import LONG, good_placement
from lbopt.hindsight.search_surplus import surplus_bound
from lbopt.hindsight.timetable import Timetable
from lbopt.hindsight.windows import cut

IntArray = NDArray[np.int64]

#: Seconds that are as good as no limit.
_FOREVER = 1e9

#: Part of the time for the first placement; what the proof leaves is spent on a better one.
_START_SHARE = 0.2

#: Part of the rest for the whole run; parts of it get what that leaves.
_WHOLE_SHARE = 0.65

#: Numbers of parts that are tried where the whole run is too long.
_PARTS = (2, 4)

#: Requests that run at most in the end of a run, fewest first: covers of these are searched.
_ENDS = (12, 16, 20)

#: Parts of the time that is then left for one end, and for the surplus bound of what comes before.
_END_SHARE, _SURPLUS_SHARE = 0.1, 0.75


@dataclass(frozen=True, slots=True, eq=False)
class HindsightResult:
    """An interval that holds the least sum of barriers, and a placement that reaches its upper end.

    Parameters
    ----------
    lower, upper
        Sums of barriers over all steps, in tokens.
    lower_imbalance, upper_imbalance
        The same as G times the sum of barriers less the sum of all loads.
    worker
        int, (N,): worker of each request, in the order of the timetable.
    nodes
        Decisions and exchanges that were tried.
    seconds
        Time taken.
    stop
        "proved"; else why the interval is open: "time", "size" (one worker can run too many sets of requests to list
        them), "memory", or "interrupted" where `Halt` ended the search.
    certificate
        What the lower bound follows from.
    """

    lower: int
    upper: int
    lower_imbalance: int
    upper_imbalance: int
    worker: IntArray
    nodes: int
    seconds: float
    stop: str
    certificate: BoundCertificate

    @property
    def is_proved(self) -> bool:
        """Return whether the placement is proved to be best."""
        return self.lower == self.upper


def optimum(
    timetable: Timetable,
    time_limit: float = 60.0,
    *,
    seed: int = 0,
    fine: int | None = None,
    known: IntArray | None = None,
    halt: Halt | None = None,
) -> HindsightResult:
    """Return the placement with the least sum of barriers, or an interval for it.

    Parameters
    ----------
    timetable
        The run.
    time_limit
        Seconds, above 0; the time in which kernels are compiled or read from disk is not part of it.
    seed
        Of the annealing; the bound does not depend on it.
    fine
        Windows that steps with empty slots are cut into (`lbopt.hindsight.windows`); None for the default.
    known
        int, (N,): a placement to improve on; None for none. It is checked.
    halt
        Ends the search before its time, with what it has found; None where nothing does.

    Raises
    ------
    InputError
        Where `time_limit` is not above 0, or the known placement needs more slots than there are.

    Examples
    --------
    >>> from lbopt.hindsight.optimum import optimum
    >>> from lbopt.hindsight.timetable import Timetable
    >>> result = optimum(Timetable(2, 2, [0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3]))
    >>> result.lower, result.upper, result.is_proved
    (36, 36, True)
    """
    if not time_limit > 0:
        raise InputError(f"time_limit is {time_limit!r}; expected seconds, above 0")
    compile_exact()
    halt, began = halt or Halt(), clock()
    windows = cut(timetable) if fine is None else cut(timetable, fine)
    worker, tried = good_placement(timetable, windows, _START_SHARE * time_limit, seed, halt)
    if known is not None and timetable.barriers(known) < timetable.barriers(worker):
        worker = known
    left = time_limit - (clock() - began)
    proof = prove(timetable, windows, worker, max(0.0, _WHOLE_SHARE * left), halt)
    upper, worker, stop, nodes = proof.upper, proof.worker, proof.stop, proof.nodes
    kind = "steps" if proof.lower == int(windows.floor.sum()) else "covers"
    steps = timetable.num_steps
    bounds: tuple[WindowBound, ...] = (WindowBound(0, steps, proof.lower, kind),) if steps else ()
    tried_parts = _PARTS if stop in ("time", "memory") else ()
    for number, parts in enumerate(tried_parts):
        left = (time_limit - (clock() - began)) / (len(tried_parts) + 1 - number)
        if left > 0 and _added(bounds) < upper and not halt.is_asked:
            apart, more = _in_parts(timetable, parts, left, seed, halt)
            nodes += more
            bounds = max(bounds, apart, key=_added)
    left = time_limit - (clock() - began)
    if left > 0 and _added(bounds) < upper and not halt.is_asked:
        apart, more = _with_its_end(timetable, worker, left, seed, halt)
        nodes += more
        bounds = max(bounds, apart, key=_added)
    lower = _added(bounds)
    left = time_limit - (clock() - began)
    if stop in ("size", "memory") and left > 0 and lower < upper and not halt.is_asked:
        better, more = good_placement(timetable, windows, left, seed + 1, halt, LONG)
        tried += more
        if (cost := timetable.barriers(better)) < upper:
            upper, worker = cost, better
    workers, total = timetable.num_workers, int(timetable.totals().sum())
    return HindsightResult(
        lower,
        upper,
        workers * lower - total,
        workers * upper - total,
        worker,
        nodes + tried,
        clock() - began,
        "proved" if lower == upper else "interrupted" if halt.is_asked else stop,
        BoundCertificate(digest(timetable), bounds),
    )


def _added(bounds: tuple[WindowBound, ...]) -> int:
    return sum(window.bound for window in bounds)


@cache
def compile_exact() -> None:
    """Compile every kernel of the exact search, or read it from disk, so that no search pays for it.

    Below the worst placement of these four requests there are sets to list and covers to search.
    """
    start, prompt, output = np.array([[0, 0, 0, 0], [9, 5, 4, 1], [3, 2, 2, 3]])
    table = Timetable(2, 2, start, prompt, output)
    windows = cut(table)
    good_placement(table, windows, _FOREVER, 0, moves=10)
    prove(table, windows, np.array([0, 0, 1, 1]), _FOREVER)
    surplus_bound(table, np.array([0, 0, 1, 1]), _FOREVER)


def _with_its_end(
    timetable: Timetable, worker: IntArray, time_limit: float, seed: int, halt: Halt
) -> tuple[tuple[WindowBound, ...], int]:
    """Return the bounds of the end of a run and of what comes before, and how many decisions were tried.

    Parameters
    ----------
    timetable
        The run.
    worker
        int, (N,): a good placement.
    time_limit
        Seconds.
    seed
        Of the annealing of the end.
    halt
        Ends the search.
    """
    running, floors = timetable.running(), step_bounds(timetable)
    steps, nodes, gained = timetable.num_steps, 0, 0
    end = WindowBound(steps, steps, 0, "steps")
    for most in _ENDS:
        low = int(np.append(-1, np.flatnonzero(running > most))[-1]) + 1
        if low >= end.first:
            continue
        piece, share = clip(timetable, low, steps), _END_SHARE * time_limit
        windows = cut(piece)
        placed, tried = good_placement(piece, windows, _START_SHARE * share, seed, halt)
        proof = prove(piece, windows, placed, (1 - _START_SHARE) * share, halt)
        nodes += tried + proof.nodes
        if proof.lower - int(windows.floor.sum()) > gained:
            gained = proof.lower - int(windows.floor.sum())
            end = WindowBound(low, steps, proof.lower, "covers")
        if proof.lower < proof.upper or halt.is_asked:
            break
    before = WindowBound(0, end.first, int(floors[: end.first].sum()), "steps")
    runs = timetable.start < end.first
    found = surplus_bound(clip(timetable, 0, end.first), worker[runs], _SURPLUS_SHARE * time_limit, halt)
    if found is not None:
        nodes += found.nodes
        if found.lower > before.bound:
            cuts, prices = tuple(found.cuts.tolist()), tuple(found.prices.tolist())
            before = WindowBound(0, end.first, found.lower, "surplus", cuts, prices)
    return tuple(window for window in (before, end) if window.first < window.last), nodes


def _in_parts(
    timetable: Timetable, parts: int, time_limit: float, seed: int, halt: Halt
) -> tuple[tuple[WindowBound, ...], int]:
    """Return bounds of parts in which about equally many requests start, and how many decisions were tried."""
    edges = [timetable.start[timetable.num_requests * part // parts] for part in range(1, parts)]
    steps = sorted({0, timetable.num_steps, *map(int, edges)})
    bounds: list[WindowBound] = []
    nodes = 0
    for low, high in pairwise(steps):
        piece, share = clip(timetable, low, high), time_limit / (len(steps) - 1)
        windows = cut(piece)
        worker, tried = good_placement(piece, windows, _START_SHARE * share, seed, halt)
        proof = prove(piece, windows, worker, (1 - _START_SHARE) * share, halt)
        kind = "steps" if proof.lower == int(windows.floor.sum()) else "covers"
        bounds.append(WindowBound(low, high, proof.lower, kind))
        nodes += tried + proof.nodes
    return tuple(bounds), nodes
