"""The text form of policies: every name, every option, and what is said of a wrong one."""

import inspect

import pytest
from kernels.rules import IMMEDIATE, POOLED

from lbopt.exceptions import InputError
from lbopt.policies import POLICIES, CompiledPolicy, DecidingPolicy, make_policy


@pytest.mark.parametrize("name", POLICIES)
def test_every_name_makes_the_policy_of_that_name(name):
    policy = make_policy(name)
    assert policy.name == name
    assert isinstance(policy, CompiledPolicy) != isinstance(policy, DecidingPolicy)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policys_name_makes_it_again(name):
    specs = [spec for spec, _, _ in [*POOLED, *IMMEDIATE] if spec.partition(":")[0] == name]
    more = {
        "auto": ["auto:age_weight=0.125,age_bound=5"],
        "br-0": ["br-0:stage_switch=0,window=8,window_order=arrival"],
        "bf-io": ["bf-io:solver=highs,age_bound=5", "bf-io:conditions=no", "bf-io:room=128"],
        "max-min": ["max-min:pace=yes", "max-min:scope=pool,pace=yes"],
    }
    for spec in [name, *specs, *more.get(name, [])]:
        policy = make_policy(spec)
        assert make_policy(policy.name) == policy


#: What a rule does that is named without options; changing one of them changes the results of everybody.
DEFAULTS = {
    "auto": {"age_thousandths": 300, "age_bound": -1},
    "max-min": {"whole_pool": 0},
    "br-0": {"stage_switch": 7, "window_size": 4, "window_by_arrival": 0, "key_product": 0, "age_bound": -1},
    "br-h": {
        **{
            "horizon": 80,
            "alpha": 1.0,
            "beta": 48.0,
            "gamma": 0.9,
            "stage_switch": 7,
            "window": 4,
            "subset": "enumerate",
        },
        **{"window_order": "size", "key": "lexicographic", "update": "constant", "age_bound": None, "growth": 1},
        **{
            "departures": "cut",
            "boundary": "alive",
            "predictor": "survival",
            "refresh": None,
            "gate": 0.5,
            "floor": 1.0,
        },
        "hold_anchor": False,
    },
    "br-0-bypass": {"overbooking": 2, "ties_by_number": 0},
    "iqr": {"thousandths": 1500, "percentile": 0},
    "bf-io": {
        **{"solver": "exact", "time_limit": 0.5, "age_bound": None, "tie": "oldest", "seed": 0, "horizon": 0},
        **{"new": "survives", "gamma": 1.0, "growth": 1, "departures": "cut", "boundary": "alive"},
        **{"predictor": "survival", "refresh": None, "gate": 0.5, "floor": 1.0, "hold_anchor": False},
        **{"conditions": True, "room": 16},
    },
    "barrier-time": {"time_limit": 0.5, "alpha": 112000, "beta": 26},
    "fast-phi": {
        **{"nodes": 5, "rule": "published", "percentile": 100.0, "ends": "plain", "weights": "survival", "gamma": 0.9},
        **{"drift": 0.0, "drift_scale": "none", "ties": "load", "longest": None, "growth": True, "beyond": "stays"},
        "predictor": "survival",
    },
    "eldr": {"width": 100_000_000},
    "domain": {"width": 500_000_000},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    policy = make_policy(name)
    found = policy.parameters if isinstance(policy, CompiledPolicy) else policy
    values = found if isinstance(found, dict) else {option: getattr(found, option) for option in DEFAULTS[name]}
    assert values == DEFAULTS[name]


def test_published_baselines_bind_when_their_source_does():
    immediate = {name for name in POLICIES if make_policy(name).admission == "immediate"}
    classics = {"round-robin", "random", "power-of-two", "jsq", "vllm"}
    engines = {"sglang", "tpu-inference", "smg", "dynamo", "llm-d", "lmdeploy", "lightllm", "vllm-ascend"}
    assert immediate == classics | engines | {"br-0-bypass", "fast-phi", "eldr", "domain"}


def test_options_reach_the_policy():
    assert make_policy("br-0:window=4,stage_switch=7") == make_policy("br-0")
    assert make_policy("br-0:age_bound=none") == make_policy("br-0")
    assert make_policy("br-0:window=8,key=product").name == "br-0:window=8,key=product"
    exact = make_policy("bf-io:solver=highs,time_limit=0.5,age_bound=3")
    assert (exact.solver, exact.time_limit, exact.age_bound) == ("highs", 0.5, 3)
    assert make_policy("bf-io:time_limit=none").time_limit is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("br0", r"unknown policy 'br0': did you mean br-0\?"),
        ("jsq-laod", r"did you mean jsq-load"),
        (
            "xyzzy",
            r"unknown policy 'xyzzy': known: fcfs, .*bf-io, .*fast-phi.* \(also replay:FILE and file\.py:function\)",
        ),
        ("", r"unknown policy ''"),
        ("fcfs:admission=immediate", r"policy 'fcfs' cannot use admission 'immediate'; expected pooled"),
        ("jsq:admission=late", r"policy 'jsq' cannot use admission 'late'; expected pooled or immediate"),
        ("vllm:version=2024", r"policy 'vllm': version is 2024; expected 2025 or 2026"),
        ("vllm:admission=pooled", r"policy 'vllm' cannot use admission 'pooled'; expected immediate"),
        ("br-0:window=4,window=8", r"policy 'br-0': option window is given twice"),
        ("jsq:depth=2", r"policy 'jsq' has no option 'depth'; it takes admission"),
        ("br-0:7", r"policy 'br-0' has no option '7'; it takes stage_switch, window, window_order, key, age_bound"),
        ("br-0:window=four", r"policy 'br-0': window is 'four'; expected a number"),
        ("br-0:window=4.5", r"window is '4\.5'"),
        ("br-0:window=0", r"policy 'br-0': window is 0; expected 1 to 16"),
        ("br-0:window=17", r"window is 17; expected 1 to 16"),
        ("br-0:stage_switch=-1", r"policy 'br-0': stage_switch is -1; expected"),
        ("br-0:age_bound=-1", r"policy 'br-0': age_bound is -1; expected"),
        ("br-0:window_order=newest", r"window_order is 'newest'; expected size or arrival"),
        ("br-0:key=sum", r"key is 'sum'; expected lexicographic or product"),
        ("max-min:scope=half", r"policy 'max-min' cannot use scope 'half'; expected oldest or pool"),
        ("bf-io:age_bound=-2", r"policy 'bf-io': age_bound is -2; expected"),
        ("bf-io:time_limit=soon", r"time_limit is 'soon'; expected a number"),
        ("bf-io:tally=1", r"policy 'bf-io' has no option 'tally'; it takes solver, time_limit, age_bound"),
    ],
)
def test_a_wrong_name_or_option_is_named(spec, message):
    with pytest.raises(InputError, match=message):
        make_policy(spec)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_none_is_refused_where_there_is_no_none(name):
    """Any option of any rule takes it as "no limit" or refuses it in a sentence."""
    for option, parameter in inspect.signature(POLICIES[name]).parameters.items():
        spec = f"{name}:{option}=none"
        if "None" in str(parameter.annotation):
            make_policy(spec)
        else:
            with pytest.raises(InputError, match="none"):
                make_policy(spec)
