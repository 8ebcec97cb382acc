"""How long the watchdog should wait: multiples of the typical pass, with faults and without.

The triple check runs in the world that its tests use: instances with a chunk of `CHUNK` tokens and a pass of half a
second and 5 ms a token, so that a full pass takes the default pass of 1 s. Times are therefore in full passes. Prompts
are lognormal with a mean of a fifth of the chunk, at `LOAD` of the rate that saturates the fleet, and a batch takes
what one pass has room for. An end of pass that got lost is made good by a poll, if there are any, or by the watchdog:
`polls` are a second apart, or farther than the run is long.

One fault has a load of its own: an instance dies, and the health check notices after `DETECTION`. Of the prompts that
come meanwhile, `to_dead` is the share that is sent to it, and `ttft_meanwhile` their mean time to first token.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lbopt.prefill import PassTime
from lbopt.prefill.protocol import ProtocolSetting, TripleCheck
from lbopt.prefill.protocol.faults import Devices, FaultPlan, Outage
from lbopt.prefill.protocol.world import Outcome, World
from lbopt.studies.staggered.rows import Key, Row

MULTIPLES = (2, 5, 10)
#: s between polls.
POLLS = {"on": 1.0, "off": 1e6}
CHUNK, MEAN, SPREAD, LOAD = 100, 20.0, 1.0, 0.6
#: Measured passes that the interval and the timeout are the median of.
WINDOW = 50
#: Requests of a run, and how many s an instance is away.
REQUESTS, AWAY = 600, 10.0
#: s until a health check notices that an instance is dead, and the load meanwhile.
DETECTION, LOAD_OF_DEATH = 30.0, 0.7
DEATH = "one instance dies, noticed late"
#: What goes wrong in a run of so many s.
FAULTS: dict[str, Callable[[float], FaultPlan]] = {
    "none": lambda until: FaultPlan(),
    "one end in ten lost": lambda until: FaultPlan(lose=0.1),
    "one instance mute": lambda until: FaultPlan(mute=(Outage(0, 0.0, until),)),
    "one pass in twenty 7 times as long": lambda until: FaultPlan(slow=0.05, slow_factor=7.0),
    "one instance crashes": lambda until: FaultPlan(crashes=(Outage(0, until / 3, until / 3 + AWAY),)),
    "one instance cut off": lambda until: FaultPlan(partitions=(Outage(0, until / 3, until / 3 + AWAY),)),
    "one instance restarts unnoticed": lambda until: FaultPlan(restarts=(Outage(0, until / 3, until / 3 + AWAY),)),
    "one batch and one answer in ten lost": lambda until: FaultPlan(lose_batch=0.1, lose_answer=0.1),
    DEATH: lambda until: FaultPlan(crashes=(Outage(0, until / 3, until / 3 + 2 * DETECTION),), detection=DETECTION),
}


def measure(*, faults: str, instances: int, requests: int, version: str, seed: int) -> list[Row]:
    """Return what every multiple makes of these faults, with polls and without; `requests` are of the run."""
    arrival, tokens = _traffic(instances, requests, seed, LOAD_OF_DEATH if faults == DEATH else LOAD)
    until = float(arrival[-1])
    rows: list[Row] = []
    for polls, period in POLLS.items():
        for multiple in MULTIPLES:
            setting = ProtocolSetting(instances, window=WINDOW, watchdog=multiple, batch_tokens=CHUNK)
            world = World(
                TripleCheck(setting),
                list(zip(arrival.tolist(), tokens.tolist(), strict=True)),
                FAULTS[faults](until),
                seed,
                Devices(CHUNK, pass_time=PassTime(0.5, 0.005)),
                poll_period=period,
            )
            keys: dict[str, Key] = {"faults": faults, "polls": polls, "multiple": multiple}
            outcome = world.run(until)
            values = values_of(outcome, arrival)
            if faults == DEATH:
                values |= meanwhile(outcome, arrival, until / 3, until / 3 + DETECTION)
            rows.append((keys, values))
    return rows


def values_of(outcome: Outcome, arrival: NDArray[np.float64]) -> dict[str, float | None]:
    """Return the quantities of a run; `arrival` (n,) in s."""
    at = np.array(outcome.delivered_at)
    waited = at - arrival[list(outcome.delivered)]
    return {
        "ttft": float(waited.mean()),
        "ttft_p99": float(np.quantile(waited, 0.99)),
        "stall": longest_stall(arrival, at),
        "alarms": float(outcome.state.faults),
        "false_alarms": float(outcome.false_alarms),
        "degraded": float(outcome.state.degraded),
        "twice": float(sum(times > 1 for times in outcome.executions.values())),
        "requeued": float(len(outcome.requeued)),
        "duplicates": float(outcome.state.counts.duplicates),
    }


def meanwhile(outcome: Outcome, arrival: NDArray[np.float64], start: float, end: float) -> dict[str, float | None]:
    """Return what the death of an instance costs those who come from `start` to `end`, when it is noticed.

    Parameters
    ----------
    arrival
        (n,), s.
    """
    came = (arrival >= start) & (arrival < end)
    at = np.full(len(arrival), np.nan)
    at[list(outcome.delivered)] = outcome.delivered_at
    count = int(came.sum())
    return {
        "came": float(count),
        "to_dead": len(outcome.sent_to_dead) / count if count else None,
        "ttft_meanwhile": float((at - arrival)[came].mean()) if count else None,
    }


def longest_stall(arrival: NDArray[np.float64], delivered_at: NDArray[np.float64]) -> float:
    """Return the longest time without a first token while a request waits for one, s; both arrays ascend."""
    longest, last = 0.0, 0.0
    for served, now in enumerate(delivered_at.tolist()):
        # With `served` handed on, a request waits from the arrival of the next one on.
        longest = max(longest, now - max(last, float(arrival[served])))
        last = now
    return longest


def _traffic(instances: int, count: int, seed: int, load: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    gaps, lengths = (np.random.default_rng([seed, part]) for part in (0, 9))
    arrival = np.cumsum(gaps.exponential(MEAN / (load * CHUNK * instances), count))
    drawn = lengths.lognormal(np.log(MEAN) - SPREAD**2 / 2, SPREAD, count)
    return arrival, np.clip(np.rint(drawn), 1, CHUNK).astype(np.int64)
