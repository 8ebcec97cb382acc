"""Random problems in which every new request outlives the window: crossing profiles, ties, closed workers, forced."""

import random

import numpy as np

from lbopt.model import StepProblem


def random_window(
    rng: random.Random, *, workers: int = 4, requests: int = 8, horizon: int = 6, slots: int = 3, top: int = 100
) -> StepProblem:
    """At least as many requests as free slots, of which there is at least one."""
    G, H = rng.randint(1, workers), rng.randint(1, horizon)
    twins = G > 1 and rng.random() < 0.3
    while True:
        free = [rng.choice([0, 1, 1, 2, rng.randint(0, slots)]) for _ in range(G)]
        if twins:
            free[1] = free[0]
        if 0 < sum(free) <= requests:
            break
    N = rng.randint(sum(free), requests)
    few = [rng.randint(0, top) for _ in range(3)]
    sizes = [rng.choice(few) if rng.random() < 0.4 else rng.randint(0, top) for _ in range(N)]
    growth = rng.choice([0, 1, 1, 1, 7])
    profile = growth * np.arange(H + 1)
    if rng.random() < 0.2:
        profile = np.array([0] + [rng.randint(0, top) for _ in range(H)])
    spread = rng.choice([1, 3, 10]) * top
    base = [[rng.randint(0, spread) for _ in range(H + 1)] for _ in range(G)]
    if rng.random() < 0.3:
        base = [[row[0]] * (H + 1) for row in base]
    if twins:
        base[1] = list(base[0])
    must = [False] * N
    if rng.random() < 0.4:
        for i in rng.sample(range(N), rng.randint(0, sum(free))):
            must[i] = True
    return StepProblem(base=base, slots=free, work=np.array(sizes)[:, None] + profile, must_admit=must)
