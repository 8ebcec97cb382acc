"""An age bound as a multiple of what first come, first served makes requests wait: measured, or given."""

from __future__ import annotations

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances import open_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.policies.decide import refuse_unknowing
from lbopt.simulator import ClosedLoop, Detail, Run, SimulationSetting, Telemetry, TraceTimes, simulate

TRACE = open_trace("azure-like", count=1200, seed=5)
RULES = ("auto", "br-0:stage_switch=0")
SLOW_IN_PLAIN_PYTHON = ("br-h:horizon=4", "bf-io:effort=2000,time_limit=none")


def p99(run: Run) -> float:
    waits = run.requests["start_step"] - run.requests["reveal_step"]
    return float(np.quantile(waits, 0.99))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "rule", [*RULES, *(pytest.param(rule, marks=pytest.mark.jit) for rule in SLOW_IN_PLAIN_PYTHON)]
)
def test_a_measured_bound_is_that_multiple_of_fifos_wait(rule: str) -> None:
    setting = SimulationSetting(Fleet(4, 8), arrivals=ClosedLoop(40))
    bound = int(np.ceil(1.5 * p99(simulate(TRACE, make_policy("fcfs"), setting))))
    comma = "," if ":" in rule else ":"
    found = simulate(TRACE, make_policy(f"{rule}{comma}age_bound=1.5x"), setting, training=TRACE)
    expected = simulate(TRACE, make_policy(f"{rule}{comma}age_bound={bound}"), setting, training=TRACE)
    assert bound > 1
    assert found.policy == expected.policy
    assert np.array_equal(found.requests["worker"], expected.requests["worker"])
    assert np.array_equal(found.requests["start_step"], expected.requests["start_step"])


@pytest.mark.parametrize(
    "setting",
    [
        SimulationSetting(Fleet(4, 8), arrivals=TraceTimes(0.9), telemetry=Telemetry(0.1)),
        pytest.param(
            SimulationSetting(Fleet(4, 8), arrivals=ClosedLoop(40), detail=Detail(draft=2)), marks=pytest.mark.jit
        ),
    ],
)
def test_it_is_measured_in_the_same_fleet(setting: SimulationSetting) -> None:
    bound = max(1, int(np.ceil(2 * p99(simulate(TRACE, make_policy("fcfs"), setting, seed=3)))))
    found = simulate(TRACE, make_policy("br-0:stage_switch=0,age_bound=2x"), setting, seed=3)
    assert found.policy == f"br-0:stage_switch=0,age_bound={bound}"


def test_a_given_wait_is_a_number_of_steps() -> None:
    assert make_policy("br-0:age_bound=3x46").name == "br-0:age_bound=138"
    assert make_policy("auto:age_bound=1.5x3").name == "auto:age_bound=5"
    assert (
        make_policy("br-0:age_bound=3x0.1,stage_switch=0").name == make_policy("br-0:age_bound=1,stage_switch=0").name
    )
    assert make_policy("br-h:published,age_bound=3x2").name == make_policy("br-h:published,age_bound=6").name


def test_one_step_is_the_least_bound() -> None:
    """Nobody waits on an empty fleet: first come, first served has a P99 of zero steps."""
    trace = open_trace("azure-like", count=20, seed=5)
    run = simulate(trace, make_policy("br-0:age_bound=3x"), SimulationSetting(Fleet(8, 64), arrivals=TraceTimes(0.1)))
    assert run.policy == "br-0:age_bound=1"


def test_it_says_what_the_rule_says_of_itself() -> None:
    policy = make_policy("br-h:age_bound=3x")
    assert policy.name == "br-h:age_bound=3x"
    assert policy.admission == "pooled"
    assert policy.foresight == make_policy("br-h").foresight  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("jsq:age_bound=3x", "policy 'jsq' has no option 'age_bound'"),
        ("br-0:age_bound=x3", "age_bound is 'x3'; expected a number"),
        ("br-0:age_bound=3x,age_bound=3x", "age_bound is given twice"),
        ("br-0:age_bound=-3x", "age_bound is '-3x'; expected a number"),
        ("br-0:age_bound=3x,stage_switch=many", "stage_switch is 'many'; expected a number"),
    ],
)
def test_what_is_no_multiple_is_refused_at_once(spec: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make_policy(spec)


def test_a_single_decision_has_no_wait_to_measure() -> None:
    with pytest.raises(InputError, match=r"measured in a whole run, .*age_bound=3x46"):
        refuse_unknowing(make_policy("br-0:age_bound=3x"))
