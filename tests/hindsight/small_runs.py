"""Small random timetables of all kinds, and the least sum of barriers by trying every placement."""

from __future__ import annotations

import numpy as np

from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.model import Trace

KINDS = ("closed", "gaps", "equal", "zeros", "late", "long")


def small_run(kind: str, rng: np.random.Generator, most: int = 8) -> Timetable:
    """Draw a timetable: a closed loop, slots that stay empty, equal requests, empty prompts, late starts, long runs."""
    workers, slots = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    count = int(rng.integers(1, most + 1))
    prompt, output = rng.integers(0, 12, count), rng.integers(1, 7, count)
    if kind == "equal":
        prompt, output = rng.choice([0, 3, 7], count), rng.choice([2, 3, 5], count)
    if kind == "zeros":
        prompt = np.zeros(count, dtype=np.int64)
    if kind == "long":
        prompt, output = rng.integers(0, 900, count), rng.integers(1, 60, count)
    if kind in ("closed", "equal", "zeros", "long"):
        return first_come(Trace(prompt=prompt, output=output), workers, slots)
    # Each request starts some steps after it could.
    ends: list[int] = []
    rows: list[tuple[int, int, int]] = []
    clock = int(rng.integers(0, 4)) if kind == "late" else 0
    for s, o in zip(prompt.tolist(), output.tolist(), strict=True):
        clock += int(rng.integers(0, 3)) * int(rng.integers(0, 2))
        while sum(end > clock for end in ends) >= workers * slots:
            clock += 1
        rows.append((clock, s, o))
        ends.append(clock + o)
    return Timetable(workers, slots, *(np.array(column) for column in zip(*rows, strict=True)))


def least_barriers(timetable: Timetable) -> int:
    """Try every placement, workers in the order in which they are first used; plain loops, step by step."""
    workers, slots, count = timetable.num_workers, timetable.slots_per_worker, timetable.num_requests
    rows = list(zip(timetable.start.tolist(), timetable.prompt.tolist(), timetable.output.tolist(), strict=True))
    load = [[0] * workers for _ in range(timetable.num_steps)]
    held = [[0] * workers for _ in range(timetable.num_steps)]
    best = None

    def place(i: int, used: int) -> None:
        nonlocal best
        if i == count:
            cost = sum(max(step) for step in load)
            best = cost if best is None else min(best, cost)
            return
        start, prompt, output = rows[i]
        for g in range(min(workers, used + 1)):
            if any(held[start + age][g] == slots for age in range(output)):
                continue
            for age in range(output):
                load[start + age][g] += prompt + age
                held[start + age][g] += 1
            place(i + 1, max(used, g + 1))
            for age in range(output):
                load[start + age][g] -= prompt + age
                held[start + age][g] -= 1

    place(0, 0)
    assert best is not None, "a timetable that never holds more than G B requests always has a placement"
    return best
