"""Trees of placements, written out to the last request without any search: what they prove is exactly what is true."""

import random
from itertools import combinations

import pytest

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates import profits
from lbopt.solvers.certificates.format import Placement, Refuted
from lbopt.solvers.certificates.priced import TreeCheck
from lbopt.solvers.certificates.profits import SizeClasses
from lbopt.solvers.certificates.tree import Case, Place, walk

#: Prices that cost nothing, and prices under which a forced request that waits refutes a case.
FREE, FORCED = 0, 1


class Little:
    """A few requests and workers: sizes, which are forced, copies, and {worker: (slots, room)}."""

    def __init__(self, rng):
        keys = sorted({(rng.randint(0, 6), rng.random() < 0.3) for _ in range(rng.randint(1, 3))})
        self.classes = SizeClasses(
            tuple(size for size, _ in keys), tuple(must for _, must in keys), tuple(rng.randint(1, 2) for _ in keys)
        )
        names = rng.sample(range(5), rng.randint(1, 2))
        self.workers = {g: (rng.randint(1, 2), rng.randint(0, 12)) for g in names}

    def walk(self, needed, scale=1):
        forced = {k: -1000 for k, must in enumerate(self.classes.forced) if must}
        return TreeCheck(self.classes, scale, ({}, forced), needed), self.workers

    def most(self, left=None, workers=None):
        """The most tokens that can be admitted with every slot filled and nothing forced waiting; None = impossible."""
        left = self.classes.counts if left is None else left
        workers = self.workers if workers is None else workers
        if not workers:
            return None if any(n and must for n, must in zip(left, self.classes.forced, strict=True)) else 0
        g, (slots, room) = next(iter(workers.items()))
        best = None
        for k, size in enumerate(self.classes.sizes):
            if left[k] and size <= room:
                rest = (
                    {**workers, g: (slots - 1, room - size)}
                    if slots > 1
                    else {w: p for w, p in workers.items() if w != g}
                )
                more = self.most((*left[:k], left[k] - 1, *left[k + 1 :]), rest)
                best = best if more is None else max(more + size, -1 if best is None else best)
        return best

    def tree(self, rng, left=None, workers=None):
        """Records in preorder: some class is placed until slots or requests run out."""
        left = self.classes.counts if left is None else left
        workers = self.workers if workers is None else workers
        there = [k for k, n in enumerate(left) if n]
        if not workers or not there:
            is_forced = any(self.classes.forced[k] for k in there)
            return [Refuted(FORCED if is_forced else FREE)]
        k = rng.choice(there)
        order = rng.sample(sorted(workers), len(workers))
        records = [Placement(k, FREE, True, tuple(order))]
        waiting = (*left[:k], 0, *left[k + 1 :])
        records += [Refuted(FREE)] if self.classes.forced[k] else self.tree(rng, waiting, workers)
        for g in order:
            slots, room = workers[g]
            size = self.classes.sizes[k]
            if room < size:
                records += [Refuted(FREE)]  # impossible, so that any record will do
                continue
            rest = {**workers, g: (slots - 1, room - size)}
            if slots == 1:
                del rest[g]
            records += self.tree(rng, (*left[:k], left[k] - 1, *left[k + 1 :]), rest)
        return records


def case_of(classes, workers):
    return Case(classes.counts, {g: Place(slots, (room,)) for g, (slots, room) in workers.items()})


def holds(asked, tree):
    check, workers = asked
    try:
        walk(tree, check.below, case_of(check.classes, workers))
    except CertificateError:
        return False
    return True


def test_whole_trees_prove_what_is_true_and_nothing_else():
    rng = random.Random("placements")
    proved = refused = 0
    for _ in range(250):
        little = Little(rng)
        most, tree = little.most(), little.tree(rng)
        scale = rng.choice([1, 3])
        limit = -1 if most is None else most
        assert holds(little.walk(limit + 1, scale), tree)
        proved += 1
        for needed in range(max(0, limit - 1), limit + 1):
            assert not holds(little.walk(needed, scale), tree)
            refused += 1
    assert proved > 200
    assert refused > 150


