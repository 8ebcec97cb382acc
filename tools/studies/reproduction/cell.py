"""One rule on one fleet with one seed: the function that tasks of the simulated reproductions run."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.hardware import make_step_time
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, Run, SimulationSetting, TraceTimes, simulate
from lbopt.simulator.metrics import Window
from tools.studies.reproduction.drawn import draw

#: Share of the requests that appear before anything is measured: the fleet starts empty.
WARM = 0.25
#: Requests that rules which learn have seen before; the EP-barrier post speaks of a few hundred.
LEARNT = 500
#: What the seeds of requests to learn from are apart from those of requests that are run.
_OTHER_SEED = 1_000_003


def measure(
    *,
    requests: dict[str, Any],
    count: int,
    G: int,
    B: int,
    policy: str,
    load: float | None,
    step_time: str,
    content: str,
    version: str,
    seed: int,
) -> dict[str, float]:
    """Return what a run was like while requests appeared, its first quarter left out.

    Parameters
    ----------
    requests
        As in `draw`.
    load
        Share of saturation at which requests arrive; None = a closed loop, in which 4 G requests always wait.
    step_time
        As `make_step_time` reads it. Where it is constant, the run does not depend on any law, and the time of its
        steps under every law that is linear in the heaviest and the mean load follows from `max_load` and `mean_load`.
    content, version
        For the key: what the trace holds, and whose code ran.
    """
    trace = draw(requests, count, seed)
    setting = SimulationSetting(
        Fleet(G, B), ClosedLoop() if load is None else TraceTimes(load), step_time=make_step_time(step_time)
    )
    rule = make_policy(policy)
    training = draw(requests, LEARNT, seed + _OTHER_SEED)
    run = simulate(trace, rule, setting, seed=seed, keep_loads=True, training=training)
    return _figures(run, measured(run))


def measured(run: Run) -> Window:
    """Return the steps while requests appear, without those before the first quarter of them has appeared."""
    reveal = run.requests["reveal_step"]
    first, last = int(reveal[int(WARM * reveal.size)]) + 1, int(reveal.max())
    if first >= last:
        raise InputError(
            f"{reveal.size} requests appear within {last} steps at G = {run.setting.fleet.num_workers}: too few to "
            "measure anything; give more --requests"
        )
    return Window(first, last)


def _figures(run: Run, window: Window) -> dict[str, float]:
    rows = window.rows
    step = {name: values[rows] for name, values in run.steps.items()}
    loads = step["post_loads"].astype(np.float64)
    appeared = run.requests["reveal_step"] >= window.first - 1
    tpot = ((run.requests["finish_clock"] - run.requests["start_clock"]) / run.trace.output)[appeared]
    return {
        "steps": float(window.last - window.first + 1),
        "step_seconds": float(step["seconds"].mean()),
        "running": float(step["active"].mean()),
        "waiting": float(step["waiting"].mean()),
        "max_load": float(step["barrier_max"].mean()),
        "mean_load": float(step["barrier_sum"].mean() / run.setting.fleet.num_workers),
        "spread": float((step["read_max"] - step["read_min"]).mean()),
        "deviation": float(loads.std(axis=1).mean()),
        "band_mean": float(loads.mean()),
        "band_deviation": float(loads.std()),
        "tpot_p95": float(np.quantile(tpot, 0.95)),
        "tpot_mean": float(tpot.mean()),
        "throughput": float(step["active"].sum() / step["seconds"].sum()),
        "throughput_makespan": float(run.trace.output.sum() / run.steps["clock"][-1]),
    }
