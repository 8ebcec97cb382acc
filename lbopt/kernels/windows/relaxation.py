"""The linear relaxation of a node, and what it proves.

minimise G * sum_h M_h - T * sum_w S_w  over envelopes M and sums S, subject to M_h >= P[w, h] + S_w, the node's box
and the cuts. Dual simplex: the basis holds as many tight rows as there are columns; for each of them `edge` is the
direction along which only its own slack grows, so that a row enters in one pass over the edges. Whatever the node, the
prices of the last one stay feasible, because nodes differ in right sides only: the search goes on from any node to any
other. Without cuts the rows are those of a network, all entries of the inverse are -1, 0 or 1, and S is integral.

Floats only guide. A bound is re-evaluated in exact integers from prices rounded to 1/scale: for any prices >= 0 whose
sum over the workers is G at every step,

    cost >= constant + sum lambda P + (cuts) - sum_w max over its box of (T - sum_h lambda - cuts) * S_w.
"""

from lbopt.kernels.arrays import Floats, Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import out_of_time
from lbopt.kernels.windows.state import CLOSED, Box, Cuts, Profile, Program, Scratch

OPTIMAL, ABOVE, EMPTY, TIRED = 0, 1, 2, 3

_TOLERANCE = 1e-5
_NO_BOUND = -(1 << 62)


@kernel
def first_basis(profile: Profile, program: Program, sums: Ints) -> None:
    """Set up a basis that fits the sums: at each step its heaviest worker, and one side of each worker's box."""
    peak, floor, edge, price, basis = profile.peak, profile.floor, program.edge, program.price, program.basis
    gain = program.rate
    W, T = peak.shape
    G = profile.workers
    for j in range(T + W):
        for i in range(T + W):
            edge[j, i] = 0.0
        gain[j] = T
    for h in range(T):
        best = -1
        top = floor[h]
        for w in range(W):
            if peak[w, h] + sums[w] > top or (best < 0 and peak[w, h] + sums[w] == top):
                top = peak[w, h] + sums[w]
                best = w
        edge[h, h] = 1.0
        price[h] = G
        basis[h] = best * T + h if best >= 0 else W * T + h
        if best >= 0:
            gain[best] -= G
    for w in range(W):
        sign = -1.0 if gain[w] >= 0 else 1.0  # a worker that would gain by more is held by its high side
        price[T + w] = abs(gain[w])
        basis[T + w] = W * T + T + (W if gain[w] >= 0 else 0) + w
        edge[T + w, T + w] = sign
        for h in range(T):
            if basis[h] == w * T + h:
                edge[T + w, h] = sign


@kernel
def optimise(
    profile: Profile, program: Program, box: Box, cuts: Cuts, progress: Record, enough: float, most: int
) -> tuple[int, float, int]:
    """Solve the relaxation of the node at hand.

    Parameters
    ----------
    enough
        Tokens, without the constant of the cost, from which on the value need not be known.
    most
        Pivots allowed.

    Returns
    -------
    state, value, row
        OPTIMAL, ABOVE (the value has reached `enough`), EMPTY (the node has no point; `row` is the violated row that
        shows it, and program.rate how) or TIRED (after `most` pivots, or no time left); the value without the constant.
    """
    peak, floor = profile.peak, profile.floor
    point, edge, basis, right = program.point, program.edge, program.basis, program.right
    price, rate = program.price, program.rate
    low, high, sense, inside = box.low, box.high, cuts.sense, cuts.inside
    W, T = peak.shape
    n, G = T + W, profile.workers
    count = progress.cuts
    for i in range(n):
        point[i] = 0.0
    for j in range(n):
        b = float(right[basis[j]])
        if b != 0.0:
            for i in range(n):
                point[i] += b * edge[j, i]
    for turn in range(most + 1):
        value = 0.0
        for h in range(T):
            value += G * point[h]
        for w in range(W):
            value -= T * point[T + w]
        if value >= enough:
            return ABOVE, value, -1
        worst, row = _TOLERANCE, -1
        for w in range(W):
            s = point[T + w]
            for h in range(T):
                gap = peak[w, h] + s - point[h]
                if gap > worst:
                    worst, row = gap, w * T + h
            if low[w] - s > worst:
                worst, row = low[w] - s, W * T + T + w
            if s - high[w] > worst:
                worst, row = s - high[w], W * T + T + W + w
        for h in range(T):
            if floor[h] - point[h] > worst:
                worst, row = floor[h] - point[h], W * T + h
        for c in range(count):
            if sense[c] == 0:
                continue
            total = 0.0
            for w in range(W):
                total += inside[c, w] * point[T + w]
            gap = right[W * T + T + 2 * W + c] + sense[c] * total
            if gap > worst:
                worst, row = gap, W * T + T + 2 * W + c
        if row < 0:
            return OPTIMAL, value, -1
        if turn == most or out_of_time(progress):
            return TIRED, value, row
        _rates(profile, program, cuts, row)
        leaving = -1
        least = 0.0
        for j in range(n):
            if rate[j] > 1e-7:
                ratio = price[j] / rate[j]
                if leaving < 0 or ratio < least - 1e-9 or (ratio < least + 1e-9 and rate[j] > rate[leaving]):
                    leaving, least = j, ratio
        if leaving < 0:
            return EMPTY, value, row
        _exchange(n, leaving, worst, edge, rate, price, point)
        basis[leaving] = row
        progress.pivots += 1
    return TIRED, 0.0, -1


