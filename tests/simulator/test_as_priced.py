"""One deployment has one step time: what a simulation takes is what a price takes at the same loads."""

from __future__ import annotations

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.hardware import make_step_time
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, make_detail, simulate
from lbopt.studies.cost.config import CostConfig
from lbopt.studies.cost.load_point import LoadPoint
from lbopt.studies.cost.study import cost_of_points

G, B = 4, 12
#: What the price is asked, and the step time of the simulation: messages that overlap, hot experts, two tokens a
#: request, prompts between steps.
DEPLOYMENTS = {
    "plain": ({}, ""),
    "overlapped": ({"overlap": True}, ",overlap=yes"),
    "hot": ({"balancedness": 0.6}, ",balancedness=0.6"),
    "drafted": ({"tokens_per_request": 2, "accepted": 1.7}, ",query_tokens=2"),
    "all": (
        {"overlap": True, "balancedness": 0.6, "tokens_per_request": 2, "accepted": 1.7, "prompt_share": 0.3},
        ",overlap=yes,balancedness=0.6,query_tokens=2,prompt_share=0.3",
    ),
}


def requests(count=400, seed=1):
    rng = np.random.default_rng(seed)
    return Trace(prompt=rng.integers(200, 8000, count), output=rng.integers(40, 200, count), name="some")


def full_steps(run):
    """Return the steps in which every slot was taken."""
    rows = np.flatnonzero(run.steps["active"] == G * B)
    assert rows.size > 100
    return rows


def priced(point, **asked):
    """Return the nominal figures of the first law of a price."""
    config = CostConfig(devices=("h200",), draws=100, **asked)
    (cost, *_), _ = cost_of_points([point], config)
    return {name: figure.nominal for name, figure in cost.points[0].figures.items()}


@pytest.mark.jit
@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_calibrated_step_of_a_simulation_is_that_of_a_price(name):
    asked, options = DEPLOYMENTS[name]
    law = make_step_time("calibrated:device=h200,tp=2" + options)
    setting = SimulationSetting(Fleet(G, B), ClosedLoop(), step_time=law)
    run = simulate(requests(), make_policy("jsq"), setting, keep_loads=True)
    for row in full_steps(run)[::60]:
        point = LoadPoint.of_loads(run.steps["barrier_loads"][row], B)
        found = priced(point, devices_per_worker=2, **asked)
        assert run.steps["seconds"][row] == pytest.approx(found["step_milliseconds"] / 1e3, rel=1e-9)


@pytest.mark.jit
@pytest.mark.parametrize("options", ["", ",overlap=0.4,balancedness=0.7", ",query_tokens=2,overlap=1"])
def test_a_roofline_is_one_law_in_both(options):
    text = "roofline:device=h200,tp=2" + options
    setting = SimulationSetting(Fleet(G, B), ClosedLoop(), step_time=make_step_time(text))
    run = simulate(requests(), make_policy("jsq"), setting, keep_loads=True)
    for row in full_steps(run)[::60]:
        found = priced(LoadPoint.of_loads(run.steps["barrier_loads"][row], B), step_time=text)
        assert run.steps["seconds"][row] == pytest.approx(found["step_milliseconds"] / 1e3, rel=1e-9)


def drafting(acceptance, law="calibrated:device=h200,tp=2,query_tokens=2", draft=1):
    """Return a run in which tokens are drafted, the steps with all slots taken, and the tokens of a request in one."""
    detail = make_detail(f"draft={draft},acceptance={acceptance}")
    setting = SimulationSetting(Fleet(G, B), ClosedLoop(), step_time=make_step_time(law), detail=detail)
    run = simulate(requests(600), make_policy("jsq"), setting, keep_loads=True, seed=3)
    rows = full_steps(run)
    return run, rows, run.steps["made"][rows].sum() / run.steps["active"][rows].sum()


@pytest.mark.jit
@pytest.mark.parametrize("acceptance", [0.0, 0.7, 1.0])
def test_tokens_a_second_are_those_of_a_price_with_the_same_acceptance(acceptance):
    """The law prices what a step computes; its tokens are by `draft` and `acceptance` here, by `accepted` there."""
    run, rows, accepted = drafting(acceptance)
    loads, seconds = run.steps["barrier_loads"][rows], run.steps["seconds"][rows]
    ours = run.steps["made"][rows].sum() / seconds.sum()
    mean = LoadPoint.of_means(loads.mean(), G * (loads.max(axis=1).mean() - loads.mean()), G, B)
    found = priced(mean, devices_per_worker=2, tokens_per_request=2, accepted=float(accepted))
    assert ours == pytest.approx(found["tokens_per_second"], rel=1e-9)
    # 1 + acceptance, less what a request's last step would have made beyond its end
    assert accepted == pytest.approx(1 + acceptance, rel=0.02)


@pytest.mark.jit
def test_three_drafts_yield_the_sum_of_the_powers_of_their_acceptance():
    _, _, accepted = drafting(0.6, "roofline:device=h200,tp=2,query_tokens=4", draft=3)
    assert accepted == pytest.approx(1 + 0.6 + 0.6**2 + 0.6**3, rel=0.03)


@pytest.mark.jit
def test_drafting_makes_the_same_tokens_in_fewer_and_longer_steps():
    few, rows_few, _ = drafting(0.9)
    plain = simulate(
        requests(600),
        make_policy("jsq"),
        SimulationSetting(Fleet(G, B), ClosedLoop(), step_time=make_step_time("calibrated:device=h200,tp=2")),
        seed=3,
    )
    assert few.num_steps < 0.6 * plain.num_steps
    assert few.steps["seconds"][rows_few].mean() > plain.steps["seconds"][full_steps(plain)].mean()
    assert few.steps["made"].sum() == plain.steps["active"].sum() == requests(600).output.sum()


def test_a_law_that_computes_other_tokens_than_are_drafted_is_refused():
    law = make_step_time("roofline:query_tokens=2")
    with pytest.raises(InputError, match=r"drafts 3 tokens .* computes 2; expected query_tokens=4"):
        SimulationSetting(Fleet(G, B), step_time=law, detail=make_detail("draft=3"))
    SimulationSetting(Fleet(G, B), step_time=law, detail=make_detail("draft=1"))
    SimulationSetting(Fleet(G, B), step_time=make_step_time("affine"), detail=make_detail("draft=3"))
    SimulationSetting(Fleet(G, B), step_time=make_step_time("roofline"), detail=make_detail("draft=3"))
