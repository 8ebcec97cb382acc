"""The best non-empty subset of a short window, by enumeration (BalanceRoute deploys R_max = 4: 15 subsets)."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.f_score import f_score


@kernel
def best_subset(G: int, window: Ints, length: int, most: int, margin: int) -> int:
    """Return the bit mask of the subset of window[:length] with at most `most` members and the largest F.

    Ties: larger total, then fewer requests, then lexicographically first in window positions.

    Parameters
    ----------
    G
        Workers.
    window
        int64 (>= length,), tokens.
    length, most
        Requests in the window, and most members of a subset.
    margin
        Tokens, of the worker.
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
        f = f_score(G, total, margin)
        if comes_first(f, total, count, mask, best_f, best_total, best_count, best_mask):
            best_mask, best_f, best_total, best_count = mask, f, total, count
    return best_mask


@kernel
def comes_first(
    f: int, total: int, count: int, mask: int, best_f: int, best_total: int, best_count: int, best_mask: int
) -> bool:
    """Return whether a subset beats the best so far (mask 0 = none): larger F, then larger total, then fewer requests.

    Then the one that is lexicographically first in window positions.

    Parameters
    ----------
    f, total, count, mask
        Score, tokens, number and bit mask of the requests of a subset.
    best_f, best_total, best_count, best_mask
        The same of the best so far.
    """
    if best_mask == 0:
        return True
    if f != best_f:
        return f > best_f
    if total != best_total:
        return total > best_total
    if count != best_count:
        return count < best_count
    # equal counts: the set that holds the lowest position in which the two differ comes first
    differ = mask ^ best_mask
    return mask & (differ & -differ) != 0


@kernel
def best_single(G: int, window: Ints, length: int, margin: int) -> int:
    """Return the window position of the single request with the largest F; ties: larger, then earlier position.

    Parameters
    ----------
    G
        Workers.
    window
        int64 (>= length,), tokens.
    length
        Requests in the window, >= 1.
    margin
        Tokens, of the worker.
    """
    best = 0
    best_f = f_score(G, window[0], margin)
    for j in range(1, length):
        f = f_score(G, window[j], margin)
        if f > best_f or (f == best_f and window[j] > window[best]):
            best, best_f = j, f
    return best
