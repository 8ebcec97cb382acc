"""`python -m tests.benchmarks.live_router`: decisions of the router of a live fleet, how right and how quick.

Right: eight threads begin and end requests on one router while another closes workers and exchanges tables; every
decision of the log is compared with the naive one on the counts of its version. Quick: processor time of the deciding
thread for `begin` and for `end`, counts given, 48 layers of 128 experts, all kept or those that a fit keeps, over
decisions one after the other; and wall time of single decisions with two threads at once. Requests are others than
those of the fit.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import Counter
from functools import cache

import numpy as np
from rich.console import Console
from rich.table import Table

from lbopt.locality import (
    ExpertActivity,
    LiveRouter,
    draw_activity,
    draw_workload,
    fit_routing,
    language_workload,
    task_workload,
)
from lbopt.locality.domains import draw_domains
from tests.locality.live_log import TAU, replay, run_threads, tables

TAU_TIMED = 0.1
#: Parts in which processor time is taken, and blocks of each of two threads for wall time.
PARTS, BLOCKS = 50, 20


def right(decisions: int, threads: int) -> Table:
    """Count decisions that are not the naive ones."""
    made, counts, near = tables()
    log = run_threads(LiveRouter(made[0], TAU), made, counts, threads, decisions // threads)
    wrong, load = replay(log, near, made)
    kinds = Counter(row[1] for row in log)
    table = Table("threads", "decisions", "ends", "tables exchanged", "wrong", "in flight at the end", box=None)
    table.add_row(
        *(str(threads), f"{kinds['begin']:,}", f"{kinds['end']:,}", f"{kinds['table']:,}"),
        *(str(wrong), str(sum(load.values()))),
    )
    return table


@cache
def drawn(kind: str) -> tuple[ExpertActivity, np.ndarray]:
    """600 calibration requests of a workload at the size of the paper, and counts of 300 others of the same world."""
    config = (task_workload if kind == "task" else language_workload)(requests=600, decode_steps=8)
    world, activity = draw_workload(config, seed=1)
    rng = np.random.default_rng(2)
    return activity, draw_activity(world, draw_domains(np.array(config.shares), 300, rng), 256, 1, rng).counts


def quick(kind: str, workers: int, decisions: int, *, mask: bool) -> tuple[str, ...]:
    """Time decisions; the processor time of the thread alone, since others share the machine."""
    activity, counts = drawn(kind)
    table = fit_routing(activity, workers, mask=mask, starts=1).table
    router = LiveRouter(table, TAU_TIMED)
    order = np.random.default_rng(1).integers(len(counts), size=decisions).tolist()
    for i in order[:1000]:
        router.end(router.begin(counts[i]).ticket)
    live: list[int] = []
    parts = []
    for part in range(PARTS):  # a few hundred requests are in flight, as in a fleet
        some = order[part::PARTS]
        ended = live[: len(some) // 2]
        start = time.thread_time_ns()
        live.extend(router.begin(counts[i]).ticket for i in some)
        middle = time.thread_time_ns()
        for ticket in live[: len(ended) + len(some)]:
            router.end(ticket)
        end = time.thread_time_ns()
        ends = len(ended) + len(some)
        del live[:ends]
        parts.append(((middle - start) / len(some), (end - middle) / ends))
    begin, end = np.array(parts).T / 1e3
    waits: list[list[int]] = [[], []]

    def serve(mine: list[int]) -> None:
        for i in order:
            before = time.perf_counter_ns()
            placed = router.begin(counts[i])
            mine.append(time.perf_counter_ns() - before)
            router.end(placed.ticket)

    pair = [threading.Thread(target=serve, args=(mine,)) for mine in waits]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()
    blocks = np.array([np.quantile(np.split(np.array(mine), BLOCKS), [0.5, 0.99], axis=1) for mine in waits]) / 1e3
    p50, p99 = blocks[:, 0].min(), blocks[:, 1]
    return (
        *(kind, str(workers), str(table.layers.size), f"{begin.min():.1f}", f"{np.median(begin):.1f}"),
        *(f"{end.min():.1f}", f"{p50:.0f}", f"{p99.min():.0f}", f"{np.median(p99):.0f}"),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--timed", type=int, default=100_000)
    given = parser.parse_args()
    console = Console(width=160)
    if given.timed:
        table = Table(
            *("workload", "workers", "layers kept", "begin, best part (us)", "median part", "end, best"),
            *("wall P50, best block", "P99, best block", "P99, median block"),
            box=None,
        )
        for kind in ("task", "language"):
            for workers in (16, 144):
                for mask in (True, False):
                    table.add_row(*quick(kind, workers, given.timed, mask=mask))
        console.print(table)
    if given.decisions:
        console.print(right(given.decisions, given.threads))


if __name__ == "__main__":
    main()
