"""The prediction study: its metrics against definitions and scikit-learn, its rows, who is told what and when."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.predictors import PREDICTORS
from lbopt.report.prediction_report import prediction_csv, prediction_figure, prediction_tables
from lbopt.report.study_report import write_study_folder
from lbopt.studies.prediction import PredictionConfig, evaluation, metrics, run_prediction
from lbopt.studies.prediction.metrics import (
    area_under_curve,
    brier_score,
    calibration_bins,
    calibration_error,
    roc_curve,
)
from lbopt.studies.requests import RequestSource

ROWS = st.lists(
    st.tuples(st.booleans(), st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), st.floats(0, 1))),
    min_size=1,
    max_size=60,
)


def arrays(rows):
    return np.array([ends for ends, _ in rows]), np.array([p for _, p in rows])


# ---------------------------------------------------------------- metrics


def test_worked_example_e8():
    ends, p = np.array([1, 0, 1, 1, 0], dtype=bool), np.array([0.9, 0.4, 0.6, 0.3, 0.5])
    assert area_under_curve(ends, p) == pytest.approx(4 / 6)
    assert brier_score(ends, p) == pytest.approx(0.214)


@settings(deadline=None)
@given(ROWS)
def test_auc_counts_pairs(rows):
    """The share of pairs of a row that ends and one that does not in which the first is predicted higher."""
    ends, p = arrays(rows)
    pairs = [(a > b) + 0.5 * (a == b) for a in p[ends] for b in p[~ends]]
    if pairs:
        assert area_under_curve(ends, p) == pytest.approx(np.mean(pairs))
    else:
        assert area_under_curve(ends, p) is None


@settings(deadline=None)
@given(ROWS)
def test_the_curve_has_the_area(rows):
    ends, p = arrays(rows)
    curve = roc_curve(ends, p)
    if area_under_curve(ends, p) is None:
        assert curve.shape == (0, 2)
        return
    assert curve[0].tolist() == [0, 0]
    assert curve[-1].tolist() == [1, 1]
    assert (np.diff(curve, axis=0) >= 0).all()
    assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(area_under_curve(ends, p))


@settings(deadline=None)
@given(ROWS)
def test_metrics_are_those_of_scikit_learn(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    ends, p = arrays(rows)
    if 0 < ends.sum() < ends.size:
        assert area_under_curve(ends, p) == pytest.approx(metrics.roc_auc_score(ends, p))
        false, true, _ = metrics.roc_curve(ends, p, drop_intermediate=False)
        assert roc_curve(ends, p) == pytest.approx(np.column_stack([false, true]))
    assert brier_score(ends, p) == pytest.approx(metrics.mean_squared_error(ends.astype(float), p))


def test_a_long_curve_is_thinned_out():
    rng = np.random.default_rng(1)
    p = rng.random(20_000)
    ends = rng.random(20_000) < p
    curve = roc_curve(ends, p)
    assert len(curve) <= 401
    assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(area_under_curve(ends, p), abs=1e-4)


@settings(deadline=None)
@given(ROWS)
def test_calibration_puts_every_row_into_its_tenth(rows):
    ends, p = arrays(rows)
    bins = calibration_bins(ends, p)
    assert len(bins) == 10
    assert sum(one.rows for one in bins) == p.size
    off = 0.0
    for one in bins:
        inside = np.floor(p * 10).clip(max=9) == round(one.low * 10)
        assert one.rows == inside.sum()
        assert ((p[inside] > one.low - 1e-9) & (p[inside] < one.high + 1e-9)).all()
        if one.rows:
            assert one.predicted == pytest.approx(p[inside].mean())
            assert one.observed == pytest.approx(ends[inside].mean())
            off += abs(p[inside].mean() - ends[inside].mean()) * one.rows
        else:
            assert one.predicted is None
            assert one.observed is None
    assert calibration_error(bins) == pytest.approx(off / p.size, abs=1e-12)


# ---------------------------------------------------------------- the study


@pytest.fixture
def study(monkeypatch):
    """A function that runs a study over a trace from lists."""

    def call(outputs, prompts=None, **options):
        trace = Trace(prompt=[1] * len(outputs) if prompts is None else prompts, output=outputs, name="given")
        monkeypatch.setattr(RequestSource, "draw_for", lambda self, seed: trace)
        return run_prediction(PredictionConfig(**options))

    return call


def test_rows_and_errors_by_hand(study):
    """Two requests to learn from, 4 and 8; a test request of 11 asked about at 0, 5 and 10."""
    outcome = study([4, 8, 11], horizon=6, predictors=("survival",), train_share=0.7, stride=5)
    (score,) = outcome.scores
    assert (outcome.trace["training_requests"], outcome.trace["test_requests"]) == (2, 1)
    assert (score.rows, score.base_rate) == (3, pytest.approx(2 / 3))  # left: 11, 6, 1
    # age 0: p = 1/2, mu = 4; age 5: p = 1, mu = 3; age 10: nobody knows, p = 0, mu = 6
    assert score.brier == pytest.approx((0.25 + 0 + 1) / 3)
    assert score.auc == pytest.approx(0.5)  # of the pairs (age 5, age 0), (age 10, age 0) one is right
    assert score.mean_error == pytest.approx((3 + 5) / 2)
    assert score.remaining_error == pytest.approx((abs(5 - 6) + abs(3 - 6) + abs(6 - 1)) / 3)
    assert score.calibration_error == pytest.approx((1 + 0.5 + 0) / 3)


def test_the_oracle_is_perfect_and_a_wrong_one_is_not(study):
    outputs = (np.random.default_rng(1).integers(1, 300, 400)).tolist()
    outcome = study(outputs, horizon=40, predictors=("oracle", "oracle:noise=0.5", "survival"))
    perfect, wrong, survival = outcome.scores
    assert (perfect.auc, perfect.brier, perfect.mean_error, perfect.remaining_error) == (1.0, 0.0, 0.0, 0.0)
    assert 0.5 < wrong.auc < 1
    assert 0.5 < survival.auc < 1
    assert {score.rows for score in outcome.scores} == {survival.rows}


def test_nobody_is_told_before_its_block_was_asked_about(study, monkeypatch):
    """Blocks of requests in trace order: asked about at all ages, then told, the last block too; training apart."""
    monkeypatch.setattr(evaluation, "BLOCK", 3)
    monkeypatch.setattr(evaluation, "_CALLS", 0)
    monkeypatch.setattr(evaluation, "_microseconds_of_a_call", lambda *given: 0.0)
    events = []

    class Noting:
        name = "noting"
        refresh_period = 1

        def __init__(self, training):
            events.append(("trained", training.output.tolist()))

        def begin(self):
            events.append(("begin",))

        def tell(self, prompt, output):
            events.append(("told", output.tolist()))

        def ends_within(self, requests, prompt, generated, horizon):
            events.append(("asked", sorted({*requests.tolist()}), generated.tolist()))
            return np.full(requests.size, 0.5), np.full(requests.size, 1.0)

    monkeypatch.setitem(PREDICTORS, "noting", Noting)
    study([1, 2, 3, 4, 5, 6, 7, 8, 19], horizon=6, predictors=("noting",), train_share=0.5, stride=10)
    assert events == [
        ("trained", [1, 2, 3, 4]),
        ("asked", [0], [0]),  # compiles
        ("begin",),
        ("asked", [0, 1, 2], [0, 0, 0]),
        ("told", [5, 6, 7]),
        ("asked", [3, 4], [0, 0, 10]),
        ("told", [8, 19]),
    ]


def test_the_learned_pair_beats_survival_where_prompts_tell(study):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(2)
    prompts = rng.choice([10, 500], 600)
    outputs = np.where(prompts == 10, rng.integers(5, 60, 600), rng.integers(150, 300, 600))
    outcome = study(outputs.tolist(), prompts.tolist(), horizon=40, predictors=("survival", "learned"))
    survival, learned = outcome.scores
    assert learned.auc > survival.auc
    assert learned.brier < survival.brier
    assert learned.remaining_error < survival.remaining_error


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("outputs", "mean_error"), [([5] * 20, 0.0), ([10**4] * 4, None)], ids=["all end", "none ends"]
)
def test_one_kind_of_rows_is_no_crash(study, outputs, mean_error, tmp_path):
    """Where every row ends inside the window, or none does, there is no AUC."""
    options = {"horizon": 20, "predictors": ("survival", "memorised"), "stride": 10 if mean_error == 0 else 9_000}
    outcome = study(outputs, **options)
    assert [(score.auc, score.mean_error) for score in outcome.scores] == [(None, mean_error)] * 2
    table, _ = prediction_tables(outcome)
    assert [row[table.headers.index("AUC")] for row in table.rows] == ["n/a", "n/a"]
    assert [row[table.headers.index("|μ − r|")] for row in table.rows] == ["0.00" if mean_error == 0 else "n/a"] * 2
    write_study_folder("prediction", outcome, tmp_path / "out", "lbopt predict")
    with (tmp_path / "out" / "prediction.csv").open() as stream:
        assert [row["auc"] for row in csv.DictReader(stream)] == ["", ""]


def test_the_folder(study, tmp_path):
    outputs = (np.random.default_rng(3).integers(1, 300, 100)).tolist()
    outcome = study(outputs, horizon=40, predictors=("survival", "memorised:bins=2"), train_share=0.25)
    for folder in ("one", "two"):
        write_study_folder("prediction", outcome, tmp_path / folder, "lbopt predict")
    names = {"prediction.csv", "calibration.csv", "prediction.png", "prediction.svg", "run.json"}
    assert {path.name for path in (tmp_path / "one").iterdir()} == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    with (tmp_path / "one" / "prediction.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["predictor"] for row in rows] == ["survival", "memorised:bins=2"]
    assert [float(row["auc"]) for row in rows] == [score.auc for score in outcome.scores]
    with (tmp_path / "one" / "calibration.csv").open() as stream:
        tenths = list(csv.DictReader(stream))
    assert len(tenths) == 20
    assert sum(int(row["rows"]) for row in tenths) == 2 * outcome.scores[0].rows
    run = json.loads((tmp_path / "one" / "run.json").read_text())
    assert run["format"] == "lbopt-prediction"
    assert run["configuration"]["train_share"] == 0.25
    assert (run["trace"]["training_requests"], run["trace"]["test_requests"]) == (25, 75)


def test_the_picture_shows_every_predictor(study):
    outputs = (np.random.default_rng(4).integers(1, 300, 100)).tolist()
    outcome = study(outputs, horizon=40, predictors=("survival", "memorised", "oracle"))
    figure = prediction_figure(outcome)
    calibration, roc = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["survival", "memorised", "oracle"]
    assert len(calibration.get_lines()) == len(roc.get_lines()) == 4  # with the diagonal
    x, y = calibration.get_lines()[1].get_data()
    bins = [one for one in outcome.scores[0].calibration if one.rows]
    assert list(x) == [one.predicted for one in bins]
    assert list(y) == [one.observed for one in bins]
    assert len(prediction_csv(outcome)) == 3


def test_an_interrupted_study_keeps_what_is_done(study, monkeypatch):
    class Impatient:
        name = "impatient"
        refresh_period = 1

        def __init__(self, training):
            raise KeyboardInterrupt

    monkeypatch.setitem(PREDICTORS, "impatient", Impatient)
    outcome = study([5, 50] * 10, horizon=9, predictors=("survival", "impatient", "memorised"))
    assert outcome.interrupted
    assert [score.predictor for score in outcome.scores] == ["survival"]
    assert prediction_tables(study([5, 50] * 10, horizon=9, predictors=("impatient",))) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizon": 0}, "horizon is 0; expected 1 to"),
        ({"train_share": 0.0}, "train_share is 0.0; expected a share of the requests between 0 and 1"),
        ({"train_share": 1.0}, "train_share is 1.0"),
        ({"train_share": float("nan")}, "train_share is nan"),
        ({"stride": 0}, "stride is 0; expected 1 to"),
        ({"seed": -1}, "seed is -1"),
        ({"predictors": ()}, "no predictor was named"),
        ({"predictors": ("survivor",)}, r"unknown predictor 'survivor': did you mean survival\?"),
        ({"predictors": ("memorised:bin=3",)}, "predictor 'memorised' has no option 'bin'; it takes bins, least"),
        ({"requests": RequestSource(draw="resample")}, "a resampled trace has the same request before and after"),
    ],
)
def test_configurations_that_cannot_be(wrong, message):
    with pytest.raises(InputError, match=message):
        PredictionConfig(**wrong)


def test_requests_are_always_in_order():
    assert PredictionConfig().requests.draw == "order"


def test_too_few_to_learn_from(study):
    with pytest.raises(InputError, match=r"a share of 0\.5 of the 3 requests of 'given' leaves 1 to learn from"):
        study([1, 2, 3], horizon=5)


# ---------------------------------------------------------------- intervals


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6))
def test_a_draw_is_the_score_of_its_requests(seed):
    """Rows of requests drawn twice count twice: the same as scoring the drawn rows one after the other."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 8))
    requests = np.sort(np.append(np.arange(count), rng.integers(0, count, 12)))
    p = rng.choice([0.1, 0.5, 0.5, 0.9, 1.0], requests.size)
    ends = rng.random(requests.size) < 0.5
    auc, brier = metrics.resampled_scores(ends, p, requests, count)
    draws = np.random.default_rng(metrics._SEED)
    for draw in range(metrics.DRAWS):
        chosen = draws.integers(count, size=count)
        rows = np.concatenate([np.flatnonzero(requests == one) for one in chosen])
        assert brier[draw] == pytest.approx(brier_score(ends[rows], p[rows]))
        expected = area_under_curve(ends[rows], p[rows])
        assert auc[draw] == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


