"""`look_at`: seeing what a pooled router would see, without touching the run."""

import random

import numpy as np
import pytest
from kernels.rules import IMMEDIATE, POOLED, many, random_br_0
from simulator.traces import assert_same_run, random_case

from lbopt.policies import make_policy
from lbopt.policies.decide import decide
from lbopt.simulator.simulate import Look


def open_steps(run):
    """Steps whose decision has something to decide."""
    return np.flatnonzero((run.steps["waiting"] > 0) & (run.steps["free_slots"] > 0))


def test_looking_changes_nothing_and_shows_the_state():
    rng = random.Random(1)
    for _ in range(many(80, 15)):
        case = random_case(rng)
        spec = rng.choice([*POOLED, *IMMEDIATE, random_br_0(rng)])[0]
        run = case.run(spec)
        steps = open_steps(run)
        seen = []
        assert_same_run(run, case.run(spec, look=Look(steps, seen.append)))
        assert [observation.step for observation in seen] == steps.tolist()
        before = np.vstack((np.zeros_like(run.steps["post_loads"][:1]), run.steps["post_loads"]))
        request = run.requests
        for observation in seen:
            k = observation.step
            assert np.array_equal(observation.loads, before[k])
            waiting = np.flatnonzero((request["reveal_step"] <= k) & (request["start_step"] >= k))
            assert sorted(observation.requests) == waiting.tolist()
            assert np.array_equal(observation.sizes, case.trace.prompt[observation.requests])
            assert np.array_equal(observation.waited, k - request["reveal_step"][observation.requests])
            running = (request["start_step"] < k) & (k < request["finish_step"])
            counts = np.bincount(request["worker"][running], minlength=observation.running.size)
            assert np.array_equal(observation.running, counts)
            assert np.array_equal(observation.free_slots, case.setting.fleet.slots_per_worker - counts)


def test_what_is_seen_leads_a_pooled_rule_to_what_it_did():
    rng = random.Random(2)
    for _ in range(many(80, 15)):
        case = random_case(rng)
        spec = rng.choice(["fcfs", "jsq:admission=pooled", "jsq-load", "max-min:scope=pool", random_br_0(rng)[0]])
        run = case.run(spec)
        seen = []
        case.run(spec, look=Look(open_steps(run), seen.append))
        for observation in seen:
            started = run.requests["start_step"][observation.requests] == observation.step
            expected = np.where(started, run.requests["worker"][observation.requests], -1)
            assert np.array_equal(decide(make_policy(spec), observation), expected)


@pytest.mark.parametrize("spec", ["fcfs", "jsq"])
def test_a_step_with_nothing_to_decide_is_passed_over(spec):
    """Of the steps asked for, all that have something to decide are shown, wherever the others lie."""
    rng = random.Random(3)
    for _ in range(10):
        case = random_case(rng)
        run = case.run(spec)
        seen = []
        case.run(spec, look=Look(np.arange(run.num_steps), seen.append))
        shown = [observation.step for observation in seen]
        assert set(open_steps(run).tolist()) <= set(shown)
        assert shown == sorted(shown)
