"""Profit tables over residual tokens: what the best two, or three, requests with a total of at most r are worth.

A table is shared by all workers of an evaluation. It is relaxed in one respect: joining two parts may use a class more
often than it has requests. So the values below are upper bounds, and exact wherever the joined parts do not collide;
they serve as ceilings at which the search for a pattern of three to six requests stops.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed, used_up
from lbopt.kernels.search.choices import listed_choices, make_list
from lbopt.kernels.search.pattern import BRANCHES, best_pattern
from lbopt.kernels.search.state import EXACT, Choices, Search, Step

#: Largest residual that is tabulated, grains; and of wide margins, where a grain is more than a token.
TABLE, COARSE = 1 << 15, 1 << 13

#: Branches of a thorough search for a pattern of five or six, or of any number where the tables are coarse.
THOROUGH = 100_000

#: Entries of which a unit of work is booked: a nanosecond each.
_UNIT = 1 << 10

_LESS = -(1 << 60)  # two of them still do not overflow


@kernel
def tabulate_pairs(c: Choices, reach: int) -> bool:
    """Set c.pairs[r >> grain] to no less than the largest profit of two requests, total at most r <= reach.

    With a grain of 0 it is that profit itself.

    Returns False where the deadline passed before; the table is of no use then.
    """
    v, p, n, pairs, grain = c.v, c.p, c.n, c.pairs, c.grain
    last = reach >> grain
    pairs[: last + 1] = _LESS
    for i in range(v.size):
        if passed(c.known.deadline):
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
def tabulate_triples(c: Choices, reach: int) -> bool:
    """Set c.triples[r >> grain] to an upper bound on the profit of three requests with total at most r <= reach.

    Returns False where the deadline passed before; the table is of no use then.
    """
    last, triples = reach >> c.grain, c.triples
    triples[: last + 1] = _LESS
    for i in range(c.v.size):
        if passed(c.known.deadline):
            return False
        size, profit = c.v[i] >> c.grain, c.p[i]
        for r in range(size, last + 1):
            value = profit + c.pairs[r - size]
            if value > triples[r]:
                triples[r] = value
    return True


@kernel
def joined(margin: int, grain: int, left: Ints, right: Ints) -> int:
    """Return the largest left[r] + right[last - r], `last` being the grains of the margin."""
    top = 2 * _LESS
    last = margin >> grain
    for r in range(last + 1):
        value = left[r] + right[last - r]
        if value > top:
            top = value
    return top


@kernel
def one_more(c: Choices, margin: int) -> int:
    """Return the largest profit of one request and a pair from the table, within `margin`."""
    top = 2 * _LESS
    for k in range(c.v.size):
        if c.v[k] > margin:
            break
        value = c.p[k] + c.pairs[(margin - c.v[k]) >> c.grain]
        if value > top:
            top = value
    return top


@kernel
def _make_pairs(step: Step, search: Search, c: int, reach: int) -> bool:
    """Make the table of pairs where there is none for these prices, or one that is too short or of too few classes.

    Returns False where there was no time for that.

    It is made from the longest list, which holds the shorter ones, and a little further than needed, because the next
    envelope is often a larger one.
    """
    made = search.listed
    if made.reach < reach or made.widest < c:
        widest = max(c, step.slots[step.slots.size - 1])
        made.reach, made.widest, made.grain = min(max(TABLE, reach), reach + reach // 8 + 32), widest, 0
        if made.reach > TABLE:
            while made.reach >> made.grain > COARSE:
                made.grain += 1
        length = make_list(step, search, widest)
        search.known.work += length * min(length, made.reach) // _UNIT
        if not tabulate_pairs(listed_choices(step, search, widest, 0), made.reach):
            made.reach = -1
    return bool(made.reach >= reach)


@kernel
def relax(step: Step, search: Search, M: int, lowest: int, slots: int, first: int, last: int, effort: int) -> int:
    """Lower the bounds of workers first..last, all with 3 slots or more; return how many stay above their values.

    The list for so many slots has been made. The table of triples, which costs more than all else, is made for an
    effort of EXACT alone.
    """
    load, value, bound, pattern = step.load, search.value, search.bound, search.pattern
    reach = -1
    for w in range(first, last):
        if value[w] < bound[w]:
            reach = max(reach, M - load[w])
    if not _make_pairs(step, search, slots, reach):
        return last - first
    grain, length = search.listed.grain, search.lists[slots].length
    c = listed_choices(step, search, slots, 1)
    wide = 5 <= slots <= 6 or (grain > 0 and slots > 4)
    limit = BRANCHES if effort < EXACT or grain == 0 else THOROUGH
    if effort == EXACT and wide and tabulate_triples(c, reach):
        c, limit = listed_choices(step, search, slots, 2), THOROUGH
        search.known.work += length * max(0, reach >> grain) // _UNIT
    loose = 0
    for w in range(first, last):
        margin = M - load[w]
        if value[w] == bound[w]:
            continue
        if not used_up(search.known):
            ceiling = bound[w]
            if slots == 3:
                ceiling = one_more(c, margin)
            elif slots == 4:
                ceiling = joined(margin, grain, c.pairs, c.pairs)
            elif c.tables == 2 and slots <= 6:
                ceiling = joined(margin, grain, c.pairs if slots == 5 else c.triples, c.triples)
            bound[w] = min(bound[w], ceiling)
            if value[w] >= bound[w]:
                continue
            full = step.scale * margin - slots * lowest
            value[w], bound[w] = best_pattern(c, slots, margin, full, bound[w], limit, pattern[w])
        if value[w] < bound[w]:
            loose += 1
    return loose
