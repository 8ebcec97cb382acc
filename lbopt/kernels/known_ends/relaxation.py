"""The linear program of a node: columns (class on a worker) and envelopes, and those rows that its solution breaks.

    minimise G * sum_h M_h - sum of the work taken
    M_h - what worker w takes at h >= its load before      (envelope)
    worker w takes slots[w] requests                       (worker)
    class k is taken n_k times at most                     (class; exactly where all of it must be admitted)
    a <= chain count C[w, j] <= b                          (chain)

Workers' rows are there from the start; the others come when they are broken and go when they no longer bind. Its dual
values are prices; rounded to integers they give the bound of `bounds.py`, which is exact.
"""

import numpy as np

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.dictionary import add_variable, clear_line, drop_line
from lbopt.kernels.known_ends.placing import fill_row, fill_rows
from lbopt.kernels.known_ends.state import CHAIN, CLASS, ENVELOPE, WORKER, Box, Prices, Program, Window

#: Broken rows of one kind that are added at a time, for each step or worker.
_AT_A_TIME = 2

_FREE = 1e30

#: No price of a class is larger, in units of 1/scale; `within_range` refuses what is near it.
_BEYOND = 1e18


@kernel
def add_row(window: Window, progress: Record, program: Program, kind: int, first: int, second: int) -> int:
    """Add a row and return the variable of its slack, whose bounds are free; -1 where there is no room.

    Parameters
    ----------
    kind, first, second
        Kind of the row; its worker or class; its step or class.
    """
    n, R = program.nonbasic.size, program.kind.size
    X, i = program.klass.size, progress.lines
    if i >= program.table.shape[0]:
        return -1
    row = -1
    for r in range(R):
        if program.kind[r] < 0:
            row = r
            break
    if row < 0:
        return -1
    clear_line(program, i)
    if kind == ENVELOPE:
        add_variable(program, i, X + second, 1.0)
        for x in range(X):
            if program.worker[x] == first and program.size[program.klass[x], second] != 0.0:
                add_variable(program, i, x, -program.size[program.klass[x], second])
        program.rest[i] -= program.start[first, second]
    else:
        for x in range(X):
            k, w = program.klass[x], program.worker[x]
            if (kind == CLASS and k == first) or (w == first and (kind == WORKER or (kind == CHAIN and k >= second))):
                add_variable(program, i, x, 1.0)
    slack = n + row
    program.kind[row], program.first[row], program.second[row] = kind, first, second
    program.basis[i], program.where[slack] = slack, -1 - i
    program.lower[slack], program.upper[slack] = -_FREE, _FREE
    total = program.rest[i]
    for j in range(n):
        total += program.table[i, j] * program.value[program.nonbasic[j]]
    program.value[slack] = total
    progress.lines = i + 1
    progress.work += 1 + (i * n >> 11)
    return slack


@kernel
def begin_program(window: Window, progress: Record, program: Program) -> None:
    """Start with all columns and envelopes nonbasic, and the rows of the workers."""
    X, n = program.klass.size, program.nonbasic.size
    progress.lines = 0
    fill_row(program.kind, -1)
    for x in range(n):
        program.nonbasic[x] = program.where[x] = x
        if x < X:
            k = program.klass[x]
            program.lower[x], program.upper[x] = 0.0, min(window.n[k], window.slots[program.worker[x]])
            program.reduced[x] = -program.weight[k]
            program.value[x] = program.upper[x]
        else:
            program.lower[x], program.upper[x] = 0.0, _FREE
            program.reduced[x] = window.workers
            program.value[x] = 0.0
    program.numbers.offset = 0.0
    for w in range(window.slots.size):
        slack = add_row(window, progress, program, WORKER, w, 0)
        program.lower[slack] = program.upper[slack] = window.slots[w]


@kernel
def row_of(program: Program, kind: int, first: int, second: int) -> int:
    """Return the slack of a row that is there, or -1.

    Parameters
    ----------
    kind, first, second
        Kind of the row; its worker or class; its step or class.
    """
    for r in range(program.kind.size):
        if program.kind[r] == kind and program.first[r] == first and program.second[r] == second:
            return program.nonbasic.size + r
    return -1


@kernel
def drop_loose_rows(progress: Record, program: Program) -> None:
    """Drop the rows, other than the workers', whose slack is basic: they bind nothing."""
    n = program.nonbasic.size
    for i in range(progress.lines - 1, -1, -1):
        x = program.basis[i]
        if x >= n and program.kind[x - n] != WORKER:
            program.kind[x - n] = -1
            drop_line(progress, program, i)


