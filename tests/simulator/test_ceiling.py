"""What no rule can pass: the sum of all loads of a whole run is the rule's only in how it is spread."""

import random

import numpy as np
import pytest
from kernels.rules import IMMEDIATE, POOLED, many
from simulator.traces import random_case

from lbopt.hardware import make_step_time
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import SimulationSetting, Window, simulate
from lbopt.simulator.ceiling import ceilings


def token_steps(trace: Trace) -> int:
    """Sum of the sizes that requests show at barriers, request by request."""
    return sum(size + age for size, o in zip(trace.prompt, trace.output, strict=True) for age in range(o))


def test_no_run_is_faster_and_the_loads_of_a_whole_run_do_not_depend_on_the_rule():
    rng = random.Random("ceiling")
    for _ in range(many(300, 40)):
        case = random_case(rng)
        run = case.run(rng.choice([*POOLED, *IMMEDIATE])[0])
        work = token_steps(case.trace)
        assert run.steps["barrier_sum"].sum() == work
        form, G = case.setting.form, case.setting.fleet.num_workers
        imbalance = int((G * run.steps["barrier_max"] - run.steps["barrier_sum"]).sum())
        seconds = form.fixed * run.num_steps + form.per_token / G * (work + imbalance)
        assert run.steps["seconds"].sum() == pytest.approx(seconds, rel=1e-9)
        limits = ceilings(case.trace, case.setting)
        least = limits.seconds
        assert least <= run.steps["seconds"].sum() * (1 + 1e-12)
        assert limits.steps <= run.num_steps
        metrics = run.metrics()
        assert metrics.elapsed_share_of_ceiling <= 1 + 1e-12
        assert metrics.energy_share_of_ceiling <= 1 + 1e-12
        assert metrics.whole_run_share_of_ceiling == pytest.approx(least / metrics.whole_run_seconds)
        assert metrics.whole_run_tokens_per_second * metrics.whole_run_seconds == pytest.approx(case.trace.output.sum())


def test_a_window_changes_nothing_of_the_whole_run():
    run = random_case(random.Random(3)).run("br-0")
    names = ("whole_run_tokens_per_second", "whole_run_share_of_ceiling", "whole_run_seconds")
    whole, cut = run.metrics(), run.metrics(Window(1, 1))
    assert [getattr(whole, name) for name in names] == [getattr(cut, name) for name in names]


def test_a_perfect_run_is_at_the_ceiling():
    """Four equal requests on two workers of two slots: no imbalance, no empty slot."""
    trace = Trace(prompt=[5] * 4, output=[3] * 4)
    run = simulate(trace, make_policy("max-min"), SimulationSetting(Fleet(2, 2)))
    assert run.metrics().whole_run_share_of_ceiling == pytest.approx(1.0)


@pytest.mark.parametrize("law", ["roofline:device=h800", "roofline:device=ascend-910c"])
def test_laws_that_count_requests_are_not_passed_either(law):
    rng = np.random.default_rng(5)
    trace = Trace(prompt=rng.integers(1, 3000, 400), output=rng.integers(1, 60, 400))
    setting = SimulationSetting(Fleet(4, 8), step_time=make_step_time(law))
    for policy in ("max-min", "br-0", "jsq"):
        share = simulate(trace, make_policy(policy), setting).metrics().whole_run_share_of_ceiling
        assert 0 < share <= 1
