"""The arrays that the search works in, kept from one decision to the next: allocating them would cost more than many
decisions take. Each thread has its own."""

from __future__ import annotations

import threading

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kernels.search.near_optimal import MOST_LISTED
from lbopt.kernels.search.tables import TABLE
from lbopt.kernels.search.terms import Master, Masters, Search, Tree
from lbopt.model import StepProblem

_NODES, _PRICES, _COLUMNS, _ROWS, _BRANCHES = 1 << 14, 64, 6000, 120_000, 1 << 16

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
    columns, rows = max(_COLUMNS, 16 * W), max(_ROWS, 200 * W)
    per_worker, per_request = 14 * Q + 42, _PRICES + 17 + 5 * Q
    return 8 * (2 * tight**2 + 2 * columns * (Q + 4) + 8 * rows + W * per_worker + N * per_request + 6 * _BRANCHES)


def check_memory(problem: StepProblem) -> None:
    """Refuse a problem that is too large, before anything is allocated."""
    needed = bytes_needed(problem)
    if needed > LARGEST:
        raise InputError(
            f"{problem.num_requests} requests for {problem.num_workers} workers of up to {int(problem.slots.max())} "
            f"free slots would take about {needed / 2**30:.1f} GiB in the exact search, which stops at "
            f"{LARGEST / 2**30:.0f}; offer it fewer waiting requests, or use a policy"
        )


def workspace(num_open: int, num_classes: int, most_slots: int) -> tuple[Search, Masters]:
    """Return arrays for at least so many open workers, size classes and slots of a worker; `known` is zeroed.

    Parameters
    ----------
    num_open
        Workers with free slots.
    num_classes
        Distinct sizes.
    most_slots
        Largest number of free slots of a worker.
    """
    held: tuple[tuple[int, int, int], Search, Masters] | None = getattr(_ours, "held", None)
    wanted = (num_open, num_classes, most_slots)
    if held is None or any(have < want for have, want in zip(held[0], wanted, strict=True)):
        size = tuple(1 << (max(least, want) - 1).bit_length() for least, want in zip(_LEAST, wanted, strict=True))
        held = ((size[0], size[1], size[2]), *_allocate(*size))
        _ours.held = held
    held[1].known[:] = 0
    held[1].cut[:] = 0
    held[2].tree.state[:] = 0
    return held[1], held[2]


def _allocate(W: int, K: int, Q: int) -> tuple[Search, Masters]:
    def ints(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    wide = max(K, Q + 2)
    tight = W + min(K, W * Q) + 1
    rows = max(_ROWS, 200 * W)
    columns = max(_COLUMNS, 16 * W)

    def master() -> Master:
        return Master(
            owner=ints(columns),
            items=np.full((columns, Q), -1, dtype=np.int64),
            size=ints(columns),
            worth=np.zeros(columns),
            value=np.zeros(columns),
            limit=np.zeros(K),
            counts=ints(3),
            row=ints(tight),
            place=np.full(W + K, -1, dtype=np.int64),
            basic=ints(tight),
            inverse=np.zeros((tight, tight)),
            level=np.zeros(tight),
            slack=np.zeros(K),
            dual=np.zeros(tight),
            step=np.zeros(tight),
            rate=np.zeros(K),
        )

    search = Search(
        known=ints(7),
        node=ints(_NODES, 6),
        bank=ints(_PRICES, K),
        bank_at=ints(_PRICES),
        answer=ints(W, Q),
        price=ints(K),
        best_price=ints(K),
        value=ints(W),
        bound=ints(W),
        pattern=ints(W, 3 * Q + 4),
        leaf=ints(W, 3 * Q + 4),
        spare=ints(W, 3 * Q + 4),
        kept=ints(W, 3 * Q + 4),
        asked=ints(3, K),
        listed=ints(Q + 1, 6),
        choices=ints(Q + 1, 5, wide),
        short=ints(2, wide),
        table=ints(2, TABLE + 1),
        work=ints(6, W + 12),
        classes=ints(6, wide),
        first=ints(W),
        last=ints(W),
        items=ints(rows, MOST_LISTED),
        loss=ints(rows),
        viable=ints(rows),
        undecided=np.full(W, -1, dtype=np.int64),
        cut=ints(12),
    )
    tree = Tree(
        state=ints(11),
        node=ints(_BRANCHES, 6),
        taken=ints(W, Q),
        placed=ints(W),
        left=ints(K),
        who=ints(W),
        load=ints(W),
        slots=ints(W),
        rank=ints(W),
        sums=ints(Q + 1),
        number=ints(W),
        bound=ints(W),
        lost=ints(W),
        load_then=ints(W),
        slots_then=ints(W),
    )
    return search, Masters(whole=master(), rest=master(), tree=tree)
