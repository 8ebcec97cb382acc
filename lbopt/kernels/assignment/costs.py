"""Costs of points at centres as integers, and sums of clusters: what a round of K-means does beside its assignment."""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def few_products(rows: Floats, across: Floats, out: Floats) -> None:
    """Write the products of rows, (n, d), and centres, `across` (d, K), float64 (n, K): for d of a few dozen at most.

    A row of products stays in the nearest cache; a library that cuts matrices into blocks takes longer to cut.
    """
    for i in range(rows.shape[0]):
        row, written = rows[i], out[i]
        written[:] = 0.0
        for j in range(row.size):
            factor, center = row[j], across[j]
            for k in range(written.size):
                written[k] += factor * center[k]


@kernel
def integer_costs(products: Floats, ahead: Floats, beside: Floats, times: float, factor: float, out: Ints) -> None:
    """Write round(factor * max(ahead[i] + beside[k] - times * products[i, k], 0)), halves to even.

    Parameters
    ----------
    products
        float64 (n, K), of points and centres.
    ahead, beside
        float64 (n,) and (K,).
    times, factor
        A number, and a power of two.
    out
        int64 (n, K), written; the products must lie elsewhere.
    """
    for i in range(products.shape[0]):
        row, written, own = products[i], out[i], ahead[i]
        for k in range(row.size):
            written[k] = np.int64(np.rint(factor * max(own + beside[k] - times * row[k], 0.0)))


@kernel
def move_sums(rows: Floats, before: Ints, labels: Ints, sums: Floats) -> None:
    """Make `sums`, float64 (K, d), the sums of the rows of each cluster, which they are for the labels `before`.

    Only rows that have moved are looked at; -1 is a row that was nowhere.

    Parameters
    ----------
    rows
        float64 (n, d), points.
    before, labels
        (n,) int64, clusters before and now.
    sums
        float64 (K, d), changed in place.
    """
    for i in range(labels.size):
        old, new = before[i], labels[i]
        if old != new:
            row, more = rows[i], sums[new]
            for j in range(row.size):
                more[j] += row[j]
            if old >= 0:
                less = sums[old]
                for j in range(row.size):
                    less[j] -= row[j]


@kernel
def squared_distances(rows: Floats, labels: Ints, centers: Floats, out: Floats) -> None:
    """Write the squared distance of each row to the centre of its cluster, float64 (n,).

    Parameters
    ----------
    rows, centers
        float64 (n, d) and (K, d), points and centres.
    labels
        (n,) int64, cluster of each row.
    out
        float64 (n,), written.
    """
    for i in range(labels.size):
        row, center, total = rows[i], centers[labels[i]], 0.0
        for j in range(row.size):
            total += (row[j] - center[j]) ** 2
        out[i] = total
