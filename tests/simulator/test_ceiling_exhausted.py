"""The ceilings against every run that there is: all placements and all start times of a few requests.

The enumeration shares nothing with lbopt: it holds what runs on each worker as (size, tokens left), counts time in
fractions, and tries at every decision every way to start any of those who have arrived, nobody included. Idle workers
may also wait for the next arrival. What the best run takes, by each measure on its own, no ceiling may pass.
"""

import itertools
import random
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from lbopt.hardware import AffineStepTime, PowerLaw
from lbopt.model import Fleet, Trace
from lbopt.simulator import Detail, SimulationSetting, TraceTimes
from lbopt.simulator.ceiling import Ceilings, ceilings, in_a_row

Workers = tuple[tuple[tuple[int, int], ...], ...]


@dataclass
class Best:
    """Least steps, seconds of steps, last end, and energy, each of some run."""

    steps: int = 10**9
    busy: Fraction = Fraction(10**9)
    end: Fraction = Fraction(10**9)
    joules: float = 1e18


@dataclass(frozen=True)
class Tiny:
    """A few requests and workers, in plain numbers."""

    prompt: list[int]
    output: list[int]
    arrival: list[int]
    workers: int
    slots: int
    fixed: Fraction
    per_token: Fraction
    capacity: int | None = None
    power: PowerLaw = field(default_factory=PowerLaw)
    order: str = "theory"

    def best(self) -> Best:
        """Enumerate all runs."""
        best = Best()
        seen: set[tuple[object, ...]] = set()

        def go(
            running: Workers, left: frozenset[int], clock: Fraction, steps: int, busy: Fraction, joules: float
        ) -> None:
            state = (tuple(sorted(running)), left, clock, steps, busy, joules)
            if state in seen:
                return
            seen.add(state)
            if not left and not any(running):
                best.steps, best.busy = min(best.steps, steps), min(best.busy, busy)
                best.end, best.joules = min(best.end, clock), min(best.joules, joules)
                return
            here = [i for i in sorted(left) if self.arrival[i] <= clock]
            later = [self.arrival[i] for i in left if self.arrival[i] > clock]
            if not any(running) and later:
                go(running, left, Fraction(min(later)), steps, busy, joules)
            for places in itertools.product(range(-1, self.workers), repeat=len(here)):
                started = [
                    [
                        *running[g],
                        *((self.prompt[i], self.output[i]) for i, p in zip(here, places, strict=True) if p == g),
                    ]
                    for g in range(self.workers)
                ]
                if not any(started) or any(len(worker) > self.slots for worker in started):
                    continue
                loads = [sum(size for size, _ in worker) for worker in started]
                if self.capacity is not None and max(loads) > self.capacity:
                    continue
                seconds = self.fixed + self.per_token * max(loads)
                after = tuple(
                    tuple(sorted((size + 1, todo - 1) for size, todo in worker if todo > 1)) for worker in started
                )
                read = loads if self.order == "theory" else [sum(size for size, _ in worker) for worker in after]
                rest = left - {i for i, p in zip(here, places, strict=True) if p >= 0}
                drawn = self.watts(read, seconds) * float(seconds)
                go(after, rest, clock + seconds, steps + 1, busy + seconds, joules + drawn)

        go(((),) * self.workers, frozenset(range(len(self.prompt))), Fraction(min(self.arrival)), 0, Fraction(0), 0.0)
        return best

    def watts(self, loads: list[int], seconds: Fraction) -> float:
        """Power of the fleet in a step, by the formulas of the manual."""
        top = max(loads)
        power, total = self.power, 0.0
        for load in loads:
            share = load / top if top else 0.0
            waited = min(1.0, float(self.per_token * (top - load) / seconds)) if top else 1.0
            duty = {"share": share**power.exponent, "split": share, "split-fixed-busy": 1 - waited}[power.reading]
            total += power.idle_watts + (power.peak_watts - power.idle_watts) * duty
        return total

    def ceilings(self) -> Ceilings:
        """What lbopt says of it."""
        setting = SimulationSetting(
            Fleet(self.workers, self.slots, self.capacity),
            arrivals=TraceTimes(),
            event_order=self.order,
            step_time=AffineStepTime(float(self.fixed), float(self.per_token)),
            power=self.power,
            detail=None if self.capacity is None else Detail(preempt="recompute", block=1, watermark=0.0),
        )
        arrival = [float(time) for time in self.arrival]
        return ceilings(Trace(prompt=self.prompt, output=self.output, arrival=arrival), setting)


