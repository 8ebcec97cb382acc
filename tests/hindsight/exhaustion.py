"""The best placement of a small timetable, by trying all, with plain loops."""

from __future__ import annotations

import itertools


def sizes(timetable, row, step):
    """Return what a request shows in a step."""
    age = step - int(timetable.start[row])
    return int(timetable.prompt[row]) + age if 0 <= age < timetable.output[row] else 0


def loads(timetable, worker):
    """Return the load of each worker in each step, or None where a worker holds more than it has slots."""
    found = []
    for step in range(timetable.num_steps):
        load, held = [0] * timetable.num_workers, [0] * timetable.num_workers
        for row, g in enumerate(worker):
            if 0 <= step - timetable.start[row] < timetable.output[row]:
                load[g] += sizes(timetable, row, step)
                held[g] += 1
        if max(held) > timetable.slots_per_worker:
            return None
        found.append(load)
    return found


def least(timetable):
    """Return the least sum of barriers over all placements."""
    best = None
    for worker in itertools.product(range(timetable.num_workers), repeat=timetable.num_requests):
        found = loads(timetable, worker)
        if found is not None:
            barriers = sum(max(load) for load in found)
            best = barriers if best is None else min(best, barriers)
    return best
