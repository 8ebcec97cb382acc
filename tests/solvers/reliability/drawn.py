"""Random step problems of every kind, with numbers from 0 to all that 2**62 leaves room for.

Loads over windows are computed here a second time, from the description of the constructors.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lbopt.model import StepProblem

#: Sizes are drawn up to one of these; None stands for as much as the totals allow.
TOPS = (1, 3, 12, 100, 10**4, 10**6, 2**31, 2**40, 2**53, 2**55, None, None)

KINDS = ("now", "now", "partition", "cold", "alike", "free window", "survives", "known ends", "flat window")

#: The largest total that a problem may reach.
LARGEST = 2**62


@dataclass
class Drawn:
    """A problem as plain lists, what the constructor made of it, and what else is asked."""

    kind: str
    base: list[list[int]]
    slots: list[int]
    work: list[list[int]]
    must: list[bool]
    problem: StepProblem
    hint: list[int] | None = None
    tie: str = "any"
    solvers: list[tuple[str, float | None]] = field(default_factory=list)  # (solver, time limit)

    @property
    def admitted(self) -> int:
        """Requests to admit."""
        return min(len(self.work), sum(self.slots))


def drawn(seed: str, *, requests: int = 8) -> Drawn:
    """The problem of a seed, with up to so many requests.

    Parameters
    ----------
    seed
        Any text.
    requests
        Most requests; problems with a window have two fewer.
    """
    rng = random.Random(seed)
    kind = rng.choice(KINDS)
    G = rng.randint(1, 5)
    horizon = rng.randint(1, 3) if kind in ("free window", "survives", "known ends", "flat window") else 0
    N = rng.randint(0 if rng.random() < 0.1 else 1, requests - 2 * (horizon > 0))
    slots = _slots(rng, kind, G, N)
    room = LARGEST // (G * (horizon + 1) * (1 + min(max(slots), N)))
    top = min(rng.choice(TOPS) or room, room)
    number = _numbers(rng, top)
    made = _window(rng, kind, slots, N, horizon, number, top)
    base, work, build = made
    must = [False] * N
    if rng.random() < 0.4:
        for i in rng.sample(range(N), rng.randint(0, min(N, sum(slots)))):
            must[i] = True
    one = Drawn(kind, base, slots, work, must, build(must))
    if rng.random() < 0.3:
        one.hint = _placement(rng, one)
    if N <= 6 and G * (horizon + 1) <= 12 and rng.random() < 0.4:
        one.tie = "leximax"
    one.solvers = [("exact", None), ("search", None)]
    if rng.random() < 0.1:
        one.solvers.append(("search", 10 ** rng.uniform(-6, -3)))
    if rng.random() < 0.25:
        one.solvers.append((rng.choice(["brute-force", "auto", "cp-sat", "highs"]), 5.0))
    return one


def _slots(rng: random.Random, kind: str, G: int, N: int) -> list[int]:
    if kind == "partition":  # all requests are admitted
        slots = [rng.randint(0, 3) for _ in range(G)]
        while sum(slots) < N:
            slots[rng.randrange(G)] += 1
    elif kind == "cold":
        slots = [rng.randint(0, 4) for _ in range(G)]
    else:
        slots = [rng.randint(0, 3) for _ in range(G)]
    if kind == "alike":
        slots = [slots[0]] * G
    if rng.random() < 0.08:  # as good as no limit
        slots[rng.randrange(G)] = rng.choice([N, 50, 10**9, 2**40, LARGEST])
    return slots


def _numbers(rng: random.Random, top: int):
    """A source of numbers from 0 to `top`, in one of several styles."""
    few = [rng.randint(0, top) for _ in range(3)]
    unit = rng.choice([2, 3, 10, 2**20])
    return {
        "any": lambda: rng.randint(0, top),
        "few": lambda: rng.choice(few),
        "alike": lambda: top - rng.randint(0, min(top, 50)),
        "large or small": lambda: rng.choice([rng.randint(0, top), rng.randint(0, min(top, 9))]),
        "powers": lambda: min(top, 2 ** rng.randint(0, max(0, top.bit_length() - 1))),
        "multiples": lambda: rng.randint(0, top // unit) * unit,
    }[rng.choice(["any", "any", "few", "alike", "large or small", "powers", "multiples"])]


def _window(rng: random.Random, kind: str, slots: list[int], N: int, horizon: int, number: Any, top: int):
    """Return base, work, and what builds the problem from the flags of those that must be admitted."""
    G, steps = len(slots), range(horizon + 1)
    loads, sizes = [number() for _ in range(G)], [number() for _ in range(N)]
    if kind == "alike":
        loads = [loads[0]] * G
    if kind == "cold":
        loads = [rng.choice([0, load // 10]) for load in loads]
    if horizon == 0:
        base, work = [[load] for load in loads], [[size] for size in sizes]
        return base, work, lambda must: StepProblem.now(loads, slots, sizes, must)
    if kind == "flat window":  # what is placed weighs the same at each step
        base = [[number() for _ in steps] for _ in loads]
        work = [[size] * len(steps) for size in sizes]
        return base, work, lambda must: StepProblem(base, slots, _column(sizes), must)
    if kind == "free window":
        base = [[number() for _ in steps] for _ in loads]
        work = [[number() for _ in steps] for _ in sizes]
        return base, work, lambda must: StepProblem(base, slots, work or _column([]), must)
    return _growing(rng, kind, slots, horizon, sizes, number, top)


def _column(sizes: list[int]) -> np.ndarray:
    return np.array(sizes, dtype=np.int64)[:, None]


def _growing(rng: random.Random, kind: str, slots: list[int], horizon: int, sizes: list[int], number: Any, top: int):
    """Requests that run, grow and leave; new ones that outlive the window, or end in it."""
    steps = range(horizon + 1)
    growth = rng.choice([0, 1, 1, 2, top // (8 * (horizon + 1))])
    sizes = [size // 2 for size in sizes]
    running = [[(number() // 8, rng.randint(1, horizon + 2)) for _ in range(rng.randint(0, 2))] for _ in slots]
    rest = [number() // 8 for _ in slots]
    active = [len(those) + rng.randint(0, 2) for those in running]
    loads = [more + sum(size for size, _ in those) for more, those in zip(rest, running, strict=True)]
    base = []
    for load, those, count in zip(loads, running, active, strict=True):
        row = []
        for h in steps:
            gone = [size for size, remaining in those if h >= remaining]
            row.append(load - sum(gone) + (count - len(gone)) * growth * h)
        base.append(row)
    ends = [rng.randint(1, horizon + 2) for _ in sizes] if kind == "known ends" else [horizon + 1] * len(sizes)
    work = [[size + growth * h if h < end else 0 for h in steps] for size, end in zip(sizes, ends, strict=True)]
    departures = [(g, remaining, size) for g, those in enumerate(running) for size, remaining in those]
    given = {"horizon": horizon, "active": active, "departures": departures, "growth": growth}

    def build(must: list[bool]) -> StepProblem:
        if kind == "known ends":
            return StepProblem.known_ends(loads, slots, sizes, ends, **given, must_admit=must)
        return StepProblem.survives(loads, slots, sizes, **given, must_admit=must)

    return base, work, build


def _placement(rng: random.Random, one: Drawn) -> list[int]:
    """A random feasible assignment."""
    free = [g for g, count in enumerate(one.slots) for _ in range(min(count, len(one.work)))]
    rng.shuffle(free)
    order = list(range(len(one.work)))
    rng.shuffle(order)
    order.sort(key=lambda i: not one.must[i])
    placed = [-1] * len(one.work)
    for i, g in zip(order[: one.admitted], free, strict=False):
        placed[i] = g
    return placed
