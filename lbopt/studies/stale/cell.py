"""One rule on one fleet with reports of one period: the function that tasks of the study run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, TraceTimes, simulate
from lbopt.studies.requests import RequestSource
from lbopt.studies.stale.forecast import forecast
from lbopt.theory.laws.stale import Lives


def measure(
    *,
    requests: dict[str, Any],
    policy: str,
    G: int,
    B: int,
    load: float | None,
    period: float | None,
    own: str,
    version: str,
    seed: int,
) -> dict[str, Any]:
    """Return what the run was like and what the law says of it; `version` is for the key.

    Loads are read after admission, as in the law.

    Parameters
    ----------
    requests
        A `RequestSource` as plain data.
    policy
        Name of the rule.
    G
        Number of workers.
    B
        Slots of a worker.
    load
        Share of saturation at which requests come, by the trace's times or, where it has none, by Poisson's law;
        None = a closed loop.
    period
        Seconds between reports; None = the router sees the truth.
    own
        What a front end adds of its own requests: "optimistic" or "none".
    version
        Version of the code; it is part of the key of the task and not used otherwise.
    seed
        Seed of the draws.
    """
    trace = RequestSource.of(requests).draw_for(seed)
    if load is not None and trace.arrival is None:
        gaps = np.random.default_rng([seed, 1]).exponential(size=len(trace))
        trace = replace(trace, arrival=np.cumsum(gaps))
    rule = make_policy(policy)
    adds = "optimistic" if rule.admission == "pooled" else own
    setting = SimulationSetting(
        Fleet(G, B),
        ClosedLoop() if load is None else TraceTimes(load),
        "theory",
        telemetry=None if period is None else Telemetry(period, own=adds),
    )
    run = simulate(trace, rule, setting, seed=seed)
    metrics = run.metrics()
    rows = run.window.rows
    step = float(run.steps["seconds"][rows].mean())
    running = float(run.steps["active"][rows].mean()) / G
    said = forecast(G, Lives.observed(trace.prompt, trace.output), running, 0.0 if period is None else period / step)
    return {
        "imbalance": metrics.imbalance_tokens,
        "mean_load": metrics.mean_load_tokens,
        "occupancy": metrics.occupancy,
        "first_token_p99": metrics.first_token_p99_seconds,
        "tpot_p99": metrics.tpot_p99_seconds,
        "tokens_per_second": metrics.throughput_tokens_per_second,
        "step_seconds": step,
        "running": running,
        "admission": rule.admission,
        "floor": said.floor,
        "alike": said.alike,
        "random": said.random,
        "even": said.even,
        "seen": said.seen,
    }
