"""The flat namespace: the main questions from Python, with the same answers as the rooms behind them."""

from __future__ import annotations

import doctest

import pytest

import lbopt
from lbopt import InputError, api
from lbopt.model import Fleet
from lbopt.simulator import SimulationSetting
from lbopt.simulator import simulate as run_policy


@pytest.mark.jit
def test_the_examples_of_the_docstrings_run() -> None:
    """Every function of the flat namespace has an example, and the examples print what they say."""
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for name in ("audit", "gap", "simulate", "check", "cost", "list_policies", "study"):
        tests = [test for test in finder.find(getattr(api, name), name) if test.examples]
        assert tests, f"{name} has no example"
        for test in tests:
            runner.run(test)
    assert runner.failures == 0


@pytest.mark.parametrize("name", ["verify", "sensitivity", "open_trace", "make_policy", "objective", "StepProblem"])
def test_every_door_has_an_example_that_runs(name: str) -> None:
    """Functions and classes that come from other rooms have examples as well."""
    found = [test for test in doctest.DocTestFinder().find(getattr(lbopt, name), name) if test.examples]
    assert found
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in found:
        runner.run(test)
    assert runner.failures == 0


def test_no_name_is_that_of_a_subpackage() -> None:
    """`lbopt.gap` is a function whatever was imported before; a subpackage of that name would hide it."""
    import pkgutil

    packages = {module.name for module in pkgutil.iter_modules(lbopt.__path__)}
    assert packages.isdisjoint(lbopt.__all__)
    assert dir(lbopt) == sorted(lbopt.__all__)


PACKAGES = [
    "assignment",
    "hardware",
    "instances",
    "locality",
    "model",
    "policies",
    "predictors",
    "prefill",
    "runner",
    "simulator",
    "solvers",
    "theory",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_of_a_package_lists_what_is_public(name: str) -> None:
    """`dir` lists the names of `__all__`, each of which can be had, and nothing that is only imported."""
    from importlib import import_module

    package = import_module(f"lbopt.{name}")
    assert dir(package) == sorted(package.__all__)
    assert all(getattr(package, one) is not None for one in package.__all__)


def test_simulate_is_the_simulators_own() -> None:
    """A trace object and a name give the run that the simulator gives for the same setting."""
    trace = lbopt.open_trace("burstgpt-like", count=200, seed=3)
    policy = lbopt.make_policy("jsq")
    direct = run_policy(trace, policy, SimulationSetting(Fleet(4, 8)), seed=3)
    for run in (
        lbopt.simulate(trace, "jsq", workers=4, slots=8, seed=3),
        lbopt.simulate("burstgpt-like", policy, requests=200, workers=4, slots=8, seed=3),
    ):
        assert run.metrics().to_dict() == direct.metrics().to_dict()
    first = lbopt.simulate(trace, "jsq", requests=50, workers=4, slots=8)
    assert len(first.trace) == 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lbopt.gap(slot=8), "unknown argument 'slot'"),
        (lambda: lbopt.gap(policies="jsq"), r"expected a list such as \['jsq'\]"),
        (lambda: lbopt.gap("no-such-trace.csv"), "no-such-trace.csv"),
        (lambda: lbopt.simulate(policy="jsqq"), "unknown policy 'jsqq': did you mean jsq"),
        (lambda: lbopt.simulate(arrival="trace"), "unknown argument 'arrival'"),
        (lambda: lbopt.simulate(policy="jsq", horizon=5), "'jsq' does not look ahead"),
        (lambda: lbopt.simulate(policy=lbopt.make_policy("jsq"), horizon=5), "is an object, built already"),
        (
            lambda: lbopt.simulate(lbopt.open_trace("burstgpt-like", count=9, seed=0), "jsq", horizon=5),
            "does not look ahead",
        ),
        (lambda: lbopt.check("lemma-99"), "lemma-99"),
        (lambda: lbopt.cost("here", mean_load=3.0), "leave mean_load out"),
        (lambda: lbopt.cost(mean_load=1.0, imbalance=1.0, workers=2, modell="x"), "unknown argument 'modell'"),
        (lambda: lbopt.cost(devices="h800"), "expected a list"),
        (lambda: lbopt.study("scalling"), "unknown study 'scalling': did you mean scaling"),
        (lambda: lbopt.study("gap"), "study 'gap' is run by lbopt.gap"),
        (lambda: lbopt.study("placement", rank=[4]), "unknown argument 'rank': did you mean ranks"),
        (lambda: lbopt.study("prediction", predictr=["oracle"]), "unknown argument 'predictr'"),
        (lambda: lbopt.study("prediction", store="here.sqlite"), "does not run as tasks"),
    ],
)
def test_wrong_arguments_are_one_sentence(call, message) -> None:
    """A typo names what was given and what is known."""
    with pytest.raises(InputError, match=message):
        call()


def test_policies_are_listed_with_their_options() -> None:
    """One row for each rule of the table, options read from its factory."""
    from lbopt.policies import POLICIES

    table = lbopt.list_policies().set_index("policy")
    assert list(table.index) == list(POLICIES)
    assert "age_bound=" in table.loc["br-0", "options"]
