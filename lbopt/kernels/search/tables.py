"""Profit tables over residual tokens: what the best two, or three, requests with a total of at most r are worth.

A table is shared by all workers of an evaluation. It is relaxed in one respect: joining two parts may use a class more
often than it has requests. So the values below are upper bounds, and exact wherever the joined parts do not collide;
they serve as ceilings at which the search for a pattern of three to six requests stops.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed, used_up
from lbopt.kernels.search.assembled import best_three, join_pairs
from lbopt.kernels.search.choices import make_list
from lbopt.kernels.search.pattern import BRANCHES, best_pattern
from lbopt.kernels.search.state import EXACT, Search, Step

#: Largest residual that is tabulated, tokens.
TABLE = 1 << 15

#: Branches of a thorough search for a pattern of five or six.
THOROUGH = 100_000

#: Entries of which a unit of work is booked: a nanosecond each.
_UNIT = 1 << 10

_LESS = -(1 << 60)  # two of them still do not overflow


@kernel
def tabulate_pairs(length: int, reach: int, v: Ints, p: Ints, n: Ints, pairs: Ints, deadline: int) -> bool:
    """Set pairs[r] to the largest profit of two requests, total at most r <= reach, of `length` classes.

    Returns False where the deadline passed before; the table is of no use then.

    Parameters
    ----------
    length, reach
        Classes; largest total, tokens.
    v, p, n
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens; requests.
    pairs
        int64 (reach + 1,) at least, written, 1/scale tokens.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    for r in range(reach + 1):
        pairs[r] = _LESS
    for i in range(length):
        if passed(deadline):
            return False
        if 2 * v[i] <= reach and n[i] >= 2 and 2 * p[i] > pairs[2 * v[i]]:
            pairs[2 * v[i]] = 2 * p[i]
        for j in range(i):
            r = v[i] + v[j]
            if r > reach:
                break
            if p[i] + p[j] > pairs[r]:
                pairs[r] = p[i] + p[j]
    for r in range(1, reach + 1):
        if pairs[r - 1] > pairs[r]:
            pairs[r] = pairs[r - 1]
    return True


@kernel
def tabulate_triples(length: int, reach: int, v: Ints, p: Ints, pairs: Ints, triples: Ints, deadline: int) -> bool:
    """Set triples[r] to an upper bound on the profit of three requests with total at most r <= reach.

    Returns False where the deadline passed before; the table is of no use then.

    Parameters
    ----------
    length, reach
        Classes; largest total, tokens.
    v, p
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens.
    pairs, triples
        int64 (reach + 1,) at least, 1/scale tokens: from `tabulate_pairs`; written.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    for r in range(reach + 1):
        triples[r] = _LESS
    for i in range(length):
        if passed(deadline):
            return False
        size, profit = v[i], p[i]
        for r in range(size, reach + 1):
            value = profit + pairs[r - size]
            if value > triples[r]:
                triples[r] = value
    return True


@kernel
def joined(margin: int, left: Ints, right: Ints) -> int:
    """Return the largest left[r] + right[margin - r]."""
    top = 2 * _LESS
    for r in range(margin + 1):
        value = left[r] + right[margin - r]
        if value > top:
            top = value
    return top


@kernel
def one_more(margin: int, length: int, v: Ints, p: Ints, table: Ints) -> int:
    """Return the largest profit of one request and a part from the table, within `margin`.

    Parameters
    ----------
    margin, length
        Tokens; classes.
    v, p
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens.
    table
        int64 (margin + 1,) at least: what a part of at most so many tokens is worth, 1/scale tokens.
    """
    top = 2 * _LESS
    for k in range(length):
        if v[k] > margin:
            break
        value = p[k] + table[margin - v[k]]
        if value > top:
            top = value
    return top


@kernel
def _make_pairs(step: Step, search: Search, c: int, reach: int) -> bool:
    """Make the table of pairs where there is none for these prices, or one that is too short or of too few classes.

    Returns False where there was no time for that.

    It is made from the longest list, which holds the shorter ones, and a little further than needed, because the next
    envelope is often a larger one.

    Parameters
    ----------
    step, search
        The decision; the state of the search, whose lists and table of pairs change in place.
    c, reach
        Slots; largest total, tokens.
    """
    made = search.listed
    if made.reach < reach or made.widest < c:
        widest = max(c, step.slots[step.slots.size - 1])
        made.reach, made.widest = min(TABLE, reach + reach // 8 + 32), widest
        length = make_list(step, search, widest)
        v, p, n = search.list_size[widest], search.list_profit[widest], search.list_count[widest]
        search.known.work += length * min(length, made.reach) // _UNIT
        if not tabulate_pairs(length, made.reach, v, p, n, search.pairs, search.known.deadline):
            made.reach = -1
    return bool(made.reach >= reach)


@kernel
def relax(step: Step, search: Search, M: int, lowest: int, c: int, first: int, last: int, effort: int) -> int:
    """Lower the bounds of workers first..last, all with c >= 3 slots; return how many stay above their values.

    The list for c slots has been made. The table of triples, which costs more than all else, is made for an effort of
    EXACT alone.

    Parameters
    ----------
    step, search
        The decision; the state of the search, whose values, bounds, patterns and tables change in place.
    M, lowest
        Envelope, tokens; least price, 1/scale tokens.
    c, first, last
        Slots; workers first..last - 1.
    effort
        QUICK or EXACT.
    """
    load, sums, scale = step.load, step.sums, step.scale
    value, bound, pattern = search.value, search.bound, search.pattern
    pairs, triples, scratch = search.pairs, search.triples, search.partner
    length = search.lists[c].length
    v, p, n = search.list_size[c, :length], search.list_profit[c, :length], search.list_count[c, :length]
    best = search.list_best[c, :length]
    reach = -1
    for w in range(first, last):
        if value[w] < bound[w] and M - load[w] <= TABLE:
            reach = max(reach, M - load[w])
    if not _make_pairs(step, search, c, reach):
        return last - first
    tables = 1
    limit = BRANCHES
    if effort == EXACT and 5 <= c <= 6 and tabulate_triples(length, reach, v, p, pairs, triples, search.known.deadline):
        tables = 2
        limit = THOROUGH
        search.known.work += length * max(0, reach) // _UNIT
    loose = 0
    for w in range(first, last):
        margin = M - load[w]
        if value[w] == bound[w]:
            continue
        if margin <= TABLE and not used_up(search.known):
            ceiling = bound[w]
            if c == 3:
                ceiling = one_more(margin, length, v, p, pairs)
            elif c == 4:
                ceiling = joined(margin, pairs, pairs)
            elif tables == 2:
                ceiling = joined(margin, pairs if c == 5 else triples, triples)
            bound[w] = min(bound[w], ceiling)
            if value[w] >= bound[w]:
                continue
            if c == 3:
                value[w] = bound[w] = best_three(margin, bound[w], v, p, n, best, pairs, pattern[w], scratch)
                continue
            if (
                c == 4
                and bound[w] == ceiling
                and join_pairs(margin, ceiling, v, p, n, best, pairs, pattern[w], scratch)
            ):
                value[w] = ceiling
                continue
            full = scale * margin - c * lowest
            value[w], bound[w] = best_pattern(
                *(margin, c, scale, full, bound[w], limit, v, p, n, best, sums, pattern[w], scratch),
                *(tables, pairs, triples, search.known),
            )
        if value[w] < bound[w]:
            loose += 1
    return loose
