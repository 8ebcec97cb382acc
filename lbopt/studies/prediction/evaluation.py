"""`run_prediction`: train on the first requests, judge on the rest, at every age they go through.

Test requests are taken in blocks, in trace order: all rows of a block are asked about before it is told how long their
requests ran, so requests that may run together know nothing of each other. Then a predictor that learns is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lbopt import compile_time
from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.predictors import LearningPredictor, Predictor, check_predictor, make_predictor, walk
from lbopt.predictors.predictor import LONGEST_HORIZON
from lbopt.studies.configuration import Configuration, Option, Without
from lbopt.studies.grid import Row
from lbopt.studies.prediction.metrics import (
    area_under_curve,
    brier_score,
    calibration_bins,
    calibration_error,
    resampled_scores,
    roc_curve,
)
from lbopt.studies.progress import Progress, Silent
from lbopt.studies.requests import RequestSource
from lbopt.studies.study import Outcome, Study

DEFAULT_PREDICTORS = ("survival", "memorised", "memorised:bins=20", "learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionConfig(Configuration):
    """Configuration of a prediction study: predictors learn from the first requests, and the others judge them.

    Requests are always in order, because drawing with replacement would put a request into both parts.
    """

    what = "a prediction study"

    requests: Annotated[RequestSource, Without.of("draw", "train_share", "train_on")] = field(
        default_factory=RequestSource
    )
    horizon: Annotated[
        int, Option("Steps that predictors look ahead.", names=("--horizon", "-H"), low=1, high=LONGEST_HORIZON)
    ] = 80
    predictors: Annotated[
        tuple[str, ...],
        Option(
            "Predictor to judge, e.g. `memorised:bins=20`; may be given again.",
            key="predictor",
            first=True,
            each=check_predictor,
            kept="once",
        ),
    ] = DEFAULT_PREDICTORS
    train_share: Annotated[
        float,
        Option(
            "Share of the requests, the first, to learn from.",
            low=0,
            high=1,
            open=True,
            expected="a share of the requests between 0 and 1",
        ),
    ] = 0.5
    stride: Annotated[
        int, Option("Tokens between two ages at which a request is asked about.", low=1, high=LONGEST_HORIZON)
    ] = 10
    seed: Annotated[int, Option("First seed.", first=True, low=0)] = 0

    def check(self) -> None:
        """Take requests in order."""
        if self.requests.draw == "resample":
            raise InputError("a resampled trace has the same request before and after; take requests in order")
        object.__setattr__(self, "requests", replace(self.requests, draw="order"))


class PredictorScore(Row):
    """How good one predictor is on the test rows.

    Parameters
    ----------
    predictor
        Its name.
    rows, base_rate
        Test rows, and the share of them that end within the window.
    auc
        Area under the ROC curve; None where all rows end within the window, or none.
    brier
        Mean squared error of the chance.
    mean_error
        Mean of abs(mu - r) over the rows with r <= H, steps; None where there are none.
    remaining_error
        Mean of abs((1 - p) H + p mu - min(r, H)) over all rows, steps: of what a router goes by, without a gate.
    calibration_error
        Mean over the rows of abs(predicted - observed) of their tenth.
    calibration
        The ten tenths.
    auc_draws, brier_draws
        float64 (draws,): both for resampled test requests, the same ones for every predictor.
    roc
        float64 (n, 2): false and true positive rate along the curve; empty where there is no AUC.
    training_seconds
        Seconds it took to train.
    microseconds_per_prediction
        In the batches of the study.
    microseconds_per_call
        For a batch of as many requests as may be due at one decision, `CALL_SIZE`.
    """


@dataclass(slots=True, repr=False)
class PredictionOutcome(Outcome):
    """All scores, and what they are of.

    Parameters
    ----------
    config
        What was asked.
    trace
        Name, digest, and the numbers of training and of test requests.
    scores
        One per predictor that was judged, in the order asked for.
    notes
        Sentences for the user.
    interrupted
        Whether Ctrl-C ended the study before the last predictor.
    seconds
        Time it took.
    """

    config: PredictionConfig
    trace: dict[str, Any]
    scores: list[PredictorScore] = field(default_factory=list)


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
    begin = compile_time.clock()
    predictor = make_predictor(spec, requests=test, training=training, horizon=horizon)
    training_seconds = compile_time.clock() - begin
    ask(predictor, rows, slice(0, 1), horizon)  # compiles
    if isinstance(predictor, LearningPredictor):
        predictor.begin()
    p, mu, seconds = np.empty(rows.ages.size), np.empty(rows.ages.size), 0.0
    for first in range(0, len(test), BLOCK):
        last = min(first + BLOCK, len(test))
        here = slice(*np.searchsorted(rows.requests, [first, last]).tolist())
        begin = compile_time.clock()
        p[here], mu[here] = ask(predictor, rows, here, horizon)
        seconds += compile_time.clock() - begin
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
        begin = compile_time.clock()
        ask(predictor, rows, slice(0, CALL_SIZE), horizon)
        times.append(compile_time.clock() - begin)
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
