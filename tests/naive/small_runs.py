"""The least cost of a small run, by trying every decision of every step; it imports nothing from lbopt."""

import itertools
from functools import cache


def least_cost(prompt, output, workers, slots, fixed):
    """Least sum over steps of fixed + largest load; a request waits (None), runs (worker, age), or has ended (True)."""

    @cache
    def to_come(state):
        if all(one is True for one in state):
            return 0
        waiting = [i for i, one in enumerate(state) if one is None]
        best = float("inf")
        for choice in itertools.product([None, *range(workers)], repeat=len(waiting)):
            now = list(state)
            for i, worker in zip(waiting, choice, strict=True):
                now[i] = None if worker is None else (worker, 0)
            loads, counts, after = [0] * workers, [0] * workers, list(now)
            for i, one in enumerate(now):
                if isinstance(one, tuple):
                    worker, age = one
                    loads[worker] += prompt[i] + age
                    counts[worker] += 1
                    after[i] = True if age + 1 == output[i] else (worker, age + 1)
            if 0 < max(counts) <= slots:
                best = min(best, fixed + max(loads) + to_come(tuple(after)))
        return best

    return to_come((None,) * len(prompt))


def least_placed(start, prompt, output, workers, slots):
    """Least sum of largest loads with these starts, over all choices of workers."""
    steps = max(s + o for s, o in zip(start, output, strict=True))
    best = None
    for choice in itertools.product(range(workers), repeat=len(start)):
        loads = [[0] * workers for _ in range(steps)]
        counts = [[0] * workers for _ in range(steps)]
        for s, p, o, worker in zip(start, prompt, output, choice, strict=True):
            for age in range(o):
                loads[s + age][worker] += p + age
                counts[s + age][worker] += 1
        if max(map(max, counts)) <= slots:
            value = sum(map(max, loads))
            best = value if best is None else min(best, value)
    return best
