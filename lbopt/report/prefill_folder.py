"""The output folder of a prefill comparison: rules.csv, requests.csv, passes.csv, run.json."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from lbopt.report.folder import write_csv, write_whole
from lbopt.report.provenance import provenance
from lbopt.studies.prefill import PrefillOutcome, RuleRun

FORMAT = "lbopt-prefill"
FORMAT_VERSION = 1


def write_prefill_folder(outcome: PrefillOutcome, folder: Path, command: str) -> None:
    """Write the folder whole or not at all."""

    def write(target: Path) -> dict[str, Any]:
        write_csv(target / "rules.csv", [_row(one) for one in outcome.runs])
        for name, tables in (
            ("requests", [one.run.request_table() for one in outcome.runs]),
            ("passes", [one.run.pass_table() for one in outcome.runs]),
        ):
            rules = [str(one.rule) for one in outcome.runs]
            whole = pd.concat(tables, keys=rules, names=["rule", name[:-1]])
            whole.reset_index(level=0).to_csv(target / f"{name}.csv", index=False)
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "configuration": outcome.config.to_dict(),
            "prompts": len(outcome.traffic),
            "requests_per_second": outcome.rate if math.isfinite(outcome.rate) else None,
            "interrupted": outcome.interrupted,
            "notes": outcome.notes,
        }

    write_whole(folder, FORMAT, write)


def _row(one: RuleRun) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": one.rule.policy, "allocation": one.rule.allocation}
    for name, value in one.metrics.to_dict().items():
        if name.endswith("_interval"):
            short = name.removesuffix("_interval")
            row[f"{short}_low"], row[f"{short}_high"] = value or (None, None)
        else:
            row[name] = value
    return row
