"""The four ways in which a basis of the master program changes, and what each does to its inverse.

A column enters for a column (product form), a column enters and a class row becomes tight (the inverse is bordered), a
class row becomes slack and a column leaves (the inverse is cut), or one class row is tight in place of another.
`length` is the step of the pivot, `master.step` and `master.rate` are its direction, and `gain` is what the entering
column is worth beyond its prices; all but the last keep the prices up to date. Textbook linear algebra.
"""

from lbopt.kernels.arrays import Floats
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.state import Master


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
