"""The routing rules, for one decision each.

A pooled rule gets the loads and the free slots of the workers, and the pool in FIFO order (order of revelation):
`sizes[i]` is the prompt length of pooled request i and `waiting[i]` the steps it has waited. It returns one entry per
pooled request: its worker, or -1 when it stays in the pool. Exactly min(len(sizes), sum(slots)) are admitted.

The immediate form (`bind`) chooses a worker for one request at its arrival, among all workers, full or not. A rule may
also answer that the request is held at the router for now.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

WAITS = -1

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


# ---------------------------------------------------------------------------------------------------------------------
# pooled rules


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


# ---------------------------------------------------------------------------------------------------------------------
# BR-0


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


# ---------------------------------------------------------------------------------------------------------------------
# iqr


def percentile(values: Sequence[int], share: Fraction, method: str) -> Fraction:
    """The `share` percentile (sbs.md section 7): position (n - 1) q, or (n + 1) q - 1 for type 6 ("weibull").

    "linear" interpolates at that position; "lower" and "higher" take a neighbour; "nearest" the nearer one, and of two
    equally near ones the one of even position.
    """
    ordered = sorted(values)
    position = (len(values) - 1) * share
    if method == "weibull":
        position = (len(values) + 1) * share - 1
        position = min(max(position, Fraction(0)), Fraction(len(values) - 1))
    if method == "lower":
        position = Fraction(math.floor(position))
    elif method == "higher":
        position = Fraction(math.ceil(position))
    elif method == "nearest":
        position = Fraction(round(position))
    elif method not in ("linear", "weibull"):
        raise ValueError(f"unknown percentile {method!r}")
    below = math.floor(position)
    above = math.ceil(position)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def iqr_threshold(loads: Sequence[int], multiplier: Fraction, method: str) -> Fraction:
    """Q3 + k (Q3 - Q1) (sbs.md section 7)."""
    first = percentile(loads, Fraction(1, 4), method)
    third = percentile(loads, Fraction(3, 4), method)
    return third + multiplier * (third - first)


def iqr_worker(
    loads: Sequence[int], batches: Sequence[int], eligible: Sequence[int], multiplier: Fraction, method: str
) -> int:
    """The safe eligible worker of least (batch, load, index); where none is safe, of all eligible ones."""
    threshold = iqr_threshold(loads, multiplier, method)
    safe = [worker for worker in eligible if loads[worker] <= threshold]
    best: int | None = None
    for worker in safe or eligible:
        if best is None or (batches[worker], loads[worker]) < (batches[best], loads[best]):
            best = worker
    if best is None:
        raise ValueError("no worker to choose from")
    return best


def iqr(
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    waiting: Sequence[int],
    running: Sequence[int],
    multiplier: str = "1.5",
    percentile: str = "linear",
) -> list[int]:
    """Algorithm 3 of sbs.md section 7 on the first U of the pool: longest first (stable), quartiles of all workers."""
    free = list(slots)
    current = list(loads)
    batches = list(running)
    placement = [WAITS] * len(sizes)
    admitted = list(range(min(len(sizes), sum(slots))))
    for request in sorted(admitted, key=lambda request: -sizes[request]):
        worker = iqr_worker(current, batches, workers_with_a_free_slot(free), Fraction(multiplier), percentile)
        placement[request] = worker
        free[worker] -= 1
        batches[worker] += 1
        current[worker] += sizes[request]
    return placement


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


# ---------------------------------------------------------------------------------------------------------------------
# rules of serving engines and their routers, 2026 (FIELD.md, section 1)

ENGINE_RULES = (
    "vllm_2026",
    "sglang",
    "tpu_inference",
    "smg",
    "dynamo",
    "llm_d",
    "lmdeploy",
    "lightllm",
    "vllm_ascend",
)


@dataclass
class Seen:
    """One worker as a front end sees it, and the prompts of what that front end sent there and has not ended."""

    load: int = 0
    running: int = 0
    queued: int = 0
    queued_tokens: int = 0
    own_prompts: list[int] = field(default_factory=list)

    def share(self, capacity: int | None) -> float:
        """Of the KV cache in use; 0 where nobody knows how much there is."""
        return 0.0 if capacity is None else self.load / capacity


def llm_d_part(value: int, values: Sequence[int]) -> float:
    """(max - n) / (max - min), 1 if all are equal."""
    if max(values) == min(values):
        return 1.0
    return (max(values) - value) / (max(values) - min(values))


def engine_scores(name: str, workers: Sequence[Seen], capacity: int | None, front_ends: int) -> list[tuple[float, ...]]:
    """What the rule minimises, one tuple a worker, compared in order; the request to be sent adds alike everywhere."""
    scores: list[tuple[float, ...]] = []
    for one in workers:
        w, r, u = one.queued, one.running, one.share(capacity)
        if name == "vllm_2026":
            score = max(front_ends * len(one.own_prompts), w + r)
            penalty = 6 * w * max(0.0, u - 0.5) if w > 0 else 0.0
            scores.append((score + penalty,))
        elif name == "sglang":
            scores.append((one.load + one.queued_tokens, w + r))
        elif name == "tpu_inference":
            scores.append((one.queued_tokens, w + r))
        elif name == "smg":
            u = min(u, 0.999)
            scores.append((one.queued_tokens / 2000 + 0.15 * u / (1 - u),))
        elif name == "dynamo":
            scores.append((sum(math.ceil(prompt / 16) for prompt in one.own_prompts),))
        elif name == "llm_d":
            queue = llm_d_part(w, [other.queued for other in workers])
            active = llm_d_part(r, [other.running for other in workers])
            scores.append((-(queue + active + (1 - u)),))
        elif name == "lmdeploy":
            scores.append((len(one.own_prompts),))
        elif name == "lightllm":
            scores.append((r + w,))
        elif name == "vllm_ascend":
            scores.append((sum(one.own_prompts),))
        else:
            raise ValueError(f"unknown rule {name!r}")
    return scores


def bind_of_engine(
    name: str,
    workers: Sequence[Seen],
    uniform: float,
    start: int,
    capacity: int | None = None,
    front_ends: int = 1,
    eligible: Sequence[int] | None = None,
) -> tuple[int, int]:
    """The worker of a request, and where the next scan of vllm starts.

    Ties: vllm the first from `start` on, which moves on by one; dynamo, llm_d, lmdeploy and lightllm entry
    floor(u * n) of the n equal ones; the others the lowest number. `eligible` None: all workers.
    """
    chosen = list(range(len(workers))) if eligible is None else list(eligible)
    scores = engine_scores(name, [workers[worker] for worker in chosen], capacity, front_ends)
    best = [worker for worker, score in zip(chosen, scores, strict=True) if score == min(scores)]
    if name == "vllm_2026":
        distance = [(worker - start) % len(workers) for worker in best]
        return best[distance.index(min(distance))], (start + 1) % len(workers)
    if name in ("dynamo", "llm_d", "lmdeploy", "lightllm"):
        return best[math.floor(uniform * len(best))], start
    return best[0], start


def place_of_engine(
    name: str,
    loads: Sequence[int],
    slots: Sequence[int],
    sizes: Sequence[int],
    running: Sequence[int],
    uniforms: Sequence[tuple[float, float]],
    start: int,
) -> list[int]:
    """The pooled form: each request in turn among workers with a free slot, where nothing is queued."""
    free = list(slots)
    workers = [Seen(load, count, own_prompts=[0] * count) for load, count in zip(loads, running, strict=True)]
    placement = [WAITS] * len(sizes)
    for request in range(len(sizes)):
        eligible = workers_with_a_free_slot(free)
        if not eligible:
            break
        worker, start = bind_of_engine(name, workers, uniforms[request][0], start, eligible=eligible)
        placement[request] = worker
        free[worker] -= 1
        workers[worker].load += sizes[request]
        workers[worker].running += 1
        workers[worker].own_prompts.append(sizes[request])
    return placement


def tensorrt_llm(prompts: Sequence[Sequence[int]], most_per_rank: int, sizes: Sequence[int]) -> list[int]:
    """TensorRT-LLM's attention-DP router without wished ranks; `prompts[g]` are those of the active requests of rank g.

    The oldest that fit are fetched; longest first onto a heap of (prompt tokens of active ones, count, rank), which a
    rank leaves at min(max(ceil((active + new) / G), most active), B).
    """
    num_ranks = len(prompts)
    active = sum(len(of_rank) for of_rank in prompts)
    new = min(len(sizes), num_ranks * most_per_rank - active)
    fair = -(-(active + new) // num_ranks)
    leaves_at = min(max(fair, max(len(of_rank) for of_rank in prompts)), most_per_rank)
    heap = [(sum(of_rank), len(of_rank), rank) for rank, of_rank in enumerate(prompts) if len(of_rank) < leaves_at]
    heapq.heapify(heap)
    placement = [WAITS] * len(sizes)
    for request in sorted(range(new), key=lambda request: -sizes[request]):
        tokens, count, rank = heapq.heappop(heap)
        placement[request] = rank
        if count + 1 < leaves_at:
            heapq.heappush(heap, (tokens + sizes[request], count + 1, rank))
    return placement