def drawn(rng: random.Random, capacity: bool = False) -> Tiny:
    """Three requests or four, with numbers in which floats are exact."""
    count = rng.choice([3, 3, 4])
    prompt = [rng.choice([0, 1, 2, 3, 7, 40]) for _ in range(count)]
    output = [rng.choice([1, 1, 2, 3]) for _ in range(count)]
    spread = rng.choice([0, 2, 8, 40])
    workers, slots = rng.choice([(2, 1), (2, 1), (2, 2), (1, 2)])
    full = max(s + o - 1 for s, o in zip(prompt, output, strict=True))
    return Tiny(
        prompt=prompt,
        output=output,
        arrival=sorted(rng.randint(0, spread) for _ in range(count)),
        workers=workers,
        slots=slots,
        fixed=Fraction(rng.choice([1, 3, 8])),
        per_token=Fraction(rng.choice([0, 1, 4, 16]), 4),
        capacity=max(1, full + rng.choice([0, 1, 3])) if capacity else None,
        power=PowerLaw(
            rng.choice([0.0, 100.0]), 400.0, rng.choice([0.5, 1.0]), rng.choice(["share", "split", "split-fixed-busy"])
        ),
        order=rng.choice(["theory", "paper"]),
    )


@pytest.mark.more
def test_no_run_of_all_that_there_are_passes_a_ceiling_and_many_ceilings_are_reached():
    rng = random.Random("every run")
    reached = dict.fromkeys(("steps", "busy", "end", "joules"), 0)
    count = 150
    for _ in range(count):
        tiny = drawn(rng)
        best, least = tiny.best(), tiny.ceilings()
        assert least.steps <= best.steps, tiny
        assert Fraction(least.seconds) <= best.busy, tiny
        assert Fraction(least.elapsed_seconds) <= best.end - min(tiny.arrival), tiny
        assert least.joules <= best.joules * (1 + 1e-12), tiny
        reached["steps"] += least.steps == best.steps
        reached["busy"] += least.seconds == best.busy
        reached["end"] += least.elapsed_seconds == best.end - min(tiny.arrival)
        reached["joules"] += least.joules >= best.joules * (1 - 1e-9)
    print(reached, count)
    assert reached["steps"] > count // 2 and min(reached.values()) > count // 20, reached


def test_no_run_within_the_memory_passes_a_ceiling():
    rng = random.Random("memory")
    by_memory = 0
    for _ in range(80):
        tiny = drawn(rng, capacity=True)
        best, least = tiny.best(), tiny.ceilings()
        assert least.steps <= best.steps, tiny
        assert Fraction(least.seconds) <= best.busy, tiny
        assert Fraction(least.elapsed_seconds) <= best.end - min(tiny.arrival), tiny
        slots = -(-sum(tiny.output) // (tiny.workers * tiny.slots))
        by_memory += least.steps > max(slots, *tiny.output)
    assert by_memory > 0


def test_a_ceiling_that_memory_sets_is_reached():
    """Four requests of four tokens, workers of two slots and memory for one request: two steps instead of one."""
    tiny = Tiny([4] * 4, [1] * 4, [0] * 4, 2, 2, Fraction(1), Fraction(1), capacity=4)
    best, least = tiny.best(), tiny.ceilings()
    assert (least.steps, least.seconds) == (best.steps, best.busy) == (2, 10)


def test_late_requests_set_the_ceiling_and_it_is_reached():
    """Two requests at second 100: nothing that was done before makes them end sooner."""
    tiny = Tiny([1, 5, 5], [1, 2, 2], [0, 100, 100], 2, 1, Fraction(1), Fraction(1, 4))
    best, least = tiny.best(), tiny.ceilings()
    assert least.elapsed_seconds == best.end == 100 + 2 + Fraction(5 + 6, 4)


def test_three_requests_on_two_slots_set_the_number_of_steps():
    """Outputs 3, 3, 3 on two slots: the sum says five steps, but some slot runs two requests."""
    tiny = Tiny([0, 0, 0], [3, 3, 3], [0, 0, 0], 2, 1, Fraction(1), Fraction(0))
    best, least = tiny.best(), tiny.ceilings()
    assert -(-9 // 2) == 5
    assert least.steps == best.steps == 6
    assert least.seconds == best.busy == 6


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_requests_in_a_row_are_counted_as_by_all_schedules(slots):
    """The pigeonhole bound against the shortest of all schedules on parallel machines; one slot: the sum."""
    import numpy as np

    rng = random.Random(slots)
    reached = 0
    for _ in range(60):
        lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 6))]
        shortest = min(
            max(sum(o for o, s in zip(lengths, places, strict=True) if s == slot) for slot in range(slots))
            for places in itertools.product(range(slots), repeat=len(lengths))
        )
        bound = in_a_row(np.array(lengths, dtype=object), slots, 8)
        assert bound <= shortest
        reached += bound == shortest
    assert reached == 60 if slots == 1 else reached > 15
