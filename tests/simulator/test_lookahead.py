"""Looking ahead in a run: what a policy is shown of the running requests, and that what the oracle sees comes true."""

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.model import Fleet, StepProblem, Trace, objective
from lbopt.policies import make_policy
from lbopt.policies.projection import Projection
from lbopt.predictors import Foresight
from lbopt.simulator import ClosedLoop, FrozenView, SampledState, SimulationSetting, sample_states, simulate
from lbopt.solvers import solve


def random_trace(seed, count=300, longest=40):
    rng = np.random.default_rng(seed)
    return Trace(prompt=rng.integers(0, 400, count), output=rng.integers(1, longest, count), name="random")


class Watching:
    """Decides as another policy and keeps what it was shown."""

    def __init__(self, policy, foresight):
        self.policy, self.foresight, self.seen = policy, foresight, []
        self.name, self.admission = "watching", policy.admission

    def decide(self, observation):
        self.seen.append(observation)
        return self.policy.decide(observation)


def watched(trace, setting, horizon=6, predictor="oracle", **options):
    policy = Watching(make_policy("br-h:horizon=0,beta=3"), Foresight(horizon, predictor, **options))
    return policy, simulate(trace, policy, setting, training=random_trace(99), keep_loads=True)


def test_running_requests_are_shown_with_worker_prompt_and_age():
    trace, setting = random_trace(1), SimulationSetting(Fleet(3, 4))
    policy, run = watched(trace, setting)
    checked = 0
    for seen in policy.seen:
        active = seen.active
        starts, ends = run.requests["start_step"], run.requests["finish_step"]
        truth = np.flatnonzero((starts < seen.step) & (ends > seen.step))
        assert sorted(active.requests.tolist()) == truth.tolist()
        assert (active.worker == run.requests["worker"][active.requests]).all()
        assert (active.prompt == trace.prompt[active.requests]).all()
        assert (active.generated == seen.step - starts[active.requests]).all()
        held = np.bincount(active.worker, weights=active.size, minlength=3)
        assert (held == seen.loads).all()
        assert (np.bincount(active.worker, minlength=3) == seen.running).all()
        checked += truth.size
    assert checked > 500


def test_the_oracle_knows_when_requests_end():
    trace, setting = random_trace(2), SimulationSetting(Fleet(3, 4))
    policy, _ = watched(trace, setting, horizon=9)
    for seen in policy.seen:
        left = trace.output[seen.active.requests] - seen.active.generated
        assert (seen.forecast.remaining == np.minimum(left, 9)).all()
        assert (seen.forecast.outlives == (left > 9)).all()
        assert (seen.forecast.waiting_outlives == (trace.output[seen.requests] > 9)).all()
        assert (seen.forecast.waiting == np.minimum(trace.output[seen.requests], 9)).all()


def test_the_oracles_window_comes_true_where_nobody_new_starts():
    """All requests start at once; what is projected then are the loads of the steps that follow."""
    trace = random_trace(3, 24, longest=14)
    setting = SimulationSetting(Fleet(3, 8), ClosedLoop(24), event_order="theory")
    policy, run = watched(trace, setting, horizon=7)
    assert (run.requests["start_step"] == 0).all()
    # a second look, at a state in the middle: everything runs, nobody waits, so the state is frozen by hand
    step = 4
    runs = run.requests["finish_step"] > step
    worker, prompt = run.requests["worker"][runs], trace.prompt[runs]
    problem = StepProblem.survives(
        run.steps["barrier_loads"][step],
        8 - np.bincount(worker, minlength=3),
        [],
        7,
        active=np.bincount(worker, minlength=3),
        departures=[
            [w, o - step, s + step] for w, s, o in zip(worker, prompt, trace.output[runs], strict=True) if o - step <= 7
        ],
    )
    later = run.steps["barrier_loads"][step : step + 8]
    assert (later == problem.base[:, : later.shape[0]].T).all()
    assert policy.seen[0].active.worker.size == 0


def test_states_freeze_who_runs_and_judge_windows():
    trace, setting = random_trace(4, 500), SimulationSetting(Fleet(3, 6))
    states, _ = sample_states(trace, make_policy("br-0"), setting, 8, seed=0)
    assert len(states) == 8
    view = FrozenView()
    for state in states:
        again = SampledState.from_dict(state.to_dict(), source="a file")
        assert again.problem == state.problem
        for name in ("worker", "prompt", "generated", "output", "waiting_output"):
            assert (getattr(again.requests, name) == getattr(state.requests, name)).all()
        for new in ("survives", "ends"):
            window = state.over_window(5, new).problem
            assert (window.base[:, 0] == state.problem.base[:, 0]).all()
            policy = make_policy(f"bf-io:horizon=5,predictor=oracle,new={'forecast' if new == 'ends' else new}")
            seen = view.observe(state, policy)
            assert (Projection("test", 5).of_workers(seen) == window.base).all()
            decided = policy.decide(seen)
            best = solve(window)
            assert best.proved
            assert objective(window, decided) == best.objective


