"""Check a certificate of the kind "window-boxes": a tree of boxes, each leaf of which is empty or too dear.

For windows that every new request outlives (see `window_box.py`): with P[g][h] the load of worker g without sizes and
S_g the total size it receives, M_h = max_g (P[g][h] + S_g), and T steps in the window,

    cost = G sum_h M_h - T sum_g S_g - sum_gh P[g][h].

Take any prices lambda[g][h] >= 0 that add up to G at every h, and prices nu_c >= 0 of cuts, each of which says that
some workers hold together at most R_c (or at least R_c). Since M_h >= P[g][h] + S_g,

    cost >= sum_gh lambda[g][h] P[g][h] - sum_gh P[g][h] - sum_c nu_c R_c - sum_g d_g S_g,
    d_g = T - sum_h lambda[g][h] - sum of nu_c over the cuts that name g

(a cut "at least" counts with the other sign), and d_g S_g is at most its value at one side of the box of worker g. All
in integers: prices are given in 1/scale. The limits R_c and the sides are what the checker itself derives from the
branches above a leaf (`window_box.py`); nothing in the file is believed.

    "scale": S
    "cuts": [{"workers": [g, ...], "at_most": true or false}, ...]
    "tree": the records in preorder, so that depth costs no nesting; a record is one of
        {"worker": g, "totals": [[a, b], ...]}                   a branch: S_g lies in one of these ranges
        {"worker": g, "position": q, "sizes": [[a, b], ...]}     a branch: so does the size of its q-th largest request
                                                                 (q = 0 is the largest)
        {"prices": [[g, h, lambda], ...], "cuts": [[c, nu], ...]}   a leaf: by these prices nothing is below the bound
        {"contradiction": [[c, nu], ...]}   a leaf: by the same sum without any lambda and T, nothing is in the box
        {"empty": true}                     a leaf: the box is empty by the rules of `window_box.py`
        {"sets": true}                      a leaf: every total is settled, and no disjoint sets have them all

A branch has one subtree for each range, in this order, and the ranges have to cover what the box leaves open.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates.format import fields, items, refuse_many_slots, shown, whole
from lbopt.solvers.certificates.tree import walk
from lbopt.solvers.certificates.window_box import WindowBox, WindowPool, has_sets
from lbopt.solvers.certificates.window_prices import entries, priced_loads, read_load_prices
from lbopt.solvers.recount import Numbers

Cut = tuple[list[int], bool]

#: Requests of a worker whose classes a box keeps, at least; more where a branch names more.
_POSITIONS = 3


def check_window(p: Numbers, bound: int, body: dict[str, Any]) -> None:
    """Return if the evidence proves that no assignment costs less than `bound`.

    Raises
    ------
    CertificateError
        Naming the first record, and the numbers, for which it does not.
    """
    fields(body, "the certificate", ("scale", "cuts", "tree"))
    scale = whole(body["scale"], "scale", least=1)
    if sum(p.slots) == 0:
        raise CertificateError("no worker has a free slot, and this kind speaks of what they receive")
    refuse_many_slots(p.slots)
    pool = WindowPool.of(p)
    cuts = [_cut(value, f"cut {i}", pool) for i, value in enumerate(items(body["cuts"], "cuts"))]
    tree = items(body["tree"], "tree")
    if bound <= 0:
        return
    positions = _POSITIONS
    for record in tree:
        if type(record) is dict and type(record.get("position")) is int:
            positions = max(positions, min(record["position"], max(p.slots)) + 1)
    walk(tree, partial(_children, _Leaves(pool, scale, cuts, bound)), WindowBox.root(pool, positions))


def _children(leaves: _Leaves, box: WindowBox, record: Any) -> list[WindowBox]:
    """Check one record and return the boxes of the records below it."""
    empty = not box.tighten()
    if type(record) is dict and "totals" in record:
        branch = fields(record, "it", ("worker", "totals"))
        g, ranges = _worker(branch, box), _ranges(branch["totals"])
        if not empty:
            _cover_totals(box, g, ranges)
        return [box.within_totals(g, a, b) for a, b in ranges]
    if type(record) is dict and "sizes" in record:
        branch = fields(record, "it", ("worker", "position", "sizes"))
        g, ranges = _worker(branch, box), _ranges(branch["sizes"])
        position = whole(branch["position"], "position", least=0, below=len(box.classes[g]))
        if not empty:
            _cover_sizes(box, g, position, ranges)
        return [box.within_sizes(g, position, a, b) for a, b in ranges]
    leaves.check(record, box, empty)
    return []


def _cut(value: Any, what: str, pool: WindowPool) -> Cut:
    cut = fields(value, what, ("workers", "at_most"))
    workers = [whole(g, f"{what}: a worker", least=0, below=len(pool.slots)) for g in items(cut["workers"], what)]
    if len(set(workers)) < len(workers) or any(pool.slots[g] == 0 for g in workers):
        raise CertificateError(f"{what} names a worker twice, or one without free slots")
    if type(cut["at_most"]) is not bool:
        raise CertificateError(f"{what}: at_most is {shown(cut['at_most'])}; expected true or false")
    return workers, cut["at_most"]


def _worker(branch: dict[str, Any], box: WindowBox) -> int:
    g = whole(branch["worker"], "worker", least=0)
    if g not in box.low:
        raise CertificateError(f"worker {g} has no free slots here")
    return g


def _ranges(value: Any) -> list[tuple[int, int]]:
    ranges = []
    for pair in items(value, "the ranges"):
        ends = items(pair, "a range")
        if len(ends) != 2:
            raise CertificateError(f"a range has {len(ends)} entries; expected [least, most]")
        ranges.append((whole(ends[0], "an end of a range"), whole(ends[1], "an end of a range")))
    return ranges


def _cover_totals(box: WindowBox, g: int, ranges: list[tuple[int, int]]) -> None:
    total = box.total_beside(g, box.low[g], True)
    for a, b in sorted(ranges):
        if total is None or total > box.high[g] or total < a:
            break
        if total <= b:
            total = box.total_beside(g, b + 1, True)
    if total is not None and total <= box.high[g]:
        raise CertificateError(f"worker {g} may have the total {total}, which is in none of the ranges")


def _cover_sizes(box: WindowBox, g: int, position: int, ranges: list[tuple[int, int]]) -> None:
    first, last = box.classes[g][position]
    for k in range(first, last + 1):
        size = box.pool.sizes[k]
        if not any(a <= size <= b for a, b in ranges):
            raise CertificateError(f"request {position} of worker {g} may have the size {size}, which no range holds")


class _Leaves:
    """The checks of leaves; the sum of all loads is the same for all of them."""

    def __init__(self, pool: WindowPool, scale: int, cuts: list[Cut], bound: int) -> None:
        self.pool, self.scale, self.cuts, self.bound = pool, scale, cuts, bound
        self.loads = sum(map(sum, pool.loads))

    def check(self, record: Any, box: WindowBox, empty: bool) -> None:
        """Return if nothing in the box is cheaper than the bound."""
        if type(record) is dict and "empty" in record:
            _demand_true(record, "empty")
            if not empty:
                raise CertificateError("its box is not empty by the rules that need no prices")
            return
        if type(record) is dict and "sets" in record:
            _demand_true(record, "sets")
            if not empty and has_sets(box):
                raise CertificateError("there are sets with all its totals")
            return
        if type(record) is dict and "contradiction" in record:
            prices: list[Any] = []
            paid = items(fields(record, "it", ("contradiction",))["contradiction"], "contradiction")
        else:
            leaf = fields(record, "it", ("prices", "cuts"))
            prices, paid = items(leaf["prices"], "prices"), items(leaf["cuts"], "cuts")
        gains, value = self._prices(prices, box, contradiction="contradiction" in record)
        if empty:
            return
        for pair in paid:
            c, price = (whole(number, "a price of a cut", least=0) for number in entries(pair, 2))
            if c >= len(self.cuts):
                raise CertificateError(f"it names cut {c}, but there are only {len(self.cuts)}")
            workers, at_most = self.cuts[c]
            limit = box.together(workers, at_most)
            if limit is None:
                return  # the pool cannot fill these workers
            sign = 1 if at_most else -1
            value -= sign * price * limit
            for g in workers:
                gains[g] -= sign * price
        value -= sum(max(gain * box.low[g], gain * box.high[g]) for g, gain in gains.items())
        if "contradiction" in record:
            if value <= 0:
                raise CertificateError(f"its prices are no contradiction: they add up to {value}, which is not above 0")
            return
        proved = -(-value // self.scale) - self.loads
        if proved < self.bound:
            raise CertificateError(f"by its prices nothing costs less than {proved}, but {self.bound} is claimed")

    def _prices(self, prices: list[Any], box: WindowBox, *, contradiction: bool) -> tuple[dict[int, int], int]:
        """Return d_g without cuts, and the sum of lambda P, both times scale."""
        if contradiction:
            return dict.fromkeys(box.low, 0), 0
        loads = self.pool.loads
        paid = read_load_prices(prices, loads, self.scale)
        gains = {g: len(loads[0]) * self.scale - sum(paid[g].values()) for g in box.low}
        return gains, priced_loads(paid, loads)


def _demand_true(record: Any, name: str) -> None:
    if fields(record, "it", (name,))[name] is not True:
        raise CertificateError(f"{name} is {shown(record[name])}; expected true")
