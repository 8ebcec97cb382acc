"""BR-0 with a pool and without one, for one decision each; `naive.rules` says what they get and return."""

from collections.abc import Sequence
from itertools import combinations

from naive.pooled_rules import WAITS, lowest, workers_with_a_free_slot


def score(total: int, margin: int, num_workers: int) -> int:
    """F_g(delta) = delta - G * max(0, delta - m_g) (balance_route.md section 1, equation (1))."""
    return total - num_workers * max(0, total - margin)


def margin_of(worker: int, loads: Sequence[int]) -> int:
    """m_g = max load - load of g (balance_route.md section 0)."""
    return max(loads) - loads[worker]


def best_single(requests: Sequence[int], sizes: Sequence[int], margin: int, num_workers: int) -> int:
    """The request with the largest F; ties: larger size, then earlier in the pool (balance_route.md section 2.4)."""
    best: int | None = None
    for request in sorted(requests):
        if best is None:
            best = request
            continue
        value = score(sizes[request], margin, num_workers)
        best_value = score(sizes[best], margin, num_workers)
        if value > best_value or (value == best_value and sizes[request] > sizes[best]):
            best = request
    if best is None:
        raise ValueError("no request to choose from")
    return best


def best_subset(window_sizes: Sequence[int], capacity: int, margin: int, num_workers: int) -> tuple[int, ...]:
    """The non-empty subset with at most `capacity` members and the largest F (balance_route.md sections 2.1, 3.3).

    Ties (section 2.4): larger total, then fewer requests, then lexicographically first in window positions. Returns
    the positions, ascending.
    """
    best: tuple[int, ...] | None = None
    best_key: tuple[int, int, int] | None = None
    for count in range(1, min(capacity, len(window_sizes)) + 1):
        for positions in combinations(range(len(window_sizes)), count):  # in lexicographic order
            total = 0
            for position in positions:
                total += window_sizes[position]
            key = (score(total, margin, num_workers), total, -count)
            if best_key is None or key > best_key:
                best = positions
                best_key = key
    if best is None:
        raise ValueError("no request to choose from")
    return best


def window_of(remaining: Sequence[int], sizes: Sequence[int], window_size: int, window_order: str) -> list[int]:
    """The first min(R_max, pool) entries of the remaining pool in window order (balance_route.md 2.1 and 2.4)."""
    if window_order == "s_desc":
        ordered = sorted(remaining, key=lambda request: (-sizes[request], request))
    elif window_order == "arrival":
        ordered = sorted(remaining)
    else:
        raise ValueError(f"unknown window order {window_order!r}")
    return ordered[:window_size]


def stage_one_worker(capacity: Sequence[int], loads: Sequence[int]) -> int:
    """The worker with the most free slots; ties: smaller load, then smaller index (balance_route.md 2.1)."""
    best = 0
    for worker in range(len(capacity)):
        if (capacity[worker], -loads[worker]) > (capacity[best], -loads[best]):
            best = worker
    return best


def stage_two_worker(capacity: Sequence[int], loads: Sequence[int], key: str) -> int:
    """The worker with the largest key among those with a free slot; ties: smaller index (balance_route.md 2.4).

    Keys come from the current loads: "lexicographic" is (cap, margin), "product" is cap * margin.
    """
    best: int | None = None
    best_key: tuple[int, ...] | None = None
    for worker in range(len(capacity)):
        if capacity[worker] == 0:
            continue
        margin = margin_of(worker, loads)
        if key == "lexicographic":
            worker_key: tuple[int, ...] = (capacity[worker], margin)
        elif key == "product":
            worker_key = (capacity[worker] * margin,)
        else:
            raise ValueError(f"unknown key {key!r}")
        if best_key is None or worker_key > best_key:
            best = worker
            best_key = worker_key
    if best is None:
        raise ValueError("no worker has a free slot")
    return best


def br_0_trace(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    stage_switch: int,
    window_size: int,
    window_order: str = "s_desc",
    key: str = "lexicographic",
    age_bound: int | None = None,
) -> list[tuple[str, int, list[int], int]]:
    """BR-0 (balance_route.md 2.1, Algorithm 2, with the resolutions of 2.4), one entry per placing act.

    An entry is (stage, worker, requests placed, F); the stage is "aged", "one" or "two".
    """
    num_workers = len(slots)
    current = list(loads)
    capacity = list(slots)
    remaining = list(range(len(sizes)))
    trace: list[tuple[str, int, list[int], int]] = []

    def put(stage: str, worker: int, batch: list[int]) -> None:
        total = sum(sizes[request] for request in batch)
        trace.append((stage, worker, batch, score(total, margin_of(worker, current), num_workers)))
        for request in batch:
            remaining.remove(request)
            capacity[worker] -= 1
            current[worker] += sizes[request]

    if age_bound is not None:
        for request in range(len(sizes)):
            if waiting[request] >= age_bound and sum(capacity) > 0:
                put("aged", lowest(workers_with_a_free_slot(capacity), current), [request])

    while sum(capacity) > stage_switch and remaining:
        worker = stage_one_worker(capacity, current)
        put("one", worker, [best_single(remaining, sizes, margin_of(worker, current), num_workers)])

    while sum(capacity) > 0 and remaining:
        worker = stage_two_worker(capacity, current, key)
        margin = margin_of(worker, current)
        window = window_of(remaining, sizes, window_size, window_order)
        positions = best_subset([sizes[request] for request in window], capacity[worker], margin, num_workers)
        batch = [window[position] for position in positions]
        if score(sum(sizes[request] for request in batch), margin, num_workers) <= 0:
            batch = [best_single(window, sizes, margin, num_workers)]
        put("two", worker, batch)
    return trace


def br_0(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    stage_switch: int,
    window_size: int,
    window_order: str = "s_desc",
    key: str = "lexicographic",
    age_bound: int | None = None,
) -> list[int]:
    """BR-0 (balance_route.md 2.1 and 2.4): the placement that `br_0_trace` leads to."""
    placement = [WAITS] * len(sizes)
    trace = br_0_trace(loads, slots, sizes, waiting, stage_switch, window_size, window_order, key, age_bound)
    for _, worker, batch, _ in trace:
        for request in batch:
            placement[request] = worker
    return placement


# ---------------------------------------------------------------------------------------------------------------------
# BR-0 without a pool


def br_0_bypass_worker(size: int, virtual_loads: Sequence[int], eligible: Sequence[int], ties: str = "load") -> int:
    """argmax of F over the eligible workers (ascending) for one request (balance_route.md section 5).

    The margins are max - own virtual load, over all workers. Ties in F: the smallest virtual load, then the lowest
    index ("load"), or the lowest index ("index").
    """
    num_workers = len(virtual_loads)
    scores = [score(size, margin_of(worker, virtual_loads), num_workers) for worker in range(num_workers)]
    highest = max(scores[worker] for worker in eligible)
    best = [worker for worker in eligible if scores[worker] == highest]
    if ties == "load":
        return lowest(best, virtual_loads)
    if ties == "index":
        return best[0]
    raise ValueError(f"unknown ties {ties!r}")


def br_0_bypass(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    overbooking: int | None = 2,
    ties: str = "load",
) -> list[int]:
    """The rule for a pool: each request in turn among the workers with a free slot; nothing is overbooked there."""
    free = list(slots)
    current = list(loads)
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        worker = br_0_bypass_worker(sizes[request], current, eligible, ties)
        placement[request] = worker
        free[worker] -= 1
        current[worker] += sizes[request]
    return placement
