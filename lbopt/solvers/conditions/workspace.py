"""The arrays that the search under conditions works in, made for one decision; what is not used takes no memory."""

from __future__ import annotations

import numpy as np

from lbopt.kernels.arrays import record, records
from lbopt.kernels.conditions.deep import BUCKETS
from lbopt.kernels.conditions.state import EFFORT, KNOWN, NONE, PIVOTING, RANGE, TREE, Path, Search
from lbopt.kernels.search.state import Master
from lbopt.solvers.exact.workspace import master_of

#: Ranges of envelopes, rows of prices, words of trees, and levels of a tree that there is room for.
_RANGES, _PRICES, _WORDS, _DEPTH = 1 << 14, 1 << 13, 1 << 18, 400

#: Bytes that the prices that are written down may take.
_PRICE_BYTES = 1 << 29

#: Columns of a master program beside 24 for each worker.
_COLUMNS = 1000

#: Bytes that the arrays of one decision may take.
LARGEST = 1 << 31


def fits_memory(W: int, K: int, Q: int) -> bool:
    """Return whether the arrays for W workers, K classes and Q slots of a worker may be made."""
    tight = W + min(K, W * Q) + 1
    return 8 * (tight**2 + (_COLUMNS + 24 * W) * (Q + 4) + _DEPTH * (2 * W + K) + 2 * W * K) < LARGEST


def made(W: int, K: int, Q: int) -> tuple[Search, Master]:
    """Return arrays for W workers, K classes with the blank, and Q slots of a worker."""
    columns, tight = _COLUMNS + 24 * W, W + min(K, W * Q) + 1
    search = Search(
        known=record(KNOWN),
        ranges=records(_RANGES, RANGE),
        prices=np.empty((min(_PRICES, max(64, _PRICE_BYTES // (8 * K))), K), dtype=np.int64),
        records=np.empty(_WORDS, dtype=np.int64),
        answer=_ints(W, Q),
        answer_mode=_ints(W),
        price=_ints(K),
        best_price=_ints(K),
        best_bound=_ints(W),
        bound=_ints(W),
        value=_ints(W),
        least=np.full(W, NONE),
        pattern=_ints(W, Q),
        mode=_ints(W),
        leaf=_ints(W, Q),
        leaf_mode=_ints(W),
        avail=_ints(K),
        spare=_ints(3, W),
        successor=_ints(W, Q),
        gained=_ints(W, Q),
        saved=_ints(W, Q),
        filled=_ints(W),
        light=_ints(3, W),
        ordered=_ints(W, K),
        amount=np.zeros((W, K)),
        part=np.zeros(K),
        pivoting=record(PIVOTING),
        path=Path(
            taken=_ints(W, Q),
            placed=_ints(W),
            used=_ints(W),
            worth=_ints(W),
            held=_ints(2, W),
            left=_ints(K),
            banned=_ints(W, K),
        ),
        tree=record(TREE),
        pair_class=_ints(_DEPTH),
        pair_worker=_ints(_DEPTH),
        pair_first=_ints(_DEPTH),
        cursor=_ints(_DEPTH),
        level_price=np.empty((_DEPTH, K), dtype=np.int64),
        level_bound=_ints(_DEPTH, W),
        effort=record(EFFORT),
        item=_ints(K),
        profit=_ints(K),
        weights=_ints(3, K),
        number=_ints(K),
        reduced=_ints(K),
        order=_ints(K),
        rooms=_ints(2),
        limit=_ints(3),
        multiplier=_ints(3),
        steepest=_ints(3),
        kept=_ints(W, 3),
        usage=_ints(3),
        tops=_ints(3, BUCKETS + 1),
        grain=_ints(3),
        top=_ints(Q),
        stack=_ints(Q + 1),
        repeats=_ints(Q + 1),
        start=_ints(Q + 1),
        sums=_ints(5, Q + 1),
        chosen=_ints(Q),
    )
    return search, master_of(W, K, Q, columns, tight)


def _ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)
