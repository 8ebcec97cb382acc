"""`python -m tests.benchmarks.step_time_speed`: what a step-time law costs the simulator, as ratios to the affine one.

The two runs of a pair are taken in turns, so that the machine's moods fall on both; the ratio is that of the shortest
times. Laws that depend on loads alone are to be at most 10 % slower; for those that ask for running requests the ratio
is printed too. All columns and metrics are included.
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from lbopt.hardware import make_step_time
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, simulate
from tests.benchmarks.measure import table_1_requests

LOADS_ALONE = ("affine:fixed=0.005", "mean-term:per_token=1e-7,per_mean_token=5e-8,fixed=0.005")
OTHERS = ("experts", "roofline:device=h800,model=deepseek-v3")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    trace = table_1_requests(given.requests)
    table = Table("law", "policy", "workers", "affine (ms)", "law (ms)", "ratio", "wanted", box=None)
    for policy in ("fcfs", "br-0"):
        for workers in (16, 256):
            for law in (*LOADS_ALONE, *OTHERS):
                before, after = pair(trace, policy, workers, law, given.rounds)
                wanted = "<= 1.10" if law in LOADS_ALONE else "–"
                cells = (f"{1e3 * before:.1f}", f"{1e3 * after:.1f}", f"{after / before:.3f}")
                table.add_row(law.partition(":")[0], policy, str(workers), *cells, wanted)
    Console(width=120).print(table)


def pair(trace: object, policy: str, workers: int, law: str, rounds: int) -> tuple[float, float]:
    """Return the shortest times in seconds of the default law and of `law`."""
    chosen = make_policy(policy)
    settings = [
        SimulationSetting(Fleet(workers, 72)),
        SimulationSetting(Fleet(workers, 72), step_time=make_step_time(law)),
    ]
    best = [float("inf"), float("inf")]
    for turn in range(rounds + 1):
        for place, setting in enumerate(settings):
            begin = time.perf_counter()
            simulate(trace, chosen, setting).metrics()  # type: ignore[arg-type]
            if turn > 0:  # the first compiles or loads
                best[place] = min(best[place], time.perf_counter() - begin)
    return best[0], best[1]


if __name__ == "__main__":
    main()
