"""What a prediction study found: one score per predictor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.predictors import check_predictor
from lbopt.predictors.predictor import LONGEST_HORIZON
from lbopt.studies.configuration import Configuration, Option, Without
from lbopt.studies.grid import Row
from lbopt.studies.requests import RequestSource
from lbopt.studies.study import Outcome

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


class CalibrationBin(Row):
    """The rows whose predicted chance lies in one tenth.

    Parameters
    ----------
    low, high
        The tenth; the last one includes 1.
    rows
        How many.
    predicted, observed
        Mean predicted chance, and share of the rows that did end within the window; None where there are no rows.
    """


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
