"""Which searcher finds which planted defect, and with how much: a table in Markdown.

    cd tests && python -m prefill.protocol.who_finds

The explorer goes deeper until it finds the defect, up to five moves (two faults, health checks and doubled arrivals),
and tries other readings; histories are those of `histories`, in order; the adversary is the one of the tests, a hundred
examples of it, unshrunk.
"""

from __future__ import annotations

import sys
import time

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from prefill.protocol.adversary import Adversary
from prefill.protocol.defects import DEFECTS
from prefill.protocol.explore import explore
from prefill.protocol.histories import UNTIL, draw_short
from prefill.protocol.schedules import check_outcome

from lbopt.exceptions import LbOptError

FOUND = (LbOptError, AssertionError)
#: Depth and reading, in the order in which they are tried.
READINGS = (
    (3, "", {}),
    (4, "", {}),
    (4, "patience", {"batch_tokens": 100, "patience": 0}),
    (4, "polls", {"polls": True, "idle_bypass": True}),
    (5, "", {}),
)


def by_exploring(defect) -> str:
    for depth, name, options in READINGS:
        try:
            explore(depth, 2, defect, checks=True, **options)
        except FOUND:
            return f"{depth} moves{f' ({name})' if name else ''}"
    return "no"


def by_histories(defect, most: int = 1000) -> str:
    for seed in range(most):
        world = draw_short(seed, defect)
        try:
            check_outcome(world.run(UNTIL, most_events=4000), len(world.plan.lapses))
        except FOUND:
            return f"{seed + 1:,}"
    return "no"


def by_the_adversary(defect, most: int = 100) -> str:
    class Against(Adversary):
        scheduler_class = defect

    unshrunk = settings(
        max_examples=most,
        stateful_step_count=40,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    try:
        run_state_machine_as_test(Against, settings=unshrunk)
    except FOUND:
        return "yes"
    return "no"


def main() -> None:
    print("| defect | explorer | histories until found | adversary |\n|---|---|--:|---|")
    for defect in DEFECTS:
        began = time.process_time()
        row = by_exploring(defect), by_histories(defect), by_the_adversary(defect)
        print(f"| `{defect.__name__}` | {' | '.join(row)} |", flush=True)
        print(f"{defect.__name__}: {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
