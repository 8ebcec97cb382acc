"""Each policy's own long run over the same requests, and paired differences to a baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lbopt.model import Trace
from lbopt.policies import Policy
from lbopt.simulator import Run, SimulationSetting, simulate
from lbopt.statistics import over_seeds
from lbopt.studies.gap.outcome import Comparison, LongRun

_COURSE_POINTS = 400

#: Metrics that are compared, in the order of the table.
COMPARED = (
    "imbalance_tokens",
    "spread_tokens",
    "throughput_tokens_per_second",
    "whole_run_tokens_per_second",
    "whole_run_share_of_ceiling",
    "slo_share",
    "goodput_tokens_per_second",
    "tpot_mean_seconds",
    "tpot_p50_seconds",
    "tpot_p95_seconds",
    "tpot_p99_seconds",
    "waiting_mean_steps",
    "waiting_p99_steps",
    "waiting_max_steps",
    "first_token_mean_seconds",
    "idle_share",
    "energy_joules",
    "mean_load_tokens",
    "occupancy",
    "real_choice_share",
    "over_capacity_share",
)


def long_run(
    policy: Policy,
    requests: Trace,
    training: Trace | None,
    setting: SimulationSetting,
    seed: int,
    *,
    with_course: bool = False,
) -> LongRun:
    """Run one policy over the requests of one seed.

    Parameters
    ----------
    policy
        The policy.
    requests, training
        The requests, and those that its predictor learns from; None where there are none.
    setting
        Fleet, arrivals and laws.
    seed
        Of the run.
    with_course
        Whether to keep the course of the imbalance, for the picture.
    """
    run = simulate(requests, policy, setting, seed=seed, training=training)
    return LongRun(
        policy=policy.name,
        admission=policy.admission,
        seed=seed,
        steps=run.num_steps,
        seconds=run.seconds,
        metrics=run.metrics(),
        tally=run.tally,
        imbalance_course=_course(run, setting.fleet.num_workers) if with_course else None,
    )


def compare(runs: Sequence[LongRun], baseline: str) -> list[Comparison]:
    """Return every compared metric of every policy with its paired difference to `baseline`, seed by seed."""
    by_policy: dict[str, dict[int, LongRun]] = {}
    for run in runs:
        by_policy.setdefault(run.policy, {})[run.seed] = run
    reference = by_policy.get(baseline, {})
    rows = []
    for policy, by_seed in by_policy.items():
        seeds = [seed for seed in by_seed if seed in reference]
        if not seeds:
            continue
        for metric in COMPARED:
            if getattr(by_seed[seeds[0]].metrics, metric) is None:
                continue  # nobody set limits
            own = [float(getattr(by_seed[seed].metrics, metric)) for seed in seeds]
            other = [float(getattr(reference[seed].metrics, metric)) for seed in seeds]
            differences = [a - b for a, b in zip(own, other, strict=True)]
            rows.append(Comparison(policy, metric, over_seeds(own), over_seeds(differences)))
    return rows


def _course(run: Run, num_workers: int) -> NDArray[np.float64]:
    rows = run.window.rows
    imbalance = num_workers * run.steps["read_max"][rows] - run.steps["read_sum"][rows]
    stretches = np.array_split(imbalance, min(_COURSE_POINTS, imbalance.size))
    return np.array([stretch.mean() for stretch in stretches])
