"""`python -m tests.benchmarks.assignment_speed`: balanced assignment against OR-Tools, and how its time grows.

Both are run in turns on one core, so that the machine's moods fall on both; a ratio is that of the shortest times. The
costs are those of random points in 10 dimensions, centres being points too; capacities are the least that suffice.

The network is built as `k-means-constrained` 0.7 builds it for each of its iterations: costs times 1000 and rounded to
int32, arcs point -> door -> centre -> sink added from arrays, supplies set one by one, the flow of each arc asked for
one by one. "solver" is the call of `solve` alone, "lean" a build and a read by arrays as well as OR-Tools allows them.

--large adds one million points at 64 centres, with the peak of memory (its costs are 0.5 GiB of it).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from rich.console import Console
from rich.table import Table

from lbopt.assignment import balanced_assignment

GROWTH = (
    *((points, 64) for points in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)),
    *((10_000, centres) for centres in (4, 16, 250, 1_000)),
)


def costs_of(kind: str, points: int, centres: int, seed: int = 0) -> np.ndarray:
    """Return squared distances or cosine distances, (points, centres)."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(points, 10))
    if kind == "cosine":
        places /= np.linalg.norm(places, axis=1)[:, None]
    hubs = places[rng.choice(points, centres, replace=False)]
    costs = places @ hubs.T
    if kind == "cosine":
        return 1.0 - costs
    costs *= -2.0
    costs += (places**2).sum(axis=1)[:, None]
    costs += (hubs**2).sum(axis=1)
    return costs


def as_they_do(costs: np.ndarray, capacity: int) -> tuple[int, float]:
    """Return the optimum of the rounded costs, and the seconds of `solve` in it."""
    points, centres = costs.shape
    doors, hubs, sink = points + np.arange(centres), points + centres + np.arange(centres), points + 2 * centres
    tail = np.concatenate([np.repeat(np.arange(points), centres), doors, hubs]).astype(np.int32)
    head = np.concatenate([np.tile(doors, points), hubs, np.full(centres, sink)]).astype(np.int32)
    unit = np.concatenate([np.around(costs.ravel() * 1000), np.zeros(2 * centres)]).astype(np.int32)
    room = np.concatenate([np.ones(costs.size), np.full(centres, capacity), np.full(centres, points)]).astype(np.int32)
    flow = SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(tail, head, room, unit)
    supplies = np.concatenate([np.ones(points), np.zeros(2 * centres), [-points]]).astype(np.int32)
    for node, supply in enumerate(supplies):
        flow.set_node_supply(node, supply)
    begin = time.perf_counter()
    assert flow.solve() == flow.OPTIMAL
    spent = time.perf_counter() - begin
    np.array([flow.flow(arc) for arc in range(costs.size)]).reshape(points, centres).argmax(axis=1)
    return int(flow.optimal_cost()), spent


def lean(costs: np.ndarray, capacity: int) -> np.ndarray:
    """Return labels, by the same solver without the detours."""
    points, centres = costs.shape
    sink = points + centres
    flow = SimpleMinCostFlow()
    tail, head = np.repeat(np.arange(points), centres), points + np.tile(np.arange(centres), points)
    unit = np.around(costs.ravel() * 1000).astype(np.int64)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(tail, head, np.ones(costs.size, dtype=np.int64), unit)
    hubs, none = np.arange(points, sink), np.zeros(centres, dtype=np.int64)
    flow.add_arcs_with_capacity_and_unit_cost(hubs, np.full(centres, sink), np.full(centres, capacity), none)
    supplies = np.zeros(sink + 1, dtype=np.int64)
    supplies[:points], supplies[sink] = 1, -points
    flow.set_nodes_supplies(np.arange(sink + 1), supplies)
    assert flow.solve() == flow.OPTIMAL
    return flow.flows(arcs).reshape(points, centres).argmax(axis=1)


def seconds(action: Callable[[], object]) -> float:
    """Return the wall time of one call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def against_or_tools(rounds: int) -> Table:
    """Compare at 10,000 points and 64 centres."""
    table = Table("costs", "lbopt (ms)", "as k-means-constrained", "lean", "solver", "wanted", box=None)
    points, centres, capacity = 10_000, 64, 157
    for kind in ("squared", "cosine"):
        costs = costs_of(kind, points, centres)
        rounded = np.around(costs * 1000).astype(np.int64)
        ours, theirs, thin, solver = [], [], [], []
        for _ in range(rounds):
            ours += [seconds(lambda c=costs: balanced_assignment(c, capacity)) for _ in range(5)]
            begin = time.perf_counter()
            optimum, spent = as_they_do(costs, capacity)
            theirs.append(time.perf_counter() - begin)
            thin.append(seconds(lambda c=costs: lean(c, capacity)))
            solver.append(spent)
        assert balanced_assignment(rounded, capacity).scaled_cost == optimum
        balanced_assignment(costs, capacity).check(costs)
        best = min(ours)
        ratios = [f"{1e3 * min(times):.0f} ms = {min(times) / best:.0f}x" for times in (theirs, thin, solver)]
        table.add_row(kind, f"{1e3 * best:.1f}", *ratios, ">= 30x")
    return table


def growth(rounds: int) -> Table:
    """Return times from nothing, and from prices that are off by 2 %."""
    table = Table("points", "centres", "cold (ms)", "ns a cost", "warm (ms)", box=None)
    for points, centres in GROWTH:
        costs, capacity = costs_of("squared", points, centres), -(-points // centres)
        first = balanced_assignment(costs, capacity)
        off = first.prices * (1 + 0.02 * np.random.default_rng(1).normal(size=centres))
        cold = min(seconds(lambda c=costs, u=capacity: balanced_assignment(c, u)) for _ in range(rounds))
        warm = min(
            seconds(lambda c=costs, u=capacity, p=off: balanced_assignment(c, u, prices=p)) for _ in range(rounds)
        )
        cells = (f"{1e3 * cold:.1f}", f"{1e9 * cold / costs.size:.1f}", f"{1e3 * warm:.1f}")
        table.add_row(f"{points:,}", f"{centres:,}", *cells)
    return table


def large() -> Table:
    """Return time and memory of a million points."""
    costs = costs_of("squared", 1_000_000, 64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    begin = time.perf_counter()
    answer = balanced_assignment(costs, -(-1_000_000 // 64))
    spent = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    checked = seconds(lambda: answer.check(costs))
    table = Table("points", "centres", "seconds", "wanted", "peak GiB (before)", "wanted", "check (s)", box=None)
    table.add_row("1,000,000", "64", f"{spent:.2f}", "<= 60", f"{peak:.2f} ({before:.2f})", "<= 4", f"{checked:.2f}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    balanced_assignment(np.random.default_rng(0).random((50, 5)), 10)  # compiles or loads
    console = Console(width=120)
    if given.large:
        console.print(large())
    console.print(against_or_tools(given.rounds))
    console.print(growth(given.rounds))


if __name__ == "__main__":
    main()