def test_a_state_that_does_not_list_its_requests_is_refused_with_the_way_out():
    bare = SampledState.from_dict(StepProblem.now([3, 1], [1, 1], [5, 4]).to_dict(), source="bare")
    with pytest.raises(InputError, match=r"policy 'br-h' looks ahead.*sample states with this version"):
        FrozenView(random_trace(5)).observe(bare, make_policy("br-h"))
    with pytest.raises(InputError, match="does not list its running requests"):
        bare.over_window(4)
    assert FrozenView().observe(bare, make_policy("br-0")).active is None


def test_a_predictor_without_requests_to_learn_from_is_refused():
    with pytest.raises(InputError, match="predictor 'survival' has no requests to learn from"):
        simulate(random_trace(6), make_policy("br-h"), SimulationSetting(Fleet(2, 4)))


def test_frozen_requests_that_do_not_add_up_are_refused():
    trace, setting = random_trace(4, 200), SimulationSetting(Fleet(3, 6))
    state = sample_states(trace, make_policy("br-0"), setting, 1)[0][0]
    data = state.to_dict()
    data["requests"]["running"]["prompt"][0] += 1
    with pytest.raises(InputError, match=r"the running requests of worker \d hold"):
        SampledState.from_dict(data, source="a file")


def test_counts_of_running_requests_are_those_of_the_list():
    """Projections go by the counts, windows by the list: a file in which they differ would be judged by neither."""
    state = sample_states(random_trace(4, 200), make_policy("br-0"), SimulationSetting(Fleet(3, 6)), 1)[0][0]
    data = state.to_dict()
    wrong = [*data["running"][:-1], data["running"][-1] + 1]
    with pytest.raises(InputError, match=rf"a file counts {wrong[-1]} running requests on worker 2 and lists"):
        SampledState.from_dict(data | {"running": wrong}, source="a file")
    del data["running"]
    assert SampledState.from_dict(data, source="a file").running.tolist() == state.running.tolist()


@pytest.mark.parametrize("spec", ["br-h:horizon=8,predictor=oracle", "br-h:horizon=8", "br-h:horizon=8,update=profile"])
def test_a_run_is_the_same_twice(spec):
    trace, training, setting = random_trace(7, 400), random_trace(8, 400), SimulationSetting(Fleet(4, 5))
    first, second = (simulate(trace, make_policy(spec), setting, training=training) for _ in range(2))
    assert (first.requests["worker"] == second.requests["worker"]).all()
    assert (first.requests["start_step"] == second.requests["start_step"]).all()


def test_every_option_of_br_h_runs():
    trace, training, setting = random_trace(9, 250), random_trace(8, 400), SimulationSetting(Fleet(4, 5))
    for options in (
        "departures=fractional",
        "departures=weighted",
        "departures=weighted,predictor=memorised:bins=5",
        "boundary=literal",
        "growth=0",
        "hold_anchor=yes",
        "gate=0",
        "refresh=7",
        "floor=2.5",
        "subset=bit-set,window=6",
        "subset=all-sums,window=6",
        "key=product,window_order=arrival,stage_switch=99",
        "age_bound=3",
        "update=profile,predictor=oracle",
    ):
        run = simulate(trace, make_policy(f"br-h:horizon=10,{options}"), setting, training=training)
        assert (run.requests["start_step"] >= 0).all()
        if "age_bound" in options:
            fifo = simulate(trace, make_policy("fcfs"), setting).metrics().waiting_max_steps
            assert run.metrics().waiting_max_steps <= max(3, fifo)


def test_hold_anchor_and_boundary_read_the_paper_both_ways():
    """An anchored forecast that falls looks like an end; held, or refreshed at once, it does not."""
    trace = Trace(prompt=[5] * 60, output=[500] * 60, name="long")
    training = Trace(prompt=[5] * 50, output=[400 + i for i in range(50)], name="long")
    setting = SimulationSetting(Fleet(2, 8))
    least = {}
    for hold in (False, True):
        policy = Watching(make_policy("br-h:horizon=0,beta=2"), Foresight(20, "survival", refresh=50, hold_anchor=hold))
        simulate(trace, policy, setting, training=training)
        ages = [(s.active.generated, s.forecast.remaining) for s in policy.seen if s.active.worker.size]
        least[hold] = min((r[(a > 0) & (a < 50)].min(initial=20) for a, r in ages), default=20)
    assert least[True] == 20
    assert least[False] <= 20
