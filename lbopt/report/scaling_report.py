"""How a scaling study is shown."""

from __future__ import annotations

import re

from matplotlib.figure import Figure

from lbopt.report.contents import Contents, Made
from lbopt.report.scaling_curves import imbalance_figure, law_figure, onset_figure
from lbopt.report.scaling_tables import exponents_csv, scaling_csv, scaling_tables
from lbopt.report.study_report import StudyReport
from lbopt.studies.scaling import ScalingOutcome
from lbopt.studies.scaling.config import REPLETE


def scaling_contents(outcome: ScalingOutcome, _made: Made) -> Contents:
    """Return scaling.csv, exponents.csv and the pictures."""
    return Contents(
        tables={"scaling": scaling_csv(outcome), "exponents": exponents_csv(outcome)}, figures=scaling_figures(outcome)
    )


def scaling_figures(outcome: ScalingOutcome) -> dict[str, Figure]:
    """Return the pictures by their names; those of the exact rule only where it took part."""
    found = {"imbalance": imbalance_figure(outcome)}
    exact = [policy for policy in outcome.config.policies if policy == REPLETE or policy.startswith("bf-io")]
    for policy in exact:
        if outcome.of(policy):
            name = re.sub(r"[^\w.-]+", "-", policy)  # two variants of a rule have two pictures
            found[f"onset-{name}"] = onset_figure(outcome, policy)
            found[f"law-{name}"] = law_figure(outcome, policy)
    return found


REPORT = StudyReport(tables=scaling_tables, contents=scaling_contents)
