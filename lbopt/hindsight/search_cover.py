"""The proof: no placement is below a target, or here is one. The target rises until it meets the best placement.

All sets of requests that one worker could run below the target are listed, and covers of the requests by G of them
are searched (`lbopt.kernels.hindsight.optimum_lists`, `optimum_cover`). A search that ends without a placement proves
the target as a lower bound; one that ends with a placement proves this one best. Low targets leave few sets and take
little time, so the target starts low and rises as far as the time allows: the bound is of use whenever the time is up
(destructive bounds: Klein and Scholl 1999, Computing lower bounds by destructive improvement).

Where many short requests start together, sets that differ only in these are too many to list. So if a first attempt
does not end, requests of few tokens, which together can hardly change what a placement costs, are left open in the
lists of a second one, and placed at the end (`optimum_completion`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hindsight.halt import Halt
from lbopt.hindsight.timetable import Timetable
from lbopt.hindsight.windows import Windows
from lbopt.kernels.arrays import Record, record
from lbopt.kernels.deadline import now
from lbopt.kernels.hindsight.optimum_completion import NEVER_LEAST, Exact
from lbopt.kernels.hindsight.optimum_cover import BLOCK, COVER, UNKNOWN, Cover, search_cover
from lbopt.kernels.hindsight.optimum_lists import DONE, LISTING, Listed, Starts, list_sets

IntArray = NDArray[np.int64]

#: Beginnings of sets beyond which a list would never be finished.
MOST_BEGINNINGS = 2e6

#: Sets that are listed at most.
MOST_SETS = 1_000_000

#: Attempts in turn. First and second: tokens of the requests that are left open, and the highest target, both in parts
#: of what the best placement costs above the floors. Third: the part of the time that is left. Where lists are short,
#: nothing open is best, since it loosens the sets; where they are too long, a lower target makes them shorter.
ATTEMPTS = ((0.0, 1.0, 0.4), (0.0, 0.5, 0.5), (0.15, 0.4, 1.0))

_BITS = 30  # of a window's shortened total
_FEW = 2_000  # sets of the first target
_SLICE = 16  # first sets between two looks of Python at the clock
_FASTEST, _SLOWEST = 12.0, 1.3  # how much longer the next list is, at most and at least


@dataclass(slots=True)
class Proof:
    """What a search found out.

    Parameters
    ----------
    lower
        No placement has smaller barriers.
    upper, worker
        The best placement known.
    nodes
        Decisions on requests and sets that were tried.
    stop
        "proved", "time", "size" where sets cannot be listed at all, "memory" where the last list is too long.
    """

    lower: int
    upper: int
    worker: IntArray
    nodes: int
    stop: str


def starts_of(timetable: Timetable, windows: Windows, heavy: IntArray) -> Starts:
    """Return some requests by the step in which they start, as the kernels read them.

    Parameters
    ----------
    timetable, windows
        The run, and its windows.
    heavy
        int, (n,): the requests that are not left open, ascending.
    """
    workers, slots = timetable.num_workers, timetable.slots_per_worker
    start, end = timetable.start[heavy], timetable.end[heavy]
    steps, wave = np.unique(start, return_inverse=True)
    running = ((start[None, :] <= steps[:, None]) & (end[None, :] > steps[:, None])).sum(axis=1)
    ends = np.sort(end)
    is_open = np.ones(timetable.num_requests, dtype=bool)
    is_open[heavy] = False
    everybody = np.append(timetable.running(), 0)
    full = (everybody[steps] == workers * slots) & (steps > 0) & (everybody[steps - 1] == workers * slots)
    loose = timetable.num_requests + 1
    window = np.append(np.searchsorted(windows.cuts, steps), windows.floor.size)
    window[0] = 0
    return Starts(
        wave.astype(np.int64),
        np.append(np.searchsorted(start, steps), heavy.size).astype(np.int64),
        np.maximum(0, running - (workers - 1) * slots),
        np.minimum(running, slots),
        np.where(full, (timetable.start[is_open][None, :] == steps[:, None]).sum(axis=1), loose),
        np.where(full, (timetable.end[is_open][None, :] == steps[:, None]).sum(axis=1), loose),
        np.argsort(end, kind="stable").astype(np.int64),
        np.append(0, np.searchsorted(ends, steps, side="right")).astype(np.int64),
        np.searchsorted(ends, steps, side="left").astype(np.int64),
        window.astype(np.int64),
        np.ascontiguousarray(windows.tokens[heavy]),
        windows.first[heavy],
        windows.last[heavy],
        np.asarray(windows.tokens[heavy].sum(axis=0), dtype=np.int64),
        windows.floor,
    )


class Lists:
    """Lists the sets of a worker within a budget.

    Parameters
    ----------
    timetable, windows
        The run, and its windows.
    heavy
        int, (n,): the requests that are not left open, ascending.
    deadline
        Nanoseconds, as in `lbopt.kernels.deadline`.
    """

    def __init__(self, timetable: Timetable, windows: Windows, heavy: IntArray, deadline: int) -> None:
        self.starts = starts_of(timetable, windows, heavy)
        self.heavy = heavy
        self.columns = -(-windows.floor.size // BLOCK) * BLOCK
        self.words = -(-heavy.size // 64)
        self.state = record(LISTING)
        self.state.workers, self.state.deadline = timetable.num_workers, deadline
        self.state.shift = max(0, int(windows.totals.max(initial=0)).bit_length() - _BITS)
        # Windows in which requests differ most come first, since bounds on few windows then decide.
        spread = (windows.tokens.astype(np.float64) ** 2).sum(axis=0)
        self.rank = np.argsort(-spread, kind="stable").astype(np.int64)

    def beginnings(self) -> float:
        """Return the number of sets of those requests that start first."""
        count, low, high = int(self.starts.begin[1]), int(self.starts.least[0]), int(self.starts.most[0])
        return float(sum(math.comb(count, size) for size in range(low, high + 1)))

    def run(self, budget: int) -> tuple[int, Listed]:
        """Return how the listing ended and what it found, within the budget of `state` at the end."""
        listed = Listed(
            np.zeros((MOST_SETS, self.words), np.uint64),
            np.zeros((MOST_SETS, self.columns), np.int32),
            np.zeros(MOST_SETS, np.int64),
            self.rank,
        )
        self.state.budget, self.state.sets, self.state.nodes = budget, 0, 0
        return list_sets(self.starts, listed, self.state), listed


def heavy_requests(timetable: Timetable, allowance: float) -> IntArray:
    """Return the requests that are not left open; those left open have fewest tokens, the allowance at most in all."""
    output = timetable.output
    tokens = timetable.prompt * output + output * (output - 1) // 2
    order = np.argsort(tokens, kind="stable")
    count = int(np.searchsorted(np.cumsum(tokens[order]), allowance, side="right"))
    return np.sort(order[min(count, timetable.num_requests - 1) :])


def prove(
    timetable: Timetable, windows: Windows, worker: IntArray, time_limit: float, halt: Halt | None = None
) -> Proof:
    """Raise the lower bound as far as the time allows, and improve the placement on the way.

    Parameters
    ----------
    timetable, windows
        The run, and its windows.
    worker
        int, (N,): a placement.
    time_limit
        Seconds.
    halt
        Ends the proof before its time; None where nothing does.
    """
    halt = halt or Halt()
    floor = int(windows.floor.sum())
    proof = Proof(floor, timetable.barriers(worker), worker, 0, "time")
    others = timetable.num_workers - 1
    if proof.lower == proof.upper or others == 0:
        proof.lower, proof.stop = proof.upper, "proved"
        return proof
    deadline = now() + int(time_limit * 1e9)
    for part, reach, share in ATTEMPTS:
        began = now()
        if proof.lower < proof.upper and began < deadline and not halt.is_asked:
            _attempt(timetable, windows, (part, reach), began + int(share * (deadline - began)), proof, halt)
    if proof.lower == proof.upper:
        proof.stop = "proved"
    return proof


def _attempt(
    timetable: Timetable, windows: Windows, parts: tuple[float, float], deadline: int, proof: Proof, halt: Halt
) -> None:
    """List sets in which requests of so few tokens are left open, and search covers up to a target or the deadline."""
    floor, others = int(windows.floor.sum()), timetable.num_workers - 1
    heavy = heavy_requests(timetable, parts[0] * (proof.upper - floor))
    lists = Lists(timetable, windows, heavy, deadline)
    if lists.beginnings() > MOST_BEGINNINGS:
        proof.stop = "size"
        return
    budget = others * int(parts[1] * (proof.upper - 1 - floor))
    if floor + budget // others < proof.lower:
        return
    halt.watch(lists.state)
    ending, listed = lists.run(budget)
    proof.nodes += int(lists.state.nodes)
    proof.stop = "time"
    if ending == DONE:
        _raise_target(timetable, windows, lists, listed, int(lists.state.budget), proof, halt)
        if now() < deadline and int(lists.state.budget) < budget and not halt.is_asked:
            proof.stop = "memory"


def _raise_target(
    timetable: Timetable,
    windows: Windows,
    lists: Lists,
    listed: Listed,
    budget: int,
    proof: Proof,
    halt: Halt,
) -> None:
    """Search covers of ever longer parts of the list, as far as they can be expected to end in time."""
    floor, others = int(windows.floor.sum()), timetable.num_workers - 1
    ascending = np.sort(listed.excess[: int(lists.state.sets)])
    wanted = min(_FEW, ascending.size)
    while proof.lower < proof.upper:
        whole = wanted >= ascending.size
        # A target whose budget leaves `wanted` sets; the budget of a target is G - 1 times what it allows above floors.
        within = budget if whole else int(ascending[wanted])
        target = min(floor + within // others + 1, proof.upper)
        if target <= proof.lower:
            if whole:
                return
            wanted = int(wanted * 2)
            continue
        began = now()
        rows = np.flatnonzero(listed.excess[: int(lists.state.sets)] <= others * (target - 1 - floor))
        ended = _search(timetable, windows, lists, listed, rows, target, proof, halt)
        if not ended:
            return
        left = int(lists.state.deadline) - now()
        if whole or left <= 0:
            return
        took = max(int(lists.state.deadline) - left - began, 1_000_000)
        faster = math.sqrt(0.7 * left / took)
        wanted = int(wanted * min(_FASTEST, max(_SLOWEST, faster)))


def _search(
    timetable: Timetable,
    windows: Windows,
    lists: Lists,
    listed: Listed,
    rows: IntArray,
    target: int,
    proof: Proof,
    halt: Halt,
) -> bool:
    """Search covers below a target; note what is found in `proof`. Return whether the search ended."""
    cover, state = _cover(timetable, windows, lists, listed, rows)
    count, steps, workers = timetable.num_requests, timetable.num_steps, timetable.num_workers
    table = [np.zeros((size, workers), np.int64) for size in (windows.floor.size,) * 2 + (steps + 1,) * 2]
    exact = Exact(
        timetable.start,
        timetable.prompt,
        timetable.output,
        windows.tokens,
        windows.first,
        windows.last,
        windows.floor,
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        *table,
    )
    state.target, state.best, state.open, state.deadline = target, -1, NEVER_LEAST, lists.state.deadline
    halt.watch(state)
    first = int(state.first)
    firsts = int(cover.holders_from[first + 1] - cover.holders_from[first])
    done = 0
    while done < firsts:
        reached = min(firsts, done + _SLICE)
        done = search_cover(cover, exact, state, done, reached)
        if 0 <= state.best < proof.upper:
            proof.upper, proof.worker = int(state.best), exact.best.copy()
        if done < reached or (done < firsts and now() >= int(state.deadline)):
            break
    proof.nodes += int(state.nodes)
    if done == firsts:
        proof.lower = max(proof.lower, min(int(state.target), int(state.open)))
    return done == firsts and int(state.open) >= int(state.target)


def _cover(
    timetable: Timetable, windows: Windows, lists: Lists, listed: Listed, rows: IntArray
) -> tuple[Cover, Record]:
    """Return the listed sets of some rows, and who holds what, as the kernel reads them."""
    workers, requests, columns = timetable.num_workers, lists.heavy.size, lists.columns
    shift = int(lists.state.shift)
    mask, load = listed.mask[rows], listed.load[rows]
    bits = [
        np.flatnonzero((mask[:, i >> 6] >> np.uint64(i & 63)) & np.uint64(1)).astype(np.int32) for i in range(requests)
    ]
    sizes = np.array([held.size for held in bits], dtype=np.int64)
    order = np.argsort(sizes, kind="stable").astype(np.int64)
    total, floor = np.zeros(columns, np.int32), np.zeros(columns, np.int32)
    total[: lists.rank.size] = lists.starts.total[lists.rank] >> shift
    floor[: lists.rank.size] = windows.floor[lists.rank] >> shift
    peak, used, level = (np.zeros((workers + 1, columns), np.int32) for _ in range(3))
    peak[0], level[0] = floor, np.maximum(floor, total // workers)
    least = np.zeros(workers + 1, np.int64)
    least[0] = level[0].sum()
    held = int(sizes.sum())
    cover = Cover(
        mask,
        load,
        total,
        np.concatenate(bits),
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        order,
        np.full(requests, UNKNOWN, np.int64),
        np.zeros(requests, np.int64),
        np.zeros(held, np.int32),
        np.zeros((workers + 1, mask.shape[1]), np.uint64),
        peak,
        used,
        level,
        least,
        np.zeros(workers + 1, np.int64),
        np.zeros(workers + 1, np.int64),
        np.zeros(workers + 1, np.int64),
        lists.heavy,
    )
    state = record(COVER)
    state.workers, state.slots, state.shift, state.first = workers, timetable.slots_per_worker, shift, order[0]
    return cover, state
