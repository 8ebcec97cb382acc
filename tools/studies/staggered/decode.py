"""Decode: the spread of KV and of requests over units, and the time of a step that waits for the worst of them.

The fleet and the lengths are those of the reproduction of figures 7 and 8 of SBS: 32 units with 35
requests each on average, Poisson arrivals counted in steps, so that loads do not depend on the time of a step. Requests
come one by one, or together as a prefill pass hands them over. Algorithm 3 (`iqr`) is held against the exact programs
for each arriving batch, D2 (counts as level as possible, then the largest load) and D3 (the barrier time).

A step takes t0 + max over units of (alpha B + beta K), beta = 26 ns a token (`policies.decode_programs`). alpha is what
is missing for the printed gain: with the worst loads of figure 7 before and after, 150K and 100K tokens, and worst
batches as many requests as these loads make at 2.5K tokens each (not printed, and ours), the step becomes 15 % shorter
as throughput has it. At t0 = 5 ms reading KV is more than enough for that, and alpha is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lbopt.hardware import make_step_time
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import Run, SimulationSetting, TraceTimes, simulate
from lbopt.studies.staggered.rows import Key, Row
from tools.studies.reproduction.cell import measured
from tools.studies.reproduction.drawn import draw
from tools.studies.reproduction.kv_spread import BATCH, FIXED_MILLISECONDS, LENGTHS, SECONDS_PER_TOKEN, B, G

#: Requests that come together on average: at the printed rate of 70 a second, those of a pass of 0.31 s.
HANDED_OVER = 22
ARRIVALS: dict[str, dict[str, float]] = {
    "one by one": LENGTHS,
    f"{HANDED_OVER} together": LENGTHS | {"batch": float(HANDED_OVER)},
}
#: t0 of a step, ms.
FIXED = FIXED_MILLISECONDS
BASELINES = ("round-robin", "random", "jsq")
THEIRS = "iqr"
EXACT = ("level-then-load", "barrier-time")
RULES = (*BASELINES, THEIRS, "jsq-load", *EXACT)
#: The t0 whose alpha `barrier-time` goes by, ms.
AIMED_AT = 20
#: Fewer requests than this never fill the fleet to its 35 a unit.
FEWEST_REQUESTS = 2000
#: s, for a decision of an exact program.
TIME_LIMIT = 0.02
#: The printed gain in throughput, and worst loads, tokens, before and after it; tokens of a request.
GAIN, WORST_BEFORE, WORST_AFTER, TOKENS = 0.15, 150e3, 100e3, 2500.0


def seconds_per_request(fixed: float) -> float:
    """Return alpha, s, with which the printed worst loads make the printed gain beside a fixed part of `fixed` s."""
    missing = GAIN * fixed - SECONDS_PER_TOKEN * (WORST_BEFORE - (1 + GAIN) * WORST_AFTER)
    return max(0.0, missing / ((WORST_BEFORE - (1 + GAIN) * WORST_AFTER) / TOKENS))


def measure(*, arrivals: str, requests: int, version: str, seed: int) -> list[Row]:
    """Return what every rule leaves of spread, while `requests` arrive, their first quarter left out."""
    trace = draw(ARRIVALS[arrivals], requests, seed)
    setting = SimulationSetting(
        Fleet(G, B), TraceTimes(BATCH / B), step_time=make_step_time("affine:fixed=0.04,per_token=0")
    )
    found: dict[str, dict[str, float | None]] = {}
    for rule in RULES:
        run = simulate(trace, make_policy(spec_of(rule)), setting, seed=seed, keep_loads=True)
        found[rule] = values_of(run)
        decided = sum(run.tally.values())
        found[rule]["open"] = run.tally.get("open", 0) / decided if decided else None
    rows: list[Row] = []
    for rule, values in found.items():
        sd = values["sd_tokens"]
        ratios = {f"sd_over_{base}": _ratio(sd, found[base]["sd_tokens"]) for base in BASELINES}
        keys: dict[str, Key] = {"arrivals": arrivals, "contender": rule}
        rows.append((keys, values | ratios))
    return rows


def spec_of(rule: str) -> str:
    """Return the policy that a rule is, with its options; exact programs leave a decision after `TIME_LIMIT`."""
    if rule == "barrier-time":
        alpha, beta = (round(1e9 * seconds) for seconds in (seconds_per_request(AIMED_AT / 1e3), SECONDS_PER_TOKEN))
        return f"{rule}:alpha={alpha},beta={beta},time_limit={TIME_LIMIT}"
    return f"{rule}:time_limit={TIME_LIMIT}" if rule in EXACT else rule


def values_of(run: Run) -> dict[str, float | None]:
    """Return the quantities of a run: tokens and requests of a unit in a step, ms of a step, tokens a second."""
    rows = measured(run).rows
    tokens = run.steps["barrier_loads"][rows].astype(np.float64)
    requests = running(run)[rows].astype(np.float64)
    values: dict[str, float | None] = {
        "sd_tokens": float(tokens.std(axis=1).mean()),
        "max_tokens": float(tokens.max(axis=1).mean()),
        "peak_tokens": float(tokens.max()),
        "mean_tokens": float(tokens.mean()),
        "sd_requests": float(requests.std(axis=1).mean()),
        "max_requests": float(requests.max(axis=1).mean()),
        "mean_requests": float(requests.mean()),
    }
    for fixed in FIXED:
        alpha = seconds_per_request(fixed / 1e3)
        step = fixed / 1e3 + (alpha * requests + SECONDS_PER_TOKEN * tokens).max(axis=1)
        values[f"step_ms_{fixed:02d}"] = float(1e3 * step.mean())
        values[f"throughput_{fixed:02d}"] = float(requests.sum() / step.sum())
    return values


def running(run: Run) -> NDArray[np.int64]:
    """Return the requests that run on each unit in each step, int64 (steps, G)."""
    change = np.zeros((run.num_steps + 1, run.setting.fleet.num_workers), dtype=np.int64)
    np.add.at(change, (run.requests["start_step"], run.requests["worker"]), 1)
    np.add.at(change, (run.requests["finish_step"], run.requests["worker"]), -1)
    counts: NDArray[np.int64] = np.cumsum(change, axis=0)[:-1]
    return counts


def _ratio(ours: float | None, other: float | None) -> float | None:
    return None if ours is None or not other else ours / other
