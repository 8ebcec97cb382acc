"""The same requests under other rules: each runs over the log's requests with the log's own law, and is compared.

The log itself is judged by the law at the loads that it had, so that law and noise are the same on both sides. A rule's
change is the ratio of mean times per token over the requests that ran to their end. Its interval is a block bootstrap:
requests of one stretch of time share their fate, so blocks of time are drawn, and of each the same requests on both
sides. A rule is run several times with arrivals shifted by up to a mean step, because a moment's
difference moves all that follows. What these runs differ by is added to the interval for their mean. The log is one run
of its own rule, so what runs of that rule differ by is added too: of a rule that draws, more than of one that balances.
Where the rule is neither named nor recognised, it is taken to be the most erratic one. A gain is in proportion to the
share of a step that grows with the load, so what the log leaves open of that share is added as well.

How many workers a rule needs to serve the log's requests as fast as the log did: what a gain is worth in GPUs.

Time per token is not GPU time. A faster rule is worth money where the same requests are served by fewer workers, no
slower and without longer waits. So the rule is run with fewer and fewer of them, by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware import AffineStepTime
from lbopt.instances.router_log import RouterLog
from lbopt.model import Eligibility, Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import Detail, SimulationSetting, TraceTimes, ceilings, simulate
from lbopt.statistics import Interval, student_quantile
from lbopt.studies.audit.course import Floats
from lbopt.studies.audit.law_from_log import LawFromLog, drawn_blocks
from lbopt.studies.grid import Row

_DRAWS = 2000
#: Runs of a rule. A fleet is chaotic: a request that comes a moment later can move all that follow.
REPLAYS = 6


class RuleRun(Row):
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
    spread
        Standard deviations of single runs: of the time per token, a share of the log's, and of the mean wait, seconds.
    share_of_ceiling
        Least seconds of all steps that any rule needs for these requests, over its own (`lbopt.simulator.ceiling`).
    """


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


def requests_of(log: RouterLog, ready: Floats, tokens: Floats, served: Eligibility | None = None) -> Requests:
    """Return the requests that other rules have to place.

    Parameters
    ----------
    ready
        (N,), seconds from which each may start.
    tokens
        (N,), tokens that each made, also where it did not run to its end: it held memory under any rule.
    served
        Which workers serve each request; None = all serve all.
    """
    output = np.where(log.is_finished, log.output, np.round(tokens)).astype(np.int64)
    rows = np.flatnonzero(output > 0)
    rows = rows[np.argsort(ready[rows], kind="stable")]
    trace = Trace(
        prompt=log.prompt[rows],
        output=output[rows],
        arrival=ready[rows],
        name=log.name,
        eligibility=None if served is None else served.of_requests(rows),
    )
    return Requests(trace, rows, log.is_finished[rows])


def setting_of(
    workers: int, slots: int, fixed: float, per_token: float, scale: Floats | None = None
) -> SimulationSetting:
    """Return the rules of the simulation: the log's fleet, its law, and arrivals at the trace's times.

    Parameters
    ----------
    fixed, per_token
        The law, seconds.
    scale
        (G,), what a token counts on each worker; None = the same on all.
    """
    law = AffineStepTime(fixed, per_token)
    detail = None if scale is None else Detail(slow=tuple((g, float(f)) for g, f in enumerate(scale) if f != 1))
    fleet = Fleet(workers, slots)
    return SimulationSetting(fleet, arrivals=TraceTimes(), event_order="theory", step_time=law, detail=detail)


