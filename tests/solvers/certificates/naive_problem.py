"""Step problems of a handful of requests, their true optimum, and what prices say about them, all by enumeration.

Nothing of lbopt is imported but the problem itself: class numbers, padding and patterns are written a second time.
"""

import math
import random
from itertools import combinations

from lbopt.model import StepProblem


def step_problem(rng: random.Random, *, workers: int = 4, requests: int = 11, slots: int = 3) -> StepProblem:
    """Ties, zero sizes, closed and equal workers, forced requests, common divisors, N below and above the slots."""
    G, N = rng.randint(1, workers), rng.randint(0, requests)
    top = rng.choice([1, 4, 12, 40])
    few = [rng.randint(0, top) for _ in range(3)]
    draw = {
        "few": lambda: rng.choice(few),
        "any": lambda: rng.randint(0, top),
        "alike": lambda: top - rng.randint(0, min(top, 3)),
    }[rng.choice(["few", "any", "alike"])]
    loads = [draw() * rng.choice([0, 1, 1, 2]) for _ in range(G)]
    free = [rng.randint(0, slots) for _ in range(G)]
    if G > 1 and rng.random() < 0.3:
        loads[1], free[1] = loads[0], free[0]
    unit = rng.choice([1, 1, 1, 3])
    sizes = [draw() for _ in range(N)]
    must = [False] * N
    if rng.random() < 0.4:
        for i in rng.sample(range(N), rng.randint(0, min(N, sum(free)))):
            must[i] = True
    shift = rng.choice([0, 0, 5])
    return StepProblem.now([unit * load + shift for load in loads], free, [unit * s for s in sizes], must)


def optimum(problem: StepProblem) -> int:
    """Place request after request, literally as the model says: no padding, no classes."""
    loads, slots = problem.base[:, 0].tolist(), problem.slots.tolist()
    sizes, must = problem.work[:, 0].tolist(), problem.must_admit.tolist()
    states = {(tuple(loads), tuple(slots), problem.num_admitted)}
    for i, size in enumerate(sizes):
        following = set()
        for now, free, missing in states:
            if not must[i] and missing <= len(sizes) - i - 1:
                following.add((now, free, missing))
            for g in range(len(now)):
                if free[g] and missing:
                    then = (*now[:g], now[g] + size, *now[g + 1 :])
                    following.add((then, (*free[:g], free[g] - 1, *free[g + 1 :]), missing - 1))
        states = following
    return min(len(now) * max(now) - sum(now) for now, _, missing in states if not missing)


class Naive:
    """A problem with its classes, padded, and every pattern of every worker by enumeration."""

    def __init__(self, problem: StepProblem):
        self.loads, self.slots = problem.base[:, 0].tolist(), problem.slots.tolist()
        items = list(zip(problem.work[:, 0].tolist(), problem.must_admit.tolist(), strict=True))
        items += [(0, False)] * max(0, sum(self.slots) - len(items))
        self.classes = sorted(set(items))
        self.items = sorted(self.classes.index(item) for item in items)
        self.counts = [self.items.count(k) for k in range(len(self.classes))]
        self.sizes = [size for size, _ in self.classes]
        self.forced = [must for _, must in self.classes]
        self.open = [g for g, c in enumerate(self.slots) if c]
        self.unit = math.gcd(*self.sizes, *(a - self.loads[0] for a in self.loads)) or 1
        self.patterns = {c: sorted(set(combinations(self.items[::-1], c))) for c in set(self.slots)}
        light = sorted(self.sizes[k] for k in self.items)
        self.least = max(load + sum(light[:c]) for load, c in zip(self.loads, self.slots, strict=True))
        heavy = sorted((self.sizes[k] for k in self.items if not self.forced[k]), reverse=True)
        fixed = [self.sizes[k] for k in self.items if self.forced[k]]
        others = sum(self.slots) - len(fixed)
        self.most = sum(fixed) + sum(heavy[:others])
        self.fewest = sum(fixed) + sum(heavy[len(heavy) - others :])

    def size(self, pattern):
        return sum(self.sizes[k] for k in pattern)

    def fitting(self, g, top):
        return [one for one in self.patterns[self.slots[g]] if self.size(one) <= top - self.loads[g]]

    def relevant(self, bound):
        """Envelopes that have to be refuted: attainable, and a cost below `bound` is conceivable."""
        room = self.cheaper(bound) + sum(self.loads) + self.most
        return range(self.least, room // len(self.loads) + 1, self.unit)

    def cheaper(self, bound):
        """The largest cost below `bound` that is a multiple of the unit."""
        return bound - 1 - (bound - 1) % self.unit

    def needed(self, low, bound):
        """Tokens that a cheaper assignment admits at least: every slot is filled, if only by the smallest."""
        return max(self.fewest, len(self.loads) * low - sum(self.loads) - self.cheaper(bound))

    def last_before_change(self, low):
        """Ends of ranges that begin at `low`: just before another pattern fits somewhere."""
        events = {self.loads[g] + self.size(one) for g in self.open for one in self.patterns[self.slots[g]]}
        return [event - 1 for event in sorted(events) if event > low]


class View:
    """What prices say at one envelope."""

    def __init__(self, naive, prices, scale, top):
        self.naive, self.prices = naive, prices
        self.profit = {
            one: sum(scale * naive.sizes[k] - prices[k] for k in one)
            for c in naive.patterns
            for one in naive.patterns[c]
        }
        self.fitting = {g: naive.fitting(g, top) for g in naive.open}
        self.possible = all(self.fitting.values())
        if self.possible:
            self.best = {g: max(self.profit[one] for one in self.fitting[g]) for g in naive.open}
            self.value = sum(prices[k] for k in naive.items) + sum(self.best.values())

    def viable(self, g, left, budget):
        return [
            one
            for one in self.fitting[g]
            if self.best[g] - self.profit[one] <= budget and all(one.count(k) <= left[k] for k in one)
        ]

    def is_dead(self, workers, undecided, left, budget):
        slots = sum(self.naive.slots[g] for g in undecided)
        bound = [k for k, n in enumerate(left) for _ in range(n) if self.naive.forced[k]]
        free = sorted(self.prices[k] for k, n in enumerate(left) for _ in range(n) if not self.naive.forced[k])
        if len(bound) > slots:
            return True
        lost = sum(free[: len(free) - (slots - len(bound))])
        for g in workers:
            losses = [self.best[g] - self.profit[one] for one in self.viable(g, left, budget)]
            if not losses:
                return True
            lost += min(losses)
        return lost > budget

    def lost(self, workers, left):
        """What these workers lose at least with the requests that are left; without end where one has no pattern."""
        everything = float("inf")
        return sum(
            min(self.best[g] - self.profit[one] for one in found) if found else everything
            for g in workers
            for found in [self.viable(g, left, everything)]
        )
