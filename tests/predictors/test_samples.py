"""Survival and memorisation: the worked example, exactness, and what happens beyond all samples."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predictors.asking import answer, expected_within, trace_of

from lbopt.exceptions import InputError
from lbopt.predictors import SamplePredictor, make_predictor
from lbopt.predictors.rules import Memorised, Survival

E7 = (10, 20, 30, 40, 50, 100, 200, 300)
OUTPUTS = st.lists(st.integers(1, 60), min_size=2, max_size=30)
AGES = st.lists(st.integers(0, 70), min_size=1, max_size=10)


@pytest.mark.parametrize(
    ("age", "p", "mu", "c"),
    [
        (15, 4 / 7, 20, 28.5714),
        (0, 0.5, 25, 32.5),
        (60, 1 / 3, 40, 40),
        (150, 0, 40, 40),
        (300, 0, 40, 40),
    ],
)
def test_worked_example_e7(age, p, mu, c):
    found_p, found_mu = answer(Survival(trace_of(E7)), [age], 40)
    assert found_p[0] == pytest.approx(p)
    assert found_mu[0] == pytest.approx(mu)
    assert expected_within(found_p[0], found_mu[0], 40) == pytest.approx(c, abs=5e-5)


@settings(deadline=None)
@given(outputs=OUTPUTS, ages=AGES, horizon=st.integers(0, 80))
def test_survival_is_exact(outputs, ages, horizon):
    """(1 - p) H + p mu is the mean of min(o - a, H) over the samples beyond a; the twin counts the same p and mu."""
    p, mu = answer(Survival(trace_of(outputs)), ages, horizon)
    for i, age in enumerate(ages):
        beyond = [output - age for output in outputs if output > age]
        mean = np.mean([min(left, horizon) for left in beyond]) if beyond else horizon
        assert expected_within(p[i], mu[i], horizon) == pytest.approx(mean)
        assert (p[i], mu[i]) == pytest.approx(tuple(map(float, naive.ends_within(outputs, age, horizon))))


@settings(deadline=None)
@given(outputs=OUTPUTS, horizon=st.integers(0, 80), beyond=st.integers(0, 1000))
def test_beyond_every_sample_a_request_outlives_the_window(outputs, horizon, beyond):
    for predictor in (Survival(trace_of(outputs)), Memorised(trace_of(outputs)), Memorised(trace_of(outputs), bins=3)):
        p, mu = answer(predictor, [max(outputs) + beyond], horizon)
        assert (p[0], mu[0]) == (0, horizon)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 60)), min_size=2, max_size=40),
    ages=AGES,
    horizon=st.integers(0, 80),
    prompt=st.integers(0, 8),
    least=st.integers(1, 3),
)
def test_memorised_goes_by_its_prompts_samples(rows, ages, horizon, prompt, least):
    """A prompt seen often enough has its own law, up to its longest output; all else is the survival of all."""
    trace = trace_of([output for _, output in rows], [size for size, _ in rows])
    own = [output for size, output in rows if size == prompt]
    everybody = trace.output.tolist()
    p, mu = answer(Memorised(trace, least=least), ages, horizon, prompt=prompt)
    for i, age in enumerate(ages):
        samples = own if len(own) >= least and max(own) > age else everybody
        assert (p[i], mu[i]) == pytest.approx(tuple(map(float, naive.ends_within(samples, age, horizon))))


@settings(deadline=None)
@given(rows=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 60)), min_size=2, max_size=40), ages=AGES)
def test_memorised_equals_survival_on_unseen_prompts(rows, ages):
    trace = trace_of([output for _, output in rows], [size for size, _ in rows])
    for prompt in (0, 10, 10**9):
        for ours, theirs in zip(
            answer(Memorised(trace), ages, 25, prompt=prompt), answer(Survival(trace), ages, 25), strict=True
        ):
            assert np.array_equal(ours, theirs)


def test_bins_share_their_samples():
    """Two bins of four prompts: 1 and 2 against 3 and 4; prompts between and outside belong to the bin they lie in."""
    trace = trace_of([10, 20, 100, 200], [1, 2, 3, 4])
    predictor = Memorised(trace, bins=2)
    for prompt, samples in (
        (0, [10, 20]),
        (1, [10, 20]),
        (2, [10, 20]),
        (3, [100, 200]),
        (4, [100, 200]),
        (99, [100, 200]),
    ):
        p, mu = answer(predictor, [5], 150, prompt=prompt)
        assert (p[0], mu[0]) == tuple(map(float, naive.ends_within(samples, 5, 150)))


@settings(deadline=None)
@given(outputs=OUTPUTS, ages=AGES, horizon=st.integers(0, 80))
def test_one_bin_is_survival(outputs, ages, horizon):
    for ours, theirs in zip(
        answer(Memorised(trace_of(outputs), bins=1), ages, horizon),
        answer(Survival(trace_of(outputs)), ages, horizon),
        strict=True,
    ):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("spec", ["survival", "memorised", "memorised:bins=2", "oracle:noise=0.3"])
def test_samples_say_what_the_predictor_says(spec):
    """The samples handed to policies lead to the same p and mu."""
    trace = trace_of([5, 9, 9, 30, 31], [1, 2, 2, 3, 3])
    predictor = make_predictor(spec, requests=trace, training=trace, horizon=10)
    assert isinstance(predictor, SamplePredictor)
    numbers, ages = np.arange(5), np.array([0, 3, 8, 12, 29])
    samples, buckets = predictor.samples_of(numbers, trace.prompt)
    p, mu = predictor.ends_within(numbers, trace.prompt, ages, 10)
    for i in range(5):
        own = samples.outputs[samples.starts[buckets[i]] : samples.starts[buckets[i] + 1]].tolist()
        everybody = samples.outputs[: samples.starts[1]].tolist()
        used = own if own and max(own) > ages[i] else everybody
        assert (p[i], mu[i]) == pytest.approx(tuple(map(float, naive.ends_within(used, int(ages[i]), 10))))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("surival", r"unknown predictor 'surival': did you mean survival\?"),
        ("survival:bins=3", r"predictor 'survival' has no option 'bins'; it takes none"),
        ("memorised:bins=-1", r"predictor 'memorised': bins is -1; expected 0 or more"),
        ("memorised:least=0", r"predictor 'memorised': least is 0; expected 1 or more"),
        ("memorised:bins=few", r"predictor 'memorised': bins is 'few'; expected a number"),
        ("learned:trees=0", r"predictor 'learned': trees is 0; expected 1 to"),
        ("learned:stride=0", r"predictor 'learned': stride is 0; expected 1 to"),
        ("learned:depth=none", r"predictor 'learned': depth is 'none'; expected a number"),
        ("memorised:bins=none", r"predictor 'memorised': bins is 'none'; expected a number"),
        ("oracle:noise=none", r"predictor 'oracle': noise is 'none'; expected a number"),
        ("learned:seed=-1", r"predictor 'learned': seed is -1; expected 0 to"),
    ],
)
def test_a_wrong_name_or_option_is_named(spec, message):
    with pytest.raises(InputError, match=message):
        make_predictor(spec, requests=trace_of(E7), training=trace_of(E7), horizon=10)


@pytest.mark.parametrize("name", ["survival", "memorised", "learned"])
def test_too_little_to_learn_from_is_refused(name):
    with pytest.raises(InputError, match=f"predictor '{name}' is to be trained on 1 request of 'given'"):
        make_predictor(name, requests=trace_of(E7), training=trace_of([5]), horizon=10)
    with pytest.raises(InputError, match=f"predictor '{name}' has no requests to learn from"):
        make_predictor(name, requests=trace_of(E7), training=None, horizon=10)


@pytest.mark.parametrize(
    "spec", ["survival", "memorised:bins=5,least=2", "memorised:least=3", "oracle:noise=0.5,seed=3", "learned:trees=5"]
)
def test_a_predictors_name_makes_it_again(spec):
    if spec.startswith("learned"):
        pytest.importorskip("sklearn")
    trace = trace_of(E7 * 5)
    first = make_predictor(spec, requests=trace, training=trace, horizon=10)
    assert first.name == spec
    second = make_predictor(first.name.replace(",", ";"), requests=trace, training=trace, horizon=10)
    for ours, theirs in zip(answer(first, [0, 7], 10), answer(second, [0, 7], 10), strict=True):
        assert np.array_equal(ours, theirs)
