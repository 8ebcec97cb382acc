"""Costs that are never held whole: made from points and centres, read from a file, or by a function, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lbopt.assignment.cost_rows import AnyArray, RowSource
from lbopt.exceptions import InputError
from lbopt.kernels.assignment.costs import few_products
from lbopt.spec import unknown


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
