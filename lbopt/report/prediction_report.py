"""How a prediction study is shown."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from lbopt import numbers
from lbopt.report.figures import line_style, new_figure
from lbopt.report.study_report import StudyReport
from lbopt.studies.prediction import CalibrationBin, PredictionOutcome, PredictorScore
from lbopt.studies.prediction.evaluation import CALL_SIZE
from lbopt.studies.prediction.metrics import interval
from lbopt.table import Table

#: Shown where all rows end within the window, or none.
NOT_APPLICABLE = "n/a"


def prediction_tables(outcome: PredictionOutcome) -> list[Table]:
    """Return the table of scores and the one of calibration; none where no predictor was judged."""
    if not outcome.scores:
        return []
    config, trace = outcome.config, outcome.trace
    scores = Table(
        title=f"Does a request end within {config.horizon} steps, and when? {trace['name']}: "
        f"{trace['training_requests']:,} requests to learn from, the next {trace['test_requests']:,} to be judged on",
        caption=f"One row per {config.stride} tokens of each test request. Errors in steps: |μ − r| on rows that end "
        "within the window, |c − min(r, H)| on all. ± and … : 95 % over test requests drawn anew. "
        f"Calls are of {CALL_SIZE} requests, on one thread.",
        headers=(
            *("predictor", "rows", "base rate", "AUC", "Brier", "Brier − first"),
            *("|μ − r|", "|c − r|", "calibration error", "training (s)", "µs / prediction", "µs / call"),
        ),
        rows=[_line(score, outcome.scores[0]) for score in outcome.scores],
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
    rows: list[dict[str, object]] = []
    for score in outcome.scores:
        auc, brier = interval(score.auc_draws), interval(score.brier_draws)
        to_first = interval(score.brier_draws - outcome.scores[0].brier_draws)
        rows.append(
            {
                "predictor": score.predictor,
                "horizon": outcome.config.horizon,
                "rows": score.rows,
                "base_rate": score.base_rate,
                "auc": score.auc,
                "auc_low": None if auc is None else auc[0],
                "auc_high": None if auc is None else auc[1],
                "brier": score.brier,
                "brier_low": None if brier is None else brier[0],
                "brier_high": None if brier is None else brier[1],
                "brier_minus_first_low": None if to_first is None else to_first[0],
                "brier_minus_first_high": None if to_first is None else to_first[1],
                "mean_error_steps": score.mean_error,
                "remaining_error_steps": score.remaining_error,
                "calibration_error": score.calibration_error,
                "training_seconds": score.training_seconds,
                "microseconds_per_prediction": score.microseconds_per_prediction,
                "microseconds_per_call": score.microseconds_per_call,
            }
        )
    return rows


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


def _line(score: PredictorScore, first: PredictorScore) -> tuple[str, ...]:
    return (
        score.predictor,
        numbers.whole(score.rows),
        numbers.share(score.base_rate),
        NOT_APPLICABLE if score.auc is None else f"{score.auc:.4f}{_around(interval(score.auc_draws))}",
        f"{score.brier:.4f}{_around(interval(score.brier_draws))}",
        "" if score is first else _difference(score, first),
        NOT_APPLICABLE if score.mean_error is None else f"{score.mean_error:.2f}",
        f"{score.remaining_error:.2f}",
        f"{score.calibration_error:.4f}",
        f"{score.training_seconds:.2f}",
        f"{score.microseconds_per_prediction:.2f}",
        numbers.whole(score.microseconds_per_call),
    )


def _around(found: tuple[float, float] | None) -> str:
    return "" if found is None else f" ± {(found[1] - found[0]) / 2:.4f}"


def _difference(score: PredictorScore, first: PredictorScore) -> str:
    found = interval(score.brier_draws - first.brier_draws)
    return numbers.UNKNOWN if found is None else f"{found[0]:+.4f} … {found[1]:+.4f}".replace("-", "−")


def _bin(one: CalibrationBin) -> str:
    if one.predicted is None or one.observed is None:
        return numbers.UNKNOWN
    return f"{one.predicted:.3f} → {one.observed:.3f} ({one.rows:,})"


#: Area of a marker without rows, and what all rows would add, square points.
_LEAST_AREA, _MORE_AREA = 8.0, 220.0
_GREY = "#57606a"
_LEGEND_COLUMNS = 4


def prediction_figure(outcome: PredictionOutcome) -> Figure:
    """Return the two pictures side by side, with one legend."""
    figure, left = new_figure(9.5, 4.8)
    grid = GridSpec(1, 2, figure=figure)
    left.set_subplotspec(grid[0, 0])
    right = figure.add_subplot(grid[0, 1])
    right.grid(visible=True, alpha=0.25)
    right.spines[["top", "right"]].set_visible(False)
    draw_calibration(outcome, left)
    draw_roc(outcome, right)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), _LEGEND_COLUMNS), frameon=False)
    trace, config = outcome.trace, outcome.config
    figure.suptitle(f"{trace['name']}: does a request end within {config.horizon} steps?", fontsize=11)
    return figure


def draw_calibration(outcome: PredictionOutcome, axes: Axes) -> None:
    """Draw observed against predicted chances by tenths; a marker's area grows with its rows."""
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, linestyle=":")
    for index, score in enumerate(outcome.scores):
        bins = [b for b in score.calibration if b.predicted is not None and b.observed is not None]
        x, y = [b.predicted for b in bins], [b.observed for b in bins]
        style = line_style(index)
        axes.plot(x, y, linewidth=1.3, label=score.predictor, **style)
        areas = [_LEAST_AREA + _MORE_AREA * b.rows / score.rows for b in bins]
        axes.scatter(x, y, s=areas, color=style["color"], alpha=0.6, linewidths=0)
    axes.set_title("calibration (larger: more rows)", fontsize=10)
    axes.set_xlabel("predicted chance, mean of its tenth")
    axes.set_ylabel("observed share")
    _unit_square(axes)


def draw_roc(outcome: PredictionOutcome, axes: Axes) -> None:
    """Draw the ROC curve of each predictor that has one."""
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, linestyle=":")
    for index, score in enumerate(outcome.scores):
        if score.auc is not None:
            axes.plot(score.roc[:, 0], score.roc[:, 1], linewidth=1.3, **line_style(index))
    if all(score.auc is None for score in outcome.scores):
        axes.text(0.5, 0.55, "all rows are of one kind", ha="center", color=_GREY)
    axes.set_title("ROC", fontsize=10)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    _unit_square(axes)


def _unit_square(axes: Axes) -> None:
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")


REPORT = StudyReport(
    tables=prediction_tables,
    csv={"prediction": prediction_csv, "calibration": calibration_csv},
    figures=lambda outcome: {"prediction": prediction_figure(outcome)},
    draw=draw_calibration,
    written="tables and picture",
    packages=("scikit-learn",),
)
