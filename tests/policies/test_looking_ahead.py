"""br-h and bf-io over a window: their options, what they refuse, and that bf-io solves the program it says."""

from importlib import import_module

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.model import Fleet, StepProblem, Trace, objective
from lbopt.policies import ActiveRequests, Observation, foresight_of, make_policy
from lbopt.policies.bf_io import WEIGHT_UNIT
from lbopt.policies.policy import STANDINGS
from lbopt.policies.projection import Projection
from lbopt.predictors import Forecast
from lbopt.simulator import FrozenView, SimulationSetting, sample_states, simulate
from lbopt.solvers import solve

twin = import_module("naive.br_h")  # the name in the package is that of the function


def trace_of(seed, count=400):
    rng = np.random.default_rng(seed)
    return Trace(prompt=rng.integers(1, 300, count), output=rng.integers(1, 30, count), name="random")


def states(count=6, workers=3, slots=6, seed=0):
    return sample_states(trace_of(seed), make_policy("br-0"), SimulationSetting(Fleet(workers, slots)), count)[0]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("br-h:gamma=0", r"gamma is 0.0; expected a discount in \(0, 1\]"),
        ("br-h:gamma=1.5", "gamma is 1.5"),
        ("br-h:gamma=nan", "gamma is nan"),
        ("br-h:beta=-1", "beta is -1.0; expected 0 to"),
        ("br-h:alpha=0", "alpha is 0.0; expected a positive number"),
        ("br-h:horizon=-1", "horizon is -1; expected 0 to"),
        ("br-h:window=17", "window is 17; expected 1 to 16"),
        ("br-h:subset=some", "subset is 'some'; expected enumerate or bit-set or all-sums"),
        ("br-h:departures=never", "departures is 'never'; expected cut or fractional or weighted"),
        ("br-h:boundary=dead", "boundary is 'dead'; expected alive or literal"),
        ("br-h:update=none", "update is 'none'; expected constant or profile"),
        ("br-h:predictor=orcale", "unknown predictor 'orcale'"),
        ("br-h:predictor=oracle:nois=3", "predictor 'oracle' has no option 'nois'; it takes noise, bias"),
        ("bf-io:predictor=memorised:bins=few", "bins is 'few'; expected a number"),
        ("br-h:growth=-1", "growth is -1; expected 0 to"),
        ("br-h:gate=2", "gate is 2.0; expected a chance"),
        ("br-h:floor=-1", "floor is -1.0; expected 0 to"),
        ("br-h:refresh=0", "refresh is 0; expected at least 1"),
        ("br-h:hold_anchor=maybe", "hold_anchor is 'maybe'; expected yes or no"),
        ("br-h:age_bound=-3", "age_bound is -3"),
        ("br-h:horizn=3", "has no option 'horizn'; it takes horizon, alpha"),
        ("bf-io:horizon=-2", "horizon is -2"),
        ("bf-io:horizon=3,gamma=0", "gamma is 0.0; expected a discount"),
        ("bf-io:horizon=3,new=old", "new is 'old'; expected survives or forecast"),
        ("bf-io:horizon=3,tie=newest", "tie=newest is for horizon=0"),
        ("bf-io:horizon=3,departures=soon", "departures is 'soon'"),
    ],
)
def test_options_that_cannot_be_are_named_with_the_way_out(spec, message):
    with pytest.raises(InputError, match=message):
        make_policy(spec)


@pytest.mark.parametrize(
    ("predictor", "message"),
    [
        ("orcale", "unknown predictor 'orcale': did you mean oracle"),
        ("oracle:noise=-1", "noise is -1.0; expected 0 to 10"),
        ("memorised:bins=-1", "bins is -1"),
    ],
)
def test_a_wrong_predictor_is_named_before_a_run(predictor, message):
    with pytest.raises(InputError, match=message):
        simulate(
            trace_of(1),
            make_policy(f"br-h:predictor={predictor}"),
            SimulationSetting(Fleet(2, 4)),
            training=trace_of(2),
        )


