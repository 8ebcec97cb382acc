"""What no rule can pass: the sum of all loads of a whole run is the rule's only in how it is spread."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from kernels.rules import IMMEDIATE, POOLED, many
from simulator.random_fleets import random_fleet
from simulator.traces import random_case

import lbopt
from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.hardware import AffineStepTime, make_step_time
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import Detail, SimulationSetting, Window, simulate
from lbopt.simulator.ceiling import ceilings, rounded_down


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


def test_no_fleet_in_detail_is_faster():
    """Memory, prompts computed on workers, slow and fast ones, fewer slots, workers that come and go."""
    by_memory, ended = 0, 0
    for seed in range(many(200, 40)):
        fleet = random_fleet(seed)
        setting = replace(fleet.setting, detail=replace(fleet.setting.detail, draft=0))
        try:
            run = simulate(fleet.trace, make_policy(fleet.rule), setting, seed=fleet.seed)
        except InfeasibleDecisionError:
            continue  # all workers have left
        ended += 1
        limits = ceilings(fleet.trace, setting)
        assert limits.token_steps <= run.steps["barrier_sum"].sum()
        assert limits.steps <= run.num_steps
        metrics = run.metrics()
        assert metrics.whole_run_share_of_ceiling <= 1 + 1e-12
        assert metrics.elapsed_share_of_ceiling <= 1 + 1e-12
        assert metrics.energy_share_of_ceiling is None
        by_memory += limits.steps > ceilings(fleet.trace, replace(setting, detail=Detail())).steps
    assert by_memory > 0
    assert ended > many(150, 30)


def test_one_fast_worker_lowers_the_ceiling_of_laws_that_count_requests():
    """The faster worker may run a request alone: its factor counts for what a request costs by its number, too."""
    trace = Trace(prompt=[10], output=[50])
    setting = SimulationSetting(
        Fleet(2, 1), step_time=make_step_time("roofline:device=h800"), detail=Detail(slow=((0, 0.25),))
    )
    run = simulate(trace, make_policy("round-robin"), setting)
    assert 0.5 < run.metrics().whole_run_share_of_ceiling <= 1 + 1e-12


def test_a_request_that_may_change_its_slot_is_not_held_to_one():
    """Outputs 3, 3, 3 on two slots: six steps, but five where one request runs on both."""
    trace = Trace(prompt=[1] * 3, output=[3] * 3)
    fleet = Fleet(1, 2, kv_capacity=1000)
    assert ceilings(trace, SimulationSetting(fleet)).steps == 6
    assert ceilings(trace, SimulationSetting(fleet, detail=Detail(preempt="recompute", block=1))).steps == 5


def test_several_groups_are_not_passed_by_any_way_to_share_requests_out():
    """Every request goes to one of two groups, each a fleet of its own; the longer of both runs is what counts."""
    rng = random.Random("groups")
    best = 0.0
    for _ in range(12):
        count = rng.randint(2, 6)
        prompt, output = ([rng.randint(1, most) for _ in range(count)] for most in (30, 4))
        setting = SimulationSetting(Fleet(2, 1), step_time=AffineStepTime(0.5, 0.01), event_order="theory")
        limits = ceilings(Trace(prompt=prompt, output=output), setting, groups=2)
        assert limits.joules is None
        for groups in itertools.product((0, 1), repeat=count):
            longest = 0.0
            for group in (0, 1):
                mine = [i for i in range(count) if groups[i] == group]
                if mine:
                    part = Trace(prompt=[prompt[i] for i in mine], output=[output[i] for i in mine])
                    longest = max(longest, simulate(part, make_policy("max-min"), setting).metrics().whole_run_seconds)
            assert limits.seconds <= longest * (1 + 1e-12)
            best = max(best, limits.seconds / longest)
    assert best == pytest.approx(1.0)


def test_what_has_no_ceiling_is_refused():
    trace = Trace(prompt=[1], output=[1])
    with pytest.raises(InputError, match="draft is 2; a ceiling needs requests of known steps; leave draft out"):
        ceilings(trace, SimulationSetting(Fleet(1, 1), detail=Detail(draft=2)))
    with pytest.raises(InputError, match="groups is 0; expected a whole number of 1 or more"):
        ceilings(trace, SimulationSetting(Fleet(1, 1)), groups=0)


def test_results_are_rounded_to_the_side_that_keeps_the_bound():
    rng = random.Random("rounding")
    for _ in range(200):
        value = Fraction(rng.randint(1, 10**20), rng.randint(1, 10**20))
        down = rounded_down(value)
        assert Fraction(down) <= value < Fraction(math.nextafter(down, math.inf))


def test_ceilings_in_one_call():
    """The same from the front door, and more workers never lower what can be reached."""
    small, large = (lbopt.ceilings(requests=300, workers=G, slots=8) for G in (2, 4))
    run = lbopt.simulate(requests=300, workers=4, slots=8, policy="br-0")
    assert large == ceilings(run.trace, run.setting)
    assert large == lbopt.ceilings(run.trace, workers=4, slots=8)
    assert large.tokens_per_second >= run.metrics().whole_run_tokens_per_second
    assert large.tokens_per_second > small.tokens_per_second
