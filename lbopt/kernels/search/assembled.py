"""Best patterns of three and four requests, put together from the table of pairs.

The table's joins may use a request twice, so they say what no pattern exceeds, and where to look for one that reaches
it. Three: the largest request k, and the best pair of requests no larger, which is only worked out where the table's
pair would beat what is known; exact. Four: two pairs that share the margin as the table's best join does; if the second
can do without the requests of the first, the pattern is best, else this finds nothing.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import best_pair, prefix_best
from lbopt.kernels.search.state import NONE

#: Joins of two pairs that are tried.
_JOINS = 8


@kernel
def best_three(
    margin: int, ceiling: int, v: Ints, p: Ints, n: Ints, best: Ints, grain: int, pairs: Ints, out: Ints, scratch: Ints
) -> int:
    """Write the best pattern of three requests within `margin` to out[:3]; return its profit, NONE where none fits.

    Parameters
    ----------
    margin, ceiling
        Tokens that the pattern may take; upper bound on its profit, 1/scale tokens.
    v, p, n
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens; requests.
    best
        int64 (K,), from `prefix_best`.
    grain, pairs
        int64 ((margin >> grain) + 1,) at least: pairs[r >> grain] bounds what two of at most r tokens are
        worth.
    out, scratch
        int64 (3,) and (2,) at least, written: the classes, largest first; a pair.
    """
    for turn in range(2):
        found = ceiling - 1 if turn == 0 else NONE  # first only for a pattern that reaches the ceiling
        for k in range(v.size - 1, -1, -1):
            rest = margin - v[k]
            if n[k] == 0 or rest < 0 or p[k] + pairs[rest >> grain] <= found:
                continue
            value = best_pair(rest, k, n[k] - 1, found - p[k], ceiling - p[k], v, p, n, best, scratch, 0)
            if value > NONE:
                found = p[k] + value
                out[0], out[1], out[2] = k, scratch[0], scratch[1]
                if found >= ceiling:
                    return found
    return found


@kernel
def join_pairs(
    margin: int, ceiling: int, v: Ints, p: Ints, n: Ints, best: Ints, pairs: Ints, out: Ints, scratch: Ints
) -> bool:
    """Write a pattern of four requests of profit `ceiling`, the best join of two pairs, to out[:4], if one is found.

    Parameters
    ----------
    margin, ceiling
        Tokens that the pattern may take; its profit, 1/scale tokens.
    v, p, n
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens; requests. `n` is changed and put back.
    best
        int64 (K,), from `prefix_best`.
    pairs
        int64 (margin + 1,) at least: pairs[r] bounds the profit of two requests of at most r tokens.
    out, scratch
        int64 (4,) and (K,) at least, written: the classes, largest first; best partners.
    """
    tries = 0
    last = v.size - 1
    for r in range(margin + 1):
        if pairs[r] + pairs[margin - r] != ceiling or (r > 0 and pairs[r] == pairs[r - 1]):
            continue
        tries += 1
        if tries > _JOINS:
            return False
        best_pair(r, last, n[last], NONE, pairs[r], v, p, n, best, out, 0)
        n[out[0]] -= 1
        n[out[1]] -= 1
        prefix_best(v.size, p, n, scratch)
        value = best_pair(margin - r, last, n[last], NONE, pairs[margin - r], v, p, n, scratch, out, 2)
        n[out[0]] += 1
        n[out[1]] += 1
        if value == pairs[margin - r]:
            _sort_four(out)
            return True
    return False


@kernel
def _sort_four(out: Ints) -> None:
    """Largest class first, as everywhere."""
    for i in range(1, 4):
        j = i
        while j > 0 and out[j - 1] < out[j]:
            out[j - 1], out[j] = out[j], out[j - 1]
            j -= 1
