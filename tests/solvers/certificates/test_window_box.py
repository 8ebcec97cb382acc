"""Boxes of window certificates against every assignment that they hold, and their rules against plain definitions."""

import random
from itertools import combinations, combinations_with_replacement

import pytest

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates import window_box
from lbopt.solvers.certificates.window_box import WindowBox, WindowPool


def random_pool(rng):
    """Up to three open workers and a closed one, a few more requests than slots; some of them forced."""
    slots = list(rng.choice([(3,), (2, 1), (3, 1), (3, 2), (2, 2), (1, 3), (1, 1, 1), (2, 1, 1), (3, 1, 1)]))
    slots.insert(rng.randint(0, len(slots)), 0)
    top = rng.choice([3, 12, 40])
    drawn = sorted(rng.choices(range(top + 1), k=sum(slots) + rng.randint(0, 1)))
    sizes = sorted(set(drawn))
    counts = [drawn.count(size) for size in sizes]
    is_open = len(drawn) > sum(slots) and rng.random() < 0.6
    forced = [rng.randint(0, n) if is_open else 0 for n in counts]
    while sum(forced) > sum(slots):
        forced[max(range(len(forced)), key=forced.__getitem__)] -= 1
    return WindowPool(sizes, counts, forced, slots, [[0] for _ in slots])


def assignments(pool):
    """Every way to fill the open workers: classes by worker, the largest first."""

    def fill(workers, left):
        if not workers:
            used = [n - rest for n, rest in zip(pool.counts, left, strict=True)]
            if all(u >= forced for u, forced in zip(used, pool.forced, strict=True)):
                yield {}
            return
        g, *others = workers
        for one in combinations_with_replacement(range(len(pool.sizes) - 1, -1, -1), pool.slots[g]):
            rest = [n - one.count(k) for k, n in enumerate(left)]
            if min(rest) >= 0:
                yield from ({g: one, **more} for more in fill(others, rest))

    return list(fill(pool.open_workers, pool.counts))


def total(pool, classes):
    return sum(pool.sizes[k] for k in classes)


def is_in(box, one):
    """Whether an assignment keeps the ranges of totals and of classes of a box."""
    return all(
        box.low[g] <= total(box.pool, own) <= box.high[g]
        and all(first <= k <= last for k, (first, last) in zip(own, box.classes[g], strict=False))
        for g, own in one.items()
    )


def random_box(rng, pool, every):
    """Narrow the box of everything around one of its assignments, or anywhere."""
    box, held = WindowBox.root(pool, rng.randint(1, 3)), list(every)
    for _ in range(rng.randint(0, 4)):
        g = rng.choice(pool.open_workers)
        around = rng.choice(every)[g] if every and rng.random() < 0.8 else rng.choices(range(len(pool.sizes)), k=1)
        if rng.random() < 0.5:
            low, high = total(pool, around) - rng.randint(0, 6), total(pool, around) + rng.randint(0, 6)
            box = box.within_totals(g, low, high)
            held = [one for one in held if low <= total(pool, one[g]) <= high]
        else:
            q = rng.randrange(len(box.classes[g]))
            size = pool.sizes[around[q] if q < len(around) else around[0]]
            least, most = size - rng.choice([0, 0, 5]), size + rng.choice([0, 0, 5])
            box = box.within_sizes(g, q, least, most)
            held = [one for one in held if least <= pool.sizes[one[g][q]] <= most]
    assert all(is_in(box, one) for one in held)
    return box, held


