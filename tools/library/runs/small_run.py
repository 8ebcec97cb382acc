"""Small whole runs as an adversary writes them, and the least that a router who knows every length pays for them.

All requests wait from the beginning. A step costs `fixed` plus its largest load, in tokens: 0 for the sum of barriers
alone, C / t for seconds under a law C + t max_g L_g. Two optima bound what a rule could have done:

- *with its starts*: every request starts when the rule starts it; the optimum chooses workers. What is lost to it is
  lost by placing alone.
- *any*: every request starts when it is best, and a slot may stay idle.

Both are exact, by exhaustion (`lbopt.hindsight.optimum` and `tools.library.runs.exhaustion`), for runs of at most
`MOST_REQUESTS` requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hindsight.local_search import slot_by_slot
from lbopt.hindsight.optimum import optimum
from lbopt.hindsight.timetable import Timetable
from lbopt.model import Trace
from tools.library.runs.exhaustion import least_any

IntArray = NDArray[np.int64]

MOST_REQUESTS, MOST_OUTPUT, MOST_WORKERS = 14, 62, 4
_NO_LIMIT = 2**62

#: States that `least_cost` looks at before it gives up, where nobody says otherwise: seconds.
EFFORT = 3_000_000


@dataclass(frozen=True, slots=True)
class SmallRun:
    """Requests that wait from the beginning, in the order of arrival, and the fleet that runs them.

    Parameters
    ----------
    num_workers, slots_per_worker
        G and B.
    prompt, output
        Tokens and steps of each request.
    """

    num_workers: int
    slots_per_worker: int
    prompt: tuple[int, ...]
    output: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.prompt) == len(self.output) <= MOST_REQUESTS:
            raise InputError(
                f"a small run has {len(self.prompt)} prompts and {len(self.output)} outputs; "
                f"expected as many of both, 1 to {MOST_REQUESTS}"
            )
        if not 1 <= self.num_workers <= MOST_WORKERS or self.slots_per_worker < 1:
            raise InputError(
                f"a small run has {self.num_workers} x {self.slots_per_worker} slots; "
                f"expected 1 to {MOST_WORKERS} workers of 1 slot or more"
            )
        if min(self.prompt) < 0 or not 1 <= min(self.output) <= max(self.output) <= MOST_OUTPUT:
            raise InputError(
                f"a small run has prompts {list(self.prompt)} and outputs {list(self.output)}; "
                f"expected prompts of 0 or more and outputs of 1 to {MOST_OUTPUT}"
            )

    @property
    def trace(self) -> Trace:
        """The requests as the simulator takes them."""
        return Trace(prompt=np.array(self.prompt), output=np.array(self.output), name="small run")

    @property
    def work(self) -> int:
        """W, the sum of all loads over the run, whatever the rule."""
        return sum(s * o + o * (o - 1) // 2 for s, o in zip(self.prompt, self.output, strict=True))


@dataclass(frozen=True, slots=True)
class Least:
    """The least cost of a small run.

    Parameters
    ----------
    cost
        Tokens; `fixed` for each step, and the largest loads.
    proved
        Whether nothing is below it; otherwise it is only reached.
    start, worker
        A timetable that reaches it, by request; None where only the cost was known.
    """

    cost: int
    proved: bool
    start: IntArray | None = None
    worker: IntArray | None = None


def least_cost(run: SmallRun, fixed: int = 0, *, known: int | None = None, effort: int = EFFORT) -> Least:
    """Return the least cost of a run, with any starts.

    Parameters
    ----------
    run
        The requests and the fleet.
    fixed
        Tokens that a step costs beside its largest load.
    known
        A cost that somebody reached; where nothing is below it, the answer has no timetable.
    effort
        States looked at before the search gives up, some microseconds each.
    """
    if fixed < 0:
        raise InputError(f"fixed is {fixed}; a step costs 0 tokens or more beside its largest load")
    prompt, output = np.array(run.prompt, dtype=np.int64), np.array(run.output, dtype=np.int64)
    order = np.lexsort((output, prompt))[::-1]
    G, B = run.num_workers, run.slots_per_worker
    most = _NO_LIMIT if known is None else known
    cost, proved, found = least_any(prompt[order], output[order], G, B, fixed, most, effort)
    if found[0] < 0:
        if known is None:
            raise InputError(f"no timetable was found within an effort of {effort} states; give more")
        return Least(known, bool(proved))
    start = np.empty_like(found)
    start[order] = found
    placed = least_placement(run, start)
    assert placed.worker is not None
    assert cost == placed.cost + fixed * num_steps(run, start), "the two searches disagree"
    return Least(int(cost), bool(proved), start, placed.worker)


def least_placement(run: SmallRun, start: IntArray) -> Least:
    """Return the least sum of largest loads where every request starts in the given step.

    Parameters
    ----------
    run
        The requests and the fleet.
    start
        int, (N,): step of the start of each request.
    """
    order = np.argsort(start, kind="stable")
    timetable = timetable_of(run, start)
    found = optimum(timetable, None, known=slot_by_slot(timetable), solver="search")
    worker = np.empty_like(found.worker)
    worker[order] = found.worker
    return Least(found.upper, found.is_proved, start, worker)


def timetable_of(run: SmallRun, start: IntArray) -> Timetable:
    """Return the timetable of a run with these starts; its rows are sorted by start, ties in the order of arrival."""
    order = np.argsort(start, kind="stable")
    prompt, output = np.array(run.prompt, dtype=np.int64), np.array(run.output, dtype=np.int64)
    return Timetable(run.num_workers, run.slots_per_worker, start[order], prompt[order], output[order])


def num_steps(run: SmallRun, start: IntArray) -> int:
    """Return K, the steps in which something runs."""
    return int(np.count_nonzero(timetable_of(run, start).running()))
