"""The least cost of a run with free starts against every run."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hindsight.optimum import optimum
from lbopt.hindsight.starts import optimum_with_starts
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.model import Trace


def every_run(trace, workers, slots, per_step, per_token, most=None):
    """Try each start up to the sum of all outputs, and each worker; steps without requests cost nothing."""
    outputs, prompts = trace.output.tolist(), trace.prompt.tolist()
    last = sum(outputs) if most is None else most
    best = None
    choices = [[(k, g) for k in range(last - o + 1) for g in range(workers)] for o in outputs]
    for run in itertools.product(*choices):
        load = [[0] * workers for _ in range(last)]
        held = [[0] * workers for _ in range(last)]
        for (k, g), s, o in zip(run, prompts, outputs, strict=True):
            for age in range(o):
                load[k + age][g] += s + age
                held[k + age][g] += 1
        if any(max(step) > slots for step in held):
            continue
        cost = sum(per_step + per_token * max(step) for step, count in zip(load, held, strict=True) if any(count))
        best = cost if best is None else min(best, cost)
    return best


def test_it_agrees_with_every_run():
    rng = np.random.default_rng(2)
    for number in range(40):
        count = int(rng.integers(1, 4)) if number % 4 else 4
        trace = Trace(prompt=rng.integers(0, 7, count), output=rng.integers(1, 4 if count < 4 else 3, count))
        workers, slots = int(rng.integers(1, 3)), int(rng.integers(1, 3))
        per_step, per_token = int(rng.integers(0, 6)), int(rng.integers(1, 3))
        result = optimum_with_starts(trace, workers, slots, per_step=per_step, per_token=per_token)
        assert result.is_proved
        assert result.upper == every_run(trace, workers, slots, per_step, per_token)
        # The run that is returned costs what is claimed.
        order = np.argsort(result.start, kind="stable")
        run = Timetable(workers, slots, result.start[order], trace.prompt[order], trace.output[order])
        assert run.barriers(result.worker[order]) == result.barriers
        assert run.num_steps == result.num_steps
        assert per_step * result.num_steps + per_token * result.barriers == result.upper
        fixed = optimum(first_come(trace, workers, slots), 600)
        assert result.upper <= per_step * first_come(trace, workers, slots).num_steps + per_token * fixed.upper


def test_waiting_with_a_free_slot_can_pay():
    """A request of sizes 4, 5 hides behind one of sizes 0 to 5 if it waits for it to grow."""
    trace = Trace(prompt=np.array([0, 4]), output=np.array([6, 2]))
    result = optimum_with_starts(trace, 2, 1)
    assert (result.lower, result.upper) == (15, 15)
    assert result.start.tolist() == [0, 4]
    assert optimum(first_come(trace, 2, 1), 600).upper == 23


def test_a_given_number_of_steps():
    rng = np.random.default_rng(3)
    for _ in range(12):
        trace = Trace(prompt=rng.integers(0, 9, 3), output=rng.integers(1, 4, 3))
        for steps in range(int(trace.output.max()), int(trace.output.sum()) + 1):
            expected = every_run(trace, 2, 1, 0, 1, steps)
            if expected is None:
                with pytest.raises(InputError, match=f"takes {steps} steps or fewer"):
                    optimum_with_starts(trace, 2, 1, num_steps=steps)
            else:
                result = optimum_with_starts(trace, 2, 1, num_steps=steps)
                assert (result.lower, result.upper) == (expected, expected)
                assert result.num_steps <= steps


def test_costs_are_exact_fractions():
    trace = Trace(prompt=np.array([3, 1, 2]), output=np.array([2, 1, 3]))
    whole = optimum_with_starts(trace, 2, 2, per_step=7, per_token=3)
    part = optimum_with_starts(trace, 2, 2, per_step=Fraction(7, 10), per_token=Fraction(3, 10))
    assert part.upper == whole.upper / 10


def test_what_is_refused():
    trace = Trace(prompt=np.array([3]), output=np.array([2]))
    with pytest.raises(InputError, match="a fleet of 0 x 1 slots"):
        optimum_with_starts(trace, 0, 1)
    with pytest.raises(InputError, match="expected 0 or more"):
        optimum_with_starts(trace, 1, 1, per_step=-1)
