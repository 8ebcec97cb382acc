"""What a prediction study found: one score per predictor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.studies.prediction.config import PredictionConfig


@dataclass(frozen=True, slots=True)
class CalibrationBin:
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

    low: float
    high: float
    rows: int
    predicted: float | None
    observed: float | None


@dataclass(frozen=True, slots=True, eq=False)
class PredictorScore:
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

    predictor: str
    rows: int
    base_rate: float
    auc: float | None
    brier: float
    mean_error: float | None
    remaining_error: float
    calibration_error: float
    calibration: tuple[CalibrationBin, ...]
    auc_draws: NDArray[np.float64]
    brier_draws: NDArray[np.float64]
    roc: NDArray[np.float64]
    training_seconds: float
    microseconds_per_prediction: float
    microseconds_per_call: float


@dataclass(slots=True)
class PredictionOutcome:
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
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0
