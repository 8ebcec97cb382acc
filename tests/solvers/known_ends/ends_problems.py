"""Random windows that not every request outlives: known ends, short pools, any work vectors, forced requests."""

import random

import numpy as np

from lbopt.model import StepProblem

KINDS = ("ends", "short", "vectors")


def random_ends(
    rng: random.Random,
    *,
    kind: str | None = None,
    workers: int = 4,
    requests: int = 6,
    horizon: int = 4,
    slots: int = 2,
    top: int = 100,
) -> StepProblem:
    """At least one request that can be admitted; closed workers, equal requests and empty rows are frequent."""
    kind = kind or rng.choice(KINDS)
    G, H = rng.randint(1, workers), rng.randint(1, horizon)
    while True:
        free = [rng.choice([0, 1, 1, 2, rng.randint(0, slots)]) for _ in range(G)]
        if sum(free) > 0:
            break
    N = rng.randint(1, requests) if kind != "short" else rng.randint(1, max(1, min(requests, sum(free) - 1)))
    few = [rng.randint(0, top) for _ in range(3)]
    sizes = np.array([rng.choice(few) if rng.random() < 0.4 else rng.randint(0, top) for _ in range(N)])
    steps = np.arange(H + 1)
    growth = rng.choice([0, 1, 1, 1, 7])
    if kind == "vectors":
        work = np.array([[rng.choice([0, rng.randint(0, top)]) for _ in steps] for _ in range(N)])
    else:
        ends = np.array([rng.randint(1, H + 2) if kind == "ends" else H + 1 for _ in range(N)])
        work = (sizes[:, None] + growth * steps) * (ends[:, None] > steps)
    spread = rng.choice([1, 3, 10]) * top
    base = np.array([[rng.randint(0, spread) for _ in steps] for _ in range(G)])
    if rng.random() < 0.3:
        base = np.repeat(base[:, :1], H + 1, axis=1)
    if G > 1 and rng.random() < 0.3:
        base[1], free[1] = base[0], free[0]
        if sum(free) == 0:
            free[0] = 1
    must = np.zeros(N, dtype=bool)
    if rng.random() < 0.4:
        must[rng.sample(range(N), rng.randint(0, min(N, sum(free))))] = True
    return StepProblem(base=base, slots=free, work=work, must_admit=must)
