"""What a `GapOutcome` shows: the one-step gaps, the long runs, their differences, and the gaps as a picture."""

from __future__ import annotations

import pandas as pd

from lbopt.report.gap_distribution import draw_gap_distribution
from lbopt.report.gap_tables import comparison_csv, gap_csv, long_run_csv
from lbopt.report.views.view import View
from lbopt.studies.gap import GapOutcome
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.study import baseline_of


def gaps(outcome: GapOutcome) -> pd.DataFrame:
    """Return one row per policy and behaviour: one-step gaps to the optimum, smallest mean gap first."""
    frame = pd.DataFrame(gap_csv(outcome))
    return frame.sort_values(["behaviour", "gap_mean_tokens"], ignore_index=True) if len(frame) else frame


def long_runs(outcome: GapOutcome) -> pd.DataFrame:
    """Return one row per policy and seed with every metric."""
    return pd.DataFrame(long_run_csv(outcome))


def differences(outcome: GapOutcome) -> pd.DataFrame:
    """Return one row per policy and metric: mean over seeds and paired difference to the baseline."""
    return pd.DataFrame(comparison_csv(compare(outcome.long_runs, baseline_of(outcome.config))))


VIEW: View[GapOutcome] = View(
    tables={"gap": gaps, "long_runs": long_runs, "differences": differences}, draw=draw_gap_distribution
)
