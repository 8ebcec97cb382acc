"""The F-score of BalanceRoute over a window, and the batch of requests with the largest one.

The horizon F-score of BalanceRoute, eq. (1) and (2), in exact integers.

With the margins m_0..m_H of a worker over the window, a batch that holds d_h tokens in step h scores

    F = sum_h R_h d_h - P_h max(0, d_h - m_h),      R_h = alpha gamma^h,  P_h = beta gamma^h,

weights in units of 2^-shift, rounded once, so that ties are ties and three ways to choose a subset agree. Reward,
penalty and margin of the steps are `terms`, (H+1,) of TERM. A batch is a row of `profiles`, int64
(., H+1), or (., 1) where it counts as constant. Then F is concave in its size; to the right of it the slope is the sum
of R less the P_h of all margins up to it. So the best of any set of sizes is the smallest at which the slope turns
negative, or the largest before it: two probes at the weighted quantile of the margins.

H = 0 with R_0 = 1, P_0 = G is the F-score of BR-0: by how much the batch lowers the imbalance. Summed over the
admissions of a round, with margins refreshed after each, these equal the fall of the imbalance (telescoping).

The best non-empty subset of a short window by the horizon score, in three ways that agree on the score.

* enumeration of all subsets (BalanceRoute deploys it, R_max = 4);
* reachable sums as bit sets, one per number of members, and two probes at the weighted quantile of the margins, which
  is exact because F is concave (probing at the smallest margin, as the authors' earlier simulator does, is not);
* reachable sums, each of them scored.

Sums are for requests that count as constant; by profiles all subsets are enumerated. Ties: larger total, then fewer
requests; enumeration then takes the subset that is first in window positions.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Records, integers
from lbopt.kernels.compile import kernel

#: No margin makes the slope negative.
NEVER = 1 << 62

#: What a step of the window is worth on a worker: R_h, P_h and m_h.
TERM = integers("reward", "penalty", "margin")


@kernel
def score(terms: Records, profiles: Ints, row: int) -> int:
    """Return F of the batch that is this row of `profiles`."""
    f, grows = 0, profiles.shape[1] > 1
    for h in range(terms.size):
        tokens = profiles[row, h * grows]
        f += terms[h].reward * tokens - terms[h].penalty * max(0, tokens - terms[h].margin)
    return f


@kernel
def falls_beyond(terms: Records, delta: int) -> bool:
    """Return whether F of constant batches falls to the right of `delta` tokens."""
    slope = 0
    for h in range(terms.size):
        slope += terms[h].reward - (terms[h].penalty if terms[h].margin <= delta else 0)
    return slope < 0


@kernel
def peak(terms: Records) -> int:
    """Return the last delta at which F is largest, the weighted quantile of the margins; NEVER where F never falls."""
    best = NEVER
    for h in range(terms.size):
        if terms[h].margin < best and falls_beyond(terms, terms[h].margin):
            best = terms[h].margin
    return best


@kernel
def envelope_of(projected: Ints, envelope: Ints) -> None:
    """Write the largest of the projected loads, int64 (G, H+1), in each step into `envelope`, int64 (H+1,)."""
    envelope[:] = projected[0]
    for g in range(1, projected.shape[0]):
        for h in range(envelope.size):
            envelope[h] = max(envelope[h], projected[g, h])


@kernel
def look_at(projected: Ints, envelope: Ints, g: int, terms: Records) -> None:
    """Write the margins of worker g, envelope minus projected loads, into `terms`."""
    for h in range(envelope.size):
        terms[h].margin = envelope[h] - projected[g, h]


@kernel
def least_margin(projected: Ints, envelope: Ints, g: int) -> int:
    """Return worker g's smallest margin over the window."""
    least = envelope[0] - projected[g, 0]
    for h in range(1, envelope.size):
        least = min(least, envelope[h] - projected[g, h])
    return least


ENUMERATE = 0
BIT_SET = 1
ALL_SUMS = 2


