"""Fast-Phi (fast_phi.md sections 3 to 5), slow and in loops, every probability a share that is counted anew.

Where the sheet leaves something open (its section 9) there is an argument for each reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, sqrt

NOBODY = -1
#: Two sums of one thing in different order; relative.
ROUNDING = 1e-9


@dataclass
class FastPhiOptions:
    """The readings; `nodes` 0 is every step, `longest` None no limit, `gamma` None survival by samples."""

    nodes: int = 5
    rule: str = "published"
    percentile: float = 100.0
    corrected: bool = False
    gamma: float | None = None
    drift: float = 0.0
    drift_by_mean: bool = False
    ties_by_load: bool = True
    longest: int | str | None = None
    growth: bool = True
    stays: bool = True


@dataclass
class FastPhiState:
    """What the router sees; a request's own outputs are [] where it is like everybody.

    `running` holds (worker, prompt, generated, own outputs), `queued` (worker, prompt, own outputs), `waiting` (prompt,
    own outputs), `free` the free slots or None where any worker will do.
    """

    num_workers: int
    everybody: list[int]
    running: list[tuple[int, int, int, list[int]]]
    waiting: list[tuple[int, list[int]]]
    queued: list[tuple[int, int, list[int]]] = field(default_factory=list)
    free: list[int] | None = None


def longer_than(outputs: Sequence[int], steps: int) -> int:
    """How many outputs are longer than `steps`."""
    count = 0
    for output in outputs:
        if output > steps:
            count += 1
    return count


def still_there(own: Sequence[int], everybody: Sequence[int], age: int, h: int, options: FastPhiOptions) -> float:
    """S(a + h) / S(a): the chance that a request of age a runs in h steps (section 3)."""
    if options.gamma is not None:
        return options.gamma**h
    for outputs in (own, everybody):
        beyond = longer_than(outputs, age)
        if beyond > 0:
            return longer_than(outputs, age + h) / beyond
    return 1.0 if options.stays or h == 0 else 0.0


def pooled_outputs(state: FastPhiState) -> list[int]:
    """The outputs that nodes go by, ascending: everybody's, or those of whoever is there."""
    if state.everybody:
        return sorted(state.everybody)
    found: list[int] = []
    for *_, own in state.running + state.queued + state.waiting:
        found += own
    return sorted(found)


def number_of_steps(outputs: Sequence[int], options: FastPhiOptions) -> int:
    """T, with the truncation of section 4.1."""
    longest = options.longest
    if longest == "mean":
        longest = floor(Fraction(sum(outputs), len(outputs)))
    if longest is None:
        return max(1, outputs[-1])
    assert isinstance(longest, int)
    return longest + 1 if options.gamma is not None else max(1, min(longest + 1, outputs[-1]))


def nodes_of(outputs: Sequence[int], options: FastPhiOptions) -> list[int]:
    """Nodes by section 4 (percentiles) or 4.1 (density sqrt(S))."""
    T = number_of_steps(outputs, options)
    K = options.nodes
    if K == 0 or (options.rule == "product" and K >= T):
        return list(range(T))
    nodes = [0]
    if options.rule == "published":
        for k in range(1, K):
            rank = ceil(len(outputs) * Fraction(str(options.percentile)) / 100 * Fraction(k, K - 1))
            node = min(outputs[max(rank, 1) - 1], T - 1)
            if node not in nodes:
                nodes.append(node)
        return nodes
    roots = [sqrt(still_there([], outputs, 0, h, options)) for h in range(T)]
    for k in range(1, K):
        wanted = sum(roots) * k / (K - 1)
        h = 0
        reached = roots[0]
        while reached < wanted * (1 - ROUNDING) and h < T - 1:
            h += 1
            reached += roots[h]
        if k == K - 1:
            h = T - 1
        if h not in nodes:
            nodes.append(h)
    return nodes


def trapezoid(nodes: Sequence[int], corrected: bool) -> list[float]:
    """Section 4's weights."""
    if len(nodes) == 1:
        return [1.0]
    weights = []
    for k in range(len(nodes)):
        left = nodes[k] - nodes[k - 1] if k > 0 else 0
        right = nodes[k + 1] - nodes[k] if k < len(nodes) - 1 else 0
        at_an_end = k in (0, len(nodes) - 1)
        weights.append((left + right) / 2 + (0.5 if corrected and at_an_end else 0))
    return weights


