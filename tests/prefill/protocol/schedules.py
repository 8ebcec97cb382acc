"""Fault schedules from a seed: a setting, arrivals and faults, all readings and all kinds of them."""

import numpy as np
from prefill.protocol.random_plans import random_plan
from prefill.protocol.watched import Watched

from lbopt.prefill.protocol import ProtocolSetting, TripleCheck
from lbopt.prefill.protocol.world import Outcome

UNTIL = 30.0


def draw(seed: int, scheduler: type[TripleCheck] = TripleCheck, **fixed) -> Watched:
    """A run of `scheduler`, ready to go; `fixed` options of the setting are not drawn."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    drawn = {
        "latency": float(rng.choice([0.0, 0.05, 0.4])),
        "window": int(rng.integers(3, 8)),
        "watchdog": float(rng.choice([2.0, 5.0, 10.0])),
        "timer": ("spacing", "tick")[seed % 2],
        "idle_bypass": bool(rng.random() < 0.5),
        "batch_tokens": None if rng.random() < 0.3 else int(rng.integers(1, 200)),
        "patience": None if rng.random() < 0.5 else int(rng.integers(0, 6)),
    }
    requests = int(rng.integers(5, 50))
    arrivals = [(float(at), int(rng.integers(1, 150))) for at in np.sort(rng.random(requests) * UNTIL)]
    plan = random_plan(rng, count, UNTIL, 1.0)
    return Watched(scheduler(ProtocolSetting(count, **{**drawn, **fixed})), arrivals, plan, seed)


def check_outcome(outcome: Outcome, lapses: int = 0) -> None:
    """Nobody lost, nobody served twice, and no work done twice but where a request was queued again.

    An instance that forgets what it received takes a doubled batch a second time: once for each of `lapses`.
    """
    requests = range(len(outcome.executions))
    assert sorted(outcome.delivered + outcome.refused) == list(requests)
    for request, times in outcome.executions.items():
        assert times <= 1 + lapses + outcome.requeued.get(request, 0), f"request {request} was prefilled {times} times"
        assert times >= 1 or request in outcome.refused


def run_and_check(world: Watched) -> Outcome:
    """Run a world of `draw` to its end."""
    outcome = world.run(UNTIL)
    check_outcome(outcome, len(world.plan.lapses))
    return outcome
