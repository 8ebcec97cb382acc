"""Costs of all kinds: a matrix, candidates that are listed, or blocks of rows that are made or read when asked for.

What is forbidden: masked entries of a NumPy masked array, +infinity, and pairs that a list of candidates or a sparse
matrix does not hold. A proof is checked through rows (`in_blocks`), by NumPy alone; what is assigned are `Pairs` with
integer costs. A matrix of them serves where most pairs may be used, and marks the others (`FORBIDDEN`). A list serves
where each point has few candidates: it holds their pairs alone. The kernels read both
(`lbopt.kernels.assignment.costs.Points`).

Costs as exact integers, by one named rule.

Rule: integer costs are taken as they are. Real costs are multiplied by 2**e and rounded to the nearest integer (halves
to even), e being the largest exponent for which the largest absolute cost A, so multiplied, keeps

    N * A <= 2**62          (no total of N costs leaves int64), and
    2 * (K + 2) * A <= 2**58    (nor does any path of price differences through all centres, with room for two more).

The product is exact, so only the rounding errs, by at most half a unit of 2**-e each: an assignment that is optimal for
the integers costs at most N * 2**-e more than the least real total. Costs that are multiples of 2**-e, whole numbers
among them, lose nothing.

Forbidden pairs are left out of all this. Masked entries and +infinity are forbidden (SciPy's `linear_sum_assignment`
reads infinity so, too); NaN and -infinity are refused. Costs of less than half a unit become zero; a warning says how
many, since a choice among them is then by chance.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import FORBIDDEN, count_lost, few_products, scaled
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


_LARGEST_TOTAL = 2**62

#: No sum of differences of costs on a path through all centres is larger, and prices start no farther from zero.
LARGEST_PATH = 2**58


def scale_costs(costs: Any) -> tuple[IntArray, int | None]:
    """Return integer costs and the exponent e of their scale 2**e; None where they were integers as given.

    Parameters
    ----------
    costs
        (N, K) integers or reals, any unit. Arrays that are int64 and contiguous already are returned themselves.
        Masked entries and +infinity are forbidden, and hold `lbopt.kernels.assignment.costs.FORBIDDEN` afterwards.

    Raises
    ------
    InputError
        If costs are no matrix of numbers, have no column, are NaN or -infinity, or are integers beyond the rule above.
    """
    pairs, exponent = _of_matrix(costs)
    return pairs.costs, exponent


def scaled_pairs(costs: Any) -> tuple[Pairs, int | None]:
    """Return the same as pairs, listed where `costs` are candidates or a sparse matrix."""
    if hasattr(costs, "tocsr"):
        costs = Candidates.of_sparse(costs)
    if not isinstance(costs, Candidates):
        return _of_matrix(costs)
    points, centres = costs.shape
    most, exponent = largest_cost(points, centres), None
    if costs.cost.dtype.kind == "f":
        cost, exponent = scaled_reals(costs.cost.astype(np.float64), most)
    else:
        ends = (costs.cost.min(), costs.cost.max()) if costs.cost.size else (0,)
        largest = max(abs(int(end)) for end in ends)
        if largest > most:
            raise InputError(f"a candidate costs {largest} in size; {_may_be(points, centres, most)}")
        cost = costs.cost.astype(np.int64)
    return Pairs.of_lists(centres, costs.start, costs.centre, cost), exponent


def _of_matrix(costs: Any) -> tuple[Pairs, int | None]:
    given = _matrix(costs)
    points, centres = given.shape
    most = largest_cost(points, centres)
    if given.dtype.kind in "iu":
        values, allowed = split(given) if isinstance(given, np.ma.MaskedArray) else (given, None)
        if values.size:
            low, high = int(values.min()), int(values.max())
            if max(-low, high) > most:
                i, k = np.argwhere(values == (high if high >= -low else low))[0]
                raise InputError(f"costs[{i}, {k}] is {values[i, k]}; {_may_be(points, centres, most)}")
        integers, exponent = np.ascontiguousarray(values, dtype=np.int64), None
    else:
        real, allowed = _reals(given)
        integers, exponent = scaled_reals(real.reshape(-1), most)
        integers = integers.reshape(real.shape)
    if allowed is None or allowed.all():
        return Pairs.of_matrix(integers), exponent
    return Pairs.of_matrix(np.where(allowed, integers, FORBIDDEN), gaps=True), exponent


def _reals(given: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return contiguous costs with 0 where they are forbidden, and what may be used; None for all."""
    allowed = None
    if not isinstance(given, np.ma.MaskedArray):
        real = np.ascontiguousarray(given, dtype=np.float64)
        if math.isfinite(largest_size(real.reshape(-1))):
            return real, None
        given = real
    values, allowed = split(given)
    real = np.ascontiguousarray(values, dtype=np.float64)
    if not math.isfinite(largest_size(real.reshape(-1))):
        i, k = np.argwhere(~np.isfinite(real))[0]
        raise InputError(
            f"costs[{i}, {k}] is {real[i, k]}; expected finite costs: mask a pair that must not be used, or give "
            "it +inf"
        )
    return real, allowed


