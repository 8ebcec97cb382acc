"""What workers choose from at the prices in use: for each number of slots the classes that a best pattern may need.

Most evaluations ask the same prices about another envelope, and the list depends on the prices alone: it is kept until
sizes, requests or prices differ from those that it was made for. Looking costs a tenth of making it.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.pattern import prefix_best, undominated
from lbopt.kernels.search.terms import SCALE, Search, Step

# rows of a list: class, size, profit, requests, and the class of most profit up to it (a place in the list)
CLASS, SIZE, PROFIT, REQUESTS, BEST = 0, 1, 2, 3, 4

# what is kept of a list: its length (-1 = not made), and the sum of the largest profits
LENGTH, CEILING = 0, 1

# and of the prices, in place of the list for no slots: classes, scale, what all requests cost, the lowest price; tokens
# that the table of pairs reaches (-1 = not made), and the slots of the list that it was made from
_CLASSES, _SCALE, _ALL, _LOWEST, REACH, WIDEST = 0, 1, 2, 3, 4, 5


@kernel
def prepare(step: Step, search: Search) -> tuple[int, int]:
    """Forget the lists if they are of other prices; return what all requests cost together, and the lowest price."""
    v, n, price = step.v, step.n, search.price
    kept, asked, K = search.listed, search.asked, step.v.size
    same = kept[0, _CLASSES] == K and kept[0, _SCALE] == step.facts[SCALE]
    k = 0
    while same and k < K:
        same = asked[0, k] == price[k] and asked[1, k] == n[k] and asked[2, k] == v[k]
        k += 1
    if not same:
        total = lowest = 0
        for k in range(K):
            asked[0, k], asked[1, k], asked[2, k] = price[k], n[k], v[k]
            total += n[k] * price[k]
            lowest = min(lowest, price[k])
        kept[0, _CLASSES], kept[0, _SCALE], kept[0, _ALL], kept[0, _LOWEST] = K, step.facts[SCALE], total, lowest
        kept[0, REACH] = -1
        for c in range(1, kept.shape[0]):
            kept[c, LENGTH] = -1
    return kept[0, _ALL], kept[0, _LOWEST]


@kernel
def choices(step: Step, search: Search, c: int) -> Ints:
    """Return the list for c slots, (5, length); `prepare` was called before."""
    kept, rows = search.listed[c], search.choices[c]
    if kept[LENGTH] < 0:
        v, n, price, p, tops = step.v, step.n, search.price, search.short[0], search.short[1]
        scale = step.facts[SCALE]
        for k in range(v.size):
            p[k] = scale * v[k] - price[k]
        kept[LENGTH], kept[CEILING] = undominated(c, p, n, rows[CLASS], tops)
        for j in range(kept[LENGTH]):
            k = rows[CLASS, j]
            rows[SIZE, j], rows[PROFIT, j], rows[REQUESTS, j] = v[k], p[k], n[k]
        prefix_best(kept[LENGTH], rows[PROFIT], rows[REQUESTS], rows[BEST])
    return rows[:, : kept[LENGTH]]
