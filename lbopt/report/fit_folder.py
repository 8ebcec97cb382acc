"""The output folder of a calibration: fits, residuals, comparisons, pooled and held-out slopes, a picture, run.json."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lbopt.hardware.fit import Calibration, Variable
from lbopt.report.contents import Contents, write_folder
from lbopt.report.fit_figure import law_figure
from lbopt.report.fit_tables import verdict

FORMAT = "lbopt-fit"
FORMAT_VERSION = 1


def write_fit_folder(calibration: Calibration, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""
    account = {
        "source": calibration.rows.source,
        "response": _column(calibration.rows.response),
        "regressors": {role: _column(one) for role, one in calibration.rows.regressors.items()},
        "verdicts": {one.observed.group: verdict(one) for one in calibration.groups},
        "notes": {one.observed.group: list(one.notes) for one in calibration.groups},
    }
    write_folder(folder, FORMAT, FORMAT_VERSION, command, lambda _made: fit_contents(calibration), account)


def fit_contents(calibration: Calibration) -> Contents:
    """Return the tables of fits, residuals and comparisons, pooled and held-out slopes, and the picture."""
    return Contents(
        tables={
            "fits": fits_csv(calibration),
            "residuals": residuals_csv(calibration),
            "comparisons": comparisons_csv(calibration),
            "pooled": pooled_csv(calibration) if calibration.pooled else None,
            "held_out": [asdict(one) for one in calibration.held_out] or None,
        },
        figures={"laws": law_figure(calibration)},
    )


def _column(one: Variable) -> dict[str, Any]:
    """Return the column and the unit in which the files have it."""
    return asdict(one) | {"unit": one.unit}


def fits_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per group, law and parameter; errors of the whole fit are in the unit of the response."""
    rows = []
    for group in calibration.groups:
        for fit in group.fits:
            squares = float(fit.residuals @ fit.residuals)
            for index, letter in enumerate(fit.law.parameters):
                rows.append(
                    {
                        "group": group.observed.group,
                        "law": fit.law.name,
                        "formula": fit.law.formula,
                        "parameter": letter,
                        "estimate": float(fit.numbers.estimates[index]),
                        "standard_error": float(fit.numbers.errors[index]),
                        "low": float(fit.numbers.low[index]),
                        "high": float(fit.numbers.high[index]),
                        "rows": fit.residuals.size,
                        "r_squared": fit.numbers.r_squared,
                        "rmse": math.sqrt(squares / fit.residuals.size),
                        "rmse_unbiased": math.sqrt(squares / fit.numbers.degrees),
                        "left_out_error": fit.left_out_error,
                    }
                )
    return rows


def residuals_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per group, row and law."""
    return [
        {
            "group": group.observed.group,
            "row": label,
            "law": fit.law.name,
            "observed": float(group.observed.y[i]),
            "fitted": float(group.observed.y[i] - fit.residuals[i]),
            "residual": float(fit.residuals[i]),
            "left_out_error": float(fit.left_out[i]),
            "leverage": float(fit.numbers.leverages[i]),
        }
        for group in calibration.groups
        for i, label in enumerate(group.observed.labels)
        for fit in group.fits
    ]


def comparisons_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per group and law that is not the best."""
    return [{"group": group.observed.group, **asdict(one)} for group in calibration.groups for one in group.comparisons]


def pooled_csv(calibration: Calibration) -> list[dict[str, Any]]:
    """Return a row per feature and parameter: an intercept a group, and the common slope."""
    return [
        {
            "feature": one.feature,
            "parameter": name,
            "estimate": float(one.numbers.estimates[index]),
            "standard_error": float(one.numbers.errors[index]),
            "own_slope": own,
            "rmse": one.numbers.rmse,
            "rmse_own_slopes": one.own_slopes_rmse,
            "f_statistic": one.f_statistic,
            "p_value": one.p_value,
        }
        for one in calibration.pooled
        for index, (name, own) in enumerate(
            [
                *((f"intercept {group}", own) for group, own in zip(one.groups, one.own_slopes, strict=True)),
                ("slope", None),
            ]
        )
    ]
