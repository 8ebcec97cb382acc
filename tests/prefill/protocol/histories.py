"""Random fault histories by the hundred thousand: short ones, all kinds of faults, every promise watched.

    cd tests && python -m prefill.protocol.histories 100000

A history has one to three instances, three to six requests and four seconds of faults; then nothing more goes wrong,
and all requests have to be served or refused within the bound X. `--first` goes on from a seed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import numpy as np
from prefill.protocol.random_plans import random_plan
from prefill.protocol.schedules import check_outcome
from prefill.protocol.watched import Watched
from rich.progress import track

from lbopt.exceptions import LbOptError
from lbopt.prefill.protocol import ProtocolSetting, TripleCheck

#: s of a history in which something goes wrong.
UNTIL = 4.0


def draw_short(
    seed: int, scheduler: type[TripleCheck] = TripleCheck, dispatch: str = "ready", **setting: Any
) -> Watched:
    """A short history, ready to go."""
    rng = np.random.default_rng([seed, 26])
    count = int(rng.integers(1, 4))
    setting = ProtocolSetting(
        count,
        default_pass=0.5,
        latency=float(rng.choice([0.0, 0.02, 0.2])),
        window=int(rng.integers(3, 6)),
        watchdog=float(rng.choice([2.0, 3.0])),
        timer=("spacing", "tick")[seed % 2],
        idle_bypass=bool(rng.random() < 0.5),
        batch_tokens=None if rng.random() < 0.3 else int(rng.integers(1, 200)),
        patience=None if rng.random() < 0.5 else int(rng.integers(0, 6)),
        dispatch=dispatch,
        **setting,
    )
    requests = int(rng.integers(3, 7))
    arrivals = [(float(at), int(rng.integers(1, 150))) for at in np.sort(rng.random(requests) * 0.7 * UNTIL)]
    return Watched(scheduler(setting), arrivals, random_plan(rng, count, UNTIL, 0.5), seed, poll_period=1.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--dispatch", default="ready")
    parser.add_argument("--last-token", action="store_true")
    given = parser.parse_args()
    stranded, broken, counts, events, closest = 0, 0, Counter(), 0, 0.0
    began = time.process_time()
    for seed in track(range(given.first, given.first + given.count), description="histories"):
        world = draw_short(seed, dispatch=given.dispatch, last_token=given.last_token)
        try:
            outcome = world.run(UNTIL)
            check_outcome(outcome, len(world.plan.lapses))
        except (LbOptError, AssertionError) as error:
            stranded += "not served" in str(error)
            broken += 1
            print(f"seed {seed}: {error}")
            continue
        events += outcome.events
        counts.update({name: count > 0 for name, count in outcome.state.counts._asdict().items()})
        if world.last_open > world.calm:
            closest = max(closest, (world.last_open - world.calm) / world.allowed)
    spent = time.process_time() - began
    print(
        f"{given.count:,} histories, {events:,} events, {spent:.0f} s CPU: {stranded} stranded, {broken} broken "
        f"promises; at most {100 * closest:.0f} % of the bound. Histories with: "
        + ", ".join(f"{name} {count:,}" for name, count in counts.items())
    )


if __name__ == "__main__":
    main()
