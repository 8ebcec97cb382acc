"""A dual simplex over bounded variables that keeps the whole dictionary, so that rows can come and go.

A variable at its lower bound has a reduced cost of at least 0, one at its upper bound of at most 0. That holds from
the start, whatever the bounds, because all columns are bounded; so there is no first phase, a row is added as the line
of its slack, and a node differs from another in bounds alone. In the ratio test, variables whose whole range does not
settle the line at hand are flipped to their other bound and passed by.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.known_ends.state import Program

#: Lines are kept to this, in units of the program.
TOLERANCE = 1e-9

_SMALLEST_PIVOT = 1e-8

#: Places of a line that its length is estimated from.
_SAMPLED = 256

#: Ratios that differ by less are taken for equal.
_TIE = 1e-11

# how a run ends
SOLVED, IMPOSSIBLE, DEAR, PAUSED = range(4)


@kernel
def settle_values(progress: Record, program: Program) -> None:
    """Put the nonbasic variables at the bound that their reduced cost asks for, and follow with the basic ones."""
    n, m = program.nonbasic.size, progress.lines
    lower, upper, value, reduced = program.lower, program.upper, program.value, program.reduced
    for j in range(n):
        x = program.nonbasic[j]
        if upper[x] > 1e29:  # what a pivot leaves of a zero may have the wrong sign
            value[x], reduced[j] = lower[x], max(reduced[j], 0.0)
        elif reduced[j] > 0.0:
            value[x] = lower[x]
        elif reduced[j] < 0.0:
            value[x] = upper[x]
        else:
            value[x] = lower[x] if abs(value[x] - lower[x]) <= abs(value[x] - upper[x]) else upper[x]
    for i in range(m):
        line = program.table[i]
        total = program.rest[i]
        for j in range(n):
            total += line[j] * value[program.nonbasic[j]]
        value[program.basis[i]] = total


@kernel
def objective_value(program: Program) -> float:
    """Return the objective of the program at its values: a lower bound as long as reduced costs have their signs."""
    total = program.numbers.offset
    for j in range(program.nonbasic.size):
        total += program.reduced[j] * program.value[program.nonbasic[j]]
    return total


@kernel
def pivot(m: int, program: Program, i: int, e: int) -> None:
    """Let the variable at place e enter, and that of line i leave.

    Parameters
    ----------
    m, i, e
        Lines in use, the line and the place.
    """
    n, table, rest, reduced = program.nonbasic.size, program.table, program.rest, program.reduced
    line = table[i]
    inverse = 1.0 / line[e]
    for j in range(n):
        line[j] = -line[j] * inverse
    line[e] = inverse
    rest[i] = -rest[i] * inverse
    for other in range(m):
        factor = table[other, e]
        if other != i and factor != 0.0:
            target = table[other]
            target[e] = 0.0
            for j in range(n):
                target[j] += factor * line[j]
            rest[other] += factor * rest[i]
    factor = reduced[e]
    if factor != 0.0:
        reduced[e] = 0.0
        for j in range(n):
            reduced[j] += factor * line[j]
        program.numbers.offset += factor * rest[i]
    out = program.basis[i]
    into = program.nonbasic[e]
    program.basis[i], program.nonbasic[e] = into, out
    program.where[into], program.where[out] = -1 - i, e


@kernel
def _furthest_line(m: int, program: Program) -> int:
    """Return the line whose variable is furthest outside its bounds for the length of the line; -1 if all are inside.

    This is the steepest edge of the dual program, but that lengths are estimated from some of the places.
    """
    n = program.nonbasic.size
    stride = max(1, n // _SAMPLED)
    worst, found = 0.0, -1
    for i in range(m):
        x = program.basis[i]
        off = max(program.lower[x] - program.value[x], program.value[x] - program.upper[x])
        if off > TOLERANCE * 10.0:
            line, length = program.table[i], 0.0
            for j in range(i % stride, n, stride):
                length += line[j] * line[j]
            score = off * off / (1.0 + length * stride)
            if score > worst:
                worst, found = score, i
    return found


@kernel
def _sift(places: Ints, keys: Floats, at: int, count: int) -> None:
    """Let an entry of a heap sink to where it belongs; the least key is on top.

    Parameters
    ----------
    places, keys
        int64 and float64, the heap and its keys; changed in place.
    at, count
        The entry, and the size of the heap.
    """
    while True:
        below = 2 * at + 1
        if below >= count:
            return
        if below + 1 < count and keys[below + 1] < keys[below]:
            below += 1
        if keys[at] <= keys[below]:
            return
        places[at], places[below] = places[below], places[at]
        keys[at], keys[below] = keys[below], keys[at]
        at = below


@kernel
def _entering(program: Program, i: int, sign: float, need: float) -> tuple[int, float]:
    """Choose the place that enters for line i; program.ratio marks with -1 what is flipped. (-1, rest) without one.

    Places are passed in the order of their ratios, of equal ones that with the largest factor first, until what they
    can give is enough.

    Parameters
    ----------
    i, sign, need
        The line, the direction in which its variable has to go, and how far, in units of the program.
    """
    n = program.nonbasic.size
    line, ratio, reduced = program.table[i], program.ratio, program.reduced
    places, keys = np.empty(n, np.int64), np.empty(n)
    count = 0
    for j in range(n):
        ratio[j] = 0.0
        x = program.nonbasic[j]
        step = sign * line[j]
        if (
            abs(step) > _SMALLEST_PIVOT
            and program.upper[x] > program.lower[x]
            and (step > 0.0) == (program.value[x] == program.lower[x])
        ):
            places[count], keys[count] = j, abs(reduced[j]) / abs(step) + _TIE / (1.0 + abs(step))
            count += 1
    for at in range(count // 2 - 1, -1, -1):
        _sift(places, keys, at, count)
    while count > 0:
        j = places[0]
        x = program.nonbasic[j]
        reach = (program.upper[x] - program.lower[x]) * abs(line[j])
        if reach >= need - TOLERANCE:  # flips that settle the line but for rounding would leave nothing to enter
            return j, need
        need -= reach
        ratio[j] = -1.0
        count -= 1
        places[0], keys[0] = places[count], keys[count]
        _sift(places, keys, 0, count)
    return -1, need


@kernel
def run(progress: Record, program: Program, end: int) -> tuple[int, int, float, float]:
    """Pivot until the program is solved, dear enough, impossible, or progress.work is at `end`; at least once.

    It pauses at the deadline, too.

    Returns how it ended; where it is impossible also the line that shows it, with the direction in which the line would
    have to go and how much is missing.
    """
    n, value = program.nonbasic.size, program.value
    while True:
        m = progress.lines
        if objective_value(program) > program.numbers.dear:
            return DEAR, -1, 0.0, 0.0
        i = _furthest_line(m, program)
        if i < 0:
            return SOLVED, -1, 0.0, 0.0
        x = program.basis[i]
        sign = 1.0 if value[x] < program.lower[x] else -1.0
        need = program.lower[x] - value[x] if sign > 0.0 else value[x] - program.upper[x]
        e, missing = _entering(program, i, sign, need)
        if e < 0:
            return IMPOSSIBLE, i, sign, missing
        progress.pivots += 1
        progress.work += 1 + (m * n >> 10)
        progress.node_pivots += 1
        for j in range(n):
            if program.ratio[j] == -1.0:
                y = program.nonbasic[j]
                other = program.upper[y] if value[y] == program.lower[y] else program.lower[y]
                for k in range(m):
                    value[program.basis[k]] += program.table[k, j] * (other - value[y])
                value[y] = other
        goal = program.lower[x] if sign > 0.0 else program.upper[x]
        step = (goal - value[x]) / program.table[i, e]
        for k in range(m):
            value[program.basis[k]] += program.table[k, e] * step
        value[program.nonbasic[e]] += step
        value[x] = goal
        pivot(m, program, i, e)
        if progress.work >= end or out_of_time(progress):
            return PAUSED, -1, 0.0, 0.0


@kernel
def clear_line(program: Program, i: int) -> None:
    """Make line i empty."""
    program.rest[i] = 0.0
    line: Floats = program.table[i]
    for j in range(program.nonbasic.size):
        line[j] = 0.0


@kernel
def add_variable(program: Program, i: int, x: int, factor: float) -> None:
    """Add factor * variable x to line i.

    Parameters
    ----------
    i, x, factor
        The line, the variable and the factor.
    """
    at = program.where[x]
    if at >= 0:
        program.table[i, at] += factor
        return
    source, target = program.table[-1 - at], program.table[i]
    for j in range(program.nonbasic.size):
        target[j] += factor * source[j]
    program.rest[i] += factor * program.rest[-1 - at]


@kernel
def drop_line(progress: Record, program: Program, i: int) -> None:
    """Take line i away; its variable is a slack that binds nothing."""
    last = progress.lines - 1
    program.where[program.basis[i]] = -(1 << 40)
    if i != last:
        for j in range(program.nonbasic.size):
            program.table[i, j] = program.table[last, j]
        program.rest[i] = program.rest[last]
        program.basis[i] = program.basis[last]
        program.where[program.basis[i]] = -1 - i
    progress.lines = last