def boxes(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        pool = random_pool(rng)
        every = assignments(pool)
        yield pool, *random_box(rng, pool, every), rng


def tight_boxes(seed, count):
    return ((pool, box, held, rng) for pool, box, held, rng in boxes(seed, count) if box.tighten())


def test_no_rule_loses_an_assignment_of_the_box():
    """What is in the box stays in it; a box that is called empty holds nothing; limits of totals hold."""
    empty = kept = 0
    for pool, box, held, _ in boxes("sound", 900):
        if not box.tighten():
            assert held == []
            empty += 1
            continue
        kept += bool(held)
        assert all(is_in(box, one) for one in held)
        for number in range(1, len(pool.open_workers) + 1):
            for workers in combinations(pool.open_workers, number):
                most, least = box.together(list(workers), True), box.together(list(workers), False)
                totals = [sum(total(pool, one[g]) for g in workers) for one in held]
                assert not totals or least <= min(totals) <= max(totals) <= most
    assert empty > 80
    assert kept > 400


def test_a_box_does_not_shrink_with_its_sibling():
    """Children share what the branch does not change: the ranges of one are not those that follow for the other."""
    for pool, box, _, _ in boxes("siblings", 200):
        g = pool.open_workers[0]
        first, second = (box.within_totals(g, *ends) for ends in ((0, box.high[g] // 2), (box.high[g] // 2, 10**6)))
        before = {worker: list(own) for worker, own in box.classes.items()}
        first.tighten()
        assert box.classes == second.classes == before


def test_a_box_of_one_assignment_is_settled():
    """With one class left for every position and one total for every worker, nothing is unknown."""
    for pool, box, held, rng in boxes("settled", 200):
        if not held:
            continue
        one = rng.choice(held)
        box = WindowBox.root(pool, 3)
        for g, own in one.items():
            box = box.within_totals(g, total(pool, own), total(pool, own))
            for q, k in enumerate(own):
                box = box.within_sizes(g, q, pool.sizes[k], pool.sizes[k])
        assert box.tighten()
        assert {g: tuple(own) for g, own in box.known.items()} == one
        assert box.avail == [n - sum(own.count(k) for own in one.values()) for k, n in enumerate(pool.counts)]
        assert all(box.missing(g) == 0 and box.held(g) == total(pool, one[g]) for g in one)


def test_tightened_boxes_follow_the_rules_of_the_docstring():
    """The next request: at least 1/r of what is missing, at most what the smallest others leave, and available."""
    seen = 0
    for pool, box, _, _ in tight_boxes("rules", 700):
        known = [k for own in box.known.values() for k in own]
        assert box.avail == [n - known.count(k) for k, n in enumerate(pool.counts)]
        for g in pool.open_workers:
            own, r, (first, last) = box.known[g], box.missing(g), box.next[g]
            assert own == sorted(own, reverse=True)
            assert r == pool.slots[g] - len(own)
            if r == 0:
                assert box.low[g] == box.high[g] == box.held(g)
                continue
            seen += 1
            assert box.avail[first] > 0 < box.avail[last]
            assert first <= last <= (own[-1] if own else last)
            assert box.held(g) + r * pool.sizes[first] >= box.low[g]
            assert box.held(g) + pool.sizes[last] + pool.smallest[r - 1] <= box.high[g]
            if len(own) < len(box.classes[g]):
                assert box.classes[g][len(own)] == (first, last) != (first, first)
    assert seen > 300


def beside(totals, t, up):
    """The total next to t on its side."""
    return min((x for x in totals if x >= t), default=None) if up else max((x for x in totals if x <= t), default=None)


def test_totals_of_one_or_two_requests_are_those_of_what_is_left():
    """And of more those of the full pool, between r smallest ones with the next class and r of the largest class."""
    asked = {1: 0, 2: 0, 3: 0}
    for pool, box, _, rng in tight_boxes("totals", 700):
        for g in pool.open_workers:
            r, held, (first, last) = box.missing(g), box.held(g), box.next[g]
            for up in (True, False):
                t = rng.randint(max(0, box.low[g] - 3), box.high[g] + 3)
                if r == 0:
                    assert box.total_beside(g, t, up) == beside([held], t, up)
                    continue
                left = box.avail if r <= 2 else pool.counts
                sets = (
                    one
                    for one in combinations_with_replacement(range(len(pool.sizes) - 1, -1, -1), r)
                    if all(one.count(k) <= left[k] for k in one) and (r > 2 or first <= one[0] <= last)
                )
                totals = {total(pool, one) for one in sets}
                if r > 2:
                    least = max(pool.smallest[r], pool.sizes[first] + pool.smallest[r - 1])
                    totals = {x for x in totals if least <= x <= r * pool.sizes[last]}
                assert box.total_beside(g, t, up) == beside({held + x for x in totals}, t, up)
                asked[r] += 1
    assert min(asked.values()) > 100


def matched(pool, box, places, largest):
    """The largest (smallest) total of available requests on places, of which each has a range of classes."""
    if not places:
        return 0
    best = None

    def go(at, left, value):
        nonlocal best
        if at == len(places):
            best = value if best is None else max(best, value) if largest else min(best, value)
            return
        first, last = places[at]
        for k in range(first, last + 1):
            if left[k]:
                go(at + 1, [n - (j == k) for j, n in enumerate(left)], value + pool.sizes[k])

    go(0, box.avail, 0)
    return best


def test_what_workers_hold_together_is_the_best_filling_of_their_places():
    """Without forced requests: each unknown one at most of the last class, at least what the others leave missing."""
    checked = none = 0
    for pool, box, _, rng in tight_boxes("together", 900):
        if any(pool.forced):
            continue
        workers = rng.sample(pool.open_workers, rng.randint(1, len(pool.open_workers)))
        if sum(box.missing(g) for g in workers) > 5:
            continue
        highest, lowest = [], []
        for g in workers:
            r, (first, last) = box.missing(g), box.next[g]
            highest += [(0, last)] * r
            if r:
                rest = box.low[g] - box.held(g) - (r - 1) * pool.sizes[last]
                others = next((k for k, size in enumerate(pool.sizes) if size >= rest), len(pool.sizes))
                lowest += [(first, len(pool.sizes) - 1)] + [(others, len(pool.sizes) - 1)] * (r - 1)
        held = sum(box.held(g) for g in workers)
        for places, at_most in ((highest, True), (lowest, False)):
            best = matched(pool, box, places, at_most)
            assert box.together(workers, at_most) == (None if best is None else held + best)
            none += best is None
        checked += bool(highest)
    assert checked > 150
    assert none > 0


def with_forced(pool, box, workers, at_most):
    """By the definition: forced requests without a place elsewhere, and beside them the best of what is left."""
    owed = []
    for k, forced in enumerate(pool.forced):
        owed += [k] * max(0, forced - (pool.counts[k] - box.avail[k]))
    needed = len(owed)
    for g in pool.open_workers:
        r, (first, last) = box.missing(g), box.next[g]
        if g not in workers and r and owed and owed[0] <= last:
            needed -= r if any(first <= k <= last for k in owed) else r - 1
    needed = max(0, needed)
    free = sum(box.missing(g) for g in workers) - needed
    if free < 0:
        return None
    left = list(box.avail)
    chosen = owed[len(owed) - needed :] if at_most else owed[:needed]
    for k in chosen:
        left[k] -= 1
    others = [k for k, n in enumerate(left) for _ in range(n)]
    chosen = [*chosen, *(others[max(0, len(others) - free) :] if at_most else others[:free])]
    return sum(box.held(g) for g in workers) + sum(pool.sizes[k] for k in chosen)


def test_forced_requests_without_a_place_elsewhere_count():
    """The limit is the sharper one of that by places and that by forced requests."""
    sharper = none = 0
    for pool, box, _, rng in tight_boxes("forced", 1200):
        if not any(pool.forced):
            continue
        workers = rng.sample(pool.open_workers, rng.randint(1, len(pool.open_workers)))
        free = WindowPool(pool.sizes, pool.counts, [0] * len(pool.forced), pool.slots, pool.loads)
        loose = WindowBox(free, box.low, box.high, box.classes, box.avail, box.known, box.next)
        for at_most in (True, False):
            by_places, by_forced = loose.together(workers, at_most), with_forced(pool, box, workers, at_most)
            found = box.together(workers, at_most)
            if by_places is None or by_forced is None:
                assert found is None
                none += by_places is not None
                continue
            assert found == (min if at_most else max)(by_places, by_forced)
            sharper += found != by_places
    assert sharper > 50
    assert none > 0


@pytest.mark.parametrize("at_most", [True, False])
def test_forced_requests_by_hand(at_most):
    """Sizes 1, 4, 9, 20; two of 9 must go; the other worker takes one request of at most 4, so both go here."""
    pool = WindowPool([1, 4, 9, 20], [2, 2, 2, 1], [0, 0, 2, 0], [3, 1], [[0], [0]])
    box = WindowBox.root(pool, 3).within_sizes(1, 0, 0, 4)
    assert box.tighten()
    assert box.together([0], at_most) == (9 + 9 + 20 if at_most else 9 + 9 + 1)


def settled(pool, box, rng):
    """The box with one total for every worker, tightened; None where that is empty."""
    for g in pool.open_workers:
        t = rng.randint(box.low[g], box.high[g])
        box = box.within_totals(g, t, t)
    return box if box.tighten() else None


def test_sets_are_found_where_an_assignment_has_all_totals():
    """By trying every set; the patience is counted over all of them together."""
    there = missing = 0
    for pool, box, held, rng in tight_boxes("sets", 900):
        box = settled(pool, box, rng)
        if box is not None:
            found = window_box.has_sets(box)
            assert found or not any(is_in(box, one) for one in held)
            assert found == any(
                all(total(pool, own) == box.low[g] for g, own in one.items())
                and all(tuple(box.known[g]) == own[: len(box.known[g])] for g, own in one.items())
                and all(own[len(box.known[g])] <= box.next[g][1] for g, own in one.items() if box.missing(g))
                for one in assignments(pool)
            )
            there += found
            missing += not found
    assert there > 80
    assert missing > 10


def test_sets_keep_to_the_classes_of_the_next_request():
    """Two requests of a total of 13: 9 and 4, or 12 and 1; none of them may be larger than 9."""
    for sizes, there in (([1, 4, 9, 12], True), ([1, 5, 9, 12], False)):
        pool = WindowPool(sizes, [1] * 4, [0] * 4, [2], [[0]])
        box = WindowBox(pool, {0: 13}, {0: 13}, {0: [(0, 2)]}, [1] * 4, {0: []}, {0: (0, 2)})
        assert window_box.has_sets(box) is there


def test_an_open_total_or_a_long_search_is_refused(monkeypatch):
    pool = WindowPool([1, 4, 9, 20], [2, 2, 2, 2], [0] * 4, [3, 3], [[0], [0]])
    box = WindowBox.root(pool, 3)
    assert box.tighten()
    with pytest.raises(CertificateError, match="worker 0 may still have totals from 6 on"):
        window_box.has_sets(box)
    pool = WindowPool(list(range(1, 9)), [1] * 8, [0] * 8, [4, 4], [[0], [0]])
    box = WindowBox.root(pool, 3).within_totals(0, 18, 18).within_totals(1, 18, 18)
    assert box.tighten()
    assert window_box.has_sets(box)
    monkeypatch.setattr(window_box, "_PATIENCE", 3)
    with pytest.raises(CertificateError, match="too long"):
        window_box.has_sets(box)
    monkeypatch.setattr(window_box, "_DEEPEST", 5)
    with pytest.raises(CertificateError, match="more than 5 unknown requests"):
        window_box.has_sets(box)