def test_intervals_hold_the_value_and_shrink():
    rng = np.random.default_rng(1)
    widths = []
    for count in (100, 1600):
        requests = np.repeat(np.arange(count), 5)
        p = np.repeat(rng.random(count), 5)  # a request's rows are right or wrong together
        ends = np.repeat(rng.random(count), 5) < p
        auc, brier = metrics.resampled_scores(ends, p, requests, count)
        for draws, value in ((auc, area_under_curve(ends, p)), (brier, brier_score(ends, p))):
            low, high = metrics.interval(draws)
            assert low < value < high
        widths.append(high - low)
    assert 3 < widths[0] / widths[1] < 5.5
    assert metrics.interval(np.array([0.5, np.nan])) is None


def test_differences_are_taken_draw_by_draw(study):
    """A predictor against itself differs by nothing, in the table too."""
    outputs = (np.random.default_rng(5).integers(1, 300, 100)).tolist()
    outcome = study(outputs, horizon=40, predictors=("survival", "memorised:bins=1", "oracle"))
    first, same, oracle = prediction_csv(outcome)
    assert (first["brier_minus_first_low"], first["brier_minus_first_high"]) == (0.0, 0.0)
    assert (same["brier_minus_first_low"], same["brier_minus_first_high"]) == (0.0, 0.0)
    assert oracle["brier_minus_first_high"] < 0
    assert first["auc_low"] < first["auc"] < first["auc_high"]
    table = prediction_tables(outcome)[0]
    column = table.headers.index("Brier − first")
    assert [row[column] for row in table.rows][:2] == ["", "+0.0000 … +0.0000"]
