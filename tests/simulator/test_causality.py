"""Nobody sees what has not happened yet, and a frozen state shows what the run showed."""

import numpy as np
import pytest
from lengths import quick_and_long

from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.policies.decide import decide
from lbopt.simulator import ClosedLoop, FrozenView, SimulationSetting, sample_states, simulate


def random_trace(rng, count):
    return Trace(prompt=rng.integers(0, 200, count), output=rng.geometric(1 / 15, count), name="random")


@pytest.mark.some(4)
@pytest.mark.parametrize("traces", quick_and_long(1, 3))
@pytest.mark.parametrize(
    "spec",
    [
        "br-h:horizon=8",
        "br-h:horizon=8,departures=weighted,update=profile,predictor=memorised:bins=3",
        "bf-io:horizon=3,new=forecast,predictor=memorised,effort=20000,time_limit=none",
        "fast-phi:predictor=memorised:bins=3,nodes=20,rule=product",
        "fast-phi:nodes=all,admission=pooled",
        "iqr",
        "br-0-bypass",
        pytest.param("br-h:horizon=8,predictor=learned:trees=5", marks=pytest.mark.slow),
    ],
)
def test_two_futures_of_one_present_are_decided_alike(spec, traces):
    """Long requests end otherwise in another truth; until the first of them ends, no decision may differ."""
    rng = np.random.default_rng(20)
    for _ in range(traces):
        one, training = random_trace(rng, 160), random_trace(rng, 300)
        cut = int(rng.integers(8, 30))
        output = np.where(one.output > cut, cut + rng.integers(1, 80, len(one)), one.output)
        other = Trace(prompt=one.prompt, output=output, name="another truth")
        setting = SimulationSetting(Fleet(3, 5), ClosedLoop(10))
        runs = [simulate(trace, make_policy(spec), setting, training=training).requests for trace in (one, other)]
        apart = np.flatnonzero(one.output != output)
        ends = np.minimum(one.output, output)[apart]
        first = min(int((run["start_step"][apart] + ends).min()) for run in runs)
        early = (runs[0]["start_step"] < first) | (runs[1]["start_step"] < first)
        assert early.sum() > 15
        for column in ("worker", "start_step"):
            assert (runs[0][column][early] == runs[1][column][early]).all()


@pytest.mark.some(4)
@pytest.mark.parametrize(
    "spec",
    [
        "br-h:horizon=6,predictor=oracle",
        "br-h:horizon=6,refresh=1,departures=fractional,update=profile",
        "br-h:horizon=9,refresh=1,departures=weighted,predictor=memorised:bins=4",
        "br-h:horizon=6,refresh=1,boundary=literal,key=product,age_bound=3,subset=bit-set",
        "br-h:horizon=6,refresh=1,hold_anchor=yes,gate=0,floor=0",
        "bf-io:horizon=3,refresh=1,effort=20000,time_limit=none,new=forecast",
    ],
)
@pytest.mark.parametrize("event_order", ["paper", "theory"])
def test_frozen_states_are_decided_as_in_the_run(spec, event_order):
    """With forecasts made anew at every token a frozen state lacks nothing; the rule itself keeps nothing either."""
    rng = np.random.default_rng(21)
    trace, training = random_trace(rng, 150), random_trace(rng, 100)
    setting = SimulationSetting(Fleet(3, 4), ClosedLoop(14), event_order=event_order)
    policy = make_policy(spec)
    states, run = sample_states(trace, policy, setting, 12, training=training)
    assert len(states) == 12
    view = FrozenView(training)
    for state in states:
        assert (decide(policy, view.observe(state, policy)) == state.chosen).all()
    again = simulate(trace, policy, setting, training=training)
    assert all(np.array_equal(again.requests[column], run.requests[column]) for column in run.requests)
