"""The learned pair: what it sees, that it learns, that it is the same every time."""

import subprocess
import sys

import numpy as np
import pytest
from cli.terminal import environment
from hypothesis import given, settings
from hypothesis import strategies as st
from predictors.asking import answer, trace_of

from lbopt.exceptions import InputError
from lbopt.predictors import LearningPredictor, walk
from lbopt.predictors.learned import FEATURES, Learned
from lbopt.predictors.rules import MOST_ROWS, NAMES, SMOOTHING, WINDOW, Recent, recent_before

pytest.importorskip("sklearn")


def two_kinds(count, seed):
    """Short prompts end soon, long ones late, with some noise."""
    rng = np.random.default_rng(seed)
    prompts = rng.choice([10, 500], count)
    return trace_of(np.where(prompts == 10, rng.integers(5, 30, count), rng.integers(150, 300, count)), prompts)


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.integers(1, 60))
def test_a_walk_goes_through_the_ages_of_each_request(outputs, stride):
    requests, ages = walk(np.array(outputs), stride)
    expected = [(i, age) for i, output in enumerate(outputs) for age in range(0, output, stride)]
    assert list(zip(requests.tolist(), ages.tolist(), strict=True)) == expected


def test_walks_that_cannot_be():
    with pytest.raises(InputError, match="stride is 0; expected at least 1"):
        walk(np.array([5]), 0)
    with pytest.raises(InputError, match=rf"make {MOST_ROWS + 1} rows, more than {MOST_ROWS}; use a larger stride"):
        walk(np.array([MOST_ROWS + 1]), 1)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 99)), min_size=1, max_size=3 * WINDOW), st.integers(1, 50))
def test_recent_statistics_one_by_one_and_all_at_once(rows, block):
    """Loops over the definition, requests told in blocks, and the table that training uses: all agree."""
    prompt, output = np.array([p for p, _ in rows], dtype=np.int64), np.array([o for _, o in rows], dtype=np.int64)
    table = recent_before(prompt, output)
    assert table.shape == (len(rows) + 1, len(NAMES))
    recent = Recent()
    for begin in range(0, len(rows), block):
        assert recent.features() == pytest.approx(table[begin], nan_ok=True)
        recent.add(prompt[begin : begin + block], output[begin : begin + block])
    assert recent.features() == pytest.approx(table[-1], nan_ok=True)
    last = rows[-WINDOW:]
    smoothed = float(rows[0][1])
    for _, value in rows[1:]:
        smoothed = (1 - SMOOTHING) * smoothed + SMOOTHING * value
    outputs, prompts = [o for _, o in last], [p for p, _ in last]
    assert table[-1] == pytest.approx(
        [smoothed, sum(outputs) / len(outputs), max(outputs), sum(prompts) / len(prompts), max(prompts)]
    )


def test_it_learns_what_prompt_and_age_say():
    predictor = Learned(two_kinds(400, seed=1), horizon=40)
    p, mu = answer(predictor, [0, 10], 40, prompt=10)
    assert (p > 0.9).all()
    assert mu[0] > mu[1]
    p, _ = answer(predictor, [0, 100, 270], 40, prompt=500)
    assert (p[:2] < 0.3).all()
    assert p[2] > 0.6
    assert ((mu >= 1) & (mu <= 40)).all()


def test_it_learns_from_what_ended_lately():
    """Prompts say nothing here; whether the time is one of short or of long outputs, the history tells."""
    outputs = np.repeat([20, 200] * 12, 100)
    predictor = Learned(trace_of(outputs), horizon=40)
    for value, low, high in ((20, 0.7, 1.0), (200, 0.0, 0.4)):
        predictor.begin()
        predictor.tell(np.ones(70, dtype=np.int64), np.full(70, value))
        p, _ = answer(predictor, [0], 40)
        assert low <= p[0] <= high


def test_training_twice_gives_the_same():
    trace = two_kinds(300, seed=2)
    first, second = (answer(Learned(trace, horizon=40), np.arange(0, 300, 7), 40, prompt=500) for _ in range(2))
    for ours, theirs in zip(first, second, strict=True):
        assert np.array_equal(ours, theirs)


def test_a_new_run_begins_where_training_ended():
    trace = two_kinds(300, seed=3)
    predictor = Learned(trace, horizon=40)
    assert isinstance(predictor, LearningPredictor)
    before = answer(predictor, np.arange(0, 290, 10), 40, prompt=500)
    predictor.tell(np.full(200, 999), np.full(200, 999))
    told = predictor._recent.features()
    assert told[NAMES.index("largest prompt")] == 999
    predictor.begin()
    assert predictor._recent.features() == pytest.approx(recent_before(trace.prompt, trace.output)[-1])
    for ours, theirs in zip(before, answer(predictor, np.arange(0, 290, 10), 40, prompt=500), strict=True):
        assert np.array_equal(ours, theirs)


def test_one_question_or_many_is_the_same():
    predictor = Learned(two_kinds(300, seed=4), horizon=40)
    ages = np.arange(0, 290, 10)
    p, mu = answer(predictor, ages, 40, prompt=500)
    for i, age in enumerate(ages):
        alone = answer(predictor, [age], 40, prompt=500)
        assert (alone[0][0], alone[1][0]) == (p[i], mu[i])
    assert [values.size for values in answer(predictor, [], 40)] == [0, 0]


@pytest.mark.parametrize(("outputs", "horizon", "share"), [([3, 4, 5] * 9, 40, 1.0), ([300, 400] * 9, 0, 0.0)])
def test_nothing_to_classify(outputs, horizon, share):
    """All rows end inside the window, or none does: the chance is that share."""
    p, mu = answer(Learned(trace_of(outputs), horizon=horizon, stride=1), [0, 1], horizon)
    assert (p == share).all()
    assert (mu <= max(1, horizon)).all()


def test_it_is_trained_for_one_window():
    predictor = Learned(trace_of([5, 50, 500] * 5), horizon=40)
    with pytest.raises(InputError, match="trained for a window of 40 steps and is asked about 80"):
        answer(predictor, [0], 80)


def test_its_features_have_names():
    assert ("prompt", "generated", *NAMES) == FEATURES


def test_without_scikit_learn_it_says_how_to_get_it(tmp_path):
    """The package is blocked in a fresh process; other predictors do without it."""
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from lbopt.model import Trace\nfrom lbopt.predictors import make_predictor\n"
        "trace = Trace(prompt=[1, 2, 3], output=[5, 50, 500])\n"
        "print(make_predictor('survival', requests=trace, training=trace, horizon=9).name)\n"
        "try:\n    make_predictor('learned', requests=trace, training=trace, horizon=9)\n"
        "except ValueError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    assert first == "survival"
    assert second == (
        "predictor 'learned' needs the package scikit-learn, which is absent: pip install \"lbopt[learned]\""
    )
