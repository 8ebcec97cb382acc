"""What outcomes of studies show: the rows of their CSV files as data frames, and their leading picture on one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lbopt.report.audit_figures import draw_rules
from lbopt.report.audit_tables import rule_rows as rule_rows_of_audit
from lbopt.report.batch_gap_figure import draw_batch_gaps
from lbopt.report.batch_gap_tables import batch_gap_csv, batches_csv
from lbopt.report.cost_figure import draw_cost
from lbopt.report.cost_tables import cost_csv
from lbopt.report.figures import COLOURS, GREY
from lbopt.report.gap_distribution import draw_gap_distribution
from lbopt.report.gap_tables import comparison_csv, gap_csv, long_run_csv
from lbopt.report.hindsight_figure import draw_hindsight
from lbopt.report.hindsight_tables import hindsight_csv, searches_csv
from lbopt.report.locality_figures import draw_routers
from lbopt.report.locality_rows import question_rows as locality_question_rows
from lbopt.report.locality_rows import run_rows, signature_rows
from lbopt.report.misprediction_curves import draw_by_strength
from lbopt.report.misprediction_tables import misprediction_csv, misprediction_long_run_csv
from lbopt.report.placement_figure import draw_placement_gaps
from lbopt.report.placement_tables import placement_csv
from lbopt.report.prediction_curves import draw_calibration
from lbopt.report.prediction_tables import calibration_csv, prediction_csv
from lbopt.report.prefill_tables import rule_rows
from lbopt.report.reproduction_figure import draw_dilution
from lbopt.report.reproduction_tables import reproduction_csv
from lbopt.report.scaling_curves import draw_imbalance
from lbopt.report.scaling_tables import exponents_csv, scaling_csv
from lbopt.report.staggered_figures import draw_load
from lbopt.report.staggered_rows import item_rows
from lbopt.report.staggered_rows import question_rows as staggered_question_rows
from lbopt.report.staggered_words import values_of
from lbopt.report.stale_report import draw_ages, stale_csv
from lbopt.report.theory_tables import finding_rows
from lbopt.report.views.view import View
from lbopt.studies.check import CheckOutcome
from lbopt.studies.gap import GapOutcome
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.study import baseline_of
from lbopt.studies.locality import LocalityOutcome
from lbopt.studies.misprediction import MispredictionOutcome
from lbopt.studies.prefill import PrefillOutcome
from lbopt.studies.scaling import ScalingOutcome
from lbopt.studies.staggered import StaggeredOutcome
from lbopt.studies.staggered.plan import ITEMS
from lbopt.theory.verdict import Verdict

_VERDICT_COLOURS = {Verdict.HOLDS: COLOURS[2], Verdict.REFUTED: COLOURS[1]}


def _frame(rows: Callable[[Any], Sequence[dict[str, Any]]]) -> Callable[[Any], pd.DataFrame]:
    """Return the function that makes a data frame of these rows."""
    return lambda outcome: pd.DataFrame(rows(outcome))


def _item_frame(item: str) -> Callable[[StaggeredOutcome], pd.DataFrame]:
    """Return the function that makes a data frame of the rows of one item."""
    return lambda outcome: pd.DataFrame(item_rows(outcome, item))


def gaps(outcome: GapOutcome) -> pd.DataFrame:
    """Return one row per policy and behaviour: one-step gaps to the optimum, smallest mean gap first."""
    frame = pd.DataFrame(gap_csv(outcome))
    return frame.sort_values(["behaviour", "gap_mean_tokens"], ignore_index=True) if len(frame) else frame


def draw_forecasts(outcome: MispredictionOutcome, axes: Axes) -> None:
    """Draw the mean gap of the first rule against the strength of the error of its forecasts."""
    rule = outcome.config.rules[0]
    costs = [cost for cost in outcome.costs() if cost.case.rule is None or cost.case.rule.name == rule.name]
    draw_by_strength(costs, axes=axes, long_run=False)
    axes.set_xlabel("strength of the error")
    axes.set_ylabel("mean gap over the window (tokens)")
    axes.set_title(rule.name, fontsize=10, loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def draw_largest_fleet(outcome: ScalingOutcome, axes: Axes) -> None:
    """Draw the imbalance per worker against slots, for the largest number of workers."""
    draw_imbalance(outcome, axes, max(cell.fleet.G for cell in outcome.cells))
    axes.set_ylabel("imbalance per worker (tokens)")
    axes.legend(frameon=False, fontsize=9)


def draw_first_place(outcome: StaggeredOutcome, axes: Axes) -> None:
    """Draw the time to first token against the rate, at the first place of item load."""
    draw_load(outcome, axes, str(values_of(outcome, "load", "place")[0]))
    axes.set_ylabel("mean time to first token (s)")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def draw_first_workload(outcome: LocalityOutcome, axes: Axes) -> None:
    """Draw the change of the median latency against the rate, a line for each router, on the first workload."""
    draw_routers(outcome, axes, next(iter(outcome.answers)), "p50")
    axes.set_xlabel("requests/s")
    axes.set_ylabel("change against round-robin (%)")
    axes.legend(frameon=False)


def draw_first_tokens(outcome: PrefillOutcome, axes: Axes) -> None:
    """Draw the mean time to first token of each rule as a bar, and its 99th percentile as a mark."""
    names = [str(one.rule) for one in outcome.runs]
    places = np.arange(len(names))
    axes.barh(places, [one.metrics.first_token_mean_seconds for one in outcome.runs], color=COLOURS[0], label="mean")
    axes.plot([one.metrics.first_token_p99_seconds for one in outcome.runs], places, "D", color=COLOURS[1], label="P99")
    axes.set_yticks(places, names)
    axes.set_xlabel("time to first token (s)")
    axes.legend(frameon=False)


def draw_verdicts(outcome: CheckOutcome, axes: Axes) -> None:
    """Draw measured over claimed of the finding that decides each claim; claims of 0 have no ratio and no mark."""
    shown = [(one, one.tightest) for one in outcome.claims]
    names = [one.claim.name for one, _ in shown]
    for place, (one, finding) in enumerate(shown):
        if finding is not None and finding.predicted:
            ratio = finding.measured / finding.predicted
            axes.plot([ratio], [place], "o", color=_VERDICT_COLOURS.get(one.verdict, GREY))
    for verdict in dict.fromkeys(one.verdict for one, _ in shown):
        axes.plot([], [], "o", color=_VERDICT_COLOURS.get(verdict, GREY), label=verdict.value)
    axes.axvline(1.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("measured / claimed")
    axes.legend(frameon=False)


VIEWS: dict[str, View[Any]] = {
    "AuditOutcome": View(tables={"rules": _frame(rule_rows_of_audit)}, draw=draw_rules),
    "GapOutcome": View(
        tables={
            "gap": gaps,
            "long_runs": _frame(long_run_csv),
            "differences": _frame(lambda one: comparison_csv(compare(one.long_runs, baseline_of(one.config)))),
        },
        draw=draw_gap_distribution,
    ),
    "BatchesOutcome": View(tables={"gap": _frame(batch_gap_csv), "batches": _frame(batches_csv)}, draw=draw_batch_gaps),
    "CheckOutcome": View(tables={"findings": _frame(finding_rows)}, draw=draw_verdicts),
    "CostOutcome": View(tables={"cost": _frame(cost_csv)}, draw=draw_cost),
    "HindsightOutcome": View(
        tables={"rules": _frame(hindsight_csv), "searches": _frame(searches_csv)}, draw=draw_hindsight
    ),
    "LocalityOutcome": View(
        tables={
            "claims": _frame(locality_question_rows),
            "runs": _frame(run_rows),
            "signatures": _frame(signature_rows),
        },
        draw=draw_first_workload,
    ),
    "MispredictionOutcome": View(
        tables={"misprediction": _frame(misprediction_csv), "long_runs": _frame(misprediction_long_run_csv)},
        draw=draw_forecasts,
    ),
    "PlacementOutcome": View(tables={"placement": _frame(placement_csv)}, draw=draw_placement_gaps),
    "PredictionOutcome": View(
        tables={"prediction": _frame(prediction_csv), "calibration": _frame(calibration_csv)}, draw=draw_calibration
    ),
    "PrefillOutcome": View(tables={"rules": _frame(rule_rows)}, draw=draw_first_tokens),
    "ReproductionOutcome": View(tables={"reproduction": _frame(reproduction_csv)}, draw=draw_dilution),
    "ScalingOutcome": View(
        tables={"scaling": _frame(scaling_csv), "exponents": _frame(exponents_csv)}, draw=draw_largest_fleet
    ),
    "StaggeredOutcome": View(
        tables={
            "claims": _frame(staggered_question_rows),
            **{item: _item_frame(item) for item in ITEMS},
        },
        draw=draw_first_place,
    ),
    "StaleOutcome": View(tables={"ages": _frame(stale_csv)}, draw=draw_ages),
}
