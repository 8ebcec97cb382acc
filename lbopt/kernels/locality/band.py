"""The locality band of one live request, and the worker that it is sent to.

    s_k = cosine of request and centroid k,   s* = max s_k,   band = {k : s_k >= s* - tau},
    chosen: the band's worker of least load, of equal loads the most similar, of equal ones the first.

k runs over the workers that are open. The bounds of the cosines do not depend on loads (`measure`), the choice does
(`choose`): a router that several threads share takes its lock for the second alone.

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

from lbopt.kernels.arrays import Bools, Floats, Ints
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

#: What `measure` returns as the inverse length for counts below 0, and for values that are not finite.
NEGATIVE, NOT_FINITE = -1, -2

#: What `choose` returns where no worker is open.
NOBODY = -1


@by_reference
class Band(NamedTuple):
    """The routing table as the kernel reads it, and room to work in; d cells, padded with zeros to a multiple of 32.

    Threads share the arrays down to `strange`; each needs its own of those below.
    """

    layers: Ints  # (N*,)
    weights: Floats  # (L, E)
    centroids: Floats  # (K, d)
    fixed: ShortInts  # (K, d) the same times SCALE, rounded
    length: Floats  # (K,) |c'|
    error: Floats  # (K,) |c - c'|
    strange: Ints  # (s,) layer * E + expert of kept cells that no calibration request used
    cells: Floats  # (d,) of the request
    rounded: ShortInts  # (d,) the same, of length SCALE
    sums: Floats  # (d / 4,) scratch
    least: Floats  # (K,) the cosine is no less,
    most: Floats  # (K,) and no more


@kernel
def measure(measured: Ints, kind: int, band: Band, tau: float) -> tuple[float, float, int, int, float]:
    """Bound the cosines of a request to all workers, whoever is open; `choose` and `members` go on from there.

    Parameters
    ----------
    measured
        int64 or float64 (L, E), what the request's prompt did.
    kind
        WEIGHED, SIGNED, ROOT or PRESENT.
    band
        The centroids; its scratch is changed.
    tau
        Width of the band, in cosines.

    Returns
    -------
    tuple
        1 / length of the signature, 0 for one without mass, NEGATIVE or NOT_FINITE where there is none; then for the
        watch on drift, within the bounds of fixed point: the greatest cosine, whose it is (the first of equal ones),
        how many are within tau of it, and the share of choices at experts that no calibration request used.
    """
    inverse = _read(measured, kind, band)
    if inverse < 0.0:
        return inverse, 0.0, 0, 0, 0.0
    _bound(band, inverse)
    least, most = band.least, band.most
    greatest, nearest = -2.0, 0
    for k in range(least.size):
        middle = 0.5 * (least[k] + most[k])
        if middle > greatest:
            greatest, nearest = middle, k
    floor = greatest - tau - TOLERANCE
    within = 0
    for k in range(least.size):
        if 0.5 * (least[k] + most[k]) >= floor:
            within += 1
    return inverse, greatest, nearest, within, _share_of_strange(measured, band)


@kernel
def choose(band: Band, inverse: float, tau: float, load: Ints, is_open: Bools) -> int:
    """Return the worker of the request that `measure` has read, or NOBODY.

    Parameters
    ----------
    band
        With the bounds of the cosines; those that are looked at again are replaced by their value.
    inverse
        1 / length of the signature.
    tau
        Width of the band, in cosines.
    load
        int64 (K,), requests in flight.
    is_open
        bool (K,), whether the worker takes requests.
    """
    floor = _greatest(band, inverse, is_open) - tau - TOLERANCE
    least, most = band.least, band.most
    K = load.size
    lowest = np.iinfo(np.int64).max
    for k in range(K):
        if is_open[k] and least[k] >= floor:
            lowest = min(lowest, load[k])
    for k in range(K):
        if is_open[k] and least[k] < floor <= most[k] and load[k] <= lowest:
            _look_again(band, inverse, k)
            if least[k] >= floor:
                lowest = load[k]
    nearest = -2.0
    for k in range(K):
        if is_open[k] and load[k] == lowest and least[k] >= floor:
            nearest = max(nearest, least[k])
    chosen, cosine = NOBODY, -3.0
    for k in range(K):
        if is_open[k] and load[k] == lowest and least[k] >= floor and most[k] >= nearest:
            _look_again(band, inverse, k)
            if least[k] > cosine:
                chosen, cosine = k, least[k]
    return chosen


@kernel
def members(band: Band, inverse: float, tau: float, is_open: Bools, found: Ints) -> int:
    """Write the open workers in the band of the request that `measure` has read; returns how many.

    Parameters
    ----------
    band
        With the bounds of the cosines; its scratch is changed.
    inverse
        1 / length of the signature.
    tau
        Width of the band, in cosines.
    is_open
        bool (K,), whether the worker takes requests.
    found
        int64 (K,), written: the workers, ascending.
    """
    floor = _greatest(band, inverse, is_open) - tau - TOLERANCE
    number = 0
    for k in range(band.least.size):
        if not is_open[k]:
            continue
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
def _share_of_strange(measured: Ints, band: Band) -> float:
    """Return the share of choices in kept layers at experts that no calibration request used.

    The layers of a request's counts all have the same sum, so the first kept one tells that of all.
    """
    if band.strange.size == 0:
        return 0.0
    E, layers = measured.shape[1], band.layers
    total, strange = 0.0, 0.0
    for e in range(E):
        total += measured[layers[0], e]
    for i in range(band.strange.size):
        strange += measured[band.strange[i] // E, band.strange[i] % E]
    return strange / (total * layers.size) if total > 0.0 else 0.0


@kernel
def _bound(band: Band, inverse: float) -> None:
    """Set bounds of all cosines, in fixed point."""
    fixed, rounded, least, most = band.fixed, band.rounded, band.least, band.most
    K, d = fixed.shape
    off = 0.5 * np.sqrt(float(d)) / SCALE if inverse > 0.0 else 0.0
    for k in range(K):
        row = fixed[k]
        total = np.int32(0)
        for i in range(d):
            total = np.int32(total + np.int32(np.int32(row[i]) * np.int32(rounded[i])))
        cosine = total / (SCALE * SCALE)
        slack = off * band.length[k] + band.error[k] + _ROUNDING
        least[k], most[k] = cosine - slack, cosine + slack


@kernel
def _greatest(band: Band, inverse: float, is_open: Bools) -> float:
    """Return the greatest cosine to an open worker; those that may be it are taken again."""
    least, most = band.least, band.most
    top = -2.0
    for k in range(least.size):
        if is_open[k]:
            top = max(top, least[k])
    greatest = -2.0
    for k in range(least.size):
        if is_open[k] and most[k] >= top:
            _look_again(band, inverse, k)
            greatest = max(greatest, least[k])
    return greatest


@kernel
def _look_again(band: Band, inverse: float, k: int) -> None:
    """Take the cosine to centroid k in float64, unless that was done before."""
    if band.least[k] < band.most[k]:
        band.least[k] = band.most[k] = product(band.cells, band.centroids[k], band.sums) * inverse
