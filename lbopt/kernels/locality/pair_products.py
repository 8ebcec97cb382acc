"""Inner products of chosen pairs of requests, layer by layer."""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def pair_products(cells: Floats, pairs: Ints, products: Floats, squares: Floats) -> None:
    """Write products of pairs and of each request with itself.

    A layer's rows are copied side by side, with zeros up to a multiple of 32, so that they stay in the cache while its
    pairs are walked. Sums run side by side: one after the other they would fill one lane of a vector register.

    Parameters
    ----------
    cells
        float64 (N, L, E).
    pairs
        int64 (P, 2).
    products, squares
        float64 (L, P) and (L, N), written.
    """
    N, L, E = cells.shape
    quarter = (E + 31) // 32 * 8
    rows, sums = np.zeros((N, 4 * quarter)), np.empty(quarter)
    for layer in range(L):
        for i in range(N):
            for e in range(E):
                rows[i, e] = cells[i, layer, e]
        for i in range(N):
            squares[layer, i] = product(rows[i], rows[i], sums)
        for p in range(pairs.shape[0]):
            products[layer, p] = product(rows[pairs[p, 0]], rows[pairs[p, 1]], sums)


@kernel
def product(x: Floats, y: Floats, sums: Floats) -> float:
    """Return the sum of x * y; `sums` is scratch for a quarter of it, a multiple of eight."""
    q = sums.size
    for e in range(q):
        sums[e] = (x[e] * y[e] + x[e + q] * y[e + q]) + (x[e + 2 * q] * y[e + 2 * q] + x[e + 3 * q] * y[e + 3 * q])
    for start in range(8, q, 8):
        for e in range(8):
            sums[e] += sums[start + e]
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
