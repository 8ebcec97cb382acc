"""The master program over patterns, by a primal simplex whose inverse covers the tight rows alone.

    maximise  sum_j value_j x_j     over patterns j of open workers
    subject   sum over patterns of worker w: x_j = 1        (row w)
              sum_j (copies of class k in j) x_j <= n_k     (row W + k)

Few classes are scarce, so most class rows are slack. Rows are therefore either *tight*, each paired with one basic
pattern, or slack with their slack variable basic; the inverse is kept of the square matrix (tight rows x basic
patterns) only and grows or shrinks by one as class rows become tight or slack. A pivot costs O(tight^2).

Floats are fine here: the prices that come out are rounded, and any prices give a valid bound (`prices.evaluate`).
Source: Dantzig-Wolfe reformulation of BF-IO (IO) at H = 0 for a fixed envelope; bordered inverses are textbook.

A basis changes in four ways: a column enters for a column (product form), a column enters and a class row becomes tight
(the inverse is bordered), a class row becomes slack and a column leaves (the inverse is cut), or one class row is tight
in place of another. `length` is the step of the pivot, `master.step` and `master.rate` are its direction, and `gain` is
what the entering column is worth beyond its prices; all but the last keep the prices up to date. Textbook linear
algebra.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.state import Master

#: Steps shorter than this are taken as zero; reduced costs below PRICED are as good as zero (tokens).
TINY = 1e-9
PRICED = 1e-6


@kernel
def reset_master(m: Master, n: Ints, W: int, most_slots: int, penalty: float) -> None:
    """Start anew: the basis is one artificial column of value -penalty for each worker, of at most so many slots."""
    counts = m.counts
    counts.workers, counts.classes, counts.columns, counts.tight = W, n.size, W, W
    counts.pivots = counts.entries = 0
    counts.most_slots = most_slots
    for r in range(W + n.size):
        m.place[r] = -1
    for k in range(n.size):
        # A hair more than n_k, different for each class: no two rows become tight at once, so nothing cycles.
        m.limit[k] = n[k] + 1e-8 * (1.0 + (k * 0.6180339887498949) % 1.0)
        m.slack[k] = m.limit[k]
    for w in range(W):
        m.owner[w], m.size[w], m.value[w], m.worth[w] = w, 0, -penalty, -penalty
        for q in range(m.items.shape[1]):
            m.items[w, q] = -1
        m.row[w] = m.place[w] = m.basic[w] = w
        for u in range(W):
            m.inverse[w, u] = 1.0 if u == w else 0.0
        m.level[w] = 1.0
        m.dual[w] = -penalty


@kernel
def refresh_duals(m: Master) -> None:
    """Recompute the prices of the tight rows from the basis."""
    size = m.counts.tight
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
    W = m.counts.workers
    position = np.full(m.counts.columns, -1)
    for b in range(m.counts.tight):
        position[m.basic[b]] = b
    kept = W
    for j in range(W, m.counts.columns):
        if position[j] >= 0:
            m.owner[kept], m.value[kept] = m.owner[j], m.value[j]
            m.size[kept], m.worth[kept] = m.size[j], m.worth[j]
            for q in range(m.items.shape[1]):
                m.items[kept, q] = m.items[j, q]
            m.basic[position[j]] = kept
            kept += 1
    m.counts.columns = kept


@kernel
def add_column(m: Master, worker: int, items: Ints, length: int, size: int, value: float) -> int:
    """Append a column that fits and return its number, or -1 where the table is full."""
    j = m.counts.columns
    if j >= m.owner.size:
        return -1
    m.owner[j], m.size[j] = worker, size
    m.value[j] = m.worth[j] = value
    for q in range(m.items.shape[1]):
        m.items[j, q] = items[q] if q < length else -1
    m.counts.columns = j + 1
    return j


@kernel
def best_column(m: Master, least: float) -> tuple[int, float]:
    """Return the column that gains most per unit at the present prices, and its gain; -1 where none gains `least`."""
    owner, items, value, place, dual, W = m.owner, m.items, m.value, m.place, m.dual, m.counts.workers
    price = m.rate  # scratch between pivots: the price of every class, 0 where it is not scarce
    for k in range(m.counts.classes):
        p = place[W + k]
        price[k] = dual[p] if p >= 0 else 0.0
    top, column = least, -1
    for j in range(m.counts.columns):
        gain = value[j] - dual[place[owner[j]]]
        for q in range(items.shape[1]):
            k = items[j, q]
            if k < 0:
                break
            gain -= price[k]
        if gain > top:
            top, column = gain, j
    return column, top


@kernel
def best_slack(m: Master, least: float) -> tuple[int, float]:
    """Return the position of the tight class row with the most negative price, and its gain; -1 for none."""
    row, dual = m.row, m.dual
    top, position = least, -1
    for p in range(m.counts.tight):
        if row[p] >= m.counts.workers and -dual[p] > top:
            top, position = -dual[p], p
    return position, top


@kernel
def enter_column(m: Master, j: int, gain: float) -> bool:
    """Bring column j into the basis."""
    size, W = m.counts.tight, m.counts.workers
    step, rate, inverse, place, items = m.step, m.rate, m.inverse, m.place, m.items
    p = place[m.owner[j]]
    for b in range(size):
        step[b] = inverse[b, p]
    rate[: m.counts.classes] = 0.0
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
    return _pivot(m, j, -1, gain)


@kernel
def enter_slack(m: Master, p: int) -> bool:
    """Let the tight row at position p become slack (its price is negative)."""
    for b in range(m.counts.tight):
        m.step[b] = m.inverse[b, p]
    m.rate[: m.counts.classes] = 0.0
    return _pivot(m, -1, p, -m.dual[p])


@kernel
def _pivot(m: Master, j: int, p: int, gain: float) -> bool:
    """Move along `step`: column j enters (p = -1), or the slack of the row at position p does (j = -1)."""
    size, W, K = m.counts.tight, m.counts.workers, m.counts.classes
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
    m.counts.pivots += 1
    for b in range(size):
        level[b] -= length * step[b]
    for k in range(K):
        if rate[k] != 0.0:
            slack[k] -= length * rate[k]
    if j >= 0 and leaving >= 0:
        replace_column(m, j, leaving, length, gain)
    elif j >= 0:
        grow(m, j, blocking, length, gain)
    elif leaving >= 0:
        shrink(m, leaving, p, length)
    else:
        replace_row(m, blocking, p, length)
        refresh_duals(m)
    return True


@kernel
def replace_column(m: Master, j: int, b: int, length: float, gain: float) -> None:
    """Column j takes basic position b."""
    size = m.counts.tight
    inverse, step, dual = m.inverse, m.step, m.dual
    top = inverse[b]
    d = step[b]
    for p in range(size):
        top[p] /= d
        dual[p] += gain * top[p]
    for r in range(size):
        if r != b and step[r] != 0.0:
            m.counts.entries += size
            factor = step[r]
            line = inverse[r]
            for p in range(size):
                line[p] -= factor * top[p]
    m.basic[b] = j
    m.level[b] = length


@kernel
def row_times_inverse(m: Master, k: int, out: Floats) -> None:
    """Set out[:size] to (coefficients of class row k in the basic columns) times the inverse."""
    size = m.counts.tight
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
def grow(m: Master, j: int, k: int, length: float, gain: float) -> None:
    """Column j enters and class row k becomes tight: border the inverse."""
    size, W = m.counts.tight, m.counts.workers
    inverse, step, dual = m.inverse, m.step, m.dual
    alpha = m.rate[k]
    bottom = inverse[size]
    row_times_inverse(m, k, bottom)
    for p in range(size):
        bottom[p] = -bottom[p] / alpha
        dual[p] += gain * bottom[p]
    for b in range(size):
        d = step[b]
        if d != 0.0:
            m.counts.entries += size
            line = inverse[b]
            for p in range(size):
                line[p] -= d * bottom[p]
        inverse[b, size] = -d / alpha
    bottom[size] = 1.0 / alpha
    dual[size] = gain / alpha
    m.row[size] = W + k
    m.place[W + k] = size
    m.basic[size] = j
    m.level[size] = length
    m.slack[k] = 0.0
    m.counts.tight = size + 1


@kernel
def shrink(m: Master, b: int, p: int, length: float) -> None:
    """The column at basic position b leaves and the row at position p becomes slack: cut both out of the inverse."""
    size, W = m.counts.tight, m.counts.workers
    inverse, dual = m.inverse, m.dual
    pivot = inverse[b, p]
    top = inverse[b]
    change = dual[p] / pivot  # a slack row has no price
    for q in range(size):
        dual[q] -= change * top[q]
    for r in range(size):
        if r != b and inverse[r, p] != 0.0:
            m.counts.entries += size
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
        dual[p] = dual[last]
        m.row[p] = m.row[last]
        m.place[m.row[p]] = p
    m.counts.tight = last


@kernel
def replace_row(m: Master, k: int, p: int, length: float) -> None:
    """Class row k becomes tight where the row at position p becomes slack."""
    size, W = m.counts.tight, m.counts.workers
    inverse = m.inverse
    r = m.dual  # scratch: the prices have to be refreshed
    row_times_inverse(m, k, r)
    alpha = r[p]
    for b in range(size):
        scaled = inverse[b, p] / alpha
        if scaled != 0.0:
            m.counts.entries += size
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
