"""Requests that an immediate rule holds back: first come, first served, counted as waiting, and nobody is lost."""

import importlib
import random

import numpy as np
import pytest
from kernels.rules import many, random_bypass
from simulator.traces import Case, assert_same_run, random_case

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.policies.python_file import CallablePolicy
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes
from lbopt.simulator.simulate import Look
from lbopt.simulator.state import fresh_rows

LOOP = importlib.import_module("lbopt.simulator.simulate")


def bypassing(slots_per_worker, overbooking, seen=None):
    """br-0-bypass with ties by load as a Python function, which may listen to what it is asked."""

    def bind(observation):
        held = observation.running + observation.queued
        eligible = np.flatnonzero(held < slots_per_worker + overbooking)
        virtual = observation.loads + observation.queued_tokens
        worker = int(eligible[np.argmin(virtual[eligible])]) if eligible.size else -1
        if seen is not None:
            seen.append((observation, worker))
        return [worker]

    return CallablePolicy("mine", bind, "immediate")


def test_without_a_cap_a_run_is_that_of_jsq_load():
    rng = random.Random("held jsq-load")
    for _ in range(20):
        case = random_case(rng)
        ours, theirs = case.run("br-0-bypass:overbooking=none"), case.run("jsq-load:admission=immediate")
        assert_same_run(ours, theirs)
        assert (ours.decisions, ours.real_choices) == (theirs.decisions, theirs.real_choices)


def test_without_overbooking_a_run_is_that_of_pooled_jsq_load():
    """Whoever is held is bound when a slot is free, to the lightest worker that has one: so does the pool's rule."""
    rng = random.Random("held pooled")
    for _ in range(many(60, 12)):
        case = random_case(rng)
        assert_same_run(case.run("br-0-bypass:overbooking=0"), case.run("jsq-load:admission=pooled"))


def test_a_function_that_holds_runs_as_the_compiled_rule():
    """And what it is shown: nobody beyond the cap, the same request again until it is bound, in order."""
    rng, held = random.Random("held in Python"), 0
    for _ in range(many(50, 12)):
        case, overbooking = random_case(rng), rng.randint(0, 3)
        slots_per_worker, seen = case.setting.fleet.slots_per_worker, []
        compiled = case.run(f"br-0-bypass:overbooking={overbooking}")
        python = case.run(bypassing(slots_per_worker, overbooking, seen))
        assert_same_run(compiled, python)
        assert (compiled.decisions, compiled.real_choices) == (python.decisions, python.real_choices)
        assert python.decisions == len(case.trace)
        head = 0
        for observation, worker in seen:
            assert (observation.running + observation.queued <= slots_per_worker + overbooking).all()
            assert observation.requests.tolist() == [head]
            assert observation.waited.tolist() == [observation.step - python.requests["reveal_step"][head]]
            head += worker >= 0
            held += worker < 0
        assert head == len(case.trace)
        bound_at = [observation.step for observation, worker in seen if worker >= 0]
        assert bound_at == sorted(bound_at)
    assert held > 100


def test_without_overbooking_requests_start_in_order_and_no_slot_is_wasted():
    rng = random.Random("held, no overbooking")
    for _ in range(many(60, 12)):
        run = random_case(rng).run("br-0-bypass:overbooking=0")
        assert (np.diff(run.requests["start_step"]) >= 0).all()
        assert np.array_equal(run.steps["admitted"], np.minimum(run.steps["waiting"], run.steps["free_slots"]))


def test_a_closed_loop_counts_those_held():
    """Nobody new becomes known while as many as the target wait, queued or held."""
    trace = Trace(prompt=[5] * 30, output=[4] * 30)
    run = Case(trace, SimulationSetting(Fleet(1, 1), ClosedLoop(3))).run("br-0-bypass:overbooking=1")
    # One runs, one is queued, one is held. Every four steps one ends; only the step after sees two waiting.
    assert run.steps["waiting"].max() == 3
    assert run.requests["reveal_step"].tolist() == [0, 0, 0, *range(1, 4 * 27, 4)]