def run_rule(
    rule: str,
    requests: Requests,
    setting: SimulationSetting,
    logged: tuple[Floats, Floats],
    seed: int = 0,
    times: int = REPLAYS,
    shares: Interval = (1.0, 1.0),
) -> RuleRun:
    """Run a rule some times, and compare it with the log.

    Parameters
    ----------
    rule
        As `make_policy` reads it.
    logged
        (M,) seconds per token by the law at the log's loads, and (M,) waits of the log, seconds.
    seed
        Of rules that draw, of the shifts of arrivals, and of the bootstrap.
    times
        Runs, the first with the arrivals of the log, the others with each arrival shifted by up to a step.
    shares
        How many times the law's share of load in a step may be as large as in `setting`, 95 %.
    """
    policy = make_policy(rule)
    counted = requests.counted
    before, wait_before = logged[0][counted], logged[1][counted]
    step = float(before.mean())
    runs = [_one(rule, requests, setting, seed + k, step * (k > 0)) for k in range(times)]
    tpot = np.mean([run.tpot for run in runs], axis=0)
    wait = np.mean([run.wait for run in runs], axis=0)
    arrival = requests.trace.arrival
    assert arrival is not None
    ratios, waits = block_bootstrap((tpot, before, wait - wait_before), arrival[counted], seed)
    change, longer = float(tpot.mean() / before.mean() - 1), float((wait - wait_before).mean())
    means = np.array([(run.tpot.mean() / before.mean(), run.wait.mean()) for run in runs])
    spread = (float(means[:, 0].std(ddof=1)), float(means[:, 1].std(ddof=1))) if times > 1 else (0.0, 0.0)
    more = [_chance(own, times) for own in spread]
    return RuleRun(
        rule=policy.name,
        admission=policy.admission,
        tpot_mean=float(tpot.mean()),
        tpot_p95=float(np.mean([np.quantile(run.tpot, 0.95) for run in runs])),
        wait_mean=float(wait.mean()),
        wait_p99=float(np.mean([np.quantile(run.wait, 0.99) for run in runs])),
        idle_share=float(np.mean([run.idle for run in runs])),
        change=change,
        change_interval=_with_share(change, _wider(change, ratios, more[0]), shares),
        wait_change_interval=_wider(longer, waits, more[1]),
        share_of_ceiling=ceilings(requests.trace, setting).seconds * float(np.mean([1 / run.seconds for run in runs])),
        spread=spread,
    )


class _Once(NamedTuple):
    """One run: seconds per token and waits of the requests that count, the idle share, and seconds of all steps."""

    tpot: Floats
    wait: Floats
    idle: float
    seconds: float


def _one(rule: str, requests: Requests, setting: SimulationSetting, seed: int, shift: float) -> _Once:
    trace, order = requests.trace, np.arange(len(requests.trace))
    if shift > 0:
        assert trace.arrival is not None
        moved = trace.arrival + np.random.default_rng(seed).uniform(0, shift, len(trace))
        order = np.argsort(moved, kind="stable")
        served = None if trace.eligibility is None else trace.eligibility.of_requests(order)
        prompt, output = trace.prompt[order], trace.output[order]
        trace = replace(trace, prompt=prompt, output=output, arrival=moved[order], eligibility=served)
    run = simulate(trace, make_policy(rule), setting, seed=seed, keep_loads=setting.detail is not None)
    columns = run.requests
    tpot, wait = np.empty((2, len(trace)))
    tpot[order] = (columns["finish_clock"] - columns["start_clock"]) / trace.output
    wait[order] = columns["start_clock"] - columns["reveal_clock"]
    heaviest, work = run.steps["read_max"], run.steps["read_sum"]
    if setting.detail is not None:
        scale = np.ones(setting.fleet.num_workers)
        for worker, factor in setting.detail.slow:
            scale[worker] = factor
        counted = run.steps["barrier_loads"] * scale
        heaviest, work = counted.max(axis=1), counted.sum(axis=1)
    idle = 1 - work / (setting.fleet.num_workers * np.maximum(heaviest, 1))
    seconds = float(run.steps["seconds"].sum())
    return _Once(tpot[requests.counted], wait[requests.counted], float(idle.mean()), seconds)


def _chance(own: float, times: int) -> float:
    """Return the half-width that chance adds: the log is one such run, and the rule's mean is of a few."""
    return student_quantile(times - 1) * own * math.sqrt(1 + 1 / times) if times > 1 else 0.0


def beside_the_log(run: RuleRun, log: RuleRun, spread: tuple[float, float]) -> RuleRun:
    """Return a rule's run with intervals that know how much runs of the rule that wrote the log differ.

    Parameters
    ----------
    log
        The log itself.
    spread
        Standard deviations of single runs of the rule that wrote the log, as `RuleRun` has them.
    """
    t = student_quantile(REPLAYS - 1)
    more = [t * math.sqrt(max(0.0, logs**2 - own**2)) for logs, own in zip(spread, run.spread, strict=True)]
    return run.but(
        change_interval=_wider(run.change, run.change_interval, more[0]),
        wait_change_interval=_wider(run.wait_mean - log.wait_mean, run.wait_change_interval, more[1]),
    )


def _wider(value: float, interval: Interval, more: float) -> Interval:
    """Return an interval with an independent half-width added in squares on both sides."""
    low, high = interval
    return value - math.hypot(value - low, more), value + math.hypot(high - value, more)


