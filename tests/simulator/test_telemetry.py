"""Stale sight: reports that are old, lost or unsteady, and front ends that do not see each other."""

import random

import numpy as np
import pytest
from kernels.rules import IMMEDIATE, POOLED, many, random_br_0
from lengths import quick_and_long
from simulator.test_against_twin import assert_same
from simulator.traces import assert_same_run, random_case

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, TraceTimes, make_telemetry, simulate

#: The draws wrap around, of which NumPy warns where they run as plain Python.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@pytest.mark.some(13)
@pytest.mark.parametrize("cases", quick_and_long(many(20, 4), many(40, 4)))
@pytest.mark.parametrize("spec", [*(spec for spec, *_ in (*POOLED, *IMMEDIATE)), "br-0", "br-0-bypass", "iqr"])
def test_a_report_before_every_decision_is_the_truth(spec, cases):
    rng = random.Random(f"fresh {spec}")
    for _ in range(cases):
        case = random_case(rng)
        fresh = case.seeing(Telemetry(period=0.0))
        assert_same_run(case.run(spec), fresh.run(spec))


def random_telemetry(rng, pooled):
    """Reports with every decision to ones that hardly ever come; lost and unsteady ones; up to four front ends."""
    period = rng.choice([0.0, 0.2, 3.0, 1000.0])
    return Telemetry(
        period=period,
        own="optimistic" if pooled else rng.choice(["optimistic", "none"]),
        jitter=rng.choice([0.0, 0.3, 1.0]),
        lost=rng.choice([0.0, 0.5, 0.95]) if period else 0.0,  # an idle fleet decides once more in one of the two loops
        front_ends=1 if pooled else rng.randint(1, 4),
    )


@pytest.mark.some(5)
@pytest.mark.parametrize("cases", quick_and_long(many(25, 6), many(60, 6)))
@pytest.mark.parametrize(("spec", "name", "options"), POOLED)
def test_pooled_runs_are_those_of_the_twin(spec, name, options, cases):
    rng = random.Random(f"stale {spec}")
    for _ in range(cases):
        case = random_case(rng).seeing(random_telemetry(rng, True))
        assert_same(case.run(spec), case.naive_run(name, options, "pooled"))


@pytest.mark.some(5)
@pytest.mark.parametrize("cases", quick_and_long(many(35, 6), many(120, 6)))
@pytest.mark.parametrize(("spec", "name", "options"), IMMEDIATE)
def test_immediate_runs_are_those_of_the_twin(spec, name, options, cases):
    rng = random.Random(f"stale {spec}")
    for _ in range(cases):
        case = random_case(rng).seeing(random_telemetry(rng, False))
        assert_same(case.run(spec), case.naive_run(name, options, "immediate"))


@pytest.mark.parametrize("overbooking", range(3))
def test_runs_in_which_requests_are_held_are_those_of_the_twin(overbooking):
    rng = random.Random(f"stale bypass {overbooking}")
    for _ in range(many(60, 10)):
        case = random_case(rng).seeing(random_telemetry(rng, False))
        run = case.run(f"br-0-bypass:overbooking={overbooking},ties=index")
        assert_same(run, case.naive_run("br_0_bypass", {"overbooking": overbooking, "ties": "index"}, "immediate"))


@pytest.mark.parametrize("cases", quick_and_long(many(40, 6), many(120, 6)))
def test_br_0_runs_are_those_of_the_twin(cases):
    rng = random.Random("stale br-0")
    for _ in range(cases):
        case = random_case(rng).seeing(random_telemetry(rng, True))
        if case.setting.fleet.num_workers == 1:
            continue
        spec, name, options = random_br_0(rng)
        assert_same(case.run(spec), case.naive_run(name, options, "pooled"))


