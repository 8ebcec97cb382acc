"""The same requests under other rules: each runs over the log's requests with the log's own law, and is compared.

The log itself is judged by the law at the loads that it had, so that law and noise are the same on both sides. A rule's
change is the ratio of mean times per token over the requests that ran to their end. Its interval is a block bootstrap:
requests of one stretch of time share their fate, so blocks of time are drawn, and of each the same requests on both
sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware import AffineStepTime
from lbopt.instances.router_log import RouterLog
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, TraceTimes, simulate
from lbopt.studies.audit.course import Floats

Interval = tuple[float, float]
_BLOCKS, _DRAWS = 40, 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRun:
    """One rule over the log's requests; `change` and the others are relative to the log.

    Parameters
    ----------
    rule, admission
        The rule, and "immediate" or "pooled"; both empty for the log itself.
    tpot_mean, tpot_p95, wait_mean, wait_p99
        Seconds, over the requests that ran to their end.
    idle_share
        Share of the fleet's work that waits at the barrier, by tokens.
    change, change_interval
        Of the mean time per token, as a share of that of the log: -0.06 is 6 % less.
    wait_change_interval
        Of the mean wait, seconds.
    """

    rule: str
    admission: str
    tpot_mean: float
    tpot_p95: float
    wait_mean: float
    wait_p99: float
    idle_share: float
    change: float = 0.0
    change_interval: Interval = (0.0, 0.0)
    wait_change_interval: Interval = (0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """The log's requests as a trace, in the order in which other rules learn of them.

    Parameters
    ----------
    trace
        Requests with the times at which they may start.
    rows
        (M,), their rows in the log.
    counted
        (M,), whether they ran to their end, and so are compared.
    """

    trace: Trace
    rows: NDArray[np.int64]
    counted: NDArray[np.bool_]


def requests_of(log: RouterLog, ready: Floats, tokens: Floats) -> Requests:
    """Return the requests that other rules have to place.

    Parameters
    ----------
    log
        The log.
    ready
        (N,), seconds from which each may start.
    tokens
        (N,), tokens that each made, also where it did not run to its end: it held memory under any rule.
    """
    output = np.where(log.is_finished, log.output, np.round(tokens)).astype(np.int64)
    rows = np.flatnonzero(output > 0)
    rows = rows[np.argsort(ready[rows], kind="stable")]
    trace = Trace(prompt=log.prompt[rows], output=output[rows], arrival=ready[rows], name=log.name)
    return Requests(trace, rows, log.is_finished[rows])


def setting_of(workers: int, slots: int, fixed: float, per_token: float) -> SimulationSetting:
    """Return the rules of the simulation: the log's fleet, its law, and arrivals at the trace's times.

    Parameters
    ----------
    workers, slots
        The fleet.
    fixed, per_token
        The law, seconds.
    """
    law = AffineStepTime(fixed, per_token)
    return SimulationSetting(Fleet(workers, slots), arrivals=TraceTimes(), event_order="theory", step_time=law)


def run_rule(
    rule: str, requests: Requests, setting: SimulationSetting, logged: tuple[Floats, Floats], seed: int = 0
) -> RuleRun:
    """Run a rule, and compare it with the log.

    Parameters
    ----------
    rule
        As `make_policy` reads it.
    requests, setting
        What is run, and how.
    logged
        (M,) seconds per token by the law at the log's loads, and (M,) waits of the log, seconds.
    seed
        Of rules that draw, and of the bootstrap.
    """
    policy = make_policy(rule)
    run = simulate(requests.trace, policy, setting, seed=seed)
    counted = requests.counted
    columns = run.requests
    tpot = ((columns["finish_clock"] - columns["start_clock"]) / requests.trace.output)[counted]
    wait = (columns["start_clock"] - columns["reveal_clock"])[counted]
    tpot_before, wait_before = logged[0][counted], logged[1][counted]
    arrival = requests.trace.arrival
    assert arrival is not None
    differences = (tpot, tpot_before, wait - wait_before)
    ratios, waits = block_bootstrap(differences, arrival[counted], seed)
    heaviest, total = run.steps["read_max"], run.steps["read_sum"]
    G = setting.fleet.num_workers
    idle = 1 - total / (G * np.maximum(heaviest, 1))
    return RuleRun(
        rule=policy.name,
        admission=policy.admission,
        tpot_mean=float(tpot.mean()),
        tpot_p95=float(np.quantile(tpot, 0.95)),
        wait_mean=float(wait.mean()),
        wait_p99=float(np.quantile(wait, 0.99)),
        idle_share=float(idle.mean()),
        change=float(tpot.mean() / tpot_before.mean() - 1),
        change_interval=ratios,
        wait_change_interval=waits,
    )


def block_bootstrap(values: tuple[Floats, Floats, Floats], when: Floats, seed: int) -> tuple[Interval, Interval]:
    """Return the 95 % intervals of mean(a) / mean(b) - 1 and of mean(c) when blocks of time are drawn.

    Parameters
    ----------
    values
        a, b and c, (n,) each.
    when
        (n,), times by which blocks are made, each of equally many requests.
    seed
        Of the draws.
    """
    order = np.argsort(when, kind="stable")
    blocks = [rows for rows in np.array_split(order, _BLOCKS) if rows.size]
    sums = np.array([[value[rows].sum() for value in values] + [rows.size] for rows in blocks])
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), _DRAWS) @ sums
    found = np.column_stack([drawn[:, 0] / drawn[:, 1] - 1, drawn[:, 2] / drawn[:, 3]])
    low, high = np.quantile(found, (0.025, 0.975), axis=0)
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))
