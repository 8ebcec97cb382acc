"""The oracle: exact without an error, wrong in the way it was told to be with one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predictors.asking import answer, trace_of

from lbopt.exceptions import InputError
from lbopt.predictors.rules import Oracle

OUTPUTS = [5, 17, 40, 40, 41, 80, 200, 1000] * 20


def believed(oracle, count):
    """The outputs that an oracle takes for true, one per request."""
    p, mu = answer(oracle, [0] * count, 10**6, requests=range(count))
    assert (p == 1).all()
    return mu


@settings(deadline=None)
@given(
    outputs=st.lists(st.integers(1, 50), min_size=1, max_size=20), age=st.integers(0, 60), horizon=st.integers(0, 40)
)
def test_without_an_error_it_is_the_truth(outputs, age, horizon):
    p, mu = answer(Oracle(trace_of(outputs)), [age] * len(outputs), horizon, requests=range(len(outputs)))
    for i, output in enumerate(outputs):
        inside = 1 <= output - age <= horizon
        assert (p[i], mu[i]) == ((1, output - age) if inside else (0, horizon))


@pytest.mark.parametrize("error", [{"noise": 0.5}, {"shuffled": 0.5}, {"noise": 0.2, "bias": 2.0, "shuffled": 1.0}])
def test_errors_follow_from_the_seed(error):
    trace = trace_of(OUTPUTS)
    first, again, other = (believed(Oracle(trace, **error, seed=seed), len(trace)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, trace.output)


def test_an_error_stays_with_its_request():
    """At every age the same wrong output is believed, whoever asks beside."""
    trace = trace_of(OUTPUTS)
    oracle = Oracle(trace, noise=0.5)
    outputs = believed(oracle, len(trace))
    for request in (3, 60, 159):
        ages = np.arange(0, int(outputs[request]))
        p, mu = answer(oracle, ages, 10**6, requests=[request] * ages.size)
        assert (p == 1).all()
        assert np.array_equal(mu + ages, np.full(ages.size, outputs[request]))
    p, mu = answer(oracle, [int(outputs[3])], 80, requests=[3])  # it outlives what is believed of it
    assert (p[0], mu[0]) == (0, 80)


def test_what_the_errors_do():
    trace = trace_of(OUTPUTS)
    assert np.array_equal(believed(Oracle(trace, bias=2.0), len(trace)), 2 * trace.output)
    assert believed(Oracle(trace, bias=0.001), len(trace)).min() == 1
    shuffled = believed(Oracle(trace, shuffled=1.0), len(trace))
    assert sorted(shuffled) == sorted(trace.output)
    share = (believed(Oracle(trace_of(range(1, 2001)), shuffled=0.3), 2000) != np.arange(1, 2001)).mean()
    assert 0.25 < share < 0.35
    ratio = np.log(believed(Oracle(trace_of([10_000] * 2000), noise=0.5), 2000) / 10_000)
    assert abs(ratio.mean()) < 0.05
    assert abs(ratio.std() - 0.5) < 0.05


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noise": -0.1}, "noise is -0.1; expected 0 to 10"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"bias": 0.0}, r"bias is 0.0; expected 0.001 to 1000"),
        ({"shuffled": 1.5}, "shuffled is 1.5; expected a share"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_a_wrong_error_is_named(wrong, message):
    with pytest.raises(InputError, match=f"predictor 'oracle': {message}"):
        Oracle(trace_of(OUTPUTS), **wrong)