def test_two_workers_by_hand():
    """Four requests come at once, when the only report said that both workers are empty."""
    trace = Trace(prompt=[10] * 4, output=[3] * 4, arrival=[0.5] * 4)

    def where(own, front_ends=1):
        telemetry = Telemetry(10.0, own, front_ends=front_ends)
        setting = SimulationSetting(Fleet(2, 4), TraceTimes(), "theory", AffineStepTime(1.0, 0.0), telemetry=telemetry)
        return simulate(trace, make_policy("jsq"), setting).requests["worker"].tolist()

    assert where("none") == [0, 0, 0, 0]
    assert where("optimistic") == [0, 1, 0, 1]
    assert where("optimistic", front_ends=2) == [0, 0, 1, 1]  # requests 0 and 2 come in by one, 1 and 3 by the other
    assert where("optimistic", front_ends=4) == [0, 0, 0, 0]


@pytest.mark.parametrize("spec", ["max-min", "br-0", "fcfs", "iqr:admission=pooled"])
def test_a_pool_never_overfills_a_worker_and_ends(spec):
    """What its router sees free is free; an idle fleet that looks full is waited for."""
    rng = random.Random(spec)
    for _ in range(many(40, 8)):
        case = random_case(rng).seeing(Telemetry(rng.choice([0.1, 0.5, 30.0]), lost=rng.choice([0.0, 0.5])))
        run = case.run(spec)
        assert (run.requests["start_step"] >= 0).all()
        assert (run.steps["active"] <= case.setting.fleet.num_slots).all()


@pytest.mark.jit
def test_lost_and_unsteady_reports_are_the_same_in_every_run_and_differ_by_seed():
    rng = np.random.default_rng(3)
    trace = Trace(prompt=rng.integers(1, 500, 600), output=rng.integers(1, 40, 600))
    setting = SimulationSetting(Fleet(4, 8), ClosedLoop(40), telemetry=Telemetry(0.05, jitter=0.5, lost=0.3))
    runs = [simulate(trace, make_policy("jsq-load:admission=immediate"), setting, seed=s) for s in (1, 1, 2)]
    assert_same_run(runs[0], runs[1])
    assert runs[0].requests["worker"].tolist() != runs[2].requests["worker"].tolist()


def test_what_telemetry_says_is_checked():
    assert make_telemetry("period=20ms,own=none,front_ends=4") == Telemetry(0.02, "none", front_ends=4)
    assert make_telemetry("") == Telemetry()
    for text, said in (
        ("period=1us", "period is 1e-06 s; expected 0"),
        ("period=soon", "expected a duration"),
        ("own=some", "own is 'some'; expected optimistic or none"),
        ("jitter=2", "jitter is 2; expected a share"),
        ("lost=1", "lost is 1; expected a chance"),
        ("front_ends=0", "front_ends is 0"),
        ("age=3s", "no option 'age'"),
    ):
        with pytest.raises(InputError, match=said):
            make_telemetry(text)


@pytest.mark.parametrize(
    ("spec", "telemetry", "said"),
    [
        ("max-min", Telemetry(own="none"), "keeps requests in one pool"),
        ("br-0", Telemetry(front_ends=2), "keeps requests in one pool"),
        ("br-h:horizon=3,predictor=oracle", Telemetry(), "forecast of every running request"),
    ],
)
def test_rules_that_cannot_work_with_reports_are_refused_before_anything_runs(spec, telemetry, said):
    setting = SimulationSetting(Fleet(2, 2), telemetry=telemetry)
    with pytest.raises(InputError, match=said):
        simulate(Trace(prompt=[1, 2], output=[3, 4]), make_policy(spec), setting)


def test_a_policy_in_python_sees_what_a_compiled_one_does():
    class Fewest:
        name, admission = "fewest", "immediate"

        def decide(self, observation):
            return np.array([int(np.argmin(observation.running + observation.queued))])

    rng = random.Random("python")
    for _ in range(many(30, 6)):
        case = random_case(rng).seeing(
            Telemetry(rng.choice([0.0, 0.3, 5.0]), rng.choice(["none", "optimistic"]), front_ends=rng.randint(1, 3))
        )
        mine, compiled = case.run(Fewest()), case.run("jsq")
        assert_same_run(mine, compiled)
