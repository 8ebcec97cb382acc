"""Policies written in Python: the same runs as compiled ones, nothing of the truth, and one sentence per mistake."""

import dataclasses
import random

import numpy as np
import pytest
from kernels.rules import many
from simulator.traces import Case, assert_same_run, random_case

from lbopt.exceptions import InfeasibleDecisionError, InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet, Trace
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import repeats_alike
from lbopt.policies.observation import ActiveRequests
from lbopt.policies.python_file import CallablePolicy
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes


def in_order(observation):
    free = np.repeat(np.arange(observation.loads.size), observation.free_slots)
    workers = np.full(observation.sizes.size, -1)
    workers[: free.size] = free[: workers.size]
    return workers


def lightest(observation):
    loads, free = observation.loads.tolist(), observation.free_slots.tolist()
    workers = [-1] * observation.sizes.size
    for i, size in enumerate(observation.sizes[: observation.num_admissible].tolist()):
        g = min((g for g in range(len(loads)) if free[g]), key=lambda g: (loads[g], g))
        workers[i] = g
        loads[g] += size
        free[g] -= 1
    return workers


def bind_lightest(observation):
    return [int(np.argmin(observation.loads + observation.queued_tokens))]


def bind_fewest(observation):
    return np.array([np.argmin(observation.running + observation.queued)])


def bind_vllm(observation):
    return np.array([np.argmin(4 * observation.queued + observation.running)])


@pytest.mark.parametrize(("function", "spec"), [(in_order, "fcfs"), (lightest, "jsq-load")])
def test_a_pooled_function_runs_as_the_compiled_rule(function, spec):
    rng = random.Random(f"python {spec}")
    for _ in range(many(40, 10)):
        case = random_case(rng)
        compiled, python = case.run(spec), case.run(CallablePolicy("mine", function))
        assert_same_run(compiled, python)
        assert (compiled.decisions, compiled.real_choices) == (python.decisions, python.real_choices)
        assert (python.policy, python.admission) == ("mine", "pooled")


@pytest.mark.parametrize(
    ("function", "spec"),
    [(bind_lightest, "jsq-load:admission=immediate"), (bind_fewest, "jsq"), (bind_vllm, "vllm:version=2025")],
)
def test_an_immediate_function_runs_as_the_compiled_rule(function, spec):
    rng = random.Random(f"python {spec}")
    for _ in range(many(40, 10)):
        case = random_case(rng)
        compiled, python = case.run(spec), case.run(CallablePolicy("mine", function, "immediate"))
        assert_same_run(compiled, python)
        assert (compiled.decisions, compiled.real_choices) == (python.decisions, python.real_choices)
        assert python.admission == "immediate"


# ---------------------------------------------------------------------------------------------------------------------
# what a policy sees


def seen_by(case, function, admission="pooled"):
    seen: list[Observation] = []

    def listening(observation):
        seen.append(observation)
        return function(observation)

    run = case.run(CallablePolicy("listening", listening, admission))
    return run, seen


def test_observations_are_read_only_snapshots():
    case = random_case(random.Random(20), 40)
    _, seen = seen_by(case, lightest)
    for observation in seen:
        for field in dataclasses.fields(observation):
            value = getattr(observation, field.name)
            if isinstance(value, np.ndarray):
                assert value.dtype == np.int64
                assert not value.flags.writeable
                assert value.base is None  # a copy: later steps do not show through
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = 0
        with pytest.raises(dataclasses.FrozenInstanceError):
            observation.step = 0


def test_running_requests_are_read_only_too():
    active = ActiveRequests(*np.arange(8).reshape(4, 2))
    for field in dataclasses.fields(active):
        with pytest.raises(ValueError, match="read-only"):
            getattr(active, field.name)[:] = 0


def test_a_function_that_writes_into_its_observation_is_told_so():
    def writes(observation):
        observation.loads[0] = 0
        return in_order(observation)

    with pytest.raises(InputError, match=r"policy 'writes' raised ValueError in step 0: .*read-only"):
        random_case(random.Random(21)).run(CallablePolicy("writes", writes))


def same(first: Observation, second: Observation) -> bool:
    names = [field.name for field in dataclasses.fields(Observation)]
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


