"""Greedy forward selection of layers by rank correlation, exactly, without ranking most of the candidates.

In each step every layer that is not yet chosen is tried. Its distances

    d(i, j) = 1 - sum of G_l(i, j) / sqrt(sum of q_l(i) * sum of q_l(j))

cost one pass over the pairs, since the sums over chosen layers are kept; a bracket of its correlation costs another.
Only candidates whose upper end reaches the best correlation found so far are looked at again, from the highest upper
end downwards: first in finer bins, then by ranking. The choice is that of ranking them all: the greatest correlation,
and of equal ones the lowest layer.

Source: ELDR (arXiv 2607.00466), section on the layer mask.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.locality.ranks import PLACE, Places, bracket, bracket_of, correlation, count, pack

#: Distances are whole multiples of 1e-12.
UNITS = 1e12
#: Bins of a first bracket, which stay in the nearest cache, and of a second one and a ranking, of a value or so each.
COARSE, FINE = 4096, 65536
#: Pairs that are tried at a time: their distances are binned while they are still in the nearest cache.
BLOCK = 2048


@kernel
def forward_selection(products: Floats, squares: Floats, pairs: Ints, fixed: Floats, order: Ints, curve: Floats) -> int:
    """Write the order in which layers are chosen, and the correlation after each; returns how many rankings it took.

    Parameters
    ----------
    products, squares
        float64 (L, P) and (L, N), as `pair_products` writes them.
    pairs
        int64 (P, 2).
    fixed
        float64 (P,), doubled centred ranks of the target distances, not all 0.
    order, curve
        int64 (L,) and float64 (L,), written.
    """
    L, P = products.shape
    N = squares.shape[1]
    fixed_squares = 0.0
    for p in range(P):
        fixed_squares += fixed[p] * fixed[p]
    product, square, inverse = np.zeros(P), np.zeros(N), np.empty(N)
    values, keys = np.empty(P), np.empty(P, np.int64)
    coarse, fine, starts = np.empty(COARSE, np.int64), np.empty(FINE, np.int64), np.empty(FINE + 1, np.int64)
    places = np.empty(P, np.int32)
    packed = pack(fixed)
    first, second = pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32)  # half as much to read a trial
    lower, upper = np.empty(L), np.empty(L)
    chosen, refined = np.zeros(L, np.bool_), np.empty(L, np.bool_)
    low, high = 0.0, UNITS
    rankings = 0
    for step in range(L):
        width = max(high - low, 1.0)
        for layer in range(L):
            lower[layer] = upper[layer] = -2.0
            if not chosen[layer]:
                invert_lengths(square, squares[layer], inverse)
                coarse[:] = 0
                for start in range(0, P, BLOCK):
                    stop = min(start + BLOCK, P)
                    near, some = values[: stop - start], products[layer, start:stop]
                    distances_of(product[start:stop], some, first[start:stop], second[start:stop], inverse, near)
                    count(near, packed[start:stop], low, COARSE / width, coarse, places)
                lower[layer], upper[layer] = bracket_of(coarse, P, fixed_squares)
        best, at, held = -2.0, -1, -1
        certain = lower.max()
        refined[:] = False
        while True:
            candidate = int(np.argmax(upper))  # the lowest of equal ones
            if upper[candidate] < max(best, certain):
                break
            if candidate != held:
                distances(product, square, products[candidate], squares[candidate], first, second, inverse, values)
                held = candidate
            if not refined[candidate] and np.sum(upper >= certain) > 1:  # with one alone there is nothing to decide
                refined[candidate] = True
                least, upper[candidate] = bracket(values, packed, fixed_squares, low, FINE / width, fine, places)
                certain = max(certain, least)
                continue
            upper[candidate] = -3.0
            rho = correlation(values, fixed, fixed_squares, low, FINE / width, starts, places, keys)
            rankings += 1
            if rho > best or (rho == best and candidate < at):
                best, at = rho, candidate
                low_next, high_next = float(keys[0] >> PLACE), float(keys[P - 1] >> PLACE)
        low, high = low_next, high_next
        order[step], curve[step] = at, best
        chosen[at] = True
        for p in range(P):
            product[p] += products[at, p]
        for i in range(N):
            square[i] += squares[at, i]
    return rankings


@kernel
def distances(
    product: Floats,
    square: Floats,
    more_product: Floats,
    more_square: Floats,
    first: Places,
    second: Places,
    inverse: Floats,
    values: Floats,
) -> None:
    """Write the distances of all pairs under the chosen layers and one more, as whole multiples of 1e-12.

    Parameters
    ----------
    product, square
        float64 (P,) and (N,), sums over the chosen layers.
    more_product, more_square
        float64 (P,) and (N,), of the layer that is tried.
    first, second
        int32 (P,), the requests of each pair.
    inverse
        float64 (N,), scratch: 1 / length of each request; 0 for one without mass, all of whose distances are 1.
    values
        float64 (P,), written.
    """
    invert_lengths(square, more_square, inverse)
    distances_of(product, more_product, first, second, inverse, values)


@kernel
def invert_lengths(square: Floats, more_square: Floats, inverse: Floats) -> None:
    """Write 1 / length of each request under the chosen layers and one more."""
    for i in range(square.size):
        mass = square[i] + more_square[i]
        inverse[i] = 1.0 / np.sqrt(mass) if mass > 0.0 else 0.0


@kernel
def distances_of(
    product: Floats, more_product: Floats, first: Places, second: Places, inverse: Floats, values: Floats
) -> None:
    """Write the distances of some pairs.

    Parameters
    ----------
    product, more_product, first, second, inverse, values
        As of `distances`, cut to these pairs.
    """
    for p in range(values.size):
        cosine = (product[p] + more_product[p]) * (inverse[first[p]] * inverse[second[p]])
        values[p] = np.rint((1.0 - cosine) * UNITS)
