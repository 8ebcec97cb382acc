"""Picture: calibration and ROC curves, one line a predictor."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from lbopt.report.figures import line_style, new_figure
from lbopt.studies.prediction import PredictionOutcome

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
        axes.plot(x, y, linewidth=1.3, label=score.predictor, **style)  # type: ignore[arg-type]  # none is None
        areas = [_LEAST_AREA + _MORE_AREA * b.rows / score.rows for b in bins]
        axes.scatter(x, y, s=areas, color=style["color"], alpha=0.6, linewidths=0)  # type: ignore[arg-type]
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
