"""The master program over patterns, by a primal simplex whose inverse covers the tight rows alone.

    maximise  sum_j value_j x_j     over patterns j of open workers
    subject   sum over patterns of worker w: x_j = 1        (row w)
              sum_j (copies of class k in j) x_j <= n_k     (row W + k)

Few classes are scarce, so most class rows are slack. Rows are therefore either *tight*, each paired with one basic
pattern, or slack with their slack variable basic; the inverse is kept of the square matrix (tight rows x basic patterns)
only and grows or shrinks by one as class rows become tight or slack. A pivot costs O(tight^2).

Floats are fine here: the prices that come out are rounded, and any prices give a valid bound (`prices.evaluate`).
Source: Dantzig-Wolfe reformulation of BF-IO (IO) at H = 0 for a fixed envelope; bordered inverses are textbook.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.terms import Master

#: Steps shorter than this are taken as zero; reduced costs below PRICED are as good as zero (tokens).
TINY = 1e-9
PRICED = 1e-6


@kernel
def reset_master(m: Master, n: Ints, W: int, penalty: float) -> None:
    """Start anew: the basis is one artificial column of value -penalty for each worker."""
    m.count[0], m.count[1], m.count[2] = W, W, 0
    for r in range(W + n.size):
        m.place[r] = -1
    for k in range(n.size):
        # A hair more than n_k, different for each class: no two rows become tight at once, so nothing cycles.
        m.limit[k] = n[k] + 1e-8 * (1.0 + (k * 0.6180339887498949) % 1.0)
        m.slack[k] = m.limit[k]
    for w in range(W):
        m.owner[w], m.value[w] = w, -penalty
        m.items[w, 0] = -1
        m.row[w] = m.place[w] = m.basic[w] = w
        for u in range(W):
            m.inverse[w, u] = 1.0 if u == w else 0.0
        m.level[w] = 1.0
        m.dual[w] = -penalty


@kernel
def refresh_duals(m: Master) -> None:
    """Recompute the prices of the tight rows from the basis."""
    size = m.count[1]
    dual, inverse, value, basic = m.dual, m.inverse, m.value, m.basic
    for p in range(size):
        dual[p] = 0.0
    for b in range(size):
        worth = value[basic[b]]
        line = inverse[b]
        for p in range(size):
            dual[p] += worth * line[p]


@kernel
def drop_columns(m: Master) -> None:
    """Forget all columns that are neither basic nor artificial: the pricing finds again those that are needed."""
    W = 0
    while m.items[W, 0] < 0 and W < m.count[0]:
        W += 1
    position = np.full(m.count[0], -1)
    for b in range(m.count[1]):
        position[m.basic[b]] = b
    kept = W
    for j in range(W, m.count[0]):
        if position[j] >= 0:
            m.owner[kept], m.value[kept] = m.owner[j], m.value[j]
            for q in range(m.items.shape[1]):
                m.items[kept, q] = m.items[j, q]
            m.basic[position[j]] = kept
            kept += 1
    m.count[0] = kept


@kernel
def add_column(m: Master, worker: int, items: Ints, length: int, value: float) -> int:
    """Append a column and return its number, or -1 where the table is full."""
    j = m.count[0]
    if j >= m.owner.size:
        return -1
    m.owner[j] = worker
    m.value[j] = value
    for q in range(m.items.shape[1]):
        m.items[j, q] = items[q] if q < length else -1
    m.count[0] = j + 1
    return j


@kernel
def best_column(m: Master, W: int, least: float) -> tuple[int, float]:
    """Return the column that gains most per unit at the present prices, and its gain; -1 where none gains `least`."""
    owner, items, value, place, dual = m.owner, m.items, m.value, m.place, m.dual
    top, column = least, -1
    for j in range(m.count[0]):
        gain = value[j] - dual[place[owner[j]]]
        for q in range(items.shape[1]):
            k = items[j, q]
            if k < 0:
                break
            p = place[W + k]
            if p >= 0:
                gain -= dual[p]
        if gain > top:
            top, column = gain, j
    return column, top


@kernel
def best_slack(m: Master, W: int, least: float) -> tuple[int, float]:
    """Return the position of the tight class row with the most negative price, and its gain; -1 for none."""
    row, dual = m.row, m.dual
    top, position = least, -1
    for p in range(m.count[1]):
        if row[p] >= W and -dual[p] > top:
            top, position = -dual[p], p
    return position, top


@kernel
def enter_column(m: Master, j: int, W: int, K: int) -> bool:
    """Bring column j into the basis."""
    size = m.count[1]
    step, rate, inverse, place, items = m.step, m.rate, m.inverse, m.place, m.items
    p = place[m.owner[j]]
    for b in range(size):
        step[b] = inverse[b, p]
    for k in range(K):
        rate[k] = 0.0
    for q in range(items.shape[1]):
        k = items[j, q]
        if k < 0:
            break
        p = place[W + k]
        if p >= 0:
            for b in range(size):
                step[b] += inverse[b, p]
        else:
            rate[k] += 1.0
    return _pivot(m, j, -1, W, K)


@kernel
def enter_slack(m: Master, p: int, W: int, K: int) -> bool:
    """Let the tight row at position p become slack (its price is negative)."""
    for b in range(m.count[1]):
        m.step[b] = m.inverse[b, p]
    rate = m.rate
    for k in range(K):
        rate[k] = 0.0
    return _pivot(m, -1, p, W, K)


@kernel
def _pivot(m: Master, j: int, p: int, W: int, K: int) -> bool:
    """Move along `step`: column j enters (p = -1), or the slack of the row at position p does (j = -1)."""
    size = m.count[1]
    step, rate, level, slack = m.step, m.rate, m.level, m.slack
    items, basic, place = m.items, m.basic, m.place
    Q = items.shape[1]
    for b in range(size):
        d = step[b]
        if d != 0.0:
            for q in range(Q):
                k = items[basic[b], q]
                if k < 0:
                    break
                if place[W + k] < 0:
                    rate[k] -= d
    length = np.inf
    leaving, blocking, strength = -1, -1, 0.0
    for b in range(size):
        if step[b] > TINY:
            t = max(level[b], 0.0) / step[b]
            if t < length - 1e-12 or (t <= length + 1e-12 and step[b] > strength):
                length, leaving, strength = min(t, length), b, step[b]
    for k in range(K):
        if rate[k] > TINY and place[W + k] < 0:
            t = max(slack[k], 0.0) / rate[k]
            if t < length - 1e-12 or (t <= length + 1e-12 and rate[k] > strength):
                length, leaving, blocking, strength = min(t, length), -1, k, rate[k]
    if (leaving < 0 and blocking < 0) or (j >= 0 and blocking >= 0 and size >= m.row.size):
        return False  # rounding has spoilt the inverse
    m.count[2] += 1
    for b in range(size):
        level[b] -= length * step[b]
    for k in range(K):
        if rate[k] != 0.0:
            slack[k] -= length * rate[k]
    if j >= 0 and leaving >= 0:
        _replace_column(m, j, leaving, length)
    elif j >= 0:
        _grow(m, j, blocking, length, W)
    elif leaving >= 0:
        _shrink(m, leaving, p, length, W)
    else:
        _replace_row(m, blocking, p, length, W)
    return True


@kernel
def _replace_column(m: Master, j: int, b: int, length: float) -> None:
    size = m.count[1]
    inverse, step = m.inverse, m.step
    top = inverse[b]
    d = step[b]
    for p in range(size):
        top[p] /= d
    for r in range(size):
        if r != b and step[r] != 0.0:
            factor = step[r]
            line = inverse[r]
            for p in range(size):
                line[p] -= factor * top[p]
    m.basic[b] = j
    m.level[b] = length


@kernel
def _row_times_inverse(m: Master, k: int, out: Floats) -> None:
    """Set out[:size] to (coefficients of class row k in the basic columns) times the inverse."""
    size = m.count[1]
    items, basic, inverse = m.items, m.basic, m.inverse
    Q = items.shape[1]
    for p in range(size):
        out[p] = 0.0
    for b in range(size):
        copies = 0.0
        for q in range(Q):
            other = items[basic[b], q]
            if other < 0:
                break
            if other == k:
                copies += 1.0
        if copies != 0.0:
            line = inverse[b]
            for p in range(size):
                out[p] += copies * line[p]


@kernel
def _grow(m: Master, j: int, k: int, length: float, W: int) -> None:
    """Column j enters and class row k becomes tight: border the inverse."""
    size = m.count[1]
    inverse, step = m.inverse, m.step
    alpha = m.rate[k]
    bottom = inverse[size]
    _row_times_inverse(m, k, bottom)
    for p in range(size):
        bottom[p] = -bottom[p] / alpha
    for b in range(size):
        d = step[b]
        if d != 0.0:
            line = inverse[b]
            for p in range(size):
                line[p] -= d * bottom[p]
        inverse[b, size] = -d / alpha
    bottom[size] = 1.0 / alpha
    m.row[size] = W + k
    m.place[W + k] = size
    m.basic[size] = j
    m.level[size] = length
    m.slack[k] = 0.0
    m.count[1] = size + 1


@kernel
def _shrink(m: Master, b: int, p: int, length: float, W: int) -> None:
    """The column at basic position b leaves and the row at position p becomes slack: cut both out of the inverse."""
    size = m.count[1]
    inverse = m.inverse
    pivot = inverse[b, p]
    top = inverse[b]
    for r in range(size):
        if r != b and inverse[r, p] != 0.0:
            factor = inverse[r, p] / pivot
            line = inverse[r]
            for q in range(size):
                line[q] -= factor * top[q]
    k = m.row[p] - W
    m.place[W + k] = -1
    m.slack[k] = length
    last = size - 1
    if b != last:  # the last basic column moves into the gap
        for q in range(size):
            inverse[b, q] = inverse[last, q]
        m.basic[b], m.level[b] = m.basic[last], m.level[last]
    if p != last:  # and so does the last tight row
        for r in range(size):
            inverse[r, p] = inverse[r, last]
        m.row[p] = m.row[last]
        m.place[m.row[p]] = p
    m.count[1] = last


@kernel
def _replace_row(m: Master, k: int, p: int, length: float, W: int) -> None:
    """Class row k becomes tight where the row at position p becomes slack."""
    size = m.count[1]
    inverse = m.inverse
    r = m.dual  # scratch; the duals are refreshed after each pivot
    _row_times_inverse(m, k, r)
    alpha = r[p]
    for b in range(size):
        scaled = inverse[b, p] / alpha
        if scaled != 0.0:
            line = inverse[b]
            for q in range(size):
                line[q] -= scaled * r[q]
        inverse[b, p] = scaled
    old = m.row[p] - W
    m.place[W + old] = -1
    m.slack[old] = length
    m.row[p] = W + k
    m.place[W + k] = p
    m.slack[k] = 0.0
