"""Intervals of small runs, narrowed by the exact search: mostly to a point, which proves that a placement is best.

What decides whether the exact search ends (`lbopt.hindsight.optimum`) is how many sets of requests one worker can run:
few where it has few slots, and the fewer the fewer requests there are. So it is asked where a worker has at most
`MOST_SLOTS` slots and at most `MOST_REQUESTS` requests run; the manual's page of results says how often it then ends.
It starts from the placement that is known, and its answer is joined with the interval: the better placement, and the
larger lower bound.
"""

from __future__ import annotations

from dataclasses import replace

from lbopt.hindsight.halt import Halt
from lbopt.hindsight.interval import ClairvoyantInterval
from lbopt.hindsight.optimum import HindsightResult, compile_exact, optimum
from lbopt.hindsight.timetable import Timetable
from lbopt.solvers.interruptible import run_interruptible

#: Slots of a worker, and requests of a run, up to which the exact search is asked.
MOST_SLOTS, MOST_REQUESTS = 4, 100

#: How the placement is named that the exact search ends with.
EXACT = "exact search"


def is_small(timetable: Timetable) -> bool:
    """Return whether the exact search is asked about a run."""
    return timetable.slots_per_worker <= MOST_SLOTS and timetable.num_requests <= MOST_REQUESTS


def narrowed(interval: ClairvoyantInterval, time_limit: float, *, seed: int = 0) -> ClairvoyantInterval:
    """Return the interval of a small run, joined with what the exact search finds; that of a larger run as it is.

    Ctrl-C ends the search; what it has found is joined as well, and the placement says that it was interrupted.

    Parameters
    ----------
    interval
        What is known.
    time_limit
        Seconds of the exact search, those of compiling left out. Without any nothing is searched.
    seed
        Of its annealing; the bound does not depend on it.
    """
    if interval.is_proved or not is_small(interval.timetable):
        return interval
    if time_limit <= 0:
        return replace(interval, placed=replace(interval.placed, complete=False))
    compile_exact()
    found: list[HindsightResult] = []
    halt = Halt()

    def search() -> None:
        known = interval.placed.worker
        found.append(optimum(interval.timetable, time_limit, seed=seed, known=known, halt=halt))

    interrupted = run_interruptible(search, halt.ask)
    return joined(interval, found[0], interrupted=interrupted)


def joined(interval: ClairvoyantInterval, result: HindsightResult, *, interrupted: bool = False) -> ClairvoyantInterval:
    """Return the interval with the better placement and the larger lower bound of both.

    Parameters
    ----------
    interval, result
        Two answers about one timetable.
    interrupted
        Whether Ctrl-C ended the exact search.
    """
    placed = interval.placed
    if result.upper < placed.barriers:
        placed = replace(placed, worker=result.worker, barriers=result.upper, found_by=EXACT)
    lower = max(interval.lower_sum, result.lower)
    placed = replace(
        placed,
        tried=placed.tried | {EXACT: result.upper},
        # A proof is the same on every machine; how far another answer gets depends on the time.
        complete=lower == placed.barriers or (placed.complete and result.stop == "size"),
        interrupted=placed.interrupted or interrupted,
    )
    return replace(interval, lower_sum=lower, placed=placed)
