"""The arrays that the search works in, kept from one decision to the next: allocating them would cost more than many
decisions take. Each thread has its own."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Record, record, records
from lbopt.kernels.search.exchange import OPENED
from lbopt.kernels.search.state import (
    COUNTS,
    KNOWN,
    LIST,
    LISTED,
    PATH,
    PLACEMENT,
    PRICING,
    RANGE,
    TREE,
    Exchanging,
    Filling,
    Master,
    Masters,
    Path,
    Search,
    Tree,
)
from lbopt.kernels.search.tables import TABLE
from lbopt.model import StepProblem

#: Ranges of envelopes and nodes of trees: of these arrays only what is used takes memory.
_NODES, _BRANCHES = 1 << 18, 1 << 20

_COLUMNS = 6000

#: Vectors of prices in the log of a search, and bytes that it takes at most unless so few of them take more.
_FEWEST_PRICES, _MOST_PRICES, _PRICE_BYTES = 64, 1 << 14, 1 << 27

#: Open workers, size classes and slots that there is room for from the beginning: to grow takes some 30 ms.
_LEAST = (256, 512, 8)

#: Bytes that the arrays of one decision may take.
LARGEST = 4 << 30

_ours = threading.local()


def bytes_needed(problem: StepProblem) -> int:
    """Return about how many bytes the search by prices would take."""
    W, N = int((problem.slots > 0).sum()), problem.num_requests
    Q = int(problem.slots.max())
    tight = W + min(N + 1, W * Q) + 1
    columns = max(_COLUMNS, 16 * W)
    per_worker, per_request = 14 * Q + 42, _log_size(N) + 17 + 5 * Q
    return 8 * (tight**2 + columns * (Q + 4) + W * per_worker + N * per_request + 8 * _BRANCHES)


def _log_size(K: int) -> int:
    """Return how many vectors of K prices the log of a search has room for."""
    return max(_FEWEST_PRICES, min(_MOST_PRICES, _PRICE_BYTES // (8 * max(1, K))))


def fits_memory(problem: StepProblem) -> bool:
    """Return whether the search by prices may be started; it is asked before anything is allocated."""
    return bytes_needed(problem) <= LARGEST


def workspace(num_open: int, num_classes: int, most_slots: int) -> tuple[Search, Masters]:
    """Return arrays for at least so many open workers, size classes and slots of a worker; `known` is zeroed.

    Parameters
    ----------
    most_slots
        Largest number of free slots of a worker.
    """
    held: tuple[tuple[int, int, int], Search, Masters, list[np.ndarray]] | None = getattr(_ours, "held", None)
    wanted = (num_open, num_classes, most_slots)
    if held is None or any(have < want for have, want in zip(held[0], wanted, strict=True)):
        size = tuple(1 << (max(least, want) - 1).bit_length() for least, want in zip(_LEAST, wanted, strict=True))
        search, masters = _allocate(*size)
        cleared = (search.known, search.pricing, masters.tree.state)
        held = ((size[0], size[1], size[2]), search, masters, [_words(state) for state in cleared])
        _ours.held = held
    for words in held[3]:
        words[:] = 0
    return held[1], held[2]


class Known(NamedTuple):
    """What is known of a search, in the order of `KNOWN`, as Python's own integers."""

    cost: int
    ranges: int
    prices: int
    work: int
    bound: int
    warm: int
    patience: int
    stop: int
    deadline: int
    expired: int
    seed: int
    most: int
    uneven: int
    aim: int
    strayed: int
    astray: int
    newest: int


def what_is_known(search: Search) -> Known:
    """Read all that is known at once: to read a field of a record by itself takes 2 µs, some of a short search."""
    return Known(*search.known.item())


def _words(state: Record) -> np.ndarray:
    """Return the integers of a record as an array of the same memory."""
    return np.asarray(state.base).view(np.int64)


def exchanging(W: int, K: int, Q: int) -> Exchanging:
    """Return the scratch of exchanges for W open workers, K size classes and Q slots of a worker."""
    return Exchanging(
        slack=_ints(W),
        number=_ints(W),
        holder=_ints(K),
        avail=_ints(K),
        profit=_ints(K),
        best=_ints(K),
        sums=_ints(Q + 1),
        pattern=_ints(2 * OPENED),
        pair=_ints(2),
        saved=_ints(W, Q),
    )


def master_of(W: int, K: int, Q: int, columns: int, tight: int) -> Master:
    """Return an empty master program of W workers, K classes and Q slots of a worker.

    Parameters
    ----------
    columns, tight
        Most patterns, and most tight rows.
    """
    return Master(
        counts=record(COUNTS),
        owner=_ints(columns),
        items=np.full((columns, Q), -1, dtype=np.int64),
        size=_ints(columns),
        worth=np.zeros(columns),
        value=np.zeros(columns),
        limit=np.zeros(K),
        row=_ints(tight),
        place=np.full(W + K, -1, dtype=np.int64),
        basic=_ints(tight),
        inverse=np.zeros((tight, tight)),
        level=np.zeros(tight),
        slack=np.zeros(K),
        dual=np.zeros(tight),
        step=np.zeros(tight),
        rate=np.zeros(K),
    )


def _ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


def _allocate(W: int, K: int, Q: int) -> tuple[Search, Masters]:
    ints = _ints
    wide = max(K, Q + 2)
    tight = W + min(K, W * Q) + 1
    columns = max(_COLUMNS, 16 * W)

    search = Search(
        known=record(KNOWN),
        ranges=records(_NODES, RANGE),
        bank=ints(_log_size(K), K),
        bank_at=ints(_log_size(K)),
        answer=ints(W, Q),
        price=ints(K),
        best_price=ints(K),
        value=ints(W),
        bound=ints(W),
        pattern=ints(W, 3 * Q + 4),
        leaf=ints(W, 3 * Q + 4),
        spare=ints(W, 3 * Q + 4),
        kept=ints(W, 3 * Q + 4),
        listed=record(LISTED),
        listed_price=ints(K),
        listed_count=ints(K),
        listed_size=ints(K),
        lists=records(Q + 1, LIST),
        list_class=ints(Q + 1, wide),
        list_size=ints(Q + 1, wide),
        list_profit=ints(Q + 1, wide),
        list_count=ints(Q + 1, wide),
        list_best=ints(Q + 1, wide),
        profit=ints(wide),
        best=ints(wide),
        tops=ints(wide),
        partner=ints(wide),
        pairs=ints(TABLE + 1),
        triples=ints(TABLE + 1),
        waiting=ints(wide),
        pricing=record(PRICING),
        path=Path(
            state=record(PATH),
            taken=ints(W, Q),
            placed=ints(W),
            left=ints(K),
            who=ints(W),
            load=ints(W),
            slots=ints(W),
            rank=ints(W),
            sums=ints(Q + 1),
            number=ints(W),
        ),
        filling=Filling(left=ints(K), profit=ints(K), best=ints(K), sums=ints(Q + 1)),
        exchanging=exchanging(W, K, Q),
    )
    tree = Tree(
        state=record(TREE),
        nodes=records(_BRANCHES, PLACEMENT),
        bound=ints(W),
        lost=ints(W + 1),
        load_then=ints(W),
        slots_then=ints(W),
    )
    return search, Masters(whole=master_of(W, K, Q, columns, tight), tree=tree)
