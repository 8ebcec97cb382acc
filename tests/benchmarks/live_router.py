"""`python -m tests.benchmarks.live_router`: decisions of the router of a live fleet, how right and how quick.

Right: eight threads begin and end requests on one router while another closes workers and exchanges tables; every
decision of the log is compared with the naive one on the counts of its version. Quick: processor time of the deciding
thread for `begin` and for `end`, counts given, 48 layers of 128 experts, all kept or those that a fit keeps, over
decisions one after the other; and wall time of single decisions with two threads at once.
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

from lbopt.locality import ExpertActivity, LiveRouter, draw_workload, fit_routing, task_workload
from tests.locality.live_log import TAU, replay, run_threads, tables


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
def activity() -> ExpertActivity:
    """300 requests of a task workload at the size of the paper."""
    return draw_workload(task_workload(requests=300, decode_steps=8), seed=1)[1]


def quick(workers: int, decisions: int, *, mask: bool) -> tuple[str, ...]:
    """Time decisions; the processor time of the thread alone, since others share the machine."""
    counts = activity().counts
    table = fit_routing(activity(), workers, mask=mask, starts=1).table
    router = LiveRouter(table, 0.1)
    order = np.random.default_rng(1).integers(len(counts), size=decisions).tolist()
    for i in order[:1000]:
        router.end(router.begin(counts[i]).ticket)
    live, best = [], [np.inf, np.inf]
    for part in range(50):  # the best of fifty parts, and all of them
        some = order[part::50]
        start = time.thread_time_ns()
        for i in some:
            placed = router.begin(counts[i])
            live.append(placed.ticket)
        middle = time.thread_time_ns()
        for ticket in live:
            router.end(ticket)
        end = time.thread_time_ns()
        live.clear()
        best = [min(best[0], (middle - start) / len(some)), min(best[1], (end - middle) / len(some))]
    whole = time.thread_time_ns()
    for i in order:
        router.end(router.begin(counts[i]).ticket)
    whole = (time.thread_time_ns() - whole) / decisions
    waits: list[list[int]] = [[], []]

    def serve(mine: list[int]) -> None:
        for i in order[: decisions // 5]:
            before = time.perf_counter_ns()
            placed = router.begin(counts[i])
            mine.append(time.perf_counter_ns() - before)
            router.end(placed.ticket)

    pair = [threading.Thread(target=serve, args=(mine,)) for mine in waits]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join()
    wall = np.quantile(np.concatenate(waits), [0.5, 0.99]) / 1e3
    return (
        *(str(workers), str(table.layers.size), f"{best[0] / 1e3:.1f}", f"{best[1] / 1e3:.1f}", f"{whole / 1e3:.1f}"),
        *(f"{wall[0]:.0f}", f"{wall[1]:.0f}"),
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
            "workers",
            "layers kept",
            "begin, best (us)",
            "end, best (us)",
            "begin and end, mean (us)",
            "wall P50",
            "P99",
            box=None,
        )
        for workers in (16, 144):
            for mask in (False, True):
                table.add_row(*quick(workers, given.timed, mask=mask))
        console.print(table)
    if given.decisions:
        console.print(right(given.decisions, given.threads))


if __name__ == "__main__":
    main()
