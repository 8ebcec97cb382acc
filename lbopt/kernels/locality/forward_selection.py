"""Which layers make signatures that foretell decode best: inner products of pairs, and the greedy choice.

Inner products of chosen pairs of requests, layer by layer.

The k smallest of every token's scaled keys: which experts it chooses.

Average ranks of distances, and what they multiply to with fixed ranks: exactly, and as a bracket that is cheaper.

Ranks are taken twice and about their mean, r = 2 rank - (P + 1): whole numbers, also where ties share a rank. Sums of
products stay below 2^53 for P <= 100,000 and so are exact in float64.

Exactly: values fall into bins by a monotone map, bins are laid out one after the other, and each is sorted by itself;
with a few values a bin that is linear in P. The bracket (`bracket`) stops at the bins: with m values in a bin, and each
of them given the bin's mean rank, the true sum of products differs by at most sqrt(W * (T - sum of s^2 / m)), W the sum
of m (m^2 - 1) / 3 over bins, T the sum of squares of the fixed ranks, and s the sum of those in a bin: Cauchy and
Schwarz, first within bins, then over them.

Greedy forward selection of layers by rank correlation, exactly, without ranking most of the candidates.

In each step every layer that is not yet chosen is tried. Its distances

    d(i, j) = 1 - sum of G_l(i, j) / sqrt(sum of q_l(i) * sum of q_l(j))

cost one pass over the pairs, since the sums over chosen layers are kept; a bracket of its correlation costs another.
Only candidates whose upper end reaches the best correlation found so far are looked at again, from the highest upper
end downwards: first in finer bins, then by ranking. The choice is that of ranking them all: the greatest correlation,
and of equal ones the lowest layer.

Source: ELDR (arXiv 2607.00466), section on the layer mask.
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


Places = NDArray[np.int32]

#: Longer bins are sorted by a library, shorter ones by insertion.
SHORT = 24
#: Where the count stands in a bin's tally, above the sum.
SHIFT = 40
ONE = 1 << SHIFT
#: Bits of a key that hold the place of a value.
PLACE = 17


@kernel
def bracket(
    values: Floats, packed: Ints, fixed_squares: float, low: float, scale: float, tally: Ints, places: Places
) -> tuple[float, float]:
    """Return bounds of the rank correlation of `values` with the fixed ranks.

    Parameters
    ----------
    values
        float64 (P,).
    packed
        int64 (P,), the fixed ranks as `pack` returns them: one addition then counts a value and sums its rank.
    fixed_squares
        Sum of squares of the fixed ranks, > 0.
    low, scale
        The map of values to bins.
    tally, places
        int64 (bins,) and int32 (P,), scratch.
    """
    tally[:] = 0
    count(values, packed, low, scale, tally, places)
    return bracket_of(tally, values.size, fixed_squares)


@kernel
def count(values: Floats, packed: Ints, low: float, scale: float, tally: Ints, places: Places) -> None:
    """Add values to the tally of their bins.

    Parameters
    ----------
    values, packed, low, scale, places
        As of `bracket`.
    tally
        int64 (bins,), added to.
    """
    top = tally.size - 1.0
    for p in range(values.size):  # apart from the next loop, because this one runs in vector registers
        places[p] = np.int32(min(max((values[p] - low) * scale, 0.0), top))
    for p in range(values.size):
        tally[places[p]] += packed[p]


@kernel
def bracket_of(tally: Ints, P: int, fixed_squares: float) -> tuple[float, float]:
    """Return the bounds that `bracket` gives, from the tally of all P values."""
    product, within, between, before = 0.0, 0.0, 0.0, 0.0
    for b in range(tally.size):
        if tally[b] > 0:
            m = float(tally[b] >> SHIFT)
            total = float(tally[b] & (ONE - 1)) - m * P
            product += (2.0 * before + m - P) * total
            within += m * (m * m - 1.0) / 3.0
            between += total * total / m
            before += m
    most = P * (float(P) * P - 1.0) / 3.0
    slack = np.sqrt(within * max(fixed_squares - between, 0.0))
    least, greatest = product - slack, product + slack
    narrow, wide = np.sqrt(max(most - within, 0.0) * fixed_squares), np.sqrt(most * fixed_squares)
    # the spread of the values lies between narrow and wide: which of them is farther out depends on the sign
    lower = least / (wide if least >= 0.0 else narrow) if narrow > 0.0 else -1.0
    upper = greatest / (narrow if greatest >= 0.0 else wide) if narrow > 0.0 else 1.0
    return lower - 1e-12, upper + 1e-12


@kernel
def pack(fixed: Floats) -> Ints:
    """Return 2^40 + rank + P of each fixed rank, int64 (P,): P of them sum to less than 2^40 in the lower half."""
    packed = np.empty(fixed.size, np.int64)
    for p in range(fixed.size):
        packed[p] = ONE + np.int64(fixed[p]) + fixed.size
    return packed


@kernel
def correlation(
    values: Floats,
    fixed: Floats,
    fixed_squares: float,
    low: float,
    scale: float,
    starts: Ints,
    places: Places,
    keys: Ints,
) -> float:
    """Return the rank correlation of `values` with `fixed`; 0 where all values are equal.

    Parameters
    ----------
    values
        float64 (P,), whole, from 0 to 2^45, and at most 2^17 of them.
    fixed
        float64 (P,), the fixed ranks.
    fixed_squares, low, scale
        As of `bracket`.
    starts
        int64 (bins + 1,), scratch.
    places
        int32 (P,), scratch.
    keys
        int64 (P,), left with value * 2^17 + place in ascending order.
    """
    P, bins = values.size, starts.size - 1
    starts[:] = 0
    for p in range(P):
        places[p] = np.int32(min(max((values[p] - low) * scale, 0.0), bins - 1.0))
    for p in range(P):
        starts[places[p] + 1] += 1
    for b in range(bins):
        starts[b + 1] += starts[b]
    for p in range(P):
        b = places[p]
        keys[starts[b]] = (np.int64(values[p]) << PLACE) + p
        starts[b] += 1
    begin = 0
    for b in range(bins):  # starts[b] is now the end of bin b
        end = starts[b]
        if end - begin > SHORT:
            keys[begin:end] = np.sort(keys[begin:end])
        else:
            _insertion_sort(keys, begin, end)
        begin = end
    product, squares = 0.0, 0.0
    begin = 0
    while begin < P:
        value = keys[begin] >> PLACE
        end, partners = begin, 0.0
        while end < P and keys[end] >> PLACE == value:
            partners += fixed[keys[end] & (2**PLACE - 1)]
            end += 1
        rank = float(begin + end - P)
        product += rank * partners
        squares += rank * rank * (end - begin)
        begin = end
    return product / np.sqrt(squares * fixed_squares) if squares > 0.0 else 0.0


@kernel
def _insertion_sort(keys: Ints, begin: int, end: int) -> None:
    for p in range(begin + 1, end):
        key = keys[p]
        q = p
        while q > begin and keys[q - 1] > key:
            keys[q] = keys[q - 1]
            q -= 1
        keys[q] = key


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
