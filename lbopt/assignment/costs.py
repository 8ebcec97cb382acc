"""Costs of all kinds: a matrix, candidates that are listed, or blocks of rows that are made or read when asked for.

What is forbidden: masked entries of a NumPy masked array, +infinity, and pairs that a list of candidates or a sparse
matrix does not hold. A proof is checked through rows (`in_blocks`), by NumPy alone; what is assigned are `Pairs` with
integer costs. A matrix of them serves where most pairs may be used, and marks the others (`FORBIDDEN`). A list serves
where each point has few candidates: it holds their pairs alone. The kernels read both
(`lbopt.kernels.assignment.state.Points`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import few_products
from lbopt.kernels.assignment.state import FORBIDDEN
from lbopt.model.integers import IntArray
from lbopt.spec import unknown

#: Entries that are looked at together.
BLOCK_ENTRIES = 1 << 22

AnyArray = NDArray[Any]
Flags = NDArray[np.bool_]


class RowSource(ABC):
    """Costs that are made or read when asked for; `shape` is (N, K)."""

    shape: tuple[int, int]

    @abstractmethod
    def rows(self, begin: int, end: int) -> AnyArray:
        """Return the costs of points begin to end - 1, (end - begin, K); what is forbidden is masked or infinite."""


def in_blocks(costs: Any) -> Iterator[tuple[int, AnyArray, Flags]]:
    """Yield the first row of each block, its values with 0 where forbidden, and what may be used."""
    source = costs if isinstance(costs, RowSource) else None
    given = None if source is not None else costs if isinstance(costs, np.ma.MaskedArray) else np.asarray(costs)
    points, centres = source.shape if source is not None else given.shape  # type: ignore[union-attr]
    step = max(1, BLOCK_ENTRIES // max(1, centres))
    for begin in range(0, max(points, 1), step):
        end = min(begin + step, points)
        rows = source.rows(begin, end) if source is not None else given[begin:end]  # type: ignore[index]
        yield begin, *split(rows)


def split(rows: Any) -> tuple[AnyArray, Flags]:
    """Return values with 0 where forbidden, and what may be used."""
    values: AnyArray = np.ma.getdata(rows)
    allowed: Flags = ~np.ma.getmaskarray(rows)
    if values.dtype.kind == "f":
        allowed &= values != np.inf
    if not allowed.all():
        values = np.where(allowed, values, values.dtype.type(0))
    return values, allowed


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


class CostBlocks(RowSource):
    """Costs of N points at K centres, by rows.

    Parameters
    ----------
    rows
        From begin and end to the costs of points begin to end - 1, (end - begin, K): integers, or reals of any width;
        what is masked or +infinity is forbidden. It is asked for the same rows several times, in blocks of any size,
        and must give the same numbers each time.
    points, centres
        N and K.
    """

    def __init__(self, rows: Callable[[int, int], Any], points: int, centres: int) -> None:
        if points < 0 or centres < 1:
            raise InputError(f"{points} points and {centres} centres cannot be; expected 0 or more, and at least 1")
        self._rows, self.shape = rows, (int(points), int(centres))

    @classmethod
    def of_array(cls, costs: Any) -> CostBlocks:
        """Return the rows of an array (N, K), such as a `numpy.memmap`, of which a block is read at a time."""
        if costs.ndim != 2:
            raise InputError(f"costs must be 2-D, a row for each point; its shape is {costs.shape}")
        return cls(lambda begin, end: costs[begin:end], *costs.shape)

    @classmethod
    def of_points(cls, points: Any, centers: Any, metric: str = "euclidean") -> CostBlocks:
        """Return squared distances, or 1 - cosine, of points (N, d) and centres (K, d), in float64.

        Parameters
        ----------
        points, centers
            Reals; float32 points take half the memory, and are widened a block at a time.
        metric
            "euclidean" or "cosine".
        """
        if metric not in ("euclidean", "cosine"):
            raise unknown("metric", metric, ("euclidean", "cosine"))
        middle = np.asarray(centers, dtype=np.float64)
        if points.ndim != 2 or middle.ndim != 2 or points.shape[1] != middle.shape[1]:
            raise InputError(
                f"points and centers have shapes {points.shape} and {middle.shape}; expected (N, d), (K, d)"
            )
        if metric == "cosine":
            middle = _unit(middle)
        across, beside = np.ascontiguousarray(middle.T), np.einsum("ij,ij->i", middle, middle)

        def rows(begin: int, end: int) -> AnyArray:
            some = np.ascontiguousarray(points[begin:end], dtype=np.float64)
            products = np.empty((end - begin, len(middle)))
            # plain loops: a row's costs do not depend on the block that it is in, as they would in a library's product
            few_products(_unit(some) if metric == "cosine" else some, across, products)
            if metric == "cosine":
                costs = 1.0 - products
            else:
                costs = np.einsum("ij,ij->i", some, some)[:, None] + beside - 2.0 * products
            return np.asarray(np.maximum(costs, 0.0))

        return cls(rows, len(points), len(middle))

    def rows(self, begin: int, end: int) -> AnyArray:
        """Return the costs of points begin to end - 1."""
        found = self._rows(begin, end)
        found = found if isinstance(found, np.ma.MaskedArray) else np.asarray(found)
        if found.shape != (end - begin, self.shape[1]) or found.dtype.kind not in "iuf":
            raise InputError(
                f"the costs of points {begin} to {end - 1} are {found.dtype} of shape {found.shape}; expected numbers "
                f"of shape ({end - begin}, {self.shape[1]})"
            )
        return found

    def __repr__(self) -> str:
        return f"<CostBlocks of {self.shape[0]} points and {self.shape[1]} centres>"


def _unit(rows: AnyArray) -> AnyArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


ShortArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of N points and K centres.

    Parameters
    ----------
    centres
        K.
    costs
        int64 (N, K), `FORBIDDEN` where a pair must not be used; (0, K) where pairs are listed.
    start
        int64 (N + 1,), where the pairs of each point begin in the list; empty for a matrix.
    centre, cost
        int32 and int64 (E,), the listed pairs.
    gaps
        Whether any pair is forbidden.
    """

    centres: int
    costs: IntArray
    start: IntArray
    centre: ShortArray
    cost: IntArray
    gaps: bool

    @classmethod
    def of_matrix(cls, costs: IntArray, gaps: bool = False) -> Pairs:
        """Return the pairs of a matrix."""
        none = np.empty(0, dtype=np.int64)
        return cls(costs.shape[1], costs, none, np.empty(0, dtype=np.int32), none, gaps)

    @classmethod
    def of_lists(cls, centres: int, start: IntArray, centre: ShortArray, cost: IntArray) -> Pairs:
        """Return listed pairs."""
        costs = np.empty((0, centres), dtype=np.int64)
        return cls(centres, costs, start, centre, cost, True)

    @property
    def listed(self) -> bool:
        """Whether pairs are listed."""
        return self.start.size > 0

    @property
    def points(self) -> int:
        """N."""
        return self.start.size - 1 if self.listed else len(self.costs)

    def nowhere(self) -> int | None:
        """Return the first point that may be at no centre, None if there is none."""
        if not self.gaps:
            return None
        alone = np.diff(self.start) == 0 if self.listed else (self.costs == FORBIDDEN).all(axis=1)
        return int(alone.argmax()) if alone.any() else None