@pytest.mark.parametrize(("function", "admission"), [(lightest, "pooled"), (bind_lightest, "immediate")])
def test_output_lengths_show_only_when_a_request_ends(function, admission):
    """Lengthen one request: until it would have ended nobody can see a difference."""
    names = {field.name for field in dataclasses.fields(Observation)}
    assert names == {
        *("step", "clock", "loads", "free_slots", "running", "queued", "queued_tokens", "sizes", "waited", "requests"),
        *("active", "forecast"),  # None for a function, which cannot ask for a forecast
        *("memory", "slow", "is_open"),  # of workers in detail; their memory is compared with the twin's elsewhere
    }
    rng = random.Random(22)
    for _ in range(many(40, 10)):
        case = random_case(rng)
        i = rng.randrange(len(case.trace))
        output = case.trace.output.copy()
        output[i] += rng.randint(1, 30)
        longer = Trace(prompt=case.trace.prompt, output=output, arrival=case.trace.arrival)
        run, seen = seen_by(case, function, admission)
        _, seen_longer = seen_by(Case(longer, case.setting, case.seed), function, admission)
        end = run.requests["finish_step"][i]
        early = [observation for observation in seen if observation.step < end]
        assert len(early) <= len(seen_longer)
        assert all(same(a, b) for a, b in zip(early, seen_longer, strict=False))


def test_the_first_observation_by_hand():
    trace = Trace(prompt=[10, 20, 5], output=[2, 1, 2])
    setting = SimulationSetting(Fleet(2, 1), ClosedLoop(2), step_time=AffineStepTime(1.0, 0.1))
    _, seen = seen_by(Case(trace, setting), in_order)
    first, second = seen
    assert (first.step, first.clock, first.num_admissible) == (0, 0.0, 2)
    assert first.sizes.tolist() == [10, 20]
    assert (second.step, second.clock) == (1, 3.0)
    assert second.loads.tolist() == [11, 0]
    assert second.free_slots.tolist() == [0, 1]
    assert second.running.tolist() == [1, 0]
    assert (second.requests.tolist(), second.sizes.tolist(), second.waited.tolist()) == ([2], [5], [0])


# ---------------------------------------------------------------------------------------------------------------------
# mistakes

TINY = Case(Trace(prompt=[4, 4, 4, 4], output=[3, 3, 3, 3], name="tiny"), SimulationSetting(Fleet(2, 1), ClosedLoop(4)))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda o: None, r"policy 'p' returned None in step 0; expected 4 whole worker numbers"),
        (lambda o: "worker 1", r"returned 'worker 1' in step 0"),
        (lambda o: [0.5] * 4, r"returned \[0\.5, 0\.5, 0\.5, 0\.5\] in step 0"),
        (lambda o: [True] * 4, r"returned \[True, True"),
        (lambda o: [[0], [1, 1]], r"returned \[\[0\], \[1, 1\]\]"),
        (lambda o: [], r"returned \[\] in step 0"),
        (lambda o: [0, 1], r"shape \(2,\) in step 0; expected 4 worker numbers"),
        (lambda o: 1, r"shape \(\) in step 0; expected 4 worker numbers"),
        (lambda o: [[0, 1, -1, -1]], r"shape \(1, 4\) in step 0"),
        (lambda o: [0, 2, -1, -1], r"sends request 1 in step 0 to worker 2; expected -1 or 0\.\.1"),
        (lambda o: [0, 1, -2, -1], r"sends request 2 in step 0 to worker -2"),
        (lambda o: [0, 1, 1, -1], r"sends 2 requests in step 0 to worker 1, which has 1 free slots"),
        (lambda o: [-1] * 4, r"admits nothing in step 0 although nothing is running and 4 requests wait"),
    ],
)
def test_an_answer_that_cannot_be_followed_is_named(answer, message):
    with pytest.raises(InfeasibleDecisionError, match=message):
        TINY.run(CallablePolicy("p", answer))


@pytest.mark.parametrize("answer", [lambda o: [2], lambda o: [-1], lambda o: [], lambda o: [0, 1], lambda o: 0.5])
def test_an_immediate_answer_that_cannot_be_followed_is_named(answer):
    with pytest.raises(InfeasibleDecisionError, match=r"policy 'p' .*step 0"):
        TINY.run(CallablePolicy("p", answer, "immediate"))


def test_a_policy_may_hold_requests_back_while_others_run():
    """Admitting fewer than possible is a policy's right: here one request at a time."""

    def one_at_a_time(observation):
        workers = np.full(observation.sizes.size, -1)
        if observation.running.sum() == 0:
            workers[0] = 1
        return workers

    run = TINY.run(CallablePolicy("p", one_at_a_time))
    assert run.requests["start_step"].tolist() == [0, 3, 6, 9]
    assert run.steps["waiting"].tolist() == [4, 3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0]
    assert run.metrics().waiting_max_steps == 9


def test_a_policy_may_wait_for_arrivals_that_are_still_to_come():
    trace = Trace(prompt=[4, 4, 4], output=[1, 1, 1], arrival=[0.0, 5.0, 9.0])
    setting = SimulationSetting(Fleet(1, 3), TraceTimes(), step_time=AffineStepTime(1.0, 0.0))

    def all_together(observation):
        return np.zeros(3, dtype=int) if observation.sizes.size == 3 else np.full(observation.sizes.size, -1)

    run = Case(trace, setting).run(CallablePolicy("p", all_together))
    assert run.requests["start_clock"].tolist() == [9.0] * 3
    assert run.num_steps == 1


