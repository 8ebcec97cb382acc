"""Inner products of chosen pairs of requests, layer by layer."""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def pair_products(cells: Floats, pairs: Ints, products: Floats, squares: Floats) -> None:
    """Write products of pairs and of each request with itself.

    A layer's rows are copied side by side, with zeros up to a multiple of eight: they stay in the cache while its pairs
    are walked. Eight sums run side by side, because a single one could not be kept in vector registers.

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
    wide = (E + 7) // 8 * 8
    rows = np.zeros((N, wide))
    for layer in range(L):
        for i in range(N):
            for e in range(E):
                rows[i, e] = cells[i, layer, e]
        for i in range(N):
            squares[layer, i] = _product(rows[i], rows[i])
        for p in range(pairs.shape[0]):
            products[layer, p] = _product(rows[pairs[p, 0]], rows[pairs[p, 1]])


@kernel
def _product(x: Floats, y: Floats) -> float:
    """Return the sum of x * y; the length is a multiple of eight."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for e in range(0, x.size, 8):
        s0 += x[e] * y[e]
        s1 += x[e + 1] * y[e + 1]
        s2 += x[e + 2] * y[e + 2]
        s3 += x[e + 3] * y[e + 3]
        s4 += x[e + 4] * y[e + 4]
        s5 += x[e + 5] * y[e + 5]
        s6 += x[e + 6] * y[e + 6]
        s7 += x[e + 7] * y[e + 7]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
