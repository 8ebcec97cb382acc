"""Gated passes from their definition: one clock, a heap of moments, and lists that are searched from end to end.

At every moment: first all who arrive then, one after the other; then every instance that may start a pass does so. A
pass that starts at t holds up to `capacity` of those who wait, the oldest first, and lasts `pass_time`.
"""

import heapq
import math
from collections.abc import Sequence


def moments(arrival: Sequence[float], also: Sequence[float]) -> list[float]:
    """A heap of all times at which something may happen from the outside."""
    heap = sorted({*arrival, *also})
    heapq.heapify(heap)
    return heap


def bound(
    rule: str,
    arrival: Sequence[float],
    uniforms: Sequence[float],
    phases: Sequence[float],
    pass_time: float,
    capacity: int,
    back_to_back: bool,
) -> list[float]:
    """Waits when each request goes to one instance on arrival; rule is random, round-robin or jsq."""
    count = len(phases)
    starts = list(phases)
    if back_to_back:
        rounds = math.ceil(max(arrival) / pass_time) + len(arrival) + 2
        starts = [phase + k * pass_time for phase in phases for k in range(rounds)]
    heap = moments(arrival, starts)
    waiting: list[list[int]] = [[] for _ in range(count)]
    inside: list[list[int]] = [[] for _ in range(count)]
    until = list(phases)
    wait = [math.nan] * len(arrival)
    turn = 0
    while heap:
        now = heapq.heappop(heap)
        while heap and heap[0] == now:
            heapq.heappop(heap)
        for request in range(len(arrival)):
            if arrival[request] != now:
                continue
            if rule == "random":
                chosen = int(uniforms[request] * count)
            elif rule == "round-robin":
                chosen = turn % count
                turn += 1
            else:
                present = [len(waiting[g]) + (len(inside[g]) if until[g] > now else 0) for g in range(count)]
                chosen = present.index(min(present))
            waiting[chosen].append(request)
        for g in range(count):
            if back_to_back:
                may = now in [phases[g] + k * pass_time for k in range(rounds)]
            else:
                may = until[g] <= now
            if may and waiting[g]:
                inside[g] = []
                while waiting[g] and len(inside[g]) < capacity:
                    request = waiting[g].pop(0)
                    wait[request] = now - arrival[request]
                    inside[g].append(request)
                until[g] = now + pass_time
                heapq.heappush(heap, until[g])
    return wait


def pooled(
    arrival: Sequence[float],
    phases: Sequence[float],
    pass_time: float,
    capacity: int,
    interval: float,
    idle_bypass: bool,
) -> list[float]:
    """Waits when all wait together, and a dispatch needs an instance that is free AND the interval since the last."""
    heap = moments(arrival, phases)
    until = list(phases)
    waiting: list[int] = []
    wait = [math.nan] * len(arrival)
    allowed = before = -math.inf
    while heap:
        now = heapq.heappop(heap)
        while heap and heap[0] == now:
            heapq.heappop(heap)
        came = [request for request in range(len(arrival)) if arrival[request] == now and now > before]
        before = now
        waiting += came
        bypass = idle_bypass and bool(came)
        while waiting and min(until) <= now and (now >= allowed or bypass):
            bypass = False
            g = until.index(min(until))
            for _ in range(min(len(waiting), capacity)):
                request = waiting.pop(0)
                wait[request] = now - arrival[request]
            until[g] = now + pass_time
            allowed = now + interval
            heapq.heappush(heap, until[g])
            heapq.heappush(heap, allowed)
    return wait


def clocked(arrival: Sequence[float], phases: Sequence[float], pass_time: float, capacity: int) -> list[float]:
    """Waits when all wait together, and a pass starts every `pass_time` at every instance, filled or not."""
    rounds = math.ceil(max(arrival) / pass_time) + len(arrival) + 2
    starts = sorted(phase + k * pass_time for phase in phases for k in range(rounds))
    wait = [math.nan] * len(arrival)
    served: set[int] = set()
    for start in starts:
        here = [i for i in range(len(arrival)) if i not in served and arrival[i] <= start]
        for position, request in enumerate(here):
            if position < capacity:
                wait[request] = start - arrival[request]
                served.add(request)
    return wait
