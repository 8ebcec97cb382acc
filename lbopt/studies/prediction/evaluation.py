"""`run_prediction`: train on the first requests, judge on the rest, at every age they go through.

Test requests are taken in blocks, in trace order: all rows of a block are asked about before it is told how long their
requests ran, so requests that may run together know nothing of each other. Then a predictor that learns is told.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.predictors import LearningPredictor, Predictor, make_predictor, walk
from lbopt.studies.prediction.metrics import (
    area_under_curve,
    brier_score,
    calibration_bins,
    calibration_error,
    resampled_scores,
    roc_curve,
)
from lbopt.studies.prediction.outcome import PredictionConfig, PredictionOutcome, PredictorScore
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.study import Study

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Requests asked about together, and told together.
BLOCK = 100
#: Requests in the call that is timed alone, and how often.
CALL_SIZE = 64
_CALLS = 25


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Test requests walked through their ages; all int64 (n,)."""

    requests: Ints
    prompt: Ints
    ages: Ints
    left: Ints


def run_prediction(config: PredictionConfig, progress: Progress | None = None) -> PredictionOutcome:
    """Train and judge every predictor; Ctrl-C keeps those that are done."""
    progress = progress or Silent()
    trace = config.requests.draw_for(config.seed)
    training, test = split(trace, config.train_share)
    outcome = PredictionOutcome(
        config,
        {
            "name": trace.name,
            "digest": trace.digest,
            "requests": len(trace),
            "left_out": trace.left_out,
            "training_requests": len(training),
            "test_requests": len(test),
        },
    )
    requests, ages = walk(test.output, config.stride)
    rows = _Rows(requests, test.prompt[requests], ages, test.output[requests] - ages)
    with outcome.clocked():
        for spec in config.predictors:
            progress.begin(spec, len(test))
            outcome.scores.append(_score(spec, config.horizon, training, test, rows, progress))
    if outcome.interrupted:
        judged = f"{len(outcome.scores)} of {len(config.predictors)} predictors"
        outcome.notes.append(f"interrupted: {judged} were judged until then")
    return outcome


def split(trace: Trace, train_share: float) -> tuple[Trace, Trace]:
    """Return the first `train_share` of the requests, rounded down, and the others."""
    count = int(train_share * len(trace))
    if count < 2:
        raise InputError(
            f"a share of {train_share:g} of the {len(trace)} requests of '{trace.name}' leaves {count} to learn from; "
            "expected at least 2: take more requests, or a larger share"
        )
    rest = Trace(prompt=trace.prompt[count:], output=trace.output[count:], name=trace.name)
    return trace.first(count), rest


def _score(spec: str, horizon: int, training: Trace, test: Trace, rows: _Rows, progress: Progress) -> PredictorScore:
    begin = time.perf_counter()
    predictor = make_predictor(spec, requests=test, training=training, horizon=horizon)
    training_seconds = time.perf_counter() - begin
    ask(predictor, rows, slice(0, 1), horizon)  # compiles
    if isinstance(predictor, LearningPredictor):
        predictor.begin()
    p, mu, seconds = np.empty(rows.ages.size), np.empty(rows.ages.size), 0.0
    for first in range(0, len(test), BLOCK):
        last = min(first + BLOCK, len(test))
        here = slice(*np.searchsorted(rows.requests, [first, last]).tolist())
        begin = time.perf_counter()
        p[here], mu[here] = ask(predictor, rows, here, horizon)
        seconds += time.perf_counter() - begin
        if isinstance(predictor, LearningPredictor):
            predictor.tell(test.prompt[first:last], test.output[first:last])
        progress.advance(last - first)
    ends = rows.left <= horizon
    expected = (1 - p) * horizon + p * mu
    bins = calibration_bins(ends, p)
    auc_draws, brier_draws = resampled_scores(ends, p, rows.requests, len(test))
    return PredictorScore(
        predictor=predictor.name,
        rows=p.size,
        base_rate=float(ends.mean()),
        auc=area_under_curve(ends, p),
        brier=brier_score(ends, p),
        mean_error=float(np.abs(mu - rows.left)[ends].mean()) if ends.any() else None,
        remaining_error=float(np.abs(expected - np.minimum(rows.left, horizon)).mean()),
        calibration_error=calibration_error(bins),
        calibration=bins,
        auc_draws=auc_draws,
        brier_draws=brier_draws,
        roc=roc_curve(ends, p),
        training_seconds=training_seconds,
        microseconds_per_prediction=1e6 * seconds / p.size,
        microseconds_per_call=_microseconds_of_a_call(predictor, rows, horizon),
    )


def ask(predictor: Predictor, rows: _Rows, here: slice, horizon: int) -> tuple[Floats, Floats]:
    """Return p and mu of some of the rows.

    Parameters
    ----------
    horizon
        Steps of the window.
    """
    return predictor.ends_within(rows.requests[here], rows.prompt[here], rows.ages[here], horizon)


def _microseconds_of_a_call(predictor: Predictor, rows: _Rows, horizon: int) -> float:
    """Return the median time of a call about `CALL_SIZE` requests, or as many as there are."""
    times = []
    for _ in range(_CALLS):
        begin = time.perf_counter()
        ask(predictor, rows, slice(0, CALL_SIZE), horizon)
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


HELP = """Train predictors on the first requests of a trace, and judge them on the others.

Every test request is walked through its ages; at each, a predictor says how likely the request ends within the
horizon, and when. With --out, writes prediction.csv, calibration.csv, prediction.png, prediction.svg and run.json.

Example: `lbopt predict azure-like --horizon 20 --predictor survival --predictor learned --out my-prediction`
"""

STUDY = Study(
    name="prediction",
    config=PredictionConfig,
    help=HELP,
    run=run_prediction,
    account=("trace", "interrupted", "seconds"),
    timings=("training_seconds", "microseconds_per_prediction", "microseconds_per_call"),
)
