"""What workers choose from at the prices in use: for each number of slots the classes that a best pattern may need.

Most evaluations ask the same prices about another envelope, and the list depends on the prices alone: it is kept until
sizes, requests or prices differ from those that it was made for. Looking costs a tenth of making it.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import prefix_best, undominated
from lbopt.kernels.search.state import Choices, Search, Step


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
