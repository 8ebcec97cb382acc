"""Windows in which requests end: how many are proved, and the gaps of the others.

States of a busy fleet (`tools.steady`); the end of every request, waiting or running, is the one that the
trace gives it ("trace"), or a geometric number of steps with the trace's mean ("geometric").

python -m tests.benchmarks.known_ends --data ../shared/data --count 10 --limit 2
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbopt import solve
from lbopt.instances.sources import open_trace
from lbopt.model import StepProblem, Trace
from tools.steady import SteadyFleet

FILES = {"burstgpt": "burstgpt_8000.json", "azure": "azure_llm_2023_conv.csv"}
SEED, SLOTS, WARM_UP, SPACING = 20261121, 72, 600, 37
#: Workers, pool, horizon.
SIZES = (
    (4, 64, 20),
    (8, 64, 20),
    (8, 512, 20),
    (16, 64, 20),
    (16, 512, 20),
    (64, 512, 20),
    (144, 512, 20),
    (144, 512, 80),
)
HEAD = (
    "| trace, ends | G | R | H | proved in 0.1 s | proved | median ms | P90 ms | gap of G·ΣM, median / largest "
    "| against greedy |\n|---|---|---|---|---|---|---|---|---|---|"
)


class KnownEndsFleet(SteadyFleet):
    """A busy fleet whose router knows when each request ends."""

    def problem(self, horizon: int = 0) -> StepProblem:
        """Return what the router sees; a waiting request that runs o steps is gone from h = o on."""
        seen = super().problem(horizon)
        alive = np.arange(horizon + 1) < self._output[self._pool][:, None]
        return StepProblem(base=seen.base, slots=seen.slots, work=seen.work * alive)


def states(
    trace: Trace, ends: str, workers: int, pool: int, horizon: int, count: int, shift: int
) -> Iterator[StepProblem]:
    """Yield states; `shift` is added to the seed."""
    if ends == "geometric":
        rng = np.random.default_rng(SEED)
        mean = float(np.mean(np.maximum(trace.output, 1)))
        trace = Trace(prompt=trace.prompt, output=rng.geometric(1 / mean, len(trace)), name="geometric ends")
    fleet = KnownEndsFleet(trace, workers=workers, slots=SLOTS, pool=pool, shape="rich", seed=SEED + shift)
    yield from fleet.problems(count, warm_up=WARM_UP, spacing=SPACING, horizon=horizon)


def measure(label: str, problems: list[StepProblem], limit: float) -> str:
    """Return one line of the table."""
    seconds, proved, gaps, saved = [], [], [], []
    for problem in problems:
        begun = time.perf_counter()
        result = solve(problem, time_limit=limit)
        seconds.append(time.perf_counter() - begun)
        proved.append(result.proved)
        gaps.append(result.barrier_gap)
        greedy = solve(problem, time_limit=1e-9).objective
        saved.append(result.objective / max(1, greedy))
    spent = np.array(seconds) * 1e3
    quick = np.mean(np.array(proved) & (spent < 100))
    shown = "0" if all(proved) else f"{np.median(gaps):.4%} / {max(gaps):.4%}"
    return (
        f"| {label} | {quick:.0%} | {np.mean(proved):.0%} | {np.median(spent):.1f} | {np.quantile(spent, 0.9):.0f} "
        f"| {shown} | {np.mean(saved):.3f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the trace files")
    parser.add_argument("--trace", choices=sorted(FILES), default="burstgpt")
    parser.add_argument("--ends", choices=("trace", "geometric"), default="trace")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds a state")
    parser.add_argument("--shift", type=int, default=0, help="added to the seed: other states for tuning")
    parser.add_argument("--largest", type=int, default=144, help="most workers")
    options = parser.parse_args()
    trace = open_trace(str(options.data / FILES[options.trace]))
    print(HEAD)
    for workers, pool, horizon in SIZES:
        if workers > options.largest:
            continue
        drawn = list(states(trace, options.ends, workers, pool, horizon, options.count, options.shift))
        solve(drawn[0], time_limit=0.05)  # compile or load
        label = f"{options.trace}, {options.ends} | {workers} | {pool} | {horizon}"
        print(measure(label, drawn, options.limit), flush=True)
