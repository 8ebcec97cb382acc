"""Random fault histories of instances with units and chunks, batches by allocation rules, every promise watched.

cd tests && python -m prefill.protocol.unit_histories 2000
"""

import argparse
import time
from collections import Counter

import numpy as np
from prefill.protocol.random_plans import random_plan
from prefill.protocol.schedules import check_outcome
from prefill.protocol.watched import Watched

from lbopt.exceptions import LbOptError
from lbopt.prefill import PassTime
from lbopt.prefill.protocol import ProtocolSetting, TripleCheck
from lbopt.prefill.protocol.faults import Devices

RULES = ("round-robin", "least-loaded", "longest-first", "pbaa", "pbaa:whole=yes", "backfill")
#: s of a history in which something goes wrong.
UNTIL = 6.0


def draw_units(seed: int, scheduler: type[TripleCheck] = TripleCheck, dispatch: str = "ready") -> Watched:
    """A history, ready to go: one in three with moments, which no monitor watches."""
    rng = np.random.default_rng([seed, 2604])
    count, units, chunk = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.choice([20, 60, 100]))
    capacity = int(rng.integers(1, 4)) if rng.random() < 0.3 else None
    engine = str(rng.choice(["work-conserving", "work-conserving", "back-to-back"]))
    if dispatch == "ahead":
        capacity, engine = None, "work-conserving"
    timer = str(rng.choice(["spacing", "tick", "lattice", "none"]))
    timer = "lattice" if engine == "back-to-back" and timer == "tick" else timer
    back = rng.choice([None, 0.0, 0.1])
    announced = bool(rng.random() < 0.5) or engine == "back-to-back"
    setting = ProtocolSetting(
        count,
        default_pass=0.5,
        latency=float(rng.choice([0.0, 0.02, 0.2])),
        latency_back=None if back is None else float(back),
        window=int(rng.integers(3, 6)),
        watchdog=float(rng.choice([2.0, 3.0])),
        timer=timer,
        idle_bypass=bool(rng.random() < 0.5),
        units=units,
        chunk=chunk,
        requests_per_pass=capacity,
        allocation=str(rng.choice(RULES)),
        target=str(rng.choice(["skip", "ring", "free"])),
        ready=str(rng.choice(["ended", "free"])),
        engine=engine,
        announced=announced,
        patience=None if rng.random() < 0.7 else int(rng.integers(0, 6)),
        dispatch=dispatch,
    )  # fmt: skip
    requests = int(rng.integers(3, 12))
    arrivals = [(float(at), int(rng.integers(1, 150))) for at in np.sort(rng.random(requests) * 0.7 * UNTIL)]
    phases = tuple(np.sort(rng.random(count) * 0.5).tolist()) if announced else ()
    law = PassTime(0.25, 0.002, 0.001, 0.001)
    return Watched(
        scheduler(setting),
        arrivals,
        random_plan(rng, count, UNTIL, 0.5),
        seed,
        poll_period=1.0,
        devices=Devices(chunk, capacity, units, law, engine, phases),
        moments=seed % 3 == 2,
    )


def run_and_check(seed: int, dispatch: str = "ready") -> Watched:
    world = draw_units(seed, dispatch=dispatch)
    outcome = world.run(UNTIL)
    check_outcome(outcome, len(world.plan.lapses))
    return world


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--dispatch", default="ready")
    given = parser.parse_args()
    broken, events, counts, closest = 0, 0, Counter(), 0.0
    began = time.process_time()
    for seed in range(given.first, given.first + given.count):
        try:
            world = run_and_check(seed, given.dispatch)
        except (LbOptError, AssertionError) as error:
            broken += 1
            print(f"seed {seed}: {str(error)[:300]}", flush=True)
            if given.show:
                print(draw_units(seed).setting, draw_units(seed).plan)
            continue
        events += world.events
        counts.update({name: count > 0 for name, count in world.state.counts._asdict().items()})
        if world.last_open > world.calm:
            closest = max(closest, (world.last_open - world.calm) / world.allowed)
    spent = time.process_time() - began
    print(
        f"{given.count:,} histories, {events:,} events, {spent:.0f} s CPU: {broken} broken; at most "
        f"{100 * closest:.0f} % of the bound. " + ", ".join(f"{name} {count:,}" for name, count in counts.items())
    )


if __name__ == "__main__":
    main()
