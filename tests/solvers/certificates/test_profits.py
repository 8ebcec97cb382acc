"""Best profits and patterns, in every mode of the table, against enumeration."""

import random
from itertools import combinations

import pytest

from lbopt.solvers.certificates import choice as choices
from lbopt.solvers.certificates import profits
from lbopt.solvers.certificates.choice import Choice, TooLongError, Way
from lbopt.solvers.certificates.profits import BestProfits, SizeClasses, extreme_total

TINY = {"i": 0, "O": 0}
MODES = {
    "exact": {},
    "coarse": {"_TABLE_WORK": TINY, "_COARSE_WORK": {"i": 20, "O": 20}},
    "one coarse cell": {"_TABLE_WORK": TINY, "_COARSE_WORK": {"i": 1, "O": 1}},
    "no table": {"_ROW_OPERATIONS": 0},
}


SEEDS = {1: 200, 2**57: 60}  # the second is beyond int64 with most scales


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    for name, value in MODES[request.param].items():
        monkeypatch.setattr(profits, name, value)
    return request.param


def random_classes(rng, factor=1):
    sizes = sorted(rng.choices(range(rng.choice([3, 12, 40])), k=rng.randint(1, 9)))
    keys = sorted({(factor * size + rng.randint(0, factor > 1), rng.random() < 0.3) for size in sizes})
    counts = tuple(rng.choice([1, 1, 2, 3]) for _ in keys)
    return SizeClasses(tuple(size for size, _ in keys), tuple(must for _, must in keys), counts)


def every_pattern(classes, count, room, value):
    """Enumerate (profit, pattern), most profitable first."""
    copies = [k for k, n in enumerate(classes.counts) for _ in range(n)][::-1]
    found = {one for one in combinations(copies, count) if sum(classes.sizes[k] for k in one) <= room}
    return sorted(((sum(value[k] for k in one), one) for one in found), key=lambda pair: (-pair[0], pair[1]))


def random_table(rng, factor=1):
    classes = random_classes(rng, factor)
    scale = rng.choice([1, 3, 64])
    prices = [rng.randint(-5 if must else 0, 30) * factor * rng.choice([0, 1]) for must in classes.forced]
    most = rng.randint(1, min(5, sum(classes.counts)))
    reach = {
        c: rng.randint(c * classes.sizes[0], c * classes.sizes[-1])
        for c in range(1, most + 1)
        if c == most or rng.random() < 0.5
    }
    return classes, prices, scale, reach


def choice_of(table, count, room):
    classes = table.classes
    triples = enumerate(zip(table.own, classes.sizes, classes.counts, strict=True))
    ways = [Way(profit, (size,), min(count, n), k) for k, (profit, size, n) in triples if size <= room]
    return Choice(0, count, (room,), ways)


@pytest.mark.parametrize("factor", [1, 2**57])
def test_best_profits(mode, factor, monkeypatch):
    """Exact where it says so, never below the truth elsewhere; also beyond 64 bits."""
    exact = loose = large = 0
    for seed in range(SEEDS[factor]):
        monkeypatch.setattr(choices, "_FEW", (3 * (seed % 2), 24))
        rng = random.Random(seed)
        classes, prices, scale, reach = random_table(rng, factor)
        table = BestProfits(classes, prices, scale, reach)
        large += table.kind.kind == "O"
        assert table.exact or factor > 1 or mode != "exact"
        for count, top in reach.items():
            for room in {0, top, rng.randint(0, top), rng.randint(0, top)}:
                truth = every_pattern(classes, count, room, table.own)
                room = table.clipped(count, room)
                best = table.upper(count, [room])[0]
                if not truth:
                    assert not table.exact or best < -2 * (table.magnitude + 1)
                    continue
                assert best >= truth[0][0]
                exact += table.exact
                loose += not table.exact
                assert not table.exact or best == truth[0][0]
                choice = choice_of(table, count, room)
                assert choice.best(None, [10**6]) == truth[0][0] <= choice.rough
                assert choice.best(truth[0][0] + 1, [10**6]) == truth[0][0] + 1
    assert exact > 200 or factor > 1 or mode != "exact"
    assert loose > 20 or (factor == 1 and mode == "exact")
    assert (large > 20) == (factor > 1)


@pytest.mark.parametrize("factor", [1, 2**57])
def test_all_sets_of_enough_profit(factor):
    listed = 0
    for seed in range(SEEDS[factor]):
        rng = random.Random(seed)
        classes, prices, scale, reach = random_table(rng, factor)
        table = BestProfits(classes, prices, scale, reach)
        count = max(reach)
        room = table.clipped(count, reach[count])
        truth = every_pattern(classes, count, room, table.own)
        least = rng.choice(truth)[0] if truth and rng.random() < 0.3 else None
        truth = [pair for pair in truth if least is None or pair[0] >= least]
        found = list(choice_of(table, count, room).sets(least, [10**6], rising=False))
        assert sorted(found, key=lambda pair: (-pair[0], pair[1])) == truth
        listed += len(found)
    assert listed > 5 * SEEDS[factor]


def test_steps_end():
    classes = SizeClasses(tuple(range(40)), (False,) * 40, (1,) * 40)
    choice = choice_of(BestProfits(classes, [0] * 40, 1, {3: 60}), 3, 60)
    with pytest.raises(TooLongError, match="too long to be checked"):
        list(choice.sets(None, [1000], rising=False))


def test_extreme_totals():
    for seed in range(50):
        rng = random.Random(seed)
        values = [(rng.randint(-9, 9), rng.randint(0, 3)) for _ in range(6)]
        every = sorted(value for value, n in values for _ in range(n))
        for count in range(len(every) + 1):
            assert extreme_total(values, count, largest=False) == sum(every[:count])
            assert extreme_total(values, count, largest=True) == sum(every[len(every) - count :])


def test_the_work_of_a_table_counts_every_copy_and_row(monkeypatch):
    """Ten copies of sizes 5 and 7, three at a time in a room of 21: what is computed, entry by entry."""
    classes = SizeClasses((5, 7), (False, False), (10, 10))
    rows = sum(min(room, c * 7) + 1 for c, room in enumerate([21, 21, 21, 21]))
    entries = sum(min(21, c * size) - size + 1 for size in (5, 7) for c in (1, 2, 3)) * 3  # three copies can matter
    for limit, exact in ((rows + entries, True), (rows + entries - 1, False)):
        monkeypatch.setattr(profits, "_TABLE_WORK", {"i": limit, "O": limit})
        assert BestProfits(classes, [0, 0], 1, {3: 21}).exact == exact