def shares_of(law: LawFromLog, load: float) -> Interval:
    """Return how many times as large as the law says the share of load in a step may be, by the law's draws, 95 %.

    Parameters
    ----------
    load
        Mean load of the heaviest worker, tokens.
    """
    fixed, slope = np.array([(law.fixed, law.per_token), *law.drawn]).T
    share = np.clip(slope, 0, None) * load / np.maximum(fixed + slope * load, 1e-12)
    if not share[0] > 0:
        return 1.0, 1.0
    low, high = np.quantile(share / share[0], (0.025, 0.975))
    return min(float(low), 1.0), max(float(high), 1.0)


def _with_share(change: float, interval: Interval, shares: Interval) -> Interval:
    """Return the interval of a change with the error of the share to which it is in proportion, in squares."""
    low, high = interval
    ends = sorted(change * share for share in shares)
    return change - math.hypot(change - low, change - ends[0]), change + math.hypot(high - change, ends[1] - change)


def block_bootstrap(values: tuple[Floats, Floats, Floats], when: Floats, seed: int) -> tuple[Interval, Interval]:
    """Return the 95 % intervals of mean(a) / mean(b) - 1 and of mean(c) when blocks of time are drawn.

    Parameters
    ----------
    values
        a, b and c, (n,) each.
    when
        (n,), times by which blocks are made, each of equally many requests.
    """
    blocks, times = drawn_blocks(when, _DRAWS, seed)
    drawn = times @ np.array([[value[rows].sum() for value in values] + [rows.size] for rows in blocks])
    found = np.column_stack([drawn[:, 0] / drawn[:, 1] - 1, drawn[:, 2] / drawn[:, 3]])
    low, high = np.quantile(found, (0.025, 0.975), axis=0)
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


#: Runs of each size; fewer than for a table, since sizes differ by more than chance.
_TIMES = 3


def fewest_workers(
    rule: str,
    requests: Requests,
    law: LawFromLog,
    fleet: tuple[int, int],
    logged: tuple[RuleRun, Floats, Floats],
    *,
    wait_may_grow: tuple[float, float],
    more_slots: bool,
    seed: int = 0,
) -> int:
    """Return the fewest workers, at least half of them, with which a rule is no slower than the log.

    Parameters
    ----------
    rule
        As `make_policy` reads it.
    logged
        The log's own run, and of each request seconds per token and the wait, seconds, (M,) each.
    wait_may_grow
        By so much the mean wait and its 99 % quantile, seconds.
    more_slots
        Whether fewer workers may have more slots each, because the log does not say how many there are.
    seed
        Of the runs.
    """
    workers, slots = fleet
    before, *each = logged
    served = requests.trace.eligibility

    def is_enough(count: int) -> bool:
        asked = requests
        if served is not None:
            kept = kept_of(served, count)
            if kept.size < count:
                return False
            fewer = replace(served, allowed=served.allowed[:, kept])
            asked = replace(requests, trace=replace(requests.trace, eligibility=fewer))
        room = math.ceil(slots * workers / count) if more_slots else slots
        setting = setting_of(count, room, law.fixed, law.per_token)
        run = run_rule(rule, asked, setting, (each[0], each[1]), seed, _TIMES)
        return bool(
            run.tpot_mean <= before.tpot_mean
            and run.wait_mean <= before.wait_mean + wait_may_grow[0]
            and run.wait_p99 <= before.wait_p99 + wait_may_grow[1]
        )

    enough, short = workers, math.ceil(workers / 2) - 1
    while enough - short > 1:
        middle = (enough + short) // 2
        if middle > 0 and is_enough(middle):
            enough = middle
        else:
            short = middle
    return enough


def kept_of(served: Eligibility, count: int) -> NDArray[np.int64]:
    """Return `count` of the workers, ascending: those that serve the same keep their share, rounded, and one at least.

    None are returned where there are more sorts of workers than that.
    """
    _, sort, many = np.unique(served.allowed, axis=1, return_inverse=True, return_counts=True)
    if count < many.size:
        return np.zeros(0, dtype=np.int64)
    share = many * (count / many.sum())
    keep = np.maximum(share.astype(np.int64), 1)
    while keep.sum() > count:
        keep[np.argmax(np.where(keep > 1, keep - share, -np.inf))] -= 1
    while keep.sum() < count:
        keep[np.argmax(np.where(keep < many, share - keep, -np.inf))] += 1
    return np.sort(np.concatenate([np.flatnonzero(sort == k)[:most] for k, most in enumerate(keep.tolist())]))
