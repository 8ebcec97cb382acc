"""What goes wrong on the way, with units, chunks and pass times as they are: staggered rules beside those that bind.

All rules get the same prompts and the same faults in one world of messages (`lbopt.prefill.messages`): rules that hold
requests back with the triple check (a watchdog of five typical passes, polls once a second; one of them once more with
our fourth sign, the last first token), those that bind on arrival
as a usual gateway, which sends again what a failed health check takes away, and nothing else. Prompts are *stranded*
that are never answered; no mean can count them, so that times are of those that are served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lbopt.prefill import PassTime, PrefillSetting
from lbopt.prefill.messages import MessageRun, Messages, run_messages
from lbopt.prefill.protocol.faults import FaultPlan, Outage
from lbopt.studies.staggered.places import PLACES, RULES, UNITS, most_rate
from lbopt.studies.staggered.rows import Key, Row
from lbopt.studies.staggered.trial import Trial

LOADS = (0.5, 0.7, 0.85)
CONTENDERS = ("round-robin", "jsq", "staggered", "staggered-whole", "ahead")
#: A staggered rule for which the last first token of all that an instance holds is a sign of readiness, too.
FREED = "staggered-whole, last token"
#: Requests of an instance: a run is longer than any outage.
MOST_REQUESTS = 5_000
#: s that an instance is away, and that one is away of which the health check notices only after `LATE`.
AWAY, LATE = 10.0, 30.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """What goes wrong.

    Parameters
    ----------
    plan
        From when instance 0 fails, s, if it does.
    latency
        s, each way.
    outage
        s from then on in which the prompts come that ``meanwhile`` is of.
    """

    plan: Callable[[float], FaultPlan] = field(default=lambda start: FaultPlan())
    latency: float = 0.0
    outage: float = 0.0


def _away(start: float, seconds: float = AWAY) -> tuple[Outage, ...]:
    return (Outage(0, start, start + seconds),)


FAULTS: dict[str, Trouble] = {
    "none": Trouble(),
    "none, 1 ms each way": Trouble(latency=0.001),
    "one end in ten lost": Trouble(lambda start: FaultPlan(lose=0.1)),
    "one instance mute": Trouble(lambda start: FaultPlan(mute=(Outage(0, 0.0, 1e9),))),
    "one pass in twenty 7 times as long": Trouble(lambda start: FaultPlan(slow=0.05, slow_factor=7.0)),
    "one batch in fifty lost": Trouble(lambda start: FaultPlan(lose_batch=0.02)),
    "crash, noticed after 1 s": Trouble(lambda start: FaultPlan(crashes=_away(start)), outage=AWAY),
    "crash, noticed after 30 s": Trouble(
        lambda start: FaultPlan(crashes=_away(start, LATE + AWAY), detection=LATE), outage=LATE
    ),
    "restart, unnoticed": Trouble(lambda start: FaultPlan(restarts=_away(start)), outage=AWAY),
    "cut off, noticed after 1 s": Trouble(lambda start: FaultPlan(partitions=_away(start)), outage=AWAY),
}


def measure(*, place: str, faults: str, instances: int, requests: int, version: str, seed: int) -> list[Row]:
    """Return what every rule makes of these faults, at every load."""
    trial, trouble = Trial(place, instances, requests, seed, PassTime()), FAULTS[faults]
    rows: list[Row] = []
    for load in LOADS:
        traffic = trial.requests(load * most_rate(PLACES[place], PassTime()))
        start = float(traffic.arrival[-1]) / 3
        for contender in (*CONTENDERS, FREED):
            policy, allocation = RULES[contender.partition(",")[0]]
            setting = PrefillSetting(
                instances,
                UNITS,
                policy,
                allocation,
                chunk_tokens=PLACES[place].chunk,
                latency=trouble.latency,
            )
            messages = Messages(polls=1.0, pace="median", last_token=contender == FREED)
            run = run_messages(traffic, setting, seed, trouble.plan(start), messages)
            keys: dict[str, Key] = {"place": place, "faults": faults, "load": load, "contender": contender}
            rows.append((keys, values_of(run, start, start + trouble.outage)))
    return rows


def values_of(run: MessageRun, start: float, end: float) -> dict[str, float | None]:
    """Return the quantities of a run; ``meanwhile`` is of the prompts that come from `start` to `end`, s."""
    waited, arrival = run.first_token, run.traffic.arrival
    came = (arrival >= start) & (arrival < end) & run.served
    counts = run.outcome.state.counts
    return {
        "ttft": float(np.nanmean(waited)),
        "ttft_p99": float(np.nanquantile(waited, 0.99)),
        "meanwhile": float(waited[came].mean()) if came.any() else None,
        "to_dead": float(run.sent_to_dead),
        "twice": float(run.computed_twice),
        "again": float(counts.again),
        "alarms": float(counts.faults),
        "false_alarms": float(run.outcome.false_alarms),
        "stranded": float(run.stranded.size),
    }
