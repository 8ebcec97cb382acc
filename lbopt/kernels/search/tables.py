"""What workers choose from at the prices in use: lists of classes for each number of slots, and tables of profits.

A list holds the classes that a best pattern may need. Most evaluations ask the same prices about another envelope, and
the list depends on the prices alone: it is kept until sizes, requests or prices differ from those that it was made for.
Looking costs a tenth of making it.

A table says what the best two, or three, requests with a total of at most r are worth. It is shared by all workers of
an evaluation. It is relaxed in one respect: joining two parts may use a class more often than it has requests. So the
values below are upper bounds, and exact wherever the joined parts do not collide; they serve as ceilings at which the
search for a pattern of three to six requests stops.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import passed, used_up
from lbopt.kernels.search.pattern import BRANCHES, best_pattern, prefix_best, undominated
from lbopt.kernels.search.state import EXACT, Choices, Search, Step


@kernel
def prepare(step: Step, search: Search) -> tuple[int, int]:
    """Forget the lists if they are of other prices; return what all requests cost together, and the lowest price."""
    v, n, price, listed = step.v, step.n, search.price, search.listed
    prices, counts, sizes = search.listed_price, search.listed_count, search.listed_size
    K, scale = v.size, step.scale
    same = listed.classes == K and listed.scale == scale
    k = 0
    while same and k < K:
        same = prices[k] == price[k] and counts[k] == n[k] and sizes[k] == v[k]
        k += 1
    if not same:
        total = lowest = 0
        for k in range(K):
            prices[k], counts[k], sizes[k] = price[k], n[k], v[k]
            total += n[k] * price[k]
            lowest = min(lowest, price[k])
        listed.classes, listed.scale, listed.total, listed.lowest = K, scale, total, lowest
        listed.reach = -1
        for c in range(1, search.lists.size):
            search.lists[c].length = -1
    return listed.total, listed.lowest


@kernel
def make_list(step: Step, search: Search, c: int) -> int:
    """Make the list for c slots where there is none, and return its length; `prepare` was called before.

    What is in it are the first places of search.list_class[c], list_size[c], list_profit[c], list_count[c] and
    list_best[c].
    """
    kept = search.lists[c]
    if kept.length < 0:
        v, n, price, p = step.v, step.n, search.price, search.profit
        scale = step.scale
        for k in range(v.size):
            p[k] = scale * v[k] - price[k]
        classes, sizes, profits, counts = (
            search.list_class[c],
            search.list_size[c],
            search.list_profit[c],
            search.list_count[c],
        )
        kept.length, kept.ceiling = undominated(c, p, n, classes, search.tops)
        for j in range(kept.length):
            k = classes[j]
            sizes[j], profits[j], counts[j] = v[k], p[k], n[k]
        prefix_best(kept.length, profits, counts, search.list_best[c])
    return kept.length


@kernel
def listed_choices(step: Step, search: Search, c: int, tables: int) -> Choices:
    """Return the list for c slots, which has been made, as choices with so many tables."""
    length = search.lists[c].length
    return Choices(
        search.list_size[c, :length],
        search.list_profit[c, :length],
        search.list_count[c, :length],
        search.list_best[c, :length],
        step.sums,
        search.partner,
        search.pairs,
        search.triples,
        search.known,
        step.scale,
        tables,
        search.listed.grain,
    )


@kernel
def choices_of(step: Step, search: Search, p: Ints, n: Ints, best: Ints, sums: Ints, scale: int) -> Choices:
    """Return all classes as choices at profits of so many units a token, without tables."""
    return Choices(step.v, p, n, best, sums, search.partner, search.pairs, search.triples, search.known, scale, 0, 0)


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
