"""The tables of a prediction study: one line per predictor, and its calibration by tenths."""

from __future__ import annotations

from lbopt.report import numbers
from lbopt.report.gap_tables import Table
from lbopt.studies.prediction import CalibrationBin, PredictionOutcome, PredictorScore
from lbopt.studies.prediction.evaluation import CALL_SIZE

#: Shown where all rows end within the window, or none.
NOT_APPLICABLE = "n/a"


def prediction_tables(outcome: PredictionOutcome) -> list[Table]:
    """Return the table of scores and the one of calibration; none where nobody was judged."""
    if not outcome.scores:
        return []
    config, trace = outcome.config, outcome.trace
    scores = Table(
        title=f"Does a request end within {config.horizon} steps, and when? {trace['name']}: "
        f"{trace['training_requests']:,} requests to learn from, the next {trace['test_requests']:,} to be judged on",
        caption=f"One row per {config.stride} tokens of each test request. Errors in steps: |μ − r| on rows that end "
        f"within the window, |c − min(r, H)| on all. Calls are of {CALL_SIZE} requests, on one thread.",
        headers=(
            *("predictor", "rows", "base rate", "AUC", "Brier"),
            *("|μ − r|", "|c − r|", "calibration error", "training (s)", "µs / prediction", "µs / call"),
        ),
        rows=[_line(score) for score in outcome.scores],
    )
    calibration = Table(
        title="Calibration: predicted → observed chance (rows)",
        caption="By tenths of the predicted chance.",
        headers=("predicted", *(score.predictor for score in outcome.scores)),
        rows=[
            (f"{low.low:.1f} to {low.high:.1f}", *(_bin(score.calibration[i]) for score in outcome.scores))
            for i, low in enumerate(outcome.scores[0].calibration)
        ],
    )
    return [scores, calibration]


def prediction_csv(outcome: PredictionOutcome) -> list[dict[str, object]]:
    """Return one row per predictor with full precision."""
    return [
        {
            "predictor": score.predictor,
            "horizon": outcome.config.horizon,
            "rows": score.rows,
            "base_rate": score.base_rate,
            "auc": score.auc,
            "brier": score.brier,
            "mean_error_steps": score.mean_error,
            "remaining_error_steps": score.remaining_error,
            "calibration_error": score.calibration_error,
            "training_seconds": score.training_seconds,
            "microseconds_per_prediction": score.microseconds_per_prediction,
            "microseconds_per_call": score.microseconds_per_call,
        }
        for score in outcome.scores
    ]


def calibration_csv(outcome: PredictionOutcome) -> list[dict[str, object]]:
    """Return one row per predictor and tenth."""
    return [
        {
            "predictor": score.predictor,
            "low": one.low,
            "high": one.high,
            "rows": one.rows,
            "predicted": one.predicted,
            "observed": one.observed,
        }
        for score in outcome.scores
        for one in score.calibration
    ]


def _line(score: PredictorScore) -> tuple[str, ...]:
    return (
        score.predictor,
        numbers.whole(score.rows),
        numbers.share(score.base_rate),
        NOT_APPLICABLE if score.auc is None else f"{score.auc:.4f}",
        f"{score.brier:.4f}",
        NOT_APPLICABLE if score.mean_error is None else f"{score.mean_error:.2f}",
        f"{score.remaining_error:.2f}",
        f"{score.calibration_error:.4f}",
        f"{score.training_seconds:.2f}",
        f"{score.microseconds_per_prediction:.2f}",
        numbers.whole(score.microseconds_per_call),
    )


def _bin(one: CalibrationBin) -> str:
    if one.predicted is None or one.observed is None:
        return numbers.UNKNOWN
    return f"{one.predicted:.3f} → {one.observed:.3f} ({one.rows:,})"