def scaled_reals(values: NDArray[np.float64], most: int) -> tuple[IntArray, int]:
    """Return finite reals, (E,) and contiguous, as integers of at most `most` in size, and the exponent of the scale.

    Warns
    -----
    UserWarning
        If some that are not zero become zero.
    """
    largest = largest_size(values)
    exponent = exponent_below(largest, most)
    integers = integers_of(values, exponent)
    warn_of_lost(count_lost(values, integers), values.size, largest, exponent)
    return integers, exponent


def integers_of(values: NDArray[np.float64], exponent: int) -> IntArray:
    """Return round(values * 2**exponent), halves to even, of a contiguous (E,) array."""
    half = exponent // 2
    return scaled(values, math.ldexp(1.0, half), math.ldexp(1.0, exponent - half))


def warn_of_lost(lost: int, size: int, largest: float, exponent: int) -> None:
    """Warn that costs are lost in the scaling, if any are.

    Parameters
    ----------
    lost, size
        Costs that are not zero and become zero, and all costs.
    """
    if lost:
        warnings.warn(
            f"{lost} of {size} costs are not zero and count as zero: the largest, {largest:g}, makes the unit of the "
            f"integer scale 2**{-exponent} = {math.ldexp(1.0, -exponent):.3g}; if it stands for a pair that must not "
            "be used, mask it or make it +inf",
            UserWarning,
            stacklevel=6,
        )


def largest_size(values: NDArray[np.float64]) -> float:
    """Return the largest absolute value, NaN or infinity if there is one."""
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _may_be(points: int, centres: int, most: int) -> str:
    return (
        f"integer costs of {points} points and {centres} centres may be at most {most} in size: divide them, or give "
        "them as floats, which are scaled"
    )


def largest_cost(points: int, centres: int) -> int:
    """Return the largest absolute integer cost that the rule allows."""
    return min(_LARGEST_TOTAL // max(1, points), LARGEST_PATH // (2 * (centres + 2)))


def exponent_below(largest: float, most: int) -> int:
    """Return the largest e with largest * 2**e <= most; 0 where `largest` is zero."""
    if largest == 0.0:
        return 0
    fraction, power = math.frexp(largest)  # largest = fraction * 2**power, 1/2 <= fraction < 1
    exponent = most.bit_length() - power
    while math.ldexp(fraction, power + exponent) > most:
        exponent -= 1
    return exponent


def _matrix(costs: Any) -> NDArray[Any]:
    try:
        given = costs if isinstance(costs, np.ma.MaskedArray) else np.asarray(costs)
    except ValueError:
        raise InputError("costs is not a rectangular array of numbers: its rows differ in length or depth") from None
    if given.ndim != 2:
        raise InputError(
            f"costs must be 2-D, a row for each point and a column for each centre; its shape is {given.shape}"
        )
    if given.shape[1] == 0:
        raise InputError(f"costs has shape {given.shape}: there are no centres; expected at least one column")
    if given.dtype.kind == "O" and all(isinstance(value, int) for value in given.flat):
        raise InputError(
            "costs holds whole numbers beyond int64; divide them, or give them as floats, which are scaled"
        )
    if given.dtype.kind not in "biuf":
        raise InputError(f"costs must hold numbers; it holds {given.dtype} values")
    return given.astype(np.int64) if given.dtype.kind == "b" else given
