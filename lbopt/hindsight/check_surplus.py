"""The independent check of a surplus bound: all sets that one worker can run are put to the prices again.

In window c of the certificate's cuts let F be the sum of the steps' own floors, W the tokens of all requests, G the
workers, and k the number of workers that can be above F: the largest with k F < W, 1 at least and G - 1 at most. With
l = 1 / (2 k) where all slots are used in the window and l = 0 elsewhere, a worker that shows x tokens there costs
r(x) = (1 / k - l) max(0, x - F) + l max(0, F - x), and the barriers of the window are at least F - l (G F - W) plus the
sum of r over the workers. So a bound holds if every set S that one worker can run has

    sum_c r(x_c) - p(S) >= (bound - sum_c (F - l (G F - W)) - sum_i p_i) / G,

for the G sets of a placement hold each request once. All is counted in whole parts of a token.

The sets are built forward in time in chunks, each taken to its end before the next, so that memory stays small. A
beginning is dropped where no prices to come can bring it below the limit. This shares no function with the search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

#: Beginnings of sets that a check takes up at most: some minutes.
MOST_ROWS = 3_000_000_000

#: Beginnings that are held together.
_CHUNK = 1 << 17

_LARGEST = 2**60

#: A request of a window: the step of its start, tokens there, the step after its last one.
Row = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Window:
    """Steps from `low` to before `high` at which nothing starts or ends but at `low`, and what they cost at their end.

    Parameters
    ----------
    low, high
        First step, and the step after the last one.
    closes
        Whether a window of the certificate ends here.
    floor
        F, of the window that ends here.
    above, below
        Cost of a token over the floor and under it, in parts.
    """

    low: int
    high: int
    closes: bool
    floor: int
    above: int
    below: int


def surplus_holds(
    rows: Sequence[Row],
    fleet: tuple[int, int],
    floors: Sequence[int],
    bound: int,
    certificate: tuple[Sequence[int], Sequence[int]],
    most: int = MOST_ROWS,
) -> bool | None:
    """Return whether the prices prove the bound; None where that takes up more than `most` beginnings of sets.

    Parameters
    ----------
    rows
        The requests of the window, in the order of their starts.
    fleet
        Workers, and slots of each.
    floors
        What the barrier of each step is at least.
    bound
        The claim.
    certificate
        The steps at which time is cut, and the prices of the requests.
    most
        Beginnings of sets that are taken up at most.
    """
    workers, slots = fleet
    cuts, prices = certificate
    steps = len(floors)
    if len(prices) != len(rows) or list(cuts) != sorted(set(cuts)) or not cuts or (cuts[0], cuts[-1]) != (0, steps):
        return False
    # Parts of a token are at most twice the least common multiple of 1 to G - 1, which is below 4 to the power of G.
    if workers == 1 or (sum(map(abs, prices)) + sum((p + e) * e for _, p, e in rows)) * 4**workers >= _LARGEST:
        return None
    parts, pieces, constant = _pieces(rows, workers, slots, floors, cuts)
    needed = parts * (bound - 1) - constant - sum(prices)
    limit = needed // workers + 1  # the least cost with which the bound follows
    return _Sets(rows, prices, workers, slots).none_below(limit, pieces, most)


def _pieces(
    rows: Sequence[Row], workers: int, slots: int, floors: Sequence[int], cuts: Sequence[int]
) -> tuple[int, list[_Window], int]:
    """Return the parts of a token, time between all events and cuts, and the constant of the bound."""
    held, total = [0] * len(floors), [0] * len(floors)
    for start, prompt, end in rows:
        for k in range(start, end):
            held[k] += 1
            total[k] += prompt + k - start
    spans = list(pairwise(cuts))
    facts = []
    for low, high in spans:
        floor, tokens = sum(floors[low:high]), sum(total[low:high])
        most = max(1, min(workers - 1, max((k for k in range(workers) if k * floor < tokens), default=0)))
        facts.append((floor, tokens, most, all(n == workers * slots for n in held[low:high])))
    parts = 2 * math.lcm(*(most for _, _, most, _ in facts))
    constant = 0
    pieces: list[_Window] = []
    marks = sorted({0, *cuts, *(s for s, _, _ in rows), *(e for _, _, e in rows)})
    for (low, high), (floor, tokens, most, full) in zip(spans, facts, strict=True):
        below = parts // (2 * most) if full else 0
        constant += parts * floor - below * (workers * floor - tokens)
        inside = [k for k in marks if low <= k <= high]
        for a, b in pairwise(inside):
            pieces.append(_Window(a, b, b == high, floor, parts // most - below, below))
    return parts, pieces, constant


@dataclass(slots=True)
class _Chunk:
    """Some beginnings of sets, one row each, after the same decisions.

    Parameters
    ----------
    piece, decided
        The piece of time that they have come to, and how many requests are decided.
    cost, held, load, shown
        int, one row a beginning: cost so far, requests held, tokens in the next step, tokens in the window so far.
    holds
        bool, (., running): whether each holds each of the requests that run.
    """

    piece: int
    decided: int
    cost: NDArray[np.int64]
    held: NDArray[np.int64]
    load: NDArray[np.int64]
    shown: NDArray[np.int64]
    holds: dict[int, NDArray[np.bool_]]

    def picked(self, rows: NDArray[np.intp]) -> _Chunk:
        """Return some of the rows."""
        columns = (self.cost[rows], self.held[rows], self.load[rows], self.shown[rows])
        return _Chunk(self.piece, self.decided, *columns, {i: column[rows] for i, column in self.holds.items()})


class _Sets:
    """All sets that one worker can run."""

    def __init__(self, rows: Sequence[Row], prices: Sequence[int], workers: int, slots: int) -> None:
        self.rows, self.prices, self.workers, self.slots = rows, prices, workers, slots
        later = [0]
        for price in reversed(prices):
            later.append(later[-1] + max(0, price))
        self.later = later[::-1]  # the largest sum of prices of request i and those after it

    def none_below(self, limit: int, pieces: Sequence[_Window], most: int) -> bool | None:
        """Return whether no set costs less than `limit`; None where that takes up more than `most` beginnings.

        Pieces that end before every request is decided prove nothing.
        """
        none = np.zeros(1, dtype=np.int64)
        waiting = [_Chunk(0, 0, none, none, none, none, {})]
        taken = 0
        while waiting:
            chunk = waiting.pop()
            taken += chunk.cost.size
            if taken > most:
                return None
            if chunk.piece == len(pieces):
                if chunk.decided < len(self.rows) or (chunk.cost < limit).any():
                    return False
                continue
            piece = pieces[chunk.piece]
            if chunk.decided < len(self.rows) and self.rows[chunk.decided][0] == piece.low:
                chunk = self._decided(chunk, piece.low)
            else:
                chunk = self._passed(chunk, piece)
            kept = np.flatnonzero(chunk.cost - self.later[chunk.decided] < limit)
            if kept.size < chunk.cost.size:
                chunk = chunk.picked(kept)
            if chunk.cost.size > _CHUNK:
                half = np.arange(chunk.cost.size) < chunk.cost.size // 2
                waiting.extend((chunk.picked(np.flatnonzero(half)), chunk.picked(np.flatnonzero(~half))))
            elif chunk.cost.size:
                waiting.append(chunk)
        return True

    def _decided(self, chunk: _Chunk, step: int) -> _Chunk:
        """Take the next request into each set, and leave it out."""
        ended = [i for i in chunk.holds if self.rows[i][2] == step]
        if ended:
            chunk = self._ended(chunk, ended)
        i = chunk.decided
        prompt = self.rows[i][1]
        running = sum(s <= step < e for s, _, e in self.rows)
        to_come = sum(s == step for s, _, _ in self.rows[i + 1 :])
        takes = np.flatnonzero(chunk.held < self.slots)
        leaves = np.flatnonzero(chunk.held + to_come >= running - (self.workers - 1) * self.slots)
        both = chunk.picked(np.concatenate([takes, leaves]))
        taken = np.arange(takes.size + leaves.size) < takes.size
        both.decided = i + 1
        both.cost -= np.where(taken, self.prices[i], 0)
        both.held += taken
        both.load += np.where(taken, prompt, 0)
        both.holds[i] = taken
        if to_come == 0:  # what takes the last of a step must leave others room as well
            least = running - (self.workers - 1) * self.slots
            both = both.picked(np.flatnonzero(both.held >= least))
        return both

    def _ended(self, chunk: _Chunk, ended: Sequence[int]) -> _Chunk:
        """Return the chunk without requests that have ended."""
        held, load, holds = chunk.held.copy(), chunk.load.copy(), dict(chunk.holds)
        for i in ended:
            start, prompt, end = self.rows[i]
            here = holds.pop(i)
            held -= here
            load -= np.where(here, prompt + end - start, 0)
        return _Chunk(chunk.piece, chunk.decided, chunk.cost, held, load, chunk.shown, holds)

    def _passed(self, chunk: _Chunk, piece: _Window) -> _Chunk:
        """Let the steps of a piece pass."""
        ended = [i for i in chunk.holds if self.rows[i][2] == piece.low]
        if ended:
            chunk = self._ended(chunk, ended)
        steps = piece.high - piece.low
        shown = chunk.shown + chunk.load * steps + chunk.held * (steps * (steps - 1) // 2)
        cost = chunk.cost
        if piece.closes:
            over = shown - piece.floor
            cost = cost + np.where(over > 0, piece.above * over, -piece.below * over)
            shown = np.zeros_like(shown)
        load = chunk.load + chunk.held * steps
        return _Chunk(chunk.piece + 1, chunk.decided, cost, chunk.held, load, shown, dict(chunk.holds))
