"""How often clocks tell the barriers of small fleets: fresh ones of the independent engine, of two workers and more.

A fleet's law, lengths and load are those of a small frozen one, its workers and seed others. Barriers stand beside each
other without labels, each with its own clock, and all times are written with four resolutions.

``cd tests && python -m audit.group_rates`` prints the table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce

import numpy as np
from audit.as_log import as_log
from audit.engine import run
from audit.fleets import FLEETS
from audit.test_groups import beside, ticks

from lbopt.instances.router_log import RouterLog
from lbopt.studies.audit.findings import no_barrier
from lbopt.studies.audit.groups import groups_of
from lbopt.studies.audit.study import fleet_of

SHAPES = ((2,), (3,), (4,), (1, 1), (1, 2), (1, 3), (1, 7), (2, 2), (3, 3), (2, 6))
NOISES = (0.05, 0.2, 0.5)
CLOCKS = (0.0, 1e-3, 1e-2, 1.0)
NAMES = ("small-over", "small-busy", "small-idle", "small-chat", "eight-half", "eight-drift")


def log_of(shape: tuple[int, ...], name: str, noise: float, seed: int) -> RouterLog:
    """The log of barriers of so many workers each."""
    logs = []
    for k, workers in enumerate(shape):
        fleet = replace(FLEETS[name], G=workers, noise=noise, seed=1000 + 10 * seed + k, requests=300 * workers)
        logs.append(as_log(run(fleet, seed=100 + 10 * seed + k)))
    log = reduce(lambda one, other: beside(one, other, 7.3), logs)
    return replace(log, labels={}, workers=tuple(f"w{g}" for g in range(sum(shape))))


def verdict(shape: tuple[int, ...], log: RouterLog) -> str:
    """What was said of a log, and whether it is right."""
    groups, notes = groups_of(log)
    barrier = dict(zip(log.workers, np.repeat(np.arange(len(shape)), shape).tolist(), strict=True))
    found = [{barrier[worker] for worker in group.log.workers} for group in groups]
    if sum(map(len, found)) > len(shape):
        return "SPLIT WRONGLY"
    if len(groups) == len(shape):
        return "right, with a note" if notes else "right"
    if notes:
        return "too few, with a note"
    return "too few, refused" if all(no_barrier(fleet_of(group.log)[0]) for group in groups) else "TOO FEW, SILENT"


if __name__ == "__main__":
    for shape in SHAPES:
        counts = {tick: Counter[str]() for tick in CLOCKS}
        for seed, (name, noise) in enumerate((name, noise) for name in NAMES for noise in NOISES):
            log = log_of(shape, name, noise, seed)
            for tick in CLOCKS:
                counts[tick][verdict(shape, ticks(log, tick) if tick else log)] += 1
        for tick, found in counts.items():
            print(shape, f"{tick:g} s", dict(found), flush=True)
