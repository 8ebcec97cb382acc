"""How a comparison of prefill rules is shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lbopt.prefill import PrefillRun
from lbopt.report.figures import COLOURS
from lbopt.report.prefill_tables import prefill_tables, rule_rows
from lbopt.report.study_report import StudyReport
from lbopt.studies.prefill import PrefillOutcome


def _of_rules(name: str, table: Callable[[PrefillRun], pd.DataFrame]) -> Callable[[PrefillOutcome], pd.DataFrame]:
    """Return what puts a table of every rule below the other, with the rule's name."""

    def joined(outcome: PrefillOutcome) -> pd.DataFrame:
        tables = {str(one.rule): table(one.run) for one in outcome.runs}
        return pd.concat(tables, names=["rule", name]).reset_index(level=0)

    return joined


def draw_first_tokens(outcome: PrefillOutcome, axes: Axes) -> None:
    """Draw the mean time to first token of each rule as a bar, and its 99th percentile as a mark."""
    names = [str(one.rule) for one in outcome.runs]
    places = np.arange(len(names))
    axes.barh(places, [one.metrics.first_token_mean_seconds for one in outcome.runs], color=COLOURS[0], label="mean")
    axes.plot([one.metrics.first_token_p99_seconds for one in outcome.runs], places, "D", color=COLOURS[1], label="P99")
    axes.set_yticks(places, names)
    axes.set_xlabel("time to first token (s)")
    axes.legend(frameon=False)


REPORT = StudyReport(
    tables=prefill_tables,
    csv={
        "rules": rule_rows,
        "requests": _of_rules("request", PrefillRun.request_table),
        "passes": _of_rules("passe", PrefillRun.pass_table),
    },
    draw=draw_first_tokens,
    written="tables",
)
