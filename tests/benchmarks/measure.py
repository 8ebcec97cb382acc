"""What is timed and how: the shortest of several warm runs, on the requests of the BF-IO paper's Table 1.

Where the shared traces are absent, the embedded family stands in for them, and the output says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from lbopt.instances import generate, read_trace
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.simulator.observer import Observer
from lbopt.simulator.simulate import _Loop
from lbopt.simulator.state import fresh_rows, fresh_state, requests_of, setting_of


def shared_folder() -> Path | None:
    """Return the folder of shared traces, or None."""
    folder = Path(os.environ.get("LBOPT_SHARED", Path(__file__).parents[3] / "shared"))
    return folder if (folder / "data").is_dir() else None


@cache
def table_1_requests(count: int = 100_000) -> Trace:
    """Return the draw behind Table 1 (or as many requests of the embedded family)."""
    folder = shared_folder()
    if folder is None:
        return generate("burstgpt-like", count, 42)
    return read_trace(folder / "data" / "burstgpt_8000.json").resampled(count, 42)


def shortest(action: Callable[[], object], repeats: int = 7) -> float:
    """Return the shortest wall time in seconds; the first, cold run does not count."""
    action()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def seconds_with_metrics(policy: str, num_workers: int = 16, repeats: int = 7) -> float:
    """Return the time of a whole run on the Table 1 requests, all columns and metrics included."""
    chosen, setting = make_policy(policy), SimulationSetting(Fleet(num_workers, 72))
    return shortest(lambda: simulate(table_1_requests(), chosen, setting).metrics(), repeats)


def microseconds_per_step(
    policy: str, num_workers: int, slots: int = 72, pool: int | None = None, steps: int = 2000, repeats: int = 5
) -> float:
    """Return the cost of a whole step (decision, step, row) in the saturated phase, in microseconds.

    Outputs are uniform on 1..2B, so that about G requests end in every step whatever B is; the trace is as long for
    every B, so that its arrays fill the caches alike.
    """
    rng = np.random.default_rng(7)
    count = num_workers * (steps + 6 * 1152)
    prompts = table_1_requests().prompt
    trace = Trace(
        prompt=prompts[rng.integers(0, prompts.size, count)], output=rng.integers(1, 2 * slots + 1, count), name="even"
    )
    setting = SimulationSetting(Fleet(num_workers, slots), ClosedLoop(pool))
    chosen = make_policy(policy)
    best = np.inf
    for _ in range(repeats + 1):
        requests = requests_of(trace, chosen, setting, 0)
        state = fresh_state(setting.fleet, requests)
        rules = setting_of(chosen, setting, trace)
        observer = Observer(requests, rules, state, None)
        _Loop(chosen, requests, rules, state, fresh_rows(num_workers, 3 * slots), observer).go()
        loop = _Loop(chosen, requests, rules, state, fresh_rows(num_workers, steps), observer)
        state.progress.row = 0  # the new rows are empty
        begin = time.perf_counter()
        loop.go()
        best = min(best, (time.perf_counter() - begin) / steps)
    return 1e6 * float(best)
