"""Frozen states of gate problems along the axes: ranks, steps, prompts, tails, prices and limits; times in 0.1 ms.

State `number` is drawn from a generator with that seed, and nothing else. A token stands for 64 of a prompt: at 60 µs
each that is 38 units. Decoding takes 8 ms and 0.12 µs for each of some ten thousand tokens on a rank.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbopt.model.gate_problem import GateProblem, WaitingPrompt

#: States that a solver is judged on.
COUNT = 200


def gate_state(number: int, *, small: bool = False) -> GateProblem:
    """Return state `number`; a small one can be exhausted."""
    rng = np.random.default_rng(number)
    G, K = (
        (int(rng.integers(1, 3)), int(rng.integers(2, 4)))
        if small
        else (int(rng.integers(2, 9)), int(rng.integers(6, 25)))
    )
    count = int(rng.integers(1, 4 if small else 17))
    chunk = int(rng.integers(1, 3)) if small else int(rng.choice([8, 16, 32]))
    heavy = rng.random() < 0.5
    tokens = np.exp(rng.normal(0.3 if small else 2.3, 1.2 if heavy else 0.6, count)).astype(int)
    tokens = np.clip(tokens + 1, 1, 3 if small else 160)
    ranks = rng.integers(0, G, count)
    releases = np.sort(rng.integers(0, max(1, K // 2), count) * (rng.random(count) < 0.6))
    load = rng.normal(20_000, 5_000, G).clip(0)
    grows = rng.integers(10, 60, G)
    decode = [[80 + round(0.0012 * (load[g] + k * grows[g])) for g in range(G)] for k in range(K)]
    left = [chunk * K] * G  # what fits behind the releases
    prompts = []
    for i in range(count):
        g, released = int(ranks[i]), int(releases[i])
        left[g] = min(left[g], chunk * (K - released))
        lacks = min(int(tokens[i]), left[g])
        if lacks > 0:
            left[g] -= lacks
            prompts.append(WaitingPrompt(g, lacks, released, 0 if released else int(rng.integers(0, 500))))
    price, per = [(0, 1), (1, 32), (1, 8), (1, 2)][number % 4]
    free = GateProblem(tuple(map(tuple, decode)), (chunk,) * G, 38, tuple(prompts), price, per)
    if price:
        return free
    at_once = free.waits(free.fill([max(own) + 38 * chunk for own in decode]))
    aged = [prompt.waited + wait for prompt, wait in zip(prompts, at_once, strict=True)]
    return replace(free, longest=int(max(aged) * (1 + rng.random() / 2)))
