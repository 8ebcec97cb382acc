"""Experts in use: counted anew from who runs where, in every step of the barrier's loop."""

import math

import numpy as np
import pytest
from naive.decoders import union
from simulator.expert_traces import expert_trace

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, ExpertStepTime
from lbopt.kernels.simulation.state import Requests
from lbopt.kernels.simulation.step import count_experts, join_experts, leave_experts
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, TraceTimes, simulate
from lbopt.simulator.ceiling import saturation_rate
from lbopt.simulator.state import fresh_state, requests_of, unused_logs

LAW = ExpertStepTime(0.01, 0.001, 1e-5, 2e-4, 3e-4, 5, 6, 2)


@pytest.mark.parametrize("policy", ["jsq", "br-0", "fcfs", "jsq:admission=pooled", "bf-io"])
@pytest.mark.parametrize("arrivals", [ClosedLoop(5), TraceTimes()])
def test_experts_of_every_step(policy, arrivals):
    trace, G = expert_trace(), 3
    setting = SimulationSetting(Fleet(G, 4), arrivals, step_time=LAW)
    run = simulate(trace, make_policy(policy), setting, keep_loads=True)
    chances = trace.experts.decode[trace.experts.profile].astype(float).tolist()
    for step in range(run.num_steps):
        at = (run.requests["start_step"] <= step) & (step < run.requests["finish_step"])
        own, used = [], []
        for g in range(G):
            rows = np.flatnonzero(at & (run.requests["worker"] == g))
            if rows.size:
                used.append(union([chances[i] for i in rows]))
                layers = 5 * (2e-4 + 3e-4 * used[-1])
                own.append(1e-3 * rows.size + 1e-5 * run.steps["barrier_loads"][step, g] + layers)
        assert run.steps["experts"][step] == pytest.approx(np.mean(used), abs=1e-5)
        assert run.steps["seconds"][step] == pytest.approx(0.01 + max(own), rel=1e-6)
    assert run.metrics().active_experts == pytest.approx(run.steps["experts"][run.window.rows].mean())


def test_a_request_that_surely_uses_an_expert_leaves_nothing_behind():
    trace = expert_trace(count=300, profiles=1)  # profile 0 uses expert 0 always
    run = simulate(trace, make_policy("jsq"), SimulationSetting(Fleet(2, 3), ClosedLoop(4), step_time=LAW))
    alone = union([trace.experts.decode[0].astype(float).tolist()])
    last = run.steps["active"] == 1
    assert run.steps["experts"][last] == pytest.approx(alone, abs=1e-5)


def test_other_laws_do_not_look_at_experts():
    trace = expert_trace()
    setting = SimulationSetting(Fleet(3, 4), ClosedLoop(5), step_time=AffineStepTime(0.01, 1e-5))
    with_, without = (
        simulate(t, make_policy("jsq"), setting)
        for t in (trace, type(trace)(prompt=trace.prompt, output=trace.output, arrival=trace.arrival))
    )
    assert (with_.steps["seconds"] == without.steps["seconds"]).all()
    assert np.isfinite(with_.steps["experts"]).all() and np.isnan(without.steps["experts"]).all()
    assert without.metrics().active_experts is None


def test_without_knowledge_of_the_requests_the_law_expects_the_experts():
    trace = expert_trace()
    bare = type(trace)(prompt=trace.prompt, output=trace.output)
    setting = SimulationSetting(Fleet(3, 4), ClosedLoop(5), step_time=LAW)
    assert setting.form_for(bare).per_expert == 0 and setting.form_for(trace).per_expert == 5 * 3e-4


def test_a_law_of_another_model_is_refused():
    setting = SimulationSetting(Fleet(3, 4), ClosedLoop(5), step_time=ExpertStepTime.of_eldr())
    with pytest.raises(InputError, match=r"6 experts a layer.*with 128"):
        simulate(expert_trace(), make_policy("jsq"), setting)


def test_a_share_of_saturation_is_with_the_experts_that_requests_use():
    trace, G, B = expert_trace(count=200), 2, 3
    setting = SimulationSetting(Fleet(G, B), TraceTimes(), step_time=LAW)
    profiles = trace.experts.profile
    rng = np.random.default_rng(0)
    chances = trace.experts.decode.astype(float)
    drawn = [union(chances[rng.choice(profiles, B)].tolist()) for _ in range(2000)]
    assert trace.experts.expected_in_use(B) == pytest.approx(np.mean(drawn), rel=0.01)
    seconds = 0.01 + 0.001 * B + 1e-5 * B * trace.mean_resident_tokens + 5 * (2e-4 + 3e-4 * np.mean(drawn))
    assert saturation_rate(trace, setting) == pytest.approx(G * B / (trace.output.mean() * seconds), rel=0.01)


def test_an_expert_that_is_always_used_has_a_finite_logarithm():
    """A chance of 1 is taken for 1 - 2^-24; without experts there is nothing."""
    experts = expert_trace().experts
    logs = unused_logs(experts)
    assert logs.shape == (7, 2 * 6)
    assert logs[0, 0] == np.float32(np.log(2.0**-24))
    likely = experts.decode[3, 1, 4].astype(float)
    assert logs[3, 1 * 6 + 4] == pytest.approx(np.log(1 - likely), rel=1e-6)
    assert unused_logs(None).shape == (0, 0)


@pytest.mark.parametrize("together", [1, 3])
def test_counts_that_keep_their_terms_are_those_of_a_whole_sum(together):
    """To the last bit: also where several requests came and went between two counts, and where a worker emptied."""
    rng = np.random.default_rng(together)
    G, cells, layers = 3, 40, 2
    chance = np.where(rng.random((20, cells)) < 0.3, rng.uniform(0, 1, (20, cells)), 0.0)
    rows = np.log1p(-chance).astype(np.float32)
    fleet, one = Fleet(G, 1), Trace(prompt=np.ones(1, np.int64), output=np.ones(1, np.int64))
    requests = requests_of(one, make_policy("fcfs"), SimulationSetting(fleet), 0)
    fields = {name: getattr(requests, name) for name in Requests._fields} | {"unused": rows}
    state = fresh_state(fleet, Requests(**fields))
    running = [[] for _ in range(G)]
    for _ in range(300):
        for _ in range(together):
            w = int(rng.integers(G))
            if running[w] and rng.random() < 0.5:
                row = running[w].pop(int(rng.integers(len(running[w]))))
                leave_experts(rows[row], w, len(running[w]), state)
            else:
                running[w].append(int(rng.integers(len(rows))))
                join_experts(rows[running[w][-1]], w, state)
        for w in range(G):
            count_experts(w, layers, state)
            total = 0.0
            for value in state.unused[w].tolist():
                total -= math.expm1(value)
            assert state.experts[w] == total / layers
            assert running[w] or state.experts[w] == 0
        assert not state.experts_changed.any()
