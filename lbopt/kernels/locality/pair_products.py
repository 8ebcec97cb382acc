"""Inner products of chosen pairs of requests, layer by layer.

The k smallest of every token's scaled keys: which experts it chooses.
"""

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

#: Lanes in which a sum runs, each over every 16th of 128 cells at a time; and pairs whose lanes are added up together.
LANES, TOGETHER = 16, 64


@kernel
def pair_products(cells: Floats, weights: Floats, pairs: Ints, products: Floats, squares: Floats) -> None:
    """Write products of pairs and of each request with itself.

    A layer's rows are copied side by side, with zeros up to a multiple of 128, so that they stay in the cache while its
    pairs are walked. Sums run side by side: one after the other they would fill one lane of a vector register.

    Parameters
    ----------
    cells
        float64 or int64 (N, L, E).
    weights
        float64 (L, E), by which cells are multiplied.
    pairs
        int64 (P, 2).
    products, squares
        float64 (L, P) and (L, N), written.
    """
    N, L, E = cells.shape
    rows = np.zeros((N, (E + 127) // 128 * 128))
    lanes = np.empty((TOGETHER, LANES))
    first, second, itself = pairs[:, 0].copy(), pairs[:, 1].copy(), np.arange(N)
    for layer in range(L):
        for i in range(N):
            for e in range(E):
                rows[i, e] = cells[i, layer, e] * weights[layer, e]
        _products(rows, itself, itself, lanes, squares[layer])
        _products(rows, first, second, lanes, products[layer])


@kernel
def _products(rows: Floats, first: Ints, second: Ints, lanes: Floats, out: Floats) -> None:
    """Write the products of rows; the lanes of many are added up together, else each would wait for its own sums.

    Parameters
    ----------
    rows
        float64 (N, multiple of 128).
    first, second
        int64 (P,), rows of each pair.
    lanes
        float64 (TOGETHER, LANES), scratch.
    out
        float64 (P,), written.
    """
    for start in range(0, out.size, TOGETHER):
        number = min(TOGETHER, out.size - start)
        for p in range(number):
            x, y, t = rows[first[start + p]], rows[second[start + p]], lanes[p]
            for e in range(LANES):
                t[e] = ((x[e] * y[e] + x[e + 16] * y[e + 16]) + (x[e + 32] * y[e + 32] + x[e + 48] * y[e + 48])) + (
                    (x[e + 64] * y[e + 64] + x[e + 80] * y[e + 80]) + (x[e + 96] * y[e + 96] + x[e + 112] * y[e + 112])
                )
            for begin in range(128, rows.shape[1], 128):
                for lane in range(LANES):
                    e = begin + lane
                    t[lane] += (
                        (x[e] * y[e] + x[e + 16] * y[e + 16]) + (x[e + 32] * y[e + 32] + x[e + 48] * y[e + 48])
                    ) + (
                        (x[e + 64] * y[e + 64] + x[e + 80] * y[e + 80])
                        + (x[e + 96] * y[e + 96] + x[e + 112] * y[e + 112])
                    )
        for p in range(number):
            t = lanes[p]
            out[start + p] = (((t[0] + t[8]) + (t[1] + t[9])) + ((t[2] + t[10]) + (t[3] + t[11]))) + (
                ((t[4] + t[12]) + (t[5] + t[13])) + ((t[6] + t[14]) + (t[7] + t[15]))
            )


@kernel
def product(x: Floats, y: Floats, sums: Floats) -> float:
    """Return the sum of x * y, of a multiple of 32 cells; `sums` is scratch for a quarter of them."""
    q = sums.size
    for e in range(q):
        sums[e] = (x[e] * y[e] + x[e + q] * y[e + q]) + (x[e + 2 * q] * y[e + 2 * q] + x[e + 3 * q] * y[e + 3 * q])
    for start in range(8, q, 8):
        for e in range(8):
            sums[e] += sums[start + e]
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))


@kernel
def pick(keys: NDArray[np.float32], scale: NDArray[np.float32], row: Ints, k: int, chosen: Ints) -> None:
    """Add one to `chosen` for each of the k experts with the smallest keys * scale; the first of equal ones.

    The k smallest so far stand in ascending order, and nearly every expert fails against the last of them.

    Parameters
    ----------
    keys
        float32 (n, E), one row a token.
    scale, chosen
        float32 and int64 (m, E); `chosen` is added to.
    row
        int64 (n,), the row of `scale` and `chosen` that each token belongs to.
    """
    n, E = keys.shape
    least, experts = np.empty(k, dtype=np.float32), np.empty(k, dtype=np.int64)
    for t in range(n):
        r = row[t]
        held = 0
        for e in range(E):
            key = keys[t, e] * scale[r, e]
            if held == k:
                if key >= least[k - 1]:
                    continue
                place = k - 1
            else:
                place = held
                held += 1
            while place > 0 and least[place - 1] > key:
                least[place] = least[place - 1]
                experts[place] = experts[place - 1]
                place -= 1
            least[place] = key
            experts[place] = e
        for s in range(k):
            chosen[r, experts[s]] += 1
