"""Check a certificate of the kind "window-prices": a tree of counts, with prices at each leaf that close it.

For any window. Requests with equal work and the same duty to be admitted form a class; classes are numbered in the
order of (total work over the window, work at each step, duty). Where fewer requests wait than there are slots, requests
that bring nothing fill the others, so worker g takes exactly c_g requests (its slots, or all requests where these are
fewer). With M_h the largest load at step h, G workers, and v[k][h] the work of class k,

    cost = sum_h G M_h - sum of the loads.

Take any prices pi[g][h] >= 0 that add up to G at every h, and prices mu[k], which are not positive where requests of
the class may wait. Since M_h >= L_g(h), and at most n_k requests of class k are used (exactly n_k where all must be),

    cost >= sum_gh (pi[g][h] - 1) base[g][h] + sum_k n_k mu[k] + sum over workers of the cheapest c_g requests,

where a request of class k costs worker g the amount sum_h (pi[g][h] - 1) v[k][h] - mu[k]. All in integers: prices are
given in 1/scale. The cheapest set is found by a table over (classes, requests), from the last class down.

    "scale": S
    "strikes": [prices, ...]   by these, one after the other, a class that is too dear for a worker is struck for good:
                               where the sum above, with one request of the class in the place of the dearest of the
                               worker's cheapest set, is no less than the bound
    "tree": the records in preorder; a record is prices, a leaf: by them nothing in the node is below the bound; or
        {"worker": g, "class": j, "at_most": a}   a branch: of the requests of classes j, j + 1, ... worker g takes at
                                                  most a (the first subtree), or at least a + 1 (the second)

    prices are {"loads": [[g, h, pi], ...], "classes": [[k, mu], ...]}; what is not listed is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.allowance import spend
from lbopt.solvers.certificates.format import fields, items, whole
from lbopt.solvers.certificates.tree import walk
from lbopt.solvers.recount import Numbers

#: Limits of one worker: class j -> (least, most) requests of classes j, j + 1, ...
Limits = dict[int, tuple[int, int]]


def check_window_prices(p: Numbers, bound: int, body: dict[str, Any]) -> None:
    """Return if the evidence proves that no assignment costs less than `bound`.

    Raises
    ------
    CertificateError
        Naming the first record, and the numbers, for which it does not.
    """
    fields(body, "the certificate", ("scale", "strikes", "tree"))
    scale = whole(body["scale"], "scale", least=1)
    strikes, tree = items(body["strikes"], "strikes"), items(body["tree"], "tree")
    if bound <= 0:
        return
    priced = _Priced(_Pool.of(p), scale)
    for number, record in enumerate(strikes):
        try:
            priced.strike(_Prices.of(record, priced), bound)
        except CertificateError as error:
            raise CertificateError(f"strike {number}: {error}") from None

    def below(node: dict[int, Limits], record: Any) -> list[dict[int, Limits]]:
        if type(record) is dict and "worker" in record:
            return _halves(record, node, priced.pool)
        proved = priced.bound(_Prices.of(record, priced), node)
        if proved is not None and proved < bound:
            raise CertificateError(f"by its prices nothing costs less than {proved}, but {bound} is claimed")
        return []

    root: dict[int, Limits] = {}
    walk(tree, below, root)


def read_load_prices(value: Any, loads: list[list[int]], scale: int) -> list[dict[int, int]]:
    """Return {step: price} of each worker, read from [worker, step, price]; at every step they add up to G * scale."""
    G, T = len(loads), len(loads[0])
    prices: list[dict[int, int]] = [{} for _ in range(G)]
    paid = [0] * T
    for triple in items(value, "prices of loads"):
        one = entries(triple, 3)
        g, h = whole(one[0], "a worker", least=0, below=G), whole(one[1], "a step", least=0, below=T)
        price = whole(one[2], "a price of a load", least=0)
        prices[g][h] = prices[g].get(h, 0) + price
        paid[h] += price
    for h, total in enumerate(paid):
        if total != G * scale:
            raise CertificateError(f"its prices at step {h} add up to {total}; expected {G} * {scale}")
    return prices


def priced_loads(prices: list[dict[int, int]], loads: list[list[int]]) -> int:
    """Return sum_gh price[g][h] load[g][h]."""
    return sum(price * row[h] for row, paid in zip(loads, prices, strict=True) for h, price in paid.items())


def entries(value: Any, count: int) -> list[Any]:
    """Return the entries of a price, which has so many."""
    found = items(value, "a price")
    if len(found) != count:
        raise CertificateError(f"a price has {len(found)} entries; expected {count}")
    return found


@dataclass(frozen=True, slots=True)
class _Pool:
    """The classes, and what each worker takes."""

    base: list[list[int]]
    counts: list[int]  # requests that each worker takes
    work: list[tuple[int, ...]]  # of each class
    copies: list[int]
    exactly: list[bool]  # whether all requests of the class have to be admitted

    @staticmethod
    def of(p: Numbers) -> _Pool:
        counts = [min(c, len(p.work)) for c in p.slots]
        classes: dict[tuple[int, tuple[int, ...], bool], int] = {}
        for row, must in zip(p.work, p.must, strict=True):
            key = (sum(row), tuple(row), bool(must))
            classes[key] = classes.get(key, 0) + 1
        empty = sum(counts) - len(p.work)
        if empty > 0:
            nothing = (0, (0,) * len(p.base[0]), False)
            classes[nothing] = classes.get(nothing, 0) + empty
        order = sorted(classes)
        return _Pool(
            base=p.base,
            counts=counts,
            work=[row for _, row, _ in order],
            copies=[classes[key] for key in order],
            exactly=[must or empty >= 0 for _, _, must in order],
        )


@dataclass(frozen=True, slots=True)
class _Prices:
    """Prices of one record, in 1/scale: of each worker {step: price}, of each class."""

    loads: list[dict[int, int]]
    classes: list[int]

    @staticmethod
    def of(record: Any, priced: _Priced) -> _Prices:
        """Read prices, which have to keep the rules above."""
        pool, K = priced.pool, len(priced.pool.work)
        given = fields(record, "it", ("loads", "classes"))
        loads = read_load_prices(given["loads"], pool.base, priced.scale)
        classes = [0] * K
        for pair in items(given["classes"], "classes"):
            one = entries(pair, 2)
            k = whole(one[0], "a class", least=0, below=K)
            classes[k] += whole(one[1], "a price of a class")
        for k, price in enumerate(classes):
            if price > 0 and not pool.exactly[k]:
                raise CertificateError(f"class {k} may wait, so that its price has to be 0 or less, not {price}")
        return _Prices(loads, classes)


class _Priced:
    """The sum above for given prices, and the classes that are struck."""

    def __init__(self, pool: _Pool, scale: int) -> None:
        self.pool, self.scale = pool, scale
        self.totals = [sum(row) for row in pool.work]
        self.base = sum(map(sum, pool.base))
        self.allowed = [[True] * len(pool.work) for _ in pool.base]

    def bound(self, prices: _Prices, node: dict[int, Limits]) -> int | None:
        """Return a cost that nothing in the node is below; None where a worker has no set at all."""
        spend(50 + len(self.pool.counts) * len(self.pool.work) // 5)
        value = self._fixed(prices)
        for g, count in enumerate(self.pool.counts):
            if count:
                least = self._cheapest(g, self.values(prices, g), node.get(g, {}))
                if least is None:
                    return None
                value += least
        return -(-value // self.scale)

    def strike(self, prices: _Prices, bound: int) -> None:
        """Strike what these prices show to be too dear for an assignment below the bound."""
        value = self._fixed(prices)
        choices: dict[int, tuple[list[int], int]] = {}
        for g, count in enumerate(self.pool.counts):
            if count == 0:
                continue
            values = self.values(prices, g)
            open_ones = sorted(
                value
                for value, n, ok in zip(values, self.pool.copies, self.allowed[g], strict=True)
                if ok
                for _ in range(min(n, count))
            )[:count]
            if len(open_ones) < count:
                return
            value += sum(open_ones)
            choices[g] = values, open_ones[-1]
        for g, (values, dearest) in choices.items():
            for k, one in enumerate(values):
                if one > dearest and -(-(value + one - dearest) // self.scale) >= bound:
                    self.allowed[g][k] = False

    def values(self, prices: _Prices, g: int) -> list[int]:
        """Return what a request of each class costs worker g."""
        paid = prices.loads[g].items()
        return [
            sum(price * row[h] for h, price in paid) - self.scale * total - mu
            for row, total, mu in zip(self.pool.work, self.totals, prices.classes, strict=True)
        ]

    def _fixed(self, prices: _Prices) -> int:
        paid = sum(n * mu for n, mu in zip(self.pool.copies, prices.classes, strict=True))
        return priced_loads(prices.loads, self.pool.base) - self.scale * self.base + paid

    def _cheapest(self, g: int, values: list[int], limits: Limits) -> int | None:
        """Return the least sum of values of a set that worker g may take."""
        count = self.pool.counts[g]
        table: list[int | None] = [0] + [None] * count  # of so many requests of the classes seen
        for k in range(len(values) - 1, -1, -1):
            if self.allowed[g][k]:
                following = list(table)
                for taken, before in enumerate(table):
                    if before is None:
                        continue
                    for more in range(1, min(self.pool.copies[k], count - taken) + 1):
                        total = before + more * values[k]
                        now = following[taken + more]
                        if now is None or total < now:
                            following[taken + more] = total
                table = following
            if k in limits:
                least, most = limits[k]
                table = [value if least <= taken <= most else None for taken, value in enumerate(table)]
        return table[count]


def _halves(record: Any, node: dict[int, Limits], pool: _Pool) -> list[dict[int, Limits]]:
    """Return the two nodes of a branch."""
    branch = fields(record, "it", ("worker", "class", "at_most"))
    g = whole(branch["worker"], "worker", least=0, below=len(pool.base))
    j = whole(branch["class"], "class", least=0, below=len(pool.work))
    a = whole(branch["at_most"], "at_most", least=0)
    least, most = node.get(g, {}).get(j, (0, pool.counts[g]))

    def within(low: int, high: int) -> dict[int, Limits]:
        return {**node, g: {**node.get(g, {}), j: (low, high)}}

    return [within(least, min(most, a)), within(max(least, a + 1), most)]
