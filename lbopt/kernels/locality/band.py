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

Most of many centroids are far from a request, and a few products tell so of all of them. With R rows B that are nearly
orthonormal (`lbopt/locality/band_router`), c = B'w + r, p = B s and G = B B',

    |<s, c> - <w, p>| <= |s - B'p| |r| + |p| |B r|,   |s - B'p|^2 <= 1 - |p|^2 + |p|^2 |G - I| + 2 |p| |p - B s|,

where p comes from fixed point itself. Products with centroids that this leaves below the band are never taken, unless
those above are closed: then `choose` takes them.

Source: ELDR (arXiv 2607.00466), section on routing; the tie rules, the tolerance and the bounds are ours.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Bools, Floats, Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.locality.forward_selection import product
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

    Threads share the arrays down to `skew`; each needs its own of those below.
    """

    layers: Ints  # (N*,)
    weights: Floats  # (L, E)
    centroids: Floats  # (K, d)
    fixed: ShortInts  # (K, d) the same times SCALE, rounded
    length: Floats  # (K,) |c'|
    error: Floats  # (K,) |c - c'|
    strange: Ints  # (s,) layer * E + expert of kept cells that no calibration request used
    basis: ShortInts  # (R, d) B times SCALE; R = 0: all products are taken
    parts: Floats  # (K, R) w
    steep: Floats  # (K,) |w|
    rest: Floats  # (K,) |r|
    leak: Floats  # (K,) |B r|
    skew: Floats  # (1,) |G - I| at most
    cells: Floats  # (d,) of the request
    rounded: ShortInts  # (d,) the same, of length SCALE
    sums: Floats  # (d / 4,) scratch
    seen: Floats  # (R,) p
    taken: Bools  # (K,) whether the product with the centroid was taken
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
    _bound(band, inverse, tau)
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
    lower = _bound_open(band, inverse, tau, is_open) - tau - TOLERANCE  # the floor of the band is no lower,
    least, most = band.least, band.most
    K = load.size
    floor = -2.0
    for k in range(K):
        if is_open[k]:
            floor = max(floor, most[k])
    floor -= tau + TOLERANCE  # and no higher
    lowest = np.iinfo(np.int64).max
    for k in range(K):
        if is_open[k] and least[k] >= floor:
            lowest = min(lowest, load[k])
    doubt = False
    for k in range(K):
        doubt |= is_open[k] and least[k] < floor and most[k] >= lower and load[k] <= lowest
    if doubt:
        floor = _greatest(band, inverse, is_open) - tau - TOLERANCE
    for k in range(K):
        if is_open[k] and least[k] >= floor:
            lowest = min(lowest, load[k])
    for k in range(K):
        if is_open[k] and least[k] < floor <= most[k] and load[k] <= lowest:
            _look_again(band, inverse, k)
            if least[k] >= floor:
                lowest = load[k]
    chosen, nearest = NOBODY, -2.0
    for k in range(K):
        if is_open[k] and load[k] == lowest and least[k] >= floor and least[k] > nearest:
            chosen, nearest = k, least[k]
    number = 0
    for k in range(K):
        number += is_open[k] and load[k] == lowest and least[k] >= floor and most[k] >= nearest
    if number <= 1:
        return chosen
    _look_again(band, inverse, chosen)
    nearest = least[chosen]
    for k in range(K):
        if is_open[k] and load[k] == lowest and least[k] >= floor and most[k] >= nearest:
            _look_again(band, inverse, k)
            if least[k] > nearest or (least[k] == nearest and k < chosen):
                chosen, nearest = k, least[k]
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
    _bound_open(band, inverse, tau, is_open)
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
def _bound(band: Band, inverse: float, tau: float) -> None:
    """Set bounds of all cosines: in fixed point of those that may be in the band, by the basis of the others."""
    K, R = band.parts.shape
    band.taken[:] = False
    if R == 0:
        for k in range(K):
            _take(band, inverse, k)
        return
    least, most = band.least, band.most
    first = _bound_by_basis(band, inverse)
    _take(band, inverse, first)
    floor = least[first] - tau - TOLERANCE
    for k in range(K):
        if most[k] >= floor and not band.taken[k]:
            _take(band, inverse, k)
            floor = max(floor, least[k] - tau - TOLERANCE)


@kernel
def _bound_open(band: Band, inverse: float, tau: float, is_open: Bools) -> float:
    """Set bounds in fixed point of all open workers that may be in their band; returns the greatest lower bound.

    Parameters
    ----------
    band
        With bounds of all cosines.
    inverse
        1 / length of the signature.
    tau
        Width of the band, in cosines.
    is_open
        bool (K,), whether the worker takes requests.
    """
    least, most, taken = band.least, band.most, band.taken
    top = -2.0
    for k in range(least.size):
        if is_open[k]:
            top = max(top, least[k])
    for k in range(least.size):
        if is_open[k] and not taken[k] and most[k] >= top - tau - TOLERANCE:
            _take(band, inverse, k)
            top = max(top, least[k])
    return top


@kernel
def _bound_by_basis(band: Band, inverse: float) -> int:
    """Set bounds of all cosines by products with the basis alone; returns whose is the greatest by them."""
    parts, seen, least, most = band.parts, band.seen, band.least, band.most
    K, R = parts.shape
    square = 0.0
    for j in range(R):
        seen[j] = _fixed_product(band.basis[j], band.rounded)
        square += seen[j] * seen[j]
    length, skew = np.sqrt(square), band.skew.max()
    off = _rounding_of(band, inverse) * np.sqrt(1.0 + skew)  # |p - B s| at most
    beside = np.sqrt(max(0.0, 1.0 - square + square * skew + 2.0 * length * off))
    greatest, first = -3.0, 0
    for k in range(K):
        middle = 0.0
        for j in range(R):
            middle += parts[k, j] * seen[j]
        slack = beside * band.rest[k] + band.steep[k] * off + length * band.leak[k] + _ROUNDING
        least[k], most[k] = middle - slack, middle + slack
        if middle > greatest:
            greatest, first = middle, k
    return first


@kernel
def _take(band: Band, inverse: float, k: int) -> None:
    """Set the bounds of the cosine to centroid k, in fixed point."""
    cosine = _fixed_product(band.fixed[k], band.rounded)
    slack = _rounding_of(band, inverse) * band.length[k] + band.error[k] + _ROUNDING
    band.least[k], band.most[k] = cosine - slack, cosine + slack
    band.taken[k] = True


@kernel
def _fixed_product(row: ShortInts, rounded: ShortInts) -> float:
    """Return the product of two rows in fixed point, exact."""
    total = np.int32(0)
    for i in range(row.size):
        total = np.int32(total + np.int32(np.int32(row[i]) * np.int32(rounded[i])))
    return total / (SCALE * SCALE)


@kernel
def _rounding_of(band: Band, inverse: float) -> float:
    """Return |s - s'| at most."""
    return 0.5 * np.sqrt(float(band.rounded.size)) / SCALE if inverse > 0.0 else 0.0


@kernel
def _greatest(band: Band, inverse: float, is_open: Bools) -> float:
    """Return the greatest cosine to an open worker; those that may be it are taken again."""
    least, most = band.least, band.most
    first, top = NOBODY, -2.0
    for k in range(least.size):
        if is_open[k] and least[k] > top:
            first, top = k, least[k]
    if first == NOBODY:
        return top
    _look_again(band, inverse, first)
    greatest = least[first]
    for k in range(least.size):
        if is_open[k] and most[k] >= greatest:
            _look_again(band, inverse, k)
            greatest = max(greatest, least[k])
    return greatest


@kernel
def _look_again(band: Band, inverse: float, k: int) -> None:
    """Take the cosine to centroid k in float64, unless that was done before."""
    if band.least[k] < band.most[k]:
        band.least[k] = band.most[k] = product(band.cells, band.centroids[k], band.sums) * inverse
