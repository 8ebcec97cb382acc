"""`has_real_choice` against plain enumeration of all feasible placements."""

import random
from itertools import product

import numpy as np
import pytest
from kernels.rules import many

from lbopt.kernels.simulation.admission import has_real_choice, loads_differ


def outcomes(load, free, sizes):
    """The loads after every placement that admits as many as it can."""
    admitted = min(len(sizes), sum(free))
    found = set()
    for choice in product(range(-1, len(load)), repeat=len(sizes)):
        if sum(g >= 0 for g in choice) != admitted or any(choice.count(g) > free[g] for g in range(len(load))):
            continue
        after = list(load)
        for size, g in zip(sizes, choice, strict=True):
            if g >= 0:
                after[g] += size
        found.add(tuple(after))
    return found


def differ(load, free, sizes):
    """Can two placements lead to different loads? Workers of equal load have no names; a lone one waits for nobody."""
    unnamed = {tuple(sorted(zip(load, after, strict=True))) for after in outcomes(load, free, sizes)}
    return len(load) > 1 and len(unnamed) > 1


def kernel_says(load, free, sizes):
    slots = max(free, default=0)
    running = np.array([slots - f for f in free])
    return bool(has_real_choice(np.array(load), running, slots, np.arange(len(sizes)), np.array(sizes, dtype=np.int64)))


@pytest.mark.parametrize(
    ("load", "free", "sizes", "real"),
    [
        ([3, 5], [1, 1], [], False),  # nobody waits
        ([3, 5], [0, 0], [1, 2], False),  # no slot
        ([3], [2], [4, 7], False),  # a lone worker takes all
        ([3], [1], [4, 7], False),  # or one of them, and waits for nobody
        ([3, 9], [1, 0], [4, 7], True),  # which
        ([3, 9], [1, 0], [4, 4], False),
        ([3, 5], [1, 0], [4], False),  # the other worker is full
        ([3, 5], [1, 1], [4], True),  # where
        ([3, 5], [1, 1], [4, 4], False),  # both slots get the same
        ([3, 5], [1, 1], [4, 7], True),
        ([3, 3], [1, 1], [4, 7], False),  # equal workers, a slot each
        ([3, 3], [1, 1], [4, 7, 4], True),
        ([0, 0], [2, 2], [5], False),
        ([0, 0], [2, 2], [5, 5], True),  # loads 10, 0 or 5, 5: workers that are equal now need not stay equal
        ([0, 0], [2, 2], [5, 5, 1, 1], True),  # 10, 2 or 6, 6
        ([3, 5], [1, 1], [0], False),  # an empty prompt weighs nothing
        ([3, 5], [2, 1], [0, 0], False),
        ([3, 3], [2, 1], [0, 7], False),
    ],
)
def test_by_hand(load, free, sizes, real):
    assert differ(load, free, sizes) == real
    assert kernel_says(load, free, sizes) == real


def test_on_random_decisions():
    """No real choice is missed, and none is seen where all placements give every worker the same load."""
    rng = random.Random(8)
    exact = 0
    for _ in range(many(1500, 500)):
        G = rng.randint(1, 3)
        load = [rng.randint(0, 3) for _ in range(G)]
        free = [rng.randint(0, 2) for _ in range(G)]
        sizes = [rng.randint(0, 3) for _ in range(rng.randint(0, 4))]
        says, unnamed = kernel_says(load, free, sizes), differ(load, free, sizes)
        named = G > 1 and len(outcomes(load, free, sizes)) > 1
        assert unnamed <= says <= named, (load, free, sizes)
        at_open = [a for a, f in zip(load, free, strict=True) if f > 0]
        if len(set(at_open)) == len(at_open):  # then there are no coincidences of unnamed workers
            exact += 1
            assert says == unnamed, (load, free, sizes)
    assert exact > 100


def test_loads_differ_counts_what_is_queued():
    assert loads_differ(np.array([3, 5]), np.array([2, 0])) == 0
    assert loads_differ(np.array([3, 3]), np.array([0, 1])) == 1
    assert loads_differ(np.array([3]), np.array([9])) == 0