@pytest.mark.parametrize("admission", ["pooled", "immediate"])
def test_what_a_function_raises_is_reported_with_policy_and_step(admission):
    def fails(observation):
        if observation.step >= 3:
            raise KeyError("no such worker")
        return bind_fewest(observation) if admission == "immediate" else in_order(observation)

    with pytest.raises(InputError, match=r"policy 'p' raised KeyError in step [3-9]\d*: 'no such worker'") as caught:
        random_run_that_lasts().run(CallablePolicy("p", fails, admission))
    assert isinstance(caught.value.__cause__, KeyError)


def random_run_that_lasts():
    return Case(Trace(prompt=[4] * 40, output=[3] * 40), SimulationSetting(Fleet(2, 2), ClosedLoop(4)))


def test_an_interrupt_is_not_swallowed():
    def interrupted(observation):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TINY.run(CallablePolicy("p", interrupted))


def test_an_object_that_cannot_decide_is_refused():
    class Mute:
        name = "mute"
        admission = "pooled"

    with pytest.raises(InputError, match="policy 'mute' is neither compiled nor able to decide"):
        TINY.run(Mute())


# ---------------------------------------------------------------------------------------------------------------------
# policy files

FILE = """
import numpy as np

LIMIT = 3

def first(observation):
    workers = np.full(observation.sizes.size, -1)
    free = np.repeat(np.arange(observation.loads.size), observation.free_slots)
    workers[: free.size] = free[: workers.size]
    return workers

def bound(observation):
    return [0]

bound.admission = "immediate"

def odd(observation):
    return [0]

odd.admission = "sometimes"

def broken(observation):
    return 1 / 0
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rules.py"
    path.write_text(FILE)
    return path


def test_a_function_of_a_file_is_a_policy(file):
    policy = make_policy(f"{file}:first")
    assert (policy.name, policy.admission) == (f"{file}:first", "pooled")
    assert_same_run(TINY.run(policy), TINY.run("fcfs"))
    bound = make_policy(f"{file}:bound")
    assert bound.admission == "immediate"
    assert TINY.run(bound).requests["worker"].tolist() == [0] * 4


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{}/absent.py:first", r"policy file '.*absent\.py': No such file.*; expected path/to/file\.py:function"),
        ("{}/rules.py:second", r"has no function 'second'; its functions: first, bound, odd, broken"),
        ("{}/rules.py:LIMIT", r"has no function 'LIMIT'"),
        ("{}/rules.py:odd", r"cannot use admission 'sometimes'; expected pooled or immediate"),
        ("{}/syntax.py:first", r"policy file '.*syntax\.py' cannot be loaded: SyntaxError"),
        ("{}/raises.py:first", r"cannot be loaded: RuntimeError: not today"),
        ("{}/empty.py:first", r"has no function 'first'; its functions: nothing"),
    ],
)
def test_a_policy_file_that_cannot_be_used_is_named(spec, message, file, tmp_path):
    (tmp_path / "syntax.py").write_text("def first(:\n")
    (tmp_path / "raises.py").write_text("raise RuntimeError('not today')\n")
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(InputError, match=message):
        make_policy(spec.format(tmp_path))


def test_two_files_of_one_name_stay_apart(tmp_path):
    specs = []
    for worker in (0, 1):
        path = tmp_path / str(worker) / "rule.py"
        path.parent.mkdir()
        path.write_text(f"def choose(observation):\n    return [{worker}]\n\nchoose.admission = 'immediate'\n")
        specs.append(f"{path}:choose")
    first, second = map(make_policy, specs)
    assert first.name != second.name
    assert TINY.run(first).requests["worker"].tolist() == [0] * 4
    assert TINY.run(second).requests["worker"].tolist() == [1] * 4


def test_what_a_function_of_a_file_raises_names_file_and_function(file):
    with pytest.raises(InputError, match=r"policy '.*rules\.py:broken' raised ZeroDivisionError in step 0"):
        TINY.run(make_policy(f"{file}:broken"))


# ---------------------------------------------------------------------------------------------------------------------
# time of a decision


def test_decisions_are_repeated_where_they_come_out_alike():
    """Compiled rules, and rules that look ahead; not those that solve, nor functions, which may remember."""
    assert [name for name in ("fcfs", "br-0", "br-h", "fast-phi") if not repeats_alike(make_policy(name))] == []
    assert [name for name in ("bf-io", "bf-io:horizon=3") if repeats_alike(make_policy(name))] == []
    assert not repeats_alike(CallablePolicy("p", in_order))
