"""Candidates: for each point the few centres that it may be at, with their costs; all other pairs are forbidden."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.assignment.cost_rows import AnyArray, RowSource, in_blocks
from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray


class Candidates(RowSource):
    """Listed pairs of N points and K centres.

    Parameters
    ----------
    start
        (N + 1,) integers: the pairs of point i stand at start[i] to start[i + 1] - 1.
    centre
        (E,) integers, the centre of each pair; no point names one twice.
    cost
        (E,) finite numbers.
    centres
        K.
    """

    def __init__(self, start: Any, centre: Any, cost: Any, centres: int) -> None:
        self.start: IntArray = np.array(start, dtype=np.int64)
        self.centre: NDArray[np.int32] = np.array(centre, dtype=np.int32)
        self.cost: AnyArray = np.array(cost)
        self.shape = (self.start.size - 1, int(centres))
        self._check()
        for array in (self.start, self.centre, self.cost):
            array.flags.writeable = False

    @classmethod
    def nearest(cls, costs: Any, count: int) -> Candidates:
        """Return the `count` cheapest centres of each point.

        Parameters
        ----------
        costs
            (N, K) costs, or blocks of them (`CostBlocks`), which are read a block at a time.
        count
            Candidates of each point: 1 to K.
        """
        centre, cost, lengths = [], [], []
        for _, values, allowed in in_blocks(costs):
            if not 1 <= count <= values.shape[1]:
                raise InputError(f"count is {count}; expected 1 to the {values.shape[1]} centres")
            ahead = np.where(allowed, values, np.inf)
            order = np.sort(np.argpartition(ahead, count - 1, axis=1)[:, :count], axis=1)
            keep = np.take_along_axis(allowed, order, 1)
            centre.append(order[keep].astype(np.int32))
            cost.append(np.take_along_axis(values, order, 1)[keep])
            lengths.append(keep.sum(axis=1))
        start = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return cls(start, np.concatenate(centre), np.concatenate(cost), values.shape[1])

    @classmethod
    def of_sparse(cls, matrix: Any) -> Candidates:
        """Return the stored entries of a SciPy sparse matrix or array: zeros that are stored are pairs of cost zero."""
        rows = matrix.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return cls(rows.indptr, rows.indices, rows.data, rows.shape[1])

    def rows(self, begin: int, end: int) -> AnyArray:
        """Return these rows as a masked matrix, (end - begin, K)."""
        first, last = int(self.start[begin]), int(self.start[end])
        row = np.repeat(np.arange(end - begin), np.diff(self.start[begin : end + 1]))
        values = np.zeros((end - begin, self.shape[1]), dtype=self.cost.dtype)
        hidden = np.ones(values.shape, dtype=np.bool_)
        values[row, self.centre[first:last]] = self.cost[first:last]
        hidden[row, self.centre[first:last]] = False
        return np.ma.MaskedArray(values, mask=hidden)

    def __repr__(self) -> str:
        return f"<Candidates: {self.cost.size} pairs of {self.shape[0]} points and {self.shape[1]} centres>"

    def _check(self) -> None:
        start, pairs, centres = self.start, self.cost.size, self.shape[1]
        if start.ndim != 1 or not start.size or start[0] != 0 or start[-1] != pairs or (np.diff(start) < 0).any():
            raise InputError(f"start must rise from 0 to the {pairs} pairs, one entry more than there are points")
        if self.centre.shape != self.cost.shape or self.cost.ndim != 1:
            raise InputError(
                f"centre and cost have shapes {self.centre.shape} and {self.cost.shape}; expected the same"
            )
        if centres < 1:
            raise InputError(f"centres is {centres}; expected at least 1")
        if pairs and not 0 <= int(self.centre.min()) <= int(self.centre.max()) < centres:
            raise InputError(f"candidates name centres {self.centre.min()} to {self.centre.max()}; there are {centres}")
        if self.cost.dtype.kind not in "iuf":
            raise InputError(f"costs of candidates must be numbers; they are {self.cost.dtype}")
        row = np.repeat(np.arange(self.shape[0]), np.diff(start))
        keys = np.sort(row * centres + self.centre)
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if twice.size:
            i, k = divmod(int(keys[twice[0]]), centres)
            raise InputError(f"point {i} names centre {k} twice; expected each of its candidates once")
        if self.cost.dtype.kind == "f" and not np.isfinite(self.cost).all():
            e = int(np.flatnonzero(~np.isfinite(self.cost))[0])
            raise InputError(f"a candidate of point {row[e]} costs {self.cost[e]}; leave out pairs that are forbidden")


def readable(costs: Any) -> Any:
    """Return costs of any kind as something with rows: a source of blocks, a masked array or an array."""
    if hasattr(costs, "tocsr"):
        return Candidates.of_sparse(costs)
    return costs if isinstance(costs, RowSource | np.ma.MaskedArray) else np.asarray(costs)