@kernel
def set_bounds(window: Window, progress: Record, program: Program, box: Box) -> bool:
    """Give the program the bounds of the box; return False where a chain has no room (the bound is weaker then)."""
    n, X = program.nonbasic.size, program.klass.size
    K = window.n.size
    for r in range(program.kind.size):
        if program.kind[r] == CHAIN:
            program.lower[n + r] = box.least[program.first[r], program.second[r]]
            program.upper[n + r] = box.most[program.first[r], program.second[r]]
    for x in range(X):
        w, k = program.worker[x], program.klass[x]
        program.upper[x] = min(window.n[k], window.slots[w]) if box.allowed[w, k] == 1 else 0.0
    complete = True
    for w in range(window.slots.size):
        c = window.slots[w]
        first, last = 0, K  # classes that this worker may take
        for k in range(K):
            if box.least[w, k] == c:
                first = k
            if box.most[w, k] == 0 and last == K:
                last = k
        for x in range(X):
            if program.worker[x] == w and (program.klass[x] < first or program.klass[x] >= last):
                program.upper[x] = 0.0
        for k in range(first + 1, last):
            after = box.least[w, k + 1] if k + 1 < K else 0
            cut = box.least[w, k] > after or box.most[w, k] < box.most[w, k - 1]
            if cut and row_of(program, CHAIN, w, k) < 0:
                slack = add_row(window, progress, program, CHAIN, w, k)
                if slack < 0:
                    complete = False
                else:
                    program.lower[slack], program.upper[slack] = box.least[w, k], box.most[w, k]
    return complete


@kernel
def add_broken_rows(window: Window, progress: Record, program: Program, end: int) -> int:
    """Add rows that the values of the program break, until progress.work is at `end`; return how many.

    Parameters
    ----------
    end
        Work, about microseconds.
    """
    W, T = window.peak.shape
    K, X = window.n.size, program.klass.size
    added = 0
    taken, load = np.zeros(K), np.empty((W, T))
    for w in range(W):
        for h in range(T):
            load[w, h] = program.start[w, h]
    for x in range(X):
        amount = program.value[x]
        if amount > 1e-11:
            k, w = program.klass[x], program.worker[x]
            taken[k] += amount
            for h in range(T):
                load[w, h] += amount * program.size[k, h]
    tolerance = program.numbers.tolerance
    for k in range(K):
        exactly = window.must[k] == 1 and taken[k] < window.n[k] - 1e-7
        if taken[k] > window.n[k] + 1e-7 or exactly:
            slack = row_of(program, CLASS, k, 0)
            if slack < 0:
                slack = add_row(window, progress, program, CLASS, k, 0)
                if slack < 0:
                    return added
                program.upper[slack] = window.n[k]
                program.lower[slack] = window.n[k] if window.must[k] == 1 else 0.0
                added += 1
                if progress.work >= end:
                    return added
    for h in range(T):
        envelope = program.value[X + h]
        for _ in range(_AT_A_TIME):
            most, w = envelope + tolerance, -1
            for other in range(W):
                if load[other, h] > most:
                    most, w = load[other, h], other
            if w < 0:
                break
            load[w, h] = -_FREE
            slack = row_of(program, ENVELOPE, w, h)
            if slack < 0:
                slack = add_row(window, progress, program, ENVELOPE, w, h)
                if slack < 0:
                    return added
                program.lower[slack] = 0.0
                added += 1
                if progress.work >= end:
                    return added
    return added


@kernel
def round_prices(window: Window, program: Program, line: int, factor: float, prices: Prices) -> None:
    """Set integer prices from the reduced costs, less `factor` times `line` where that is not -1.

    Parameters
    ----------
    line, factor
        A line of the dictionary, and a factor.
    """
    n, W, T = program.nonbasic.size, window.slots.size, window.v.shape[1]
    scale = window.scale
    pi, mu = prices.pi, prices.mu
    fill_rows(pi, 0)
    fill_row(mu, 0)
    for j in range(n + 1):
        if j < n:
            x, amount = program.nonbasic[j], program.reduced[j]
            if line >= 0:
                amount -= factor * program.table[line, j]
        elif line >= 0:
            x, amount = program.basis[line], factor
        else:
            break
        if x < n:
            continue
        r = x - n
        if program.kind[r] == ENVELOPE:
            pi[program.first[r], program.second[r]] = max(0, round(min(amount, float(window.workers)) * scale))
        elif program.kind[r] == CLASS:
            price = round(max(-_BEYOND, min(_BEYOND, amount * program.numbers.unit * scale)))
            mu[program.first[r]] = price if window.must[program.first[r]] == 1 else min(0, price)
    for h in range(T):
        owed, largest = window.workers * scale, 0
        for w in range(W):
            owed -= pi[w, h]
            if pi[w, h] > pi[largest, h]:
                largest = w
        if 0 < owed < scale >> 10:  # what rounding leaves belongs to the one who pays most
            pi[largest, h] += owed
            owed = 0
        for w in range(W):
            if owed < 0:
                back = min(-owed, pi[w, h])
                pi[w, h] -= back
                owed += back
        pi[window.owner[h], h] += owed
