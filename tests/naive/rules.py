"""The routing rules, for one decision each.

A pooled rule gets the loads and the free slots of the workers, and the pool in FIFO order (order of revelation):
`sizes[i]` is the prompt length of pooled request i and `waiting[i]` the steps it has waited. It returns one entry per
pooled request: its worker, or -1 when it stays in the pool. Exactly min(len(sizes), sum(slots)) are admitted.

The immediate form (`bind`) chooses a worker for one request at its arrival, among all workers, full or not. A rule may
also answer that the request is held at the router for now.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from naive.br_0 import br_0, br_0_bypass, br_0_bypass_worker
from naive.iqr import iqr, iqr_worker
from naive.pooled_rules import (
    auto,
    fcfs,
    jsq,
    jsq_load,
    lowest,
    max_min,
    power_of_two,
    random_rule,
    round_robin,
    two_samples,
    vllm,
)

POOLED_RULES = (
    "fcfs",
    "round_robin",
    "random",
    "power_of_two",
    "jsq",
    "jsq_load",
    "vllm",
    "max_min",
    "auto",
    "br_0",
    "br_0_bypass",
    "iqr",
)
IMMEDIATE_RULES = ("round_robin", "random", "power_of_two", "jsq", "jsq_load", "vllm", "br_0_bypass", "iqr")
HELD = -1  # an immediate rule's answer where the request stays at the router for now


def place(
    name: str,
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    running: Sequence[int],
    uniforms: Sequence[tuple[float, float]] | None = None,
    counter: int = 0,
    options: Mapping[str, Any] | None = None,
) -> tuple[list[int], int]:
    """Call the pooled rule `name`; returns the placement and the round robin counter."""
    settings = dict(options or {})
    if name == "round_robin":
        return round_robin(loads, slots, sizes, waiting, counter, **settings)
    if name in ("random", "power_of_two") and uniforms is None:
        raise ValueError(f"{name} needs uniforms")
    if name == "random":
        return random_rule(loads, slots, sizes, waiting, list(uniforms or []), **settings), counter
    if name == "power_of_two":
        return power_of_two(loads, slots, sizes, waiting, list(uniforms or []), running, **settings), counter
    if name == "fcfs":
        return fcfs(loads, slots, sizes, waiting, **settings), counter
    if name == "jsq":
        return jsq(loads, slots, sizes, waiting, running, **settings), counter
    if name == "jsq_load":
        return jsq_load(loads, slots, sizes, waiting, **settings), counter
    if name == "vllm":
        return vllm(loads, slots, sizes, waiting, running, **settings), counter
    if name == "max_min":
        return max_min(loads, slots, sizes, waiting, **settings), counter
    if name == "auto":
        return auto(loads, slots, sizes, waiting, **settings), counter
    if name == "br_0":
        return br_0(loads, slots, sizes, waiting, **settings), counter
    if name == "br_0_bypass":
        return br_0_bypass(loads, slots, sizes, waiting, **settings), counter
    if name == "iqr":
        return iqr(loads, slots, sizes, waiting, running, **settings), counter
    raise ValueError(f"unknown rule {name!r}")


# ---------------------------------------------------------------------------------------------------------------------
# immediate form


def bind(
    name: str,
    running: Sequence[int],
    queued: Sequence[int],
    loads_with_queued_tokens: Sequence[int],
    uniforms_i: tuple[float, float] | None,
    counter: int,
    size: int | None = None,
    slots: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[int, int]:
    """Bind one request to a worker at its arrival; returns the worker and the round robin counter.

    All workers are eligible, but for br_0_bypass those with fewer than `slots` + overbooking requests; HELD where there
    is none. `loads_with_queued_tokens[g]` is the resident load plus the prompt tokens queued at g. Ties: the lowest
    index.
    """
    settings = dict(options or {})
    num_workers = len(running)
    everyone = list(range(num_workers))
    if name == "round_robin":
        return counter, (counter + 1) % num_workers
    if name == "random":
        if uniforms_i is None:
            raise ValueError("random needs uniforms")
        return math.floor(uniforms_i[0] * num_workers), counter
    if name == "power_of_two":
        if num_workers == 1:
            return 0, counter
        if uniforms_i is None:
            raise ValueError("power_of_two needs uniforms")
        sampled = sorted(two_samples(num_workers, uniforms_i))
        return lowest(sampled, [running[worker] + queued[worker] for worker in everyone]), counter
    if name == "jsq":
        return lowest(everyone, [running[worker] + queued[worker] for worker in everyone]), counter
    if name == "jsq_load":
        return lowest(everyone, loads_with_queued_tokens), counter
    if name == "vllm":
        return lowest(everyone, [4 * queued[worker] + running[worker] for worker in everyone]), counter
    if name == "br_0_bypass":
        if size is None or slots is None:
            raise ValueError("br_0_bypass needs the size of the request and the slots of a worker")
        overbooking = settings.get("overbooking", 2)
        cap = math.inf if overbooking is None else slots + overbooking
        eligible = [worker for worker in everyone if running[worker] + queued[worker] < cap]
        if not eligible:
            return HELD, counter
        return br_0_bypass_worker(size, loads_with_queued_tokens, eligible, settings.get("ties", "load")), counter
    if name == "iqr":
        batches = [running[worker] + queued[worker] for worker in everyone]
        multiplier = Fraction(settings.get("multiplier", "1.5"))
        method = settings.get("percentile", "linear")
        return iqr_worker(loads_with_queued_tokens, batches, everyone, multiplier, method), counter
    raise ValueError(f"{name!r} has no immediate form")
