"""Requests that only some workers serve: as the naive simulator has it, and on none of the others under any rule."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.rules import ENGINE, IMMEDIATE, POOLED, many, random_auto, random_br_0, random_bypass
from simulator.test_against_twin import assert_same
from simulator.traces import Case, assert_same_run, random_case, some_serve

import lbopt
from lbopt.exceptions import InputError
from lbopt.model import Eligibility, Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, Detail, Run, SimulationSetting, Telemetry, TraceTimes, sample_states, simulate


def assert_served(run: Run) -> None:
    """Every request runs once, for all its tokens, on a worker that serves it; loads are the sums of requests."""
    trace, request = run.trace, run.requests
    assert trace.eligibility is not None
    assert trace.eligibility.allowed[trace.eligibility.kind, request["worker"]].all()
    if run.setting.detail is not None:
        return
    assert (request["finish_step"] == request["start_step"] + trace.output).all()
    row = np.arange(run.num_steps)[:, None]
    running = (request["start_step"] <= row) & (row < request["finish_step"])
    on = (request["worker"][:, None] == np.arange(run.setting.fleet.num_workers)).astype(int)
    size = np.where(running, trace.prompt + row - request["start_step"], 0)
    assert np.array_equal(size @ on, run.steps["barrier_loads"])
    assert (running @ on).max() <= run.setting.fleet.slots_per_worker


@settings(max_examples=many(100, 20), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_runs_are_those_of_the_twin(seed):
    rng = random.Random(seed)
    case = some_serve(random_case(rng), rng)
    binds = rng.random() < 0.5
    if binds:
        spec, name, options = rng.choice([*IMMEDIATE, *[random_bypass(rng)] * 3])
    else:
        spec, name, options = rng.choice([*POOLED, random_auto(rng), *[random_br_0(rng)] * 3])
        if case.setting.fleet.num_workers == 1:  # see test_br_0_on_a_single_worker_decides_as_its_twin
            spec, name, options = POOLED[0]
    if rng.random() < 0.3:
        case = case.seeing(Telemetry(rng.choice([0.0, 0.5, 30.0]), front_ends=rng.randint(1, 3) if binds else 1))
    run = case.run(spec)
    assert_same(run, case.naive_run(name, options, "immediate" if binds else "pooled"))
    assert_served(run)


@settings(max_examples=many(40, 8), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_rule_places_a_request_where_it_is_not_served(seed):
    """Rules of engines, rules in Python, and workers of other speeds."""
    rng = random.Random(seed)
    case = some_serve(random_case(rng, 25), rng)
    python = ["bf-io", "count-then-load", "max-min:pace=yes", "fast-phi:admission=pooled", "br-h:horizon=3"]
    spec = rng.choice([name for name, _ in ENGINE] + python)
    if rng.random() < 0.5:
        case = Case(case.trace, replace(case.setting, detail=Detail(slow=((0, 1.5),))), case.seed)
    assert_served(case.run(spec, training=Trace(prompt=np.arange(20), output=np.arange(1, 21))))


class Lightest:
    """Binds each request to the lightest worker that it is shown."""

    name, admission = "lightest", "immediate"

    def decide(self, seen: lbopt.policies.Observation) -> np.ndarray:
        """The worker of least tokens, queued ones among them."""
        return np.array([np.argmin(seen.loads + seen.queued_tokens)])


def test_a_rule_in_python_is_shown_the_workers_that_serve():
    rng = random.Random(7)
    for _ in range(many(20, 5)):
        case = some_serve(random_case(rng), rng)
        assert_same_run(case.run(Lightest()), case.run("jsq-load:admission=immediate"))


def test_where_all_workers_serve_all_nothing_changes():
    rng = random.Random(8)
    for _ in range(many(20, 5)):
        case = random_case(rng)
        G, N = case.setting.fleet.num_workers, len(case.trace)
        every = replace(case.trace, eligibility=Eligibility.of_pairs(np.ones((N, G), dtype=np.bool_)))
        for spec in ("auto", "br-0-bypass"):
            assert_same_run(case.run(spec), Case(every, case.setting, case.seed).run(spec))


def test_one_kind_that_is_held_does_not_hold_the_others():
    """Two workers of one slot: worker 0 is full with requests of its own, and those behind go to worker 1."""
    served = Eligibility(kind=[0, 0, 0, 1, 1], allowed=[[1, 0], [0, 1]])
    trace = Trace(prompt=[5] * 5, output=[9] * 5, arrival=[0.0] * 5, eligibility=served)
    run = simulate(trace, make_policy("br-0-bypass:overbooking=0"), SimulationSetting(Fleet(2, 1), TraceTimes()))
    assert run.requests["start_step"].tolist() == [0, 9, 18, 0, 9]


def test_parts_of_a_trace_keep_it_and_its_digest_knows_it():
    served = Eligibility.of_pairs([[1, 0], [1, 1], [1, 0]])
    trace = Trace(prompt=[1, 2, 3], output=[1, 1, 1], eligibility=served)
    assert len(served.allowed) == 2
    part = trace.part(1, 3).eligibility
    assert part is not None
    assert part.allowed[part.kind].tolist() == [[True, True], [True, False]]
    assert trace.digest != replace(trace, eligibility=None).digest
    assert trace.digest == replace(trace, eligibility=Eligibility.of_pairs(served.allowed[served.kind])).digest


def test_what_cannot_keep_it_says_so():
    trace = Trace(prompt=[1, 2], output=[1, 1], arrival=[0, 1], eligibility=Eligibility.of_pairs([[1, 0], [1, 1]]))
    setting = SimulationSetting(Fleet(2, 1), ClosedLoop())
    for changed, rule, message in (
        (replace(setting, fleet=Fleet(3, 1)), "jsq", "which of 2 workers serve its requests; the fleet has 3"),
        (replace(setting, detail=Detail(drain=((0, 5.0),))), "jsq", "when workers drain"),
        (setting, "fast-phi", "take it with admission=pooled"),
    ):
        with pytest.raises(InputError, match=message):
            simulate(trace, make_policy(rule), changed, training=trace)
    with pytest.raises(InputError, match="only `simulate` keeps eligibility"):
        sample_states(trace, make_policy("jsq"), setting, 1)
    with pytest.raises(InputError, match="no worker serves kind 1"):
        Eligibility(kind=[0], allowed=[[True], [False]])
    with pytest.raises(InputError, match="is of kind 2; expected 0 to 0"):
        Eligibility(kind=[2], allowed=[[True]])
    with pytest.raises(InputError, match="2 requests, and eligibility of 1"):
        replace(trace, eligibility=Eligibility(kind=[0], allowed=[[True]]))