def test_ties_by_number_crowd_the_first_worker():
    """The published argmax has no tie-break; with index 0 first that worker collects the traffic."""
    rng = np.random.default_rng(3)
    trace = Trace(prompt=rng.integers(1, 4000, 1500), output=rng.integers(1, 300, 1500))
    case = Case(trace, SimulationSetting(Fleet(8, 64), ClosedLoop(4)))
    shares, imbalance = {}, {}
    for ties in ("load", "index"):
        run = case.run(f"br-0-bypass:overbooking=none,ties={ties}")
        shares[ties] = np.bincount(run.requests["worker"], minlength=8) / len(trace)
        imbalance[ties] = run.metrics().imbalance_tokens
    assert shares["load"].max() < 0.15
    assert shares["index"][0] == shares["index"].max() > 1.5 * shares["load"][0]
    assert imbalance["index"] > imbalance["load"]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_run_in_short_chunks_is_the_same_and_tells_who_has_ended(rows, monkeypatch):
    rng = random.Random(17)
    cases = [(random_case(rng), random_bypass(rng)[0]) for _ in range(many(30, 8))]
    whole = [case.run(spec) for case, spec in cases]
    monkeypatch.setattr(LOOP, "_rows_for", lambda G, with_running: fresh_rows(G, rows, with_running))
    for (case, spec), expected in zip(cases, whole, strict=True):
        told = []
        run = case.run(spec, progress=lambda ended, total, told=told: told.append(ended))
        assert_same_run(run, expected)
        ended = np.cumsum(run.steps["completed"])[rows - 1 :: rows].tolist()
        assert told[:-1] == ended[: len(told) - 1]
        assert told[-1] == len(case.trace)


def test_who_looks_on_sees_those_queued_and_those_held_and_nobody_beyond_the_cap():
    rng = random.Random(18)
    for _ in range(many(40, 10)):
        case = random_case(rng)
        spec, _, options = random_bypass(rng)
        run = case.run(spec)
        steps = np.flatnonzero((run.steps["waiting"] > 0) & (run.steps["free_slots"] > 0))
        seen = []
        assert_same_run(run, case.run(spec, look=Look(steps, seen.append)))
        assert [observation.step for observation in seen] == steps.tolist()
        for observation in seen:
            known = (run.requests["reveal_step"] <= observation.step) & (run.requests["start_step"] >= observation.step)
            assert observation.requests.tolist() == np.flatnonzero(known).tolist()  # in order of revelation
            if options["overbooking"] is not None:
                cap = case.setting.fleet.slots_per_worker + options["overbooking"]
                assert (observation.running + observation.queued <= cap).all()


# ---------------------------------------------------------------------------------------------------------------------
# policies in Python


def test_a_function_that_holds_everybody_is_named():
    case = Case(Trace(prompt=[4] * 4, output=[3] * 4), SimulationSetting(Fleet(2, 1), ClosedLoop(4)))
    message = r"policy 'p' admits nothing in step 0 although nothing is running and 4 requests wait"
    with pytest.raises(InfeasibleDecisionError, match=message):
        case.run(CallablePolicy("p", lambda observation: [-1], "immediate"))


def test_a_function_that_holds_the_last_ones_for_ever_is_named():
    def first_only(observation):
        return [0] if observation.requests[0] == 0 else [-1]

    trace = Trace(prompt=[4] * 3, output=[2] * 3, arrival=[0.0, 0.5, 9.0])
    case = Case(trace, SimulationSetting(Fleet(1, 1), TraceTimes(), step_time=AffineStepTime(1.0, 0.0)))
    with pytest.raises(InfeasibleDecisionError, match=r"admits nothing in step 2 .* and 2 requests wait"):
        case.run(CallablePolicy("p", first_only, "immediate"))


def test_a_function_may_hold_until_somebody_arrives():
    """Nothing runs and one is held: the clock goes on to the next arrival."""
    trace = Trace(prompt=[4, 4, 4], output=[1, 1, 1], arrival=[0.0, 5.0, 9.0])
    setting = SimulationSetting(Fleet(1, 3), TraceTimes(), step_time=AffineStepTime(1.0, 0.0))
    run = Case(trace, setting).run(CallablePolicy("p", lambda o: [0 if o.clock >= 9 else -1], "immediate"))
    assert run.requests["start_clock"].tolist() == [9.0] * 3
    assert run.requests["reveal_clock"].tolist() == [0.0, 5.0, 9.0]


@pytest.mark.parametrize("answer", [[-2], [2], [0, 1], [-1, -1]])
def test_an_answer_that_is_neither_a_worker_nor_a_hold_is_named(answer):
    case = Case(Trace(prompt=[4] * 4, output=[3] * 4), SimulationSetting(Fleet(2, 1), ClosedLoop(4)))
    message = r"binds request 0 in step 0 to .*; expected a list of one worker of 0\.\.1, or of -1 to hold it back"
    with pytest.raises(InfeasibleDecisionError, match=message):
        case.run(CallablePolicy("p", lambda observation: answer, "immediate"))


def test_overbooking_as_deep_as_the_trace_holds_nobody():
    rng = random.Random(19)
    for _ in range(10):
        case = random_case(rng)
        deep = make_policy(f"br-0-bypass:overbooking={len(case.trace)}")
        assert_same_run(case.run(deep), case.run("br-0-bypass:overbooking=none"))
