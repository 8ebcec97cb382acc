"""How far solves go beyond their limit of time: `cd tests && python -m solvers.reliability.overshoot [--solver exact]`.

Problems of all kinds, from 4 workers and 20 requests to 512 and 5,000, each under five limits. A kernel's first use is
not counted, as `time_limit` does not count it: every kind is solved once before, and so is every size, whose first
search makes the arrays that the next ones work in (`--first` counts these, too). CPU seconds and seconds of the wall
clock are both taken; on a machine that does other things besides, only the first say something of lbopt.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from lbopt import StepProblem, solve

KINDS = ("now", "leximax", "windows", "departures", "partition")
WORKERS, REQUESTS, SLOTS = (4, 16, 64, 256, 512), (20, 300, 2_000, 5_000), (2, 16)
LIMITS = (1e-9, 0.001, 0.01, 0.05, 0.2)

#: Steps of the windows.
HORIZON = 8


def problem_of(kind: str, G: int, N: int, slots: int, seed: int) -> StepProblem:
    """Loads of 20,000 to 60,000 tokens, sizes spread as real ones are, up to `slots` free slots a worker."""
    rng = np.random.default_rng([seed, G, N, slots])
    sizes = np.minimum(rng.lognormal(6.5, 1.2, N).astype(int) + 1, 60_000)
    loads = rng.integers(20_000, 60_000, G)
    if kind == "partition":
        return StepProblem.now(np.zeros_like(loads), np.full(G, -(-N // G) + 1), sizes)
    free = rng.integers(0, slots + 1, G)
    free[rng.integers(G)] = slots
    active = rng.integers(1, 60, G)
    if kind == "windows":
        return StepProblem.survives(loads, free, sizes, HORIZON, active=active)
    if kind == "departures":
        return StepProblem.known_ends(loads, free, sizes, rng.integers(1, 12, N), HORIZON, active=active)
    return StepProblem.now(loads, free, sizes)


def overshoot(problem: StepProblem, kind: str, solver: str, limit: float) -> tuple[float, float, str]:
    """Return CPU and wall seconds beyond the limit, and why the solve stopped."""
    tie = "leximax" if kind == "leximax" else "any"
    cpu, wall = time.process_time(), time.perf_counter()
    result = solve(problem, solver, time_limit=limit, tie=tie)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu - limit, wall - limit, result.stop_reason


def main() -> int:
    """Print a row a kind and size of fleet, and the worst of all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--solver", default="exact")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--most", type=int, default=max(REQUESTS), help="requests at most")
    parser.add_argument("--first", action="store_true", help="count the first search of a size, too")
    parser.add_argument("--out", help="also write each solve as a line of JSON")
    given = parser.parse_args()
    everything = []
    print("| kind | G | solves | CPU P50 | P99 | worst | wall P99 | worst | worst at |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for kind in given.kinds.split(","):
        for N, slots in ((20, 2), (60, 16), (300, 16), (5_000, 16)):  # every kernel that this kind can reach
            for limit in (0.3, 1e-9):
                overshoot(problem_of(kind, 4, min(N, given.most), slots, 99), kind, given.solver, limit)
                overshoot(problem_of(kind, 32, min(N, given.most), slots, 99), kind, given.solver, limit)
        for G in WORKERS:
            rows = []
            for N in (one for one in REQUESTS if one <= given.most):
                for slots in SLOTS[:1] if kind == "partition" else SLOTS:
                    if not given.first:
                        overshoot(problem_of(kind, G, N, slots, 99), kind, given.solver, 0.2)
                    for seed in range(given.seeds):
                        problem = problem_of(kind, G, N, slots, seed)
                        for limit in LIMITS:
                            cpu, wall, stop = overshoot(problem, kind, given.solver, limit)
                            rows.append((cpu, wall, f"N {N:,}, slots {slots}, {limit:g} s, {stop}"))
                print(f"{kind} G {G} N {N}", end="\r", file=sys.stderr)
            everything += [(kind, G, *row) for row in rows]
            print(_row(kind, f"{G}", rows), flush=True)
    print(_row("all", "", [row[2:] for row in everything]))
    if given.out:
        lines = "".join(json.dumps(row) + "\n" for row in everything)
        Path(given.out).write_text(lines, encoding="utf-8")
    return 0


def _row(kind: str, G: str, rows: list[tuple[float, float, str]]) -> str:
    cpu, wall = (np.array([row[i] for row in rows]) * 1e3 for i in (0, 1))
    shown = [np.quantile(cpu, 0.5), np.quantile(cpu, 0.99), cpu.max(), np.quantile(wall, 0.99), wall.max()]
    cells = " | ".join(f"{value:.1f}" for value in shown)
    return f"| {kind} | {G} | {len(rows)} | {cells} | {rows[int(cpu.argmax())][2]} |"


if __name__ == "__main__":
    sys.exit(main())
