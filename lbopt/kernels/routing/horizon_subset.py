"""The best non-empty subset of a short window by the horizon score, in three ways that agree on the score.

* enumeration of all subsets (BalanceRoute deploys it, R_max = 4);
* reachable sums as bit sets, one per number of members, and two probes at the weighted quantile of the margins, which
  is exact because F is concave (probing at the smallest margin, as the authors' earlier simulator does, is not);
* reachable sums, each of them scored.

Ties: larger total, then fewer requests; enumeration then takes the subset that is first in window positions.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.horizon_score import NEVER, horizon_score, peak
from lbopt.kernels.routing.subset import comes_first

ENUMERATE = 0
BIT_SET = 1
ALL_SUMS = 2


@kernel
def best_horizon_subset(
    method: int, reward: int, penalties: Ints, margins: Ints, window: Ints, length: int, most: int
) -> int:
    """Return the bit mask of the best subset of window[:length] with at most `most` members.

    Parameters
    ----------
    method
        ENUMERATE, BIT_SET or ALL_SUMS.
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    margins
        int64 (H+1,), tokens, of the worker.
    window
        int64 (>= length,), tokens.
    length, most
        Requests in the window, and most members of a subset.
    """
    if method == ENUMERATE:
        return _by_enumeration(reward, penalties, margins, window, length, most)
    return _by_sums(method, reward, penalties, margins, window, length, most)


@kernel
def _by_enumeration(reward: int, penalties: Ints, margins: Ints, window: Ints, length: int, most: int) -> int:
    """Return the bit mask of the best subset, with all of them scored.

    Parameters
    ----------
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    margins
        int64 (H+1,), tokens, of the worker.
    window
        int64 (>= length,), tokens.
    length, most
        Requests in the window, and most members of a subset.
    """
    best_mask = 0
    best_f = 0
    best_total = 0
    best_count = 0
    for mask in range(1, 1 << length):
        total = 0
        count = 0
        for j in range(length):
            if mask >> j & 1:
                total += window[j]
                count += 1
        if count > most:
            continue
        f = horizon_score(reward, penalties, margins, total)
        if comes_first(f, total, count, mask, best_f, best_total, best_count, best_mask):
            best_mask, best_f, best_total, best_count = mask, f, total, count
    return best_mask


@kernel
def _by_sums(method: int, reward: int, penalties: Ints, margins: Ints, window: Ints, length: int, most: int) -> int:
    """Reachable sums, and the subset behind the best of them.

    Parameters
    ----------
    method
        BIT_SET or ALL_SUMS.
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    margins
        int64 (H+1,), tokens, of the worker.
    window
        int64 (>= length,), tokens.
    length, most
        Requests in the window, and most members of a subset.
    """
    total = 0
    for j in range(length):
        total += window[j]
    words = (total >> 6) + 2
    # reached[t, j]: sums of j of the first t requests
    reached = np.zeros((length + 1, most + 1, words), np.uint64)
    reached[0, 0, 0] = 1
    for t in range(length):
        reached[t + 1] = reached[t]
        for j in range(min(t + 1, most), 0, -1):
            _shift_into(reached[t, j - 1], window[t], reached[t + 1, j])
    ends = reached[length]
    turn = peak(reward, penalties, margins) if method == BIT_SET else 0
    best_sum = -1
    best_count = 0
    best_f = 0
    for j in range(1, most + 1):
        if method == BIT_SET:
            low = _last_before(ends[j], min(turn, total + 1))
            high = -1 if turn == NEVER else _first_from(ends[j], turn, total)
            for x in (low, high):
                if x >= 0:
                    f = horizon_score(reward, penalties, margins, x)
                    if best_sum < 0 or f > best_f or (f == best_f and x > best_sum):
                        best_sum, best_count, best_f = x, j, f
        else:
            x = _first_from(ends[j], 0, total)
            while x >= 0:
                f = horizon_score(reward, penalties, margins, x)
                if best_sum < 0 or f > best_f or (f == best_f and x > best_sum):
                    best_sum, best_count, best_f = x, j, f
                x = _first_from(ends[j], x + 1, total)
    mask = 0
    x, j = best_sum, best_count
    for t in range(length - 1, -1, -1):  # whenever the last one can be taken, the rest is reachable without it
        s = window[t]
        if j > 0 and x >= s and _has(reached[t, j - 1], x - s):
            mask |= 1 << t
            x -= s
            j -= 1
    return mask


@kernel
def _has(bits: Ints, x: int) -> bool:
    return (bits[x >> 6] >> np.uint64(x & 63)) & np.uint64(1) != 0


@kernel
def _shift_into(source: Ints, by: int, target: Ints) -> None:
    """Target |= source << by."""
    words, rest = by >> 6, by & 63
    for w in range(source.size - words - 1, -1, -1):
        if source[w] == 0:
            continue
        target[w + words] |= source[w] << np.uint64(rest)
        if rest and w + words + 1 < target.size:
            target[w + words + 1] |= source[w] >> np.uint64(64 - rest)


@kernel
def _last_before(bits: Ints, x: int) -> int:
    """Largest set place below `x`, or -1."""
    place = x - 1
    while place >= 0:
        if bits[place >> 6] == 0:
            place = ((place >> 6) << 6) - 1
        elif _has(bits, place):
            return place
        else:
            place -= 1
    return -1


@kernel
def _first_from(bits: Ints, x: int, last: int) -> int:
    """Smallest set place from `x` on up to `last`, or -1."""
    place = x
    while place <= last:
        if bits[place >> 6] == 0:
            place = ((place >> 6) + 1) << 6
        elif _has(bits, place):
            return place
        else:
            place += 1
    return -1


@kernel
def best_horizon_single(reward: int, penalties: Ints, margins: Ints, window: Ints, length: int) -> int:
    """Return the window position of the best single request; ties: larger, then earlier position.

    Parameters
    ----------
    reward, penalties
        Weights of the score, penalties int64 (H+1,), see `horizon_score`.
    margins
        int64 (H+1,), tokens, of the worker.
    window
        int64 (>= length,), tokens.
    length
        Requests in the window, >= 1.
    """
    best = 0
    best_f = horizon_score(reward, penalties, margins, window[0])
    for j in range(1, length):
        f = horizon_score(reward, penalties, margins, window[j])
        if f > best_f or (f == best_f and window[j] > window[best]):
            best, best_f = j, f
    return best
