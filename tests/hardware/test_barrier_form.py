"""The barrier form, by hand and in the compiled loop, and the laws that come down to it."""

import random

import numpy as np
import pytest
from simulator.traces import random_case

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, BarrierForm, MeanTermStepTime, make_step_time
from lbopt.model import Fleet
from lbopt.simulator import SimulationSetting


class Tabled:
    """A law with every part of the form: the slowest worker need not be the heaviest."""

    name = "tabled"

    def form(self, num_workers, slots_per_worker):
        return BarrierForm(
            fixed=0.5,
            per_token=0.01,
            per_mean_token=0.02,
            of_running=np.sqrt(np.arange(slots_per_worker + 1.0)) * 3,
            of_active=np.arange(num_workers * slots_per_worker + 1.0) / 8,
        )

    def describe(self):
        return {"kind": "tabled"}


def by_hand(form, loads, running):
    """Seconds of one step, with loops."""
    alone = [form.per_token * load for load in loads]
    if len(form.of_running):
        alone = [a + form.of_running[n] for a, n in zip(alone, running, strict=True)]
    together = form.per_mean_token * (sum(loads) / len(loads))
    if len(form.of_active):
        together += form.of_active[sum(running)]
    return form.fixed + max(alone) + together


def test_the_example_of_the_ep_barrier_post():
    """100,000 and 80,000 tokens, a = 1, b = 0.5: 145,000; balanced 135,000."""
    law = MeanTermStepTime(1.0, 0.5).form(2, 1)
    assert law.seconds(np.array([[100_000, 80_000], [90_000, 90_000]])).tolist() == [145_000, 135_000]


@pytest.mark.parametrize(("b", "ratio"), [(0, 1.111), (0.3, 1.085), (0.5, 1.074), (1, 1.056)])
def test_a_mean_term_dilutes_the_gain(b, ratio):
    law = MeanTermStepTime(1.0, b).form(2, 1)
    uneven, even = law.seconds(np.array([[100_000, 80_000], [90_000, 90_000]]))
    assert uneven / even == pytest.approx(ratio, abs=5e-4)


def test_the_form_by_hand():
    form = Tabled().form(3, 4)
    loads, running = np.array([[900, 100, 0], [500, 490, 3]]), np.array([[1, 4, 0], [0, 4, 2]])
    expected = [by_hand(form, row, n) for row, n in zip(loads.tolist(), running.tolist(), strict=True)]
    assert form.seconds(loads, running).tolist() == pytest.approx(expected, rel=1e-15)
    assert form.seconds(loads[0], running[0]) == pytest.approx(expected[0], rel=1e-15)


def test_the_affine_law_and_a_mean_term_of_nothing_are_one():
    loads = np.random.default_rng(1).integers(0, 10**6, (50, 8))
    affine, without_mean = AffineStepTime(0.005, 1e-7), MeanTermStepTime(1e-7, 0.0, 0.005)
    assert np.array_equal(affine.form(8, 9).seconds(loads), without_mean.form(8, 9).seconds(loads))
    assert np.array_equal(affine.form(8, 9).seconds(loads), [affine.seconds(load) for load in loads.max(axis=1)])


@pytest.mark.parametrize("law", [MeanTermStepTime(0.01, 0.005, 0.1), Tabled()], ids=["mean-term", "tabled"])
@pytest.mark.parametrize("seed", range(20))
def test_the_compiled_loop_evaluates_the_form(law, seed):
    case = random_case(random.Random(seed))
    case.setting = SimulationSetting(case.setting.fleet, case.setting.arrivals, case.setting.event_order, law)
    run = case.run(random.Random(seed).choice(["fcfs", "br-0", "jsq", "random"]))
    G, B = case.setting.fleet.num_workers, case.setting.fleet.slots_per_worker
    step = np.arange(run.num_steps)[:, None]
    alive = (run.requests["start_step"] <= step) & (step < run.requests["finish_step"])
    running = np.stack([(alive & (run.requests["worker"] == g)).sum(axis=1) for g in range(G)], axis=1)
    assert np.allclose(run.steps["seconds"], law.form(G, B).seconds(run.steps["barrier_loads"], running), rtol=1e-14)


def test_running_requests_must_be_given_where_the_form_asks():
    with pytest.raises(InputError, match="depends on the running requests, which were not given"):
        Tabled().form(2, 2).seconds(np.array([1, 2]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fixed": -1.0, "per_token": 1.0}, r"fixed of a step is -1\.0 s"),
        ({"fixed": 0.0, "per_token": float("nan")}, "per_token of a step is nan s"),
        ({"fixed": 1.0, "per_token": 0.0, "per_mean_token": float("inf")}, "per_mean_token of a step is inf s"),
        ({"fixed": 1.0, "per_token": 0.0, "of_running": np.array([0.0, -1.0])}, "of_running of a step is not a table"),
        ({"fixed": 1.0, "per_token": 0.0, "of_active": np.array([[1.0]])}, "of_active of a step is not a table"),
        ({"fixed": 0.0, "per_token": 0.0}, "a step would take no time"),
    ],
)
def test_forms_that_cannot_be_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        BarrierForm(**values)


def test_laws_are_named_with_their_options():
    assert make_step_time("affine").form(1, 1).fixed == AffineStepTime.of_bf_io_paper(72).fixed_seconds
    law = make_step_time("mean-term:per_token=2e-7,per_mean_token=1e-7,fixed=0.01")
    assert (law.form(4, 4).per_token, law.form(4, 4).per_mean_token, law.form(4, 4).fixed) == (2e-7, 1e-7, 0.01)
    assert make_step_time(law.name).describe() == law.describe()
    with pytest.raises(InputError, match="unknown step time 'afine': did you mean affine"):
        make_step_time("afine")
    with pytest.raises(InputError, match="step time 'affine' has no option 'per_tokn'; it takes fixed, per_token"):
        make_step_time("affine:per_tokn=1")
    with pytest.raises(InputError, match="would take no time"):
        make_step_time("mean-term:per_token=0,per_mean_token=0")
    with pytest.raises(InputError, match="seconds_per_mean_token is -1"):
        make_step_time("mean-term:per_mean_token=-1")


def test_the_default_law_is_that_of_bf_io():
    setting = SimulationSetting(Fleet(2, 72))
    assert setting.law == AffineStepTime.of_bf_io_paper(72)


def test_a_run_says_what_bound_each_step():
    """By the loads and running requests of every step, whatever the length of the loop's chunks is."""
    law = make_step_time("roofline:device=h800,model=qwen3-30b-a3b,step_overhead=0,collective_latency=1e-6")
    case = random_case(random.Random(3), requests=40)
    case.setting = SimulationSetting(case.setting.fleet, case.setting.arrivals, case.setting.event_order, law)
    run = case.run("fcfs")
    G = case.setting.fleet.num_workers
    step = np.arange(run.num_steps)[:, None]
    alive = (run.requests["start_step"] <= step) & (step < run.requests["finish_step"])
    running = np.stack([(alive & (run.requests["worker"] == g)).sum(axis=1) for g in range(G)], axis=1)
    expected = law.breakdown(run.steps["barrier_loads"], running).kind
    assert run.step_table()["bound"].tolist() == expected.tolist()
    assert set(expected) <= {"memory", "compute", "collective"}
    affine = random_case(random.Random(3), requests=5).run("fcfs")
    assert set(affine.step_table()["bound"]) == {""}
