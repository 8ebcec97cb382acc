"""One rule on one fleet with reports of one period, and what the law of stale state says of it.

The law (`lbopt.theory.laws.stale`) is for an open fleet. Of a run it takes the lives of the trace's requests, the mean
length of a step, and the requests that ran: N of them a worker arrive at the rate N / E[life] a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, TraceTimes, simulate
from lbopt.studies.requests import RequestSource
from lbopt.theory.laws.stale import Lives, seen_share

#: The mean over the ages of a window is taken at so many of them.
_AGES = 48


def measure(
    *,
    requests: dict[str, Any],
    policy: str,
    G: int,
    B: int,
    load: float | None,
    period: float | None,
    own: str,
    seed: int,
    **_of_the_key: str,
) -> dict[str, Any]:
    """Return what the run was like and what the law says of it; `own` is what a front end adds of its own requests.

    Loads are read after admission, as in the law. Requests without times come by Poisson's law.
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
        **asdict(said),
    }


@dataclass(frozen=True, slots=True)
class StaleForecast:
    """What the law says of one fleet.

    Parameters
    ----------
    floor
        Least imbalance of any rule at this age of reports, tokens.
    alike
        Least imbalance of a rule that keeps the unseen parts of the workers' loads alike, tokens.
    random
        Of a random split, tokens.
    even
        Where each worker gets as many requests in every step and nothing else is known: `alike` at any age, tokens.
    seen
        Share of its time that a slot is busy if it is filled at reports alone.
    """

    floor: float
    alike: float
    random: float
    even: float
    seen: float


def forecast(G: int, lives: Lives, running: float, period_steps: float) -> StaleForecast:
    """Return the forecast for reports of every `period_steps` steps.

    Parameters
    ----------
    running
        Requests that run on a worker, on average.
    period_steps
        Steps between reports; 0 where routers see the truth.
    """
    arrivals = running / lives.mean
    random = lives.random(arrivals).imbalance(G)
    even = lives.unseen(arrivals, lives.alive.size).imbalance(G)
    whole = round(period_steps)
    if whole < 1:
        return StaleForecast(0.0, 0.0, random, even, 1.0)
    ages = np.unique(np.linspace(0, whole - 1, min(whole, _AGES)).round().astype(np.int64))
    unseen = [lives.unseen(arrivals, int(min(age, lives.alive.size))) for age in ages]

    def over_ages(each: Sequence[float]) -> float:
        return float(np.trapezoid(each, ages) / (ages[-1] - ages[0])) if ages.size > 1 else each[0]

    floor, alike = (over_ages(each) for each in zip(*((one.least(G), one.imbalance(G)) for one in unseen), strict=True))
    return StaleForecast(floor, alike, random, even, seen_share(lives, whole))


def added(fresh: float, alike: float, even: float) -> float:
    """Return the imbalance that a rule leaves by old sight, tokens: an estimate.

    Variances of independent parts of a load add up, and the largest of normal loads goes by their standard deviation.
    A rule that leaves `fresh` by true sight makes use of the share 1 - (fresh / even)^2 of what there is to know: none
    if it leaves as much as even arrivals do. That share of the unseen variance is added.

    Parameters
    ----------
    fresh
        Imbalance of the rule by true sight, tokens.
    alike
        Of a rule that keeps workers alike, at this age, tokens.
    even
        Of even arrivals of which nothing else is known, tokens.
    """
    used = max(0.0, 1 - (fresh / even) ** 2) if even > 0 else 0.0
    return math.sqrt(fresh**2 + used * alike**2)