def test_two_requests_are_the_least_to_learn_from():
    setting, one = SimulationSetting(Fleet(2, 4)), Trace(prompt=[3], output=[4], name="lonely")
    with pytest.raises(InputError, match="predictor 'survival' is to be trained on 1 request of 'lonely'"):
        simulate(trace_of(1), make_policy("br-h"), setting, training=one)


def test_requests_that_outgrow_their_prompts_do_not_overflow_the_score():
    """Prompts of a few tokens that grow by a million a step, scored in exact integers by the twin."""
    H, n = 1000, 6
    none, running = np.zeros(2, dtype=np.int64), ActiveRequests([0], [0], [100], [1])
    seen = Observation(
        step=1,
        clock=0.0,
        loads=[101, 0],
        free_slots=[6, 6],
        running=[1, 0],
        queued=none,
        queued_tokens=none,
        sizes=np.arange(1, n + 1),
        waited=np.zeros(n),
        requests=np.arange(1, n + 1),
        active=running,
        forecast=Forecast(H, np.array([1.0]), np.array([1000.0, 8, 1000, 22, 900, 36])),
    )
    policy = make_policy(f"br-h:horizon={H},gamma=1,growth=1000000,update=profile,stage_switch=99,window={n}")
    expected = twin.br_h(
        projected=Projection("br-h", H, 10**6).of_workers(seen).tolist(),
        free=[6, 6],
        sizes=seen.sizes.tolist(),
        waited=[0] * n,
        stage_switch=99,
        window_size=n,
        window_order="size",
        key="lexicographic",
        age_bound=None,
        rewards=[1] * (H + 1),
        penalties=[48] * (H + 1),
        profile=Projection("br-h", H, 10**6).of_waiting(seen).tolist(),
    )
    assert policy.decide(seen).tolist() == expected


def test_a_rule_without_a_window_asks_for_no_forecast():
    for spec in ("br-h:horizon=0", "bf-io", "bf-io:horizon=0,predictor=oracle", "br-0"):
        assert foresight_of(make_policy(spec)) is None
    wanted = foresight_of(make_policy("br-h:horizon=7,predictor=oracle:noise=0.5;seed=3,gate=0.2,hold_anchor=yes"))
    assert (wanted.horizon, wanted.predictor, wanted.gate, wanted.hold_anchor) == (
        7,
        "oracle:noise=0.5;seed=3",
        0.2,
        True,
    )
    assert make_policy("bf-io:horizon=0,predictor=oracle").name == "bf-io"


def test_given_options_are_used_where_a_policy_has_them_and_names_none():
    given = {"horizon": 9, "predictor": "oracle"}
    assert make_policy("br-h", given).horizon == 9
    assert make_policy("br-h:horizon=4", given).horizon == 4
    assert make_policy("br-0", given).name == "br-0"


@pytest.mark.parametrize("new", ["survives", "forecast"])
@pytest.mark.parametrize("growth", [0, 1])
def test_a_decision_over_a_window_is_an_optimum_of_its_program(new, growth):
    view = FrozenView()
    policy = make_policy(f"bf-io:horizon=4,predictor=oracle,new={new},growth={growth}")
    for state in states():
        decided = policy.decide(view.observe(state, policy))
        requests = state.requests
        left = requests.output - requests.generated
        departures = np.column_stack([requests.worker, left, requests.prompt + requests.generated])[left <= 4]
        known = {
            "active": np.bincount(requests.worker, minlength=3),
            "departures": departures,
            "growth": growth,
        }
        loads, slots, sizes = state.problem.base[:, 0], state.problem.slots, state.problem.work[:, 0]
        if new == "survives":
            problem = StepProblem.survives(loads, slots, sizes, 4, **known)
        else:
            problem = StepProblem.known_ends(loads, slots, sizes, requests.waiting_output, 4, **known)
        best = solve(problem, solver="brute-force") if problem.num_requests < 8 else solve(problem)
        assert best.proved
        assert objective(problem, decided) == best.objective
    assert policy.tally["proved"] + policy.tally["searched"] == len(policy.ledger) > 0