def test_a_tree_that_leaves_something_out_proves_nothing_false():
    rng = random.Random("branches")
    for _ in range(150):
        little = Little(rng)
        most, tree = little.most(), little.tree(rng)
        if most is None:
            continue
        at = rng.randrange(len(tree))
        record = tree[at]
        if isinstance(record, Placement):
            tree[at] = (
                record._replace(waits=False) if rng.random() < 0.5 else record._replace(workers=record.workers[1:])
            )
        else:
            del tree[at]
        for needed in range(max(0, most - 2), most + 1):
            assert not holds(little.walk(needed), tree)


def test_a_case_is_refuted_where_all_workers_by_themselves_bring_too_little():
    """At prices of zero the bound is what each worker could bring alone, out of all that is left."""
    rng = random.Random("alone")
    bounds = 0
    for _ in range(400):
        little = Little(rng)
        requests = [size for size, n in zip(little.classes.sizes, little.classes.counts, strict=True) for _ in range(n)]
        little.workers = {g: (rng.randint(1, 3), rng.randint(0, 18)) for g in little.workers}
        alone = [
            max((sum(one) for one in combinations(requests, slots) if sum(one) <= room), default=None)
            for slots, room in little.workers.values()
        ]
        slots = sum(slots for slots, _ in little.workers.values())
        forced = sum(n for n, must in zip(little.classes.counts, little.classes.forced, strict=True) if must)
        if None in alone or not forced <= slots <= len(requests):
            assert holds(little.walk(0), [Refuted(FREE)])
        else:
            bounds += 1
            assert holds(little.walk(sum(alone) + 1), [Refuted(FREE)])
            assert not holds(little.walk(sum(alone)), [Refuted(FREE)])
    assert bounds > 100


def test_a_case_after_a_placement_by_hand():
    case = Case((2, 1), {3: Place(2, (9, 7)), 4: Place(1, (5, 5))}, 10)
    one = Case((2, 0), {3: Place(1, (5, 6)), 4: Place(1, (5, 5))}, 17)
    assert case.with_one(3, 1, (4, 1), 7) == one
    assert case.without(0) == Case((0, 1), case.workers, 10)
    assert case.banning(4, 1) == Case((2, 1), {3: case.workers[3], 4: Place(1, (5, 5), frozenset({1}))}, 10)


def test_without_tables_a_case_has_the_same_to_spare(monkeypatch):
    """The search finds the best profits where tables do not, until less than what is needed is possible."""
    rng = random.Random("spare")
    more = 0
    for _ in range(200):
        little = Little(rng)
        prices = {k: rng.randint(-3 if must else 0, 6) for k, must in enumerate(little.classes.forced)}
        most = little.most()
        check = TreeCheck(little.classes, 2, (prices,), rng.randint(0, 3) if most is None else most)
        case = case_of(little.classes, little.workers)
        exact = check.view(case, 0).spare
        with monkeypatch.context() as without:
            without.setattr(profits, "_ROW_OPERATIONS", 0)
            spare = check.view(case, 0).spare
        assert spare == exact or (spare < 0 and exact < 0)
        more += exact >= 0
    assert more > 50


@pytest.mark.parametrize("waits", [True, False])
def test_what_may_be_left_out_is_what_loses_too_much(waits):
    """One worker of one slot and room 9, requests of 4 and 9 tokens; 9 are needed.

    Waiting costs nothing at prices of zero, so it may not be left out; at a price of 1 for the request of 9 tokens it
    loses 1 and nothing may be lost.
    """
    classes = SizeClasses((4, 9), (False, False), (1, 1))

    def asked(needed):
        return TreeCheck(classes, 1, ({}, {1: 1}), needed), {0: (1, 9)}

    placed = (Placement(1, 1, waits, (0,)), *([Refuted(0)] if waits else []), Refuted(0))
    assert not holds(asked(9), placed)  # it is possible: the worker takes the request of 9
    assert holds(asked(10), placed)
    free = (Placement(1, 0, waits, (0,)), *([Refuted(0)] if waits else []), Refuted(0))
    assert not holds(asked(9), free)
