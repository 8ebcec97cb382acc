"""Profit tables over residual tokens: what the best two, or three, requests with a total of at most r are worth.

A table is shared by all workers of an evaluation. It is relaxed in one respect: joining two parts may use a class more
often than it has requests. So the values below are upper bounds, and exact wherever the joined parts do not collide;
they serve as ceilings at which the search for a pattern of three to six requests stops.

Wide margins are counted in grains of 2**grain tokens, totals and margins both rounded down:
(a >> g) + (b >> g) <= (a + b) >> g, so all that fits in tokens fits in grains, and the values stay upper bounds.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed, used_up
from lbopt.kernels.search.assembled import best_three, join_pairs
from lbopt.kernels.search.choices import make_list
from lbopt.kernels.search.pattern import BRANCHES, best_pattern
from lbopt.kernels.search.state import EXACT, Search, Step

#: Largest residual that is tabulated, grains; and of wide margins, where a grain is more than a token.
TABLE, COARSE = 1 << 15, 1 << 13

#: Branches of a thorough search for a pattern of five or six, or of any number where the tables are coarse.
THOROUGH = 100_000

#: Entries of which a unit of work is booked: a nanosecond each.
_UNIT = 1 << 10

_LESS = -(1 << 60)  # two of them still do not overflow


@kernel
def tabulate_pairs(length: int, reach: int, v: Ints, p: Ints, n: Ints, grain: int, pairs: Ints, deadline: int) -> bool:
    """Set pairs[r >> grain] to no less than the largest profit of two requests, total at most r <= reach.

    With a grain of 0 it is that profit itself.

    Returns False where the deadline passed before; the table is of no use then.

    Parameters
    ----------
    length, reach
        Classes; largest total, tokens.
    v, p, n
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens; requests.
    grain, pairs
        int64 ((reach >> grain) + 1,) at least, written, 1/scale tokens.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    last = reach >> grain
    for r in range(last + 1):
        pairs[r] = _LESS
    for i in range(length):
        if passed(deadline):
            return False
        if 2 * v[i] <= reach and n[i] >= 2 and 2 * p[i] > pairs[(2 * v[i]) >> grain]:
            pairs[(2 * v[i]) >> grain] = 2 * p[i]
        for j in range(i):
            total = v[i] + v[j]
            if total > reach:
                break
            r = total >> grain
            if p[i] + p[j] > pairs[r]:
                pairs[r] = p[i] + p[j]
    for r in range(1, last + 1):
        if pairs[r - 1] > pairs[r]:
            pairs[r] = pairs[r - 1]
    return True


@kernel
def tabulate_triples(
    length: int, reach: int, v: Ints, p: Ints, grain: int, pairs: Ints, triples: Ints, deadline: int
) -> bool:
    """Set triples[r >> grain] to an upper bound on the profit of three requests with total at most r <= reach.

    Returns False where the deadline passed before; the table is of no use then.

    Parameters
    ----------
    length, reach
        Classes; largest total, tokens.
    v, p
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens.
    grain, pairs, triples
        int64 ((reach >> grain) + 1,) at least, 1/scale tokens: from `tabulate_pairs`; written.
    deadline
        Nanoseconds, see `lbopt.kernels.deadline`.
    """
    last = reach >> grain
    for r in range(last + 1):
        triples[r] = _LESS
    for i in range(length):
        if passed(deadline):
            return False
        size, profit = v[i] >> grain, p[i]
        for r in range(size, last + 1):
            value = profit + pairs[r - size]
            if value > triples[r]:
                triples[r] = value
    return True


@kernel
def joined(margin: int, grain: int, left: Ints, right: Ints) -> int:
    """Return the largest left[r] + right[last - r], `last` being the grains of the margin.

    Parameters
    ----------
    margin, grain
        Tokens; logarithm of the tokens of a grain.
    left, right
        int64 ((margin >> grain) + 1,) at least: what parts of at most so many grains are worth, 1/scale tokens.
    """
    top = 2 * _LESS
    last = margin >> grain
    for r in range(last + 1):
        value = left[r] + right[last - r]
        if value > top:
            top = value
    return top


@kernel
def one_more(margin: int, length: int, v: Ints, p: Ints, grain: int, table: Ints) -> int:
    """Return the largest profit of one request and a part from the table, within `margin`.

    Parameters
    ----------
    margin, length
        Tokens; classes.
    v, p
        int64 (K,): sizes, tokens, ascending; profits, 1/scale tokens.
    grain, table
        int64 ((margin >> grain) + 1,) at least: what a part of at most so many grains is worth, 1/scale tokens.
    """
    top = 2 * _LESS
    for k in range(length):
        if v[k] > margin:
            break
        value = p[k] + table[(margin - v[k]) >> grain]
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
        made.reach, made.widest, made.grain = min(max(TABLE, reach), reach + reach // 8 + 32), widest, 0
        if made.reach > TABLE:
            while made.reach >> made.grain > COARSE:
                made.grain += 1
        length = make_list(step, search, widest)
        v, p, n = search.list_size[widest], search.list_profit[widest], search.list_count[widest]
        search.known.work += length * min(length, made.reach) // _UNIT
        if not tabulate_pairs(length, made.reach, v, p, n, made.grain, search.pairs, search.known.deadline):
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
        if value[w] < bound[w]:
            reach = max(reach, M - load[w])
    if not _make_pairs(step, search, c, reach):
        return last - first
    grain = search.listed.grain
    tables = 1
    limit = BRANCHES if effort < EXACT or grain == 0 else THOROUGH
    if (
        effort == EXACT
        and (5 <= c <= 6 or (grain > 0 and c > 4))
        and tabulate_triples(length, reach, v, p, grain, pairs, triples, search.known.deadline)
    ):
        tables = 2
        limit = THOROUGH
        search.known.work += length * max(0, reach >> grain) // _UNIT
    loose = 0
    for w in range(first, last):
        margin = M - load[w]
        if value[w] == bound[w]:
            continue
        if not used_up(search.known):
            ceiling = bound[w]
            if c == 3:
                ceiling = one_more(margin, length, v, p, grain, pairs)
            elif c == 4:
                ceiling = joined(margin, grain, pairs, pairs)
            elif tables == 2 and c <= 6:
                ceiling = joined(margin, grain, pairs if c == 5 else triples, triples)
            bound[w] = min(bound[w], ceiling)
            if value[w] >= bound[w]:
                continue
            if c == 3:
                value[w] = bound[w] = best_three(margin, bound[w], v, p, n, best, grain, pairs, pattern[w], scratch)
                continue
            if (
                c == 4
                and grain == 0
                and bound[w] == ceiling
                and join_pairs(margin, ceiling, v, p, n, best, pairs, pattern[w], scratch)
            ):
                value[w] = ceiling
                continue
            full = scale * margin - c * lowest
            value[w], bound[w] = best_pattern(
                *(margin, c, scale, full, bound[w], limit, v, p, n, best, sums, pattern[w], scratch),
                *(tables, grain, pairs, triples, search.known),
            )
        if value[w] < bound[w]:
            loose += 1
    return loose
