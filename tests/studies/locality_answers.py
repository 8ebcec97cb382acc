"""Answers of worlds that are made up: the report and the questions of the locality study are tested with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbopt.locality import TRANSFORMS
from lbopt.studies.locality import LocalityConfig, LocalityOutcome
from lbopt.studies.locality.cell import BATCHES, WIDTHS_OF_BANDS


def answer_of(config: LocalityConfig, seed: int, *, batches: tuple[int, ...] = BATCHES) -> dict[str, Any]:
    """One world's answer of the shape of `cell.measure`'s; of a batch that is not in `batches` it cannot tell."""
    rng = np.random.default_rng(seed)
    runs = {
        run.key: {
            "p50": 0.02 * float(rng.uniform(0.9, 1.0)),
            "p99": 0.03 * float(rng.uniform(0.9, 1.1)),
            "experts": float(rng.uniform(50, 60)),
            "running": 960 / run.workers,
            "busiest_over_mean": float(rng.uniform(1, 2)),
            "wait": 0.01 * float(rng.uniform(0.9, 1.1)),
        }
        for run in config.runs
    }
    signatures = {
        "rho": {name: float(rng.uniform(0.4, 0.8)) for name, kind in TRANSFORMS.items() if kind != "gate_logit"},
        "mask_gain": 0.01,
        "kept": 4,
        "layers": config.layers,
        "alike": 0.9,
        "fewer": {str(batch): 0.18 if batch in batches else None for batch in BATCHES},
        "bands": {f"{width:g}": 2.0 for width in WIDTHS_OF_BANDS},
    }
    return {"runs": runs, "signatures": signatures if "signatures" in config.items else {}}


def made_up(*items: str, worlds: dict[str, int] | None = None, **settings: Any) -> LocalityOutcome:
    """An outcome of so many worlds a workload, three by default."""
    config = LocalityConfig(items=items, **settings)
    told = dict.fromkeys(config.workloads, 3) if worlds is None else worlds
    answers = {name: [answer_of(config, seed) for seed in range(count)] for name, count in told.items()}
    return LocalityOutcome(config, answers, notes=["a note"], seconds=1.5)