@kernel
def best_batch(
    method: int, most: int, terms: Records, tokens: Ints, profiles: Ints, window: Ints, length: int, added: Ints
) -> int:
    """Return the bit mask of the best subset; where even that has F <= 0, of the best single request.

    The latter is the source's guard against starvation. Ties of single ones: larger, then earlier.

    Parameters
    ----------
    method
        ENUMERATE, BIT_SET or ALL_SUMS.
    most
        Most members of a subset.
    terms
        See `horizon_score`.
    profiles
        int64 (n, H+1) or (n, 1), tokens of the waiting requests.
    tokens, window, length
        int64 (>= length,), prompt tokens and positions in the pool of the requests in the window, at least one.
    added
        Scratch of the shape of one row of `profiles`, (1, .).
    """
    mask, f = best_subset(method, most, terms, tokens, profiles, window, length, added)
    if f > 0:
        return mask
    best, best_f = 0, score(terms, profiles, window[0])
    for j in range(1, length):
        f = score(terms, profiles, window[j])
        if f > best_f or (f == best_f and tokens[j] > tokens[best]):
            best, best_f = j, f
    return 1 << best


@kernel
def best_subset(
    method: int, most: int, terms: Records, tokens: Ints, profiles: Ints, window: Ints, length: int, added: Ints
) -> tuple[int, int]:
    """Return the bit mask of the best subset, and its F; parameters as of `best_batch`."""
    if method != ENUMERATE and profiles.shape[1] == 1:
        return _by_sums(method, most, terms, tokens[:length], added)
    best = (0, 0, 0, 0)  # F, tokens, number and bit mask of the requests
    for mask in range(1, 1 << length):
        total = count = 0
        for j in range(length):
            if mask >> j & 1:
                total += tokens[j]
                count += 1
        if count > most:
            continue
        added[0, 0] = total
        if added.shape[1] > 1:
            _add_up(profiles, window, mask, added)
        f = score(terms, added, 0)
        if best[3] == 0 or f >= best[0]:
            this = (f, total, count, mask)
            if _comes_first(this, best):
                best = this
    return best[3], best[0]


@kernel
def _add_up(profiles: Ints, window: Ints, mask: int, added: Ints) -> None:
    """Write what a subset of the window adds in each step, int64 (1, H+1)."""
    for h in range(added.shape[1]):
        added[0, h] = 0
        j = 0
        while mask >> j:
            if mask >> j & 1:
                added[0, h] += profiles[window[j], h]
            j += 1


@kernel
def _comes_first(this: tuple[int, int, int, int], best: tuple[int, int, int, int]) -> bool:
    """Return whether a subset beats the best so far (mask 0 = none): larger F, then larger total, then fewer requests.

    Then the one that is lexicographically first in window positions.
    """
    if best[3] == 0:
        return True
    if this[0] != best[0]:
        return this[0] > best[0]
    if this[1] != best[1]:
        return this[1] > best[1]
    if this[2] != best[2]:
        return this[2] < best[2]
    # equal counts: the set that holds the lowest position in which the two differ comes first
    differ = this[3] ^ best[3]
    return this[3] & (differ & -differ) != 0


@kernel
def _by_sums(method: int, most: int, terms: Records, window: Ints, added: Ints) -> tuple[int, int]:
    """Return the bit mask of the best subset of requests of `window` tokens, int64 (length,), and its F."""
    length, total = window.size, window.sum()
    words = (total >> 6) + 2
    # reached[t, j]: sums of j of the first t requests
    reached = np.zeros((length + 1, most + 1, words), np.uint64)
    reached[0, 0, 0] = 1
    for t in range(length):
        reached[t + 1] = reached[t]
        for j in range(min(t + 1, most), 0, -1):
            _shift_into(reached[t, j - 1], window[t], reached[t + 1, j])
    turn = peak(terms) if method == BIT_SET else 0
    best_sum, best_count, best_f = -1, 0, 0
    for j in range(1, most + 1):
        ends = reached[length, j]
        x = _first_from(ends, 0, total)
        if method == BIT_SET:
            x = max(x, _last_before(ends, min(turn, total + 1)))  # the largest before the turn, else the smallest
        while x >= 0:
            added[0, 0] = x
            f = score(terms, added, 0)
            if best_sum < 0 or f > best_f or (f == best_f and x > best_sum):
                best_sum, best_count, best_f = x, j, f
            if method == BIT_SET and x >= turn:
                break
            x = _first_from(ends, x + 1, total)
    mask, x, j = 0, best_sum, best_count
    for t in range(length - 1, -1, -1):  # whenever the last one can be taken, the rest is reachable without it
        s = window[t]
        if j > 0 and x >= s and _has(reached[t, j - 1], x - s):
            mask |= 1 << t
            x -= s
            j -= 1
    return mask, best_f


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
