"""The output folder of one simulation: requests.csv, steps.csv, run.json; decisions.csv where they were solved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lbopt.report.folder import write_whole
from lbopt.report.provenance import provenance
from lbopt.simulator import Metrics, Run

FORMAT = "lbopt-simulation"
FORMAT_VERSION = 1


def write_run_folder(run: Run, metrics: Metrics, folder: Path, command: str, asked: dict[str, Any]) -> None:
    """Write the folder whole or not at all; `asked` is what rebuilds the run: scenario, policy, horizon, predictor."""

    def write(target: Path) -> dict[str, Any]:
        run.request_table().to_csv(target / "requests.csv", index=False)
        run.step_table().to_csv(target / "steps.csv", index=False)
        if run.tally:
            run.decision_table().to_csv(target / "decisions.csv", index=False)
        return {
            "version": FORMAT_VERSION,
            **provenance(command),
            "asked": asked,
            "trace_digest": run.trace.digest,
            "policy": run.policy,
            "admission": run.admission,
            "setting": run.setting.describe(),
            "seed": run.seed,
            "metrics": metrics.to_dict(),
            "tally": run.tally,
        }

    write_whole(folder, FORMAT, write)