@kernel
def _rates(profile: Profile, program: Program, cuts: Cuts, row: int) -> None:
    """Set program.rate[j] to the growth of a row's left side along edge j."""
    edge, rate = program.edge, program.rate
    W, T = profile.peak.shape
    n = W + T
    if row < W * T:
        w, h = profile.worker[row], profile.step[row]
        for j in range(n):
            rate[j] = edge[j, h] - edge[j, T + w]
    elif row < W * T + T + W:
        for j in range(n):
            rate[j] = edge[j, row - W * T]
    elif row < W * T + T + 2 * W:
        for j in range(n):
            rate[j] = -edge[j, row - W * T - W]
    else:
        c = row - (W * T + T + 2 * W)
        for j in range(n):
            total = 0.0
            for w in range(W):
                total += cuts.inside[c, w] * edge[j, T + w]
            rate[j] = -cuts.sense[c] * total


@kernel
def _exchange(n: int, leaving: int, gap: float, edge: Floats, rate: Floats, price: Floats, point: Floats) -> None:
    """Let a row, violated by `gap`, enter the basis in the place of another.

    Parameters
    ----------
    n, leaving, gap
        Columns, position of the row that leaves, and tokens.
    edge, rate, price, point
        (n, n) and (n,) float64, see `Program`; all but `rate` are changed in place.
    """
    inverse = 1.0 / rate[leaving]
    for i in range(n):
        edge[leaving, i] *= inverse
        point[i] += gap * edge[leaving, i]
    entering = max(0.0, price[leaving] * inverse)
    for j in range(n):
        share = rate[j]
        if j != leaving and abs(share) > 1e-11:
            price[j] = max(0.0, price[j] - share * entering)
            for i in range(n):
                edge[j, i] -= share * edge[leaving, i]
    price[leaving] = entering


@kernel
def sound(profile: Profile, program: Program, cuts: Cuts) -> bool:
    """Return whether the rows of the basis are tight at the point: the inverse has not drifted."""
    W, T = profile.peak.shape
    point = program.point
    for j in range(T + W):
        row = program.basis[j]
        left = 0.0
        if row < W * T:
            left = point[profile.step[row]] - point[T + profile.worker[row]]
        elif row < W * T + T + W:
            left = point[row - W * T]
        elif row < W * T + T + 2 * W:
            left = -point[row - W * T - W]
        else:
            c = row - (W * T + T + 2 * W)
            for w in range(W):
                left -= cuts.sense[c] * cuts.inside[c, w] * point[T + w]
        if abs(left - program.right[row]) > 1e-3:
            return False
    return True


@kernel
def exact_bound(profile: Profile, program: Program, box: Box, cuts: Cuts, ray: int, scratch: Scratch) -> int:
    """Return what the prices prove about the node, in exact integers: a lower bound on the cost, tokens.

    With ray >= 0, the row that showed a node to be empty, the prices are those of the contradiction: CLOSED where it
    holds in exact integers. -2**62 where the prices prove nothing. The prices stay in program.scaled.

    Parameters
    ----------
    ray
        A row, or -1.
    """
    W, T = profile.peak.shape
    n = T + W
    scale = profile.scale
    scaled, right, basis, worker, step = program.scaled, program.right, program.basis, profile.worker, profile.step
    gain, paid, largest = scratch.gain, scratch.paid, scratch.largest
    goal = 0 if ray >= 0 else profile.workers * scale
    for h in range(T):
        paid[h], largest[h] = 0, -1
    for w in range(W):
        gain[w] = 0 if ray >= 0 else T * scale
    scaled[n] = scale if ray >= 0 else 0
    for j in range(n):
        price = -program.rate[j] if ray >= 0 else program.price[j]
        if price * scale > 1e15:
            return _NO_BOUND
        scaled[j] = max(0, round(price * scale))
    for j in range(n + 1):
        row = basis[j] if j < n else ray
        if 0 <= row < W * T + T:
            h = step[row]
            paid[h] += scaled[j]
            if largest[h] < 0 or scaled[j] > scaled[largest[h]]:
                largest[h] = j
    for h in range(T):
        if paid[h] != goal:
            if largest[h] < 0 or scaled[largest[h]] + goal - paid[h] < 0:
                return _NO_BOUND
            scaled[largest[h]] += goal - paid[h]
    value = 0
    size = 0.0  # what the sum below could reach: no overflow goes unseen
    for j in range(n + 1):
        row = basis[j] if j < n else ray
        amount = scaled[j]
        if amount == 0:
            continue
        if row < W * T + T:
            value += amount * right[row]
            size += abs(float(amount) * float(right[row]))
            if row < W * T:
                gain[worker[row]] -= amount
        elif row >= W * T + T + 2 * W:
            c = row - (W * T + T + 2 * W)
            value += amount * right[row]
            size += abs(float(amount) * float(right[row]))
            for w in range(W):
                gain[w] -= amount * cuts.sense[c] * cuts.inside[c, w]
    for w in range(W):
        side = box.high[w] if gain[w] > 0 else box.low[w]
        value -= gain[w] * side
        size += abs(float(gain[w]) * float(side))
    if size > 4e18:
        return _NO_BOUND
    if ray >= 0:
        return CLOSED if value > 0 else _NO_BOUND
    return profile.constant - (-value // scale)
