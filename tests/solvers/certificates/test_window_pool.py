"""The pool of a window certificate: what it reads from a problem, and totals against enumeration."""

import random
from itertools import combinations

import pytest

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates import window_box
from lbopt.solvers.certificates.window_box import WindowPool
from lbopt.solvers.recount import Numbers


def test_a_problem_by_hand():
    """Requests grow by 2 and 5 tokens; the loads hold what all slots grow by."""
    numbers = Numbers([[10, 11, 12], [4, 0, 0]], [2, 0], [[3, 5, 8], [7, 9, 12], [3, 5, 8]], [True, False, False])
    pool = WindowPool.of(numbers)
    assert (pool.sizes, pool.counts, pool.forced, pool.slots) == ([3, 7], [2, 1], [1, 0], [2, 0])
    assert pool.loads == [[10, 11 + 2 * 2, 12 + 2 * 5], [4, 0, 0]]
    assert pool.open_workers == [0]


def test_empty_requests_fill_the_slots_of_a_short_pool():
    """Nothing grows, so that a slot may hold a request of 0 tokens; all requests are admitted, forced or not."""
    pool = WindowPool.of(Numbers([[1, 0], [2, 2]], [2, 2], [[5, 5], [0, 0]], [True, False]))
    assert (pool.sizes, pool.counts, pool.forced) == ([0, 5], [3, 1], [0, 0])
    full = WindowPool.of(Numbers([[1, 0]], [2], [[5, 5], [1, 1]], [True, False]))
    assert (full.sizes, full.counts, full.forced) == ([1, 5], [1, 1], [0, 0])
    assert WindowPool.of(Numbers([[1, 0]], [1], [], [])).counts == [1]


def test_other_windows_are_refused():
    with pytest.raises(CertificateError, match="requests 0 and 1 follow different profiles"):
        WindowPool.of(Numbers([[0, 0]], [1], [[3, 4], [3, 5]], [False, False]))
    with pytest.raises(CertificateError, match="2 slots stay empty"):
        WindowPool.of(Numbers([[0, 0]], [3], [[3, 4]], [False]))


def pools(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        drawn = sorted(rng.choices(range(rng.choice([2, 9, 60])), k=rng.randint(3, 8)))
        sizes = sorted(set(drawn))
        slots = [rng.randint(0, 3), rng.randint(1, 3)]
        yield WindowPool(sizes, [drawn.count(s) for s in sizes], [0] * len(sizes), slots, [[0], [0]]), drawn, rng


def test_totals_of_the_smallest_and_the_largest():
    for pool, drawn, _ in pools("ends", 100):
        counts = range(min(max(pool.slots), len(drawn)) + 1)
        assert pool.smallest == [sum(drawn[:c]) for c in counts]
        assert pool.largest == [sum(drawn[len(drawn) - c :]) for c in counts]


#: What is known: totals as bits, as lists in which a class may be used again, nothing.
KNOWN = {"bits": {}, "lists": {"_BITS": 0}, "nothing": {"_BITS": 0, "_LISTED": 0}}


@pytest.mark.parametrize("known", KNOWN)
def test_the_next_total_of_so_many_requests(known, monkeypatch):
    for name, value in KNOWN[known].items():
        monkeypatch.setattr(window_box, name, value)
    for pool, drawn, rng in pools("beside", 150):
        for count in range(1, max(pool.slots) + 1):
            if known == "bits":
                totals = {sum(one) for one in combinations(drawn, count)}
            else:
                totals = {0}
                for _ in range(count):
                    totals = {total + size for total in totals for size in pool.sizes}
            for t in (rng.randint(-3, 200), rng.choice(sorted(totals)), rng.choice(sorted(totals)) + 1):
                for up in (True, False):
                    beside = [x for x in totals if (x >= t if up else x <= t)]
                    expected = None if not beside else min(beside) if up else max(beside)
                    assert pool.total_beside(count, t, up) == (t if known == "nothing" else expected)