@pytest.mark.parametrize("departures", ["cut", "fractional", "weighted"])
def test_waiting_requests_are_projected_as_running_ones_of_no_age(departures):
    """By the naive definition: whole while h < c, its last step in part, or by the share of samples that are longer."""
    training, view = trace_of(8), FrozenView(trace_of(8))
    H, longer = 12, lambda a: (training.output > a).mean()
    policy = make_policy(f"br-h:horizon={H},departures={departures},predictor=survival,gate=0")
    for state in states(3):
        seen = view.observe(state, policy)
        found = policy._projection.of_waiting(seen)
        p = 1 - longer(H)
        c = (1 - p) * H + p * training.output[training.output <= H].mean()
        for size, row in zip(seen.sizes, found, strict=True):
            for h in range(H + 1):
                if departures == "weighted":
                    assert abs(row[h] - (size + h) * longer(h)) <= 0.5 + 1e-9
                elif departures == "cut":
                    assert row[h] == (size + h) * (h < c)
                else:
                    assert row[h] == int((size + h) * min(1.0, max(0.0, c - h)))


def test_a_discounted_window_weighs_its_steps_in_sixteenths():
    view, policy = FrozenView(), make_policy("bf-io:horizon=10,predictor=oracle,gamma=0.5")
    plain = make_policy("bf-io:horizon=10,predictor=oracle")
    for state in states(4):
        seen = view.observe(state, policy)
        weighed, whole = policy._problem(seen), plain._problem(seen)
        weights = np.rint(WEIGHT_UNIT * 0.5 ** np.arange(11)).astype(int)
        count = int((weights > 0).sum())
        assert weighed.horizon + 1 == count == 5
        assert (weighed.base == whole.base[:, :count] * weights[:count]).all()
        assert (weighed.work == whole.work[:, :count] * weights[:count]).all()
        policy.decide(seen)
    noted = policy.ledger
    proved = [STANDINGS[code] in ("proved", "searched") for code in noted.standing]
    assert any(proved)
    for is_proved, bound, imbalance in zip(proved, noted.bound, noted.imbalance, strict=True):
        assert bound == imbalance or not is_proved  # rounding to whole tokens opens no gap
    assert all(bound <= imbalance for bound, imbalance in zip(noted.bound, noted.imbalance, strict=True))


def test_an_age_bound_holds_over_a_window():
    trace, setting = trace_of(3, 300), SimulationSetting(Fleet(3, 4))
    for spec in ("br-h:horizon=6,predictor=oracle,age_bound=4", "bf-io:horizon=6,predictor=oracle,age_bound=4"):
        run = simulate(trace, make_policy(spec), setting)
        fifo = simulate(trace, make_policy("fcfs"), setting).metrics().waiting_max_steps
        assert run.metrics().waiting_max_steps <= max(4, fifo)


def test_a_long_request_goes_where_load_is_about_to_end():
    """The second scenario of the fast-phi source: A is heavier now and nearly empty soon, B stays as it is."""
    training = Trace(prompt=[1, 1], output=[5, 6], name="unused")
    problem = StepProblem.now([500, 400], [1, 1], [50])
    from lbopt.simulator import FrozenRequests, SampledState

    requests = FrozenRequests(
        worker=np.array([0, 0, 1]),
        prompt=np.array([400, 100, 400]),
        generated=np.array([0, 0, 0]),
        output=np.array([2, 99, 99]),
        waiting_prompt=np.array([50]),
        waiting_output=np.array([99]),
    )
    state = SampledState(problem, np.array([2, 1]), np.array([0]), "by hand", 0, requests=requests)
    view = FrozenView(training)
    for spec, worker in (
        ("br-h:horizon=20,predictor=oracle,gamma=1,beta=2", 0),
        ("bf-io:horizon=20,predictor=oracle", 0),
    ):
        policy = make_policy(spec)
        assert policy.decide(view.observe(state, policy)).tolist() == [worker]
    for spec in ("br-0", "bf-io", "br-h:horizon=0,beta=2"):
        from lbopt.policies.decide import decide

        assert decide(make_policy(spec), state.observation).tolist() == [1]