def hat(nodes: Sequence[int], k: int, h: int) -> float:
    """The hat function psi_k of section 4.1."""
    if h == nodes[k]:
        return 1.0
    if k > 0 and nodes[k - 1] < h < nodes[k]:
        return (h - nodes[k - 1]) / (nodes[k] - nodes[k - 1])
    if k < len(nodes) - 1 and nodes[k] < h < nodes[k + 1]:
        return (nodes[k + 1] - h) / (nodes[k + 1] - nodes[k])
    return 0.0


def coefficients(nodes: Sequence[int], T: int, survival: Sequence[float], options: FastPhiOptions) -> list[float]:
    """Weight times survival at each node; survival[h] for h = 0..T-1."""
    if len(nodes) == T:
        return list(survival)
    if options.rule == "product" and len(nodes) > 1:
        return [sum(survival[h] * hat(nodes, k, h) for h in range(T)) for k in range(len(nodes))]
    weights = trapezoid(nodes, options.corrected)
    return [weights[k] * survival[nodes[k]] for k in range(len(nodes))]


def expected_loads(state: FastPhiState, nodes: Sequence[int], options: FastPhiOptions) -> list[list[float]]:
    """Lambda_g(h) at the nodes, [worker][node]; what queues counts as if it started now."""
    loads = [[0.0] * len(nodes) for _ in range(state.num_workers)]
    entries = [(g, prompt, age, own) for g, prompt, age, own in state.running]
    entries += [(g, prompt, 0, own) for g, prompt, own in state.queued]
    for g, prompt, age, own in entries:
        for k, h in enumerate(nodes):
            size = prompt + age + (h if options.growth else 0)
            loads[g][k] += size * still_there(own, state.everybody, age, h, options)
    return loads


def fast_phi_costs(
    loads: Sequence[Sequence[float]], nodes: Sequence[int], c: Sequence[float], size: int, options: FastPhiOptions
) -> list[float]:
    """The score of each worker, sections 4 and 5."""
    G = len(loads)
    costs = [0.0] * G
    for g in range(G):
        for k, h in enumerate(nodes):
            column = [loads[other][k] for other in range(G)]
            present = size + (h if options.growth else 0)
            costs[g] += c[k] * max(0.0, present - (max(column) - column[g]))
            mean = sum(column) / G
            scale = options.drift
            if options.drift_by_mean:
                scale = options.drift / mean if mean > 0 else 0.0
            costs[g] += scale * c[k] * (column[g] - mean) * present
    return costs


def fast_phi(state: FastPhiState, options: FastPhiOptions) -> tuple[list[int], list[list[float]]]:
    """Place the waiting requests in turn; returns the worker of each, and the costs that each saw."""
    outputs = pooled_outputs(state)
    T = number_of_steps(outputs, options)
    nodes = nodes_of(outputs, options)
    loads = expected_loads(state, nodes, options)
    tokens = [0] * state.num_workers
    for g, prompt, age, _ in state.running:
        tokens[g] += prompt + age
    for g, prompt, _ in state.queued:
        tokens[g] += prompt
    free = None if state.free is None else list(state.free)
    workers: list[int] = []
    seen: list[list[float]] = []
    for size, own in state.waiting:
        survival = [still_there(own, state.everybody, 0, h, options) for h in range(T)]
        costs = fast_phi_costs(loads, nodes, coefficients(nodes, T, survival, options), size, options)
        best = NOBODY
        for g in range(state.num_workers):
            if free is not None and free[g] <= 0:
                continue
            cheaper = best == NOBODY or costs[g] < costs[best]
            lighter = best != NOBODY and costs[g] == costs[best] and tokens[g] < tokens[best]
            if cheaper or (options.ties_by_load and lighter):
                best = g
        workers.append(best)
        seen.append(costs)
        if best == NOBODY:
            continue
        for k, h in enumerate(nodes):
            loads[best][k] += (size + (h if options.growth else 0)) * survival[h]
        tokens[best] += size
        if free is not None:
            free[best] -= 1
    return workers, seen
