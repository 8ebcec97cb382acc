"""The pooled rules, for one decision each; `naive.rules` says what they get and return."""

import math
from collections.abc import Sequence

WAITS = -1


def workers_with_a_free_slot(free: Sequence[int]) -> list[int]:
    """The eligible workers, ascending."""
    return [worker for worker in range(len(free)) if free[worker] > 0]


def lowest(workers: Sequence[int], values: Sequence[float]) -> int:
    """The worker of `workers` (ascending) with the lowest value; ties: the lowest index."""
    best = workers[0]
    for worker in workers:
        if values[worker] < values[best]:
            best = worker
    return best


def fcfs(loads: Sequence[int], slots: Sequence[int], sizes: Sequence[int], waiting: Sequence[int]) -> list[int]:
    """First come, first served (bf_io.md section 2, Algorithm 2).

    Worker 0 takes as many from the head as it has free slots, then worker 1, and so on.
    """
    placement = [WAITS] * len(sizes)
    head = 0
    for worker in range(len(slots)):
        taken = 0
        while taken < slots[worker] and head < len(sizes):
            placement[head] = worker
            head += 1
            taken += 1
    return placement


def round_robin(
    loads: Sequence[int], slots: Sequence[int], sizes: Sequence[int], waiting: Sequence[int], counter: int
) -> tuple[list[int], int]:
    """Round robin (bf_io.md section 5), skipping full workers.

    Each request goes to the first worker with a free slot in cyclic order from `counter`; the counter then points
    behind that worker. Returns the placement and the new counter.
    """
    num_workers = len(slots)
    free = list(slots)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        for offset in range(num_workers):
            worker = (counter + offset) % num_workers
            if free[worker] > 0:
                placement[request] = worker
                free[worker] -= 1
                counter = (worker + 1) % num_workers
                break
    return placement, counter


def random_rule(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    uniforms: Sequence[tuple[float, float]],
) -> list[int]:
    """Uniformly random worker among those with a free slot: entry floor(u1 * n) of the n eligible, ascending."""
    free = list(slots)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        worker = eligible[math.floor(uniforms[request][0] * len(eligible))]
        placement[request] = worker
        free[worker] -= 1
    return placement


def two_samples(num: int, uniforms: tuple[float, float]) -> tuple[int, int]:
    """Two different indices below `num` (at least 2): a = floor(u1 * n), b = floor(u2 * (n - 1)), b += 1 if b >= a."""
    first = math.floor(uniforms[0] * num)
    second = math.floor(uniforms[1] * (num - 1))
    if second >= first:
        second += 1
    return first, second


def power_of_two(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    uniforms: Sequence[tuple[float, float]],
    running: Sequence[int],
) -> list[int]:
    """Power of d = 2 (bf_io.md section 5): of two sampled workers with a free slot the one with fewer running.

    `running` counts are raised as requests are placed. Ties: the lower worker index.
    """
    free = list(slots)
    counts = list(running)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        if len(eligible) == 1:
            worker = eligible[0]
        else:
            first, second = two_samples(len(eligible), uniforms[request])
            worker = lowest(sorted([eligible[first], eligible[second]]), counts)
        placement[request] = worker
        free[worker] -= 1
        counts[worker] += 1
    return placement


def jsq(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    running: Sequence[int],
) -> list[int]:
    """Join the shortest queue by requests (bf_io.md section 5): fewest running among workers with a free slot."""
    free = list(slots)
    counts = list(running)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        worker = lowest(eligible, counts)
        placement[request] = worker
        free[worker] -= 1
        counts[worker] += 1
    return placement


def jsq_load(loads: Sequence[int], slots: Sequence[int], sizes: Sequence[int], waiting: Sequence[int]) -> list[int]:
    """Join the shortest queue by tokens (reference_conventions.json, "JSQ"): least load among those with a slot."""
    free = list(slots)
    current = list(loads)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        worker = lowest(eligible, current)
        placement[request] = worker
        free[worker] -= 1
        current[worker] += sizes[request]
    return placement


def vllm(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    running: Sequence[int],
) -> list[int]:
    """The vLLM score 4 * queued + running, least first; in the pooled form nothing is queued at a worker."""
    free = list(slots)
    counts = list(running)
    queued = [0] * len(slots)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        scores = [4 * queued[worker] + counts[worker] for worker in range(len(slots))]
        worker = lowest(eligible, scores)
        placement[request] = worker
        free[worker] -= 1
        counts[worker] += 1
    return placement


def max_min(
    loads: Sequence[int], slots: Sequence[int], sizes: Sequence[int], waiting: Sequence[int], scope: str
) -> list[int]:
    """Max-Min (bf_io.md section 5): largest request first to the least loaded worker with a free slot.

    `scope` "oldest": the first U of the pool; "pool": the U largest of the pool. Ties in size: earlier in the pool.
    """
    admitted = min(len(sizes), sum(slots))
    if scope == "oldest":
        candidates = list(range(len(sizes)))[:admitted]
    elif scope == "pool":
        candidates = sorted(range(len(sizes)), key=lambda request: (-sizes[request], request))[:admitted]
    else:
        raise ValueError(f"unknown scope {scope!r}")
    free = list(slots)
    current = list(loads)
    placement = [WAITS] * len(sizes)
    for request in sorted(candidates, key=lambda request: (-sizes[request], request)):
        worker = lowest(workers_with_a_free_slot(free), current)
        placement[request] = worker
        free[worker] -= 1
        current[worker] += sizes[request]
    return placement


def auto(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    age_weight: float = 0.3,
    age_bound: int | None = None,
) -> list[int]:
    """lbopt's own rule: what fits the level best, less what its wait counts.

    Where all can start: largest first, each to the lightest worker below its share, the requests times its part of
    the free slots, rounded up. Requests that have waited `age_bound` steps go first, oldest first, each to the lightest
    worker. The level is the mean load after admission if those that start are of the mean size of those that wait.
    """
    free = list(slots)
    current = list(loads)
    placement = [WAITS] * len(sizes)

    def place(request: int, worker: int) -> None:
        placement[request] = worker
        free[worker] -= 1
        current[worker] += sizes[request]

    if age_bound is not None:
        for request in [request for request, waited in enumerate(waiting) if waited >= age_bound][: sum(slots)]:
            place(request, lowest(workers_with_a_free_slot(free), current))
    rest = [request for request in range(len(sizes)) if placement[request] == WAITS]
    if len(rest) <= sum(free):
        total = sum(free)
        shares = [-(-len(rest) * slots_of_worker // total) if total else 0 for slots_of_worker in free]
        for request in sorted(rest, key=lambda request: (-sizes[request], request)):
            worker = lowest(workers_with_a_free_slot(shares), current)
            shares[worker] -= 1
            place(request, worker)
        return placement
    mean_size = sum(sizes[request] for request in rest) / len(rest)
    mean_wait = sum(waiting[request] for request in rest) / len(rest)
    level = (sum(current) + sum(free) * mean_size) / len(loads)
    worth_of_a_step = age_weight * mean_size / (1 + mean_wait)
    while sum(free):
        worker = lowest(workers_with_a_free_slot(free), current)
        gap = level - current[worker] - (free[worker] - 1) * mean_size / 2
        costs = [abs(sizes[request] - gap) - waiting[request] * worth_of_a_step for request in rest]
        place(rest.pop(costs.index(min(costs))), worker)
    return placement
