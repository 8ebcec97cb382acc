"""How a comparison of prefill rules is shown."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lbopt.report.contents import Contents, Made
from lbopt.report.prefill_tables import prefill_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.prefill import PrefillOutcome, RuleRun


def prefill_contents(outcome: PrefillOutcome, _made: Made) -> Contents:
    """Return rules.csv, requests.csv and passes.csv."""
    rules = [str(one.rule) for one in outcome.runs]
    frames = {
        "requests": [one.run.request_table() for one in outcome.runs],
        "passes": [one.run.pass_table() for one in outcome.runs],
    }
    whole = {
        name: pd.concat(tables, keys=rules, names=["rule", name[:-1]]).reset_index(level=0)
        for name, tables in frames.items()
    }
    return Contents(tables={"rules": [_row(one) for one in outcome.runs], **whole})


def _row(one: RuleRun) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": one.rule.policy, "allocation": one.rule.allocation}
    for name, value in one.metrics.to_dict().items():
        if name.endswith("_interval"):
            short = name.removesuffix("_interval")
            row[f"{short}_low"], row[f"{short}_high"] = value or (None, None)
        else:
            row[name] = value
    return row


REPORT = StudyReport(tables=prefill_tables, contents=prefill_contents, written="tables")
