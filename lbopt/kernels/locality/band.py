"""The locality band of one live request, and the worker that it is sent to.

    s_k = cosine of request and centroid k,   s* = max s_k,   band = {k : s_k >= s* - tau},
    chosen: the band's worker of least load, of equal loads the most similar, of equal ones the first.

Products of the request with all centroids are taken in 16-bit fixed point, where a vector register holds 32 cells and
sums are exact in any order. With rows s and c and what rounding makes of them, s' and c', the product is off by

    |<s, c> - <s', c'>| <= |s - s'| |c'| + |c - c'|,   |s - s'| <= sqrt(d) / (2 * 32767)

over d cells: Cauchy and Schwarz. So every cosine is known within about 0.002 at 6,144 cells, and wherever that leaves
the choice open (who is the most similar, who is in the band and idle enough to matter) the cosine is taken again in
float64. The choice is therefore that of float64 throughout; few cosines are taken twice. Sums fit into 32 bits: they
are at most (32767 + sqrt(d) / 2)^2, part or whole, which stays below 2^31 for up to 7 * 10^8 cells.

Source: ELDR (arXiv 2607.00466), section on routing; the tie rules and the tolerance are ours.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.locality.pair_products import product
from lbopt.kernels.routing.band import TOLERANCE

ShortInts = NDArray[np.int16]

#: What 1 is in fixed point.
SCALE = 32767.0
#: For the float64 arithmetic of the bounds themselves.
_ROUNDING = 1e-9

#: How a cell is made of what was measured: times its weight, the same where it may be negative, its root, or 1.
WEIGHED, SIGNED, ROOT, PRESENT = 0, 1, 2, 3

#: What `route` and `band` return for counts below 0, and for values that are not finite.
NEGATIVE, NOT_FINITE = -1, -2


@by_reference
class Band(NamedTuple):
    """The routing table as the kernel reads it, and room to work in; d cells, padded with zeros to a multiple of 32."""

    layers: Ints  # (N*,)
    weights: Floats  # (L, E)
    centroids: Floats  # (K, d)
    fixed: ShortInts  # (K, d) the same times SCALE, rounded
    length: Floats  # (K,) |c'|
    error: Floats  # (K,) |c - c'|
    cells: Floats  # (d,) of the request
    rounded: ShortInts  # (d,) the same, of length SCALE
    sums: Floats  # (d / 4,) scratch
    least: Floats  # (K,) the cosine is no less,
    most: Floats  # (K,) and no more


@kernel
def route(measured: Ints, kind: int, band: Band, load: Ints, tau: float) -> int:
    """Return the worker of a request, or NEGATIVE or NOT_FINITE.

    Parameters
    ----------
    measured
        int64 or float64 (L, E), what the request's prompt did.
    kind
        WEIGHED, SIGNED, ROOT or PRESENT.
    load
        int64 (K,), requests in flight.
    """
    inverse = _read(measured, kind, band)
    if inverse < 0.0:
        return int(inverse)
    floor = _known(band, inverse) - tau - TOLERANCE
    least, most = band.least, band.most
    K = load.size
    lowest = np.iinfo(np.int64).max
    for k in range(K):
        if least[k] >= floor:
            lowest = min(lowest, load[k])
    for k in range(K):
        if least[k] < floor <= most[k] and load[k] <= lowest:
            _look_again(band, inverse, k)
            if least[k] >= floor:
                lowest = load[k]
    nearest = -2.0
    for k in range(K):
        if load[k] == lowest and least[k] >= floor:
            nearest = max(nearest, least[k])
    chosen, cosine = -1, -3.0
    for k in range(K):
        if load[k] == lowest and least[k] >= floor and most[k] >= nearest:
            _look_again(band, inverse, k)
            if least[k] > cosine:
                chosen, cosine = k, least[k]
    return chosen


@kernel
def members(measured: Ints, kind: int, band: Band, tau: float, found: Ints) -> int:
    """Write the workers in the band to `found`, int64 (K,), ascending; returns how many, or NEGATIVE or NOT_FINITE.

    Parameters
    ----------
    measured
        int64, the signature as it was measured.
    kind
        How it is read: WEIGHED, SIGNED, ROOT or PRESENT.
    band
        The centroids; its scratch is changed.
    tau
        Width of the band, in cosines.
    found
        int64 (K,), written.
    """
    inverse = _read(measured, kind, band)
    if inverse < 0.0:
        return int(inverse)
    floor = _known(band, inverse) - tau - TOLERANCE
    number = 0
    for k in range(band.least.size):
        if band.least[k] < floor <= band.most[k]:
            _look_again(band, inverse, k)
        if band.least[k] >= floor:
            found[number] = k
            number += 1
    return number


@kernel
def _read(measured: Ints, kind: int, band: Band) -> float:
    """Set band.cells and band.rounded; returns 1 / length, 0 for a request without mass, or a code below 0."""
    cells, rounded, weights = band.cells, band.rounded, band.weights
    E = weights.shape[1]
    below = False
    for n in range(band.layers.size):
        layer = band.layers[n]
        row, weight, out = measured[layer], weights[layer], cells[n * E : (n + 1) * E]
        for e in range(E):
            below |= row[e] < 0
        if kind == ROOT:
            for e in range(E):
                out[e] = np.sqrt(max(0.0, float(row[e])))
        elif kind == PRESENT:
            for e in range(E):
                out[e] = 1.0 if row[e] > 0 else 0.0
        else:
            for e in range(E):
                out[e] = row[e] * weight[e]
    mass = product(cells, cells, band.sums)
    if not mass < np.inf:
        return float(NOT_FINITE)
    if below and kind != SIGNED:
        return float(NEGATIVE)
    inverse = 1.0 / np.sqrt(mass) if mass > 0.0 else 0.0
    scale = SCALE * inverse
    for i in range(cells.size):
        rounded[i] = np.int16(np.rint(cells[i] * scale))
    return inverse


@kernel
def _known(band: Band, inverse: float) -> float:
    """Set bounds of all cosines, take those again that may be the greatest, and return that."""
    fixed, rounded, least, most = band.fixed, band.rounded, band.least, band.most
    K, d = fixed.shape
    off = 0.5 * np.sqrt(float(d)) / SCALE if inverse > 0.0 else 0.0
    top = -2.0
    for k in range(K):
        row = fixed[k]
        total = np.int32(0)
        for i in range(d):
            total = np.int32(total + np.int32(np.int32(row[i]) * np.int32(rounded[i])))
        cosine = total / (SCALE * SCALE)
        slack = off * band.length[k] + band.error[k] + _ROUNDING
        least[k], most[k] = cosine - slack, cosine + slack
        top = max(top, least[k])
    greatest = -2.0
    for k in range(K):
        if most[k] >= top:
            _look_again(band, inverse, k)
            greatest = max(greatest, least[k])
    return greatest


@kernel
def _look_again(band: Band, inverse: float, k: int) -> None:
    """Take the cosine to centroid k in float64, unless that was done before."""
    if band.least[k] < band.most[k]:
        band.least[k] = band.most[k] = product(band.cells, band.centroids[k], band.sums) * inverse
