"""The tables of a scaling study: fitted exponents, every cell, and the improvement against its floor."""

from __future__ import annotations

import math
from typing import Any

from lbopt.report import numbers
from lbopt.report.theory_tables import number
from lbopt.studies.scaling import Exponents, ScalingCell, ScalingOutcome
from lbopt.studies.scaling.config import REPLETE
from lbopt.table import Table
from lbopt.theory.laws.onset import CLEAR


def scaling_tables(outcome: ScalingOutcome) -> list[Table]:
    """Return what a terminal shows."""
    if not outcome.cells:
        return []
    tables = [_cell_table(outcome)]
    if len({(cell.fleet.G, cell.fleet.B) for cell in outcome.cells}) > 1:
        tables.insert(0, _exponent_table(outcome))
    if any(_is_exact(cell) for cell in outcome.cells):
        tables.append(_improvement_table(outcome))
    return tables


def scaling_csv(outcome: ScalingOutcome) -> list[dict[str, Any]]:
    """Return a row per cell, with full precision."""
    return [
        {
            "policy": cell.policy,
            "G": cell.fleet.G,
            "B": cell.fleet.B,
            "p": cell.fleet.p,
            "s_max": cell.fleet.s_max,
            "imbalance_tokens": cell.mean.mean,
            "standard_error": cell.mean.error,
            "steps": cell.mean.steps,
            "fcfs_exact_tokens": cell.fleet.fcfs,
            "levelled_law_tokens": cell.fleet.levelled,
            "improvement": cell.improvement if math.isfinite(cell.improvement) else None,
            "floor": cell.fleet.floor,
            "onset_slots": cell.fleet.onset,
            "admitted_prompt_tokens": cell.admitted_prompt,
            "wait_mean_steps": cell.wait_mean,
            "wait_max_steps": cell.wait_max,
            "closed_share": cell.closed_share,
        }
        for cell in outcome.cells
    ]


def exponents_csv(outcome: ScalingOutcome) -> list[dict[str, Any]]:
    """Return a row per rule."""
    rows = []
    for policy, found in outcome.exponents().items():
        if found is None:
            continue
        low, high = found.slots_interval or (None, None)
        low_g, high_g = found.workers_interval or (None, None)
        rows.append(
            {
                "policy": policy,
                "exponent_of_B": found.slots,
                "low": low,
                "high": high,
                "exponent_of_log_G": found.workers,
                "low_log_G": low_g,
                "high_log_G": high_g,
                "worst_miss": found.worst,
            }
        )
    return rows


def _exponent_table(outcome: ScalingOutcome) -> Table:
    rows = [
        (policy, *(_exponents(found) if found else ("no law: a cell has no imbalance", "", "")))
        for policy, found in outcome.exponents().items()
    ]
    return Table(
        "Exponents",
        "Imbalance of a worker, fitted as c · B^β · (log G)^γ with 95 % bootstrap intervals; the miss is the largest "
        "of a cell. Theory's ½ and ½ are for many slots and workers: the exact law's own exponents stand beside.",
        ("policy", "β, of B", "γ, of log G", "largest miss"),
        rows,
    )


def _exponents(found: Exponents) -> tuple[str, str, str]:
    def shown(value: float | None, interval: tuple[float, float] | None) -> str:
        if value is None:
            return numbers.UNKNOWN
        inside = f" ({interval[0]:.3f} … {interval[1]:.3f})" if interval else ""
        return f"{value:.3f}{inside}".replace("-", "−")

    return (
        shown(found.slots, found.slots_interval),
        shown(found.workers, found.workers_interval),
        numbers.share(found.worst),
    )


def _cell_table(outcome: ScalingOutcome) -> Table:
    rows = [
        (
            cell.policy,
            f"{cell.fleet.G}",
            f"{cell.fleet.B}",
            f"{number(round(cell.mean.mean, 1))} ± {number(round(1.96 * cell.mean.error, 1))}",
            number(round(cell.fleet.fcfs, 1)),
            _ratio(cell.improvement),
            numbers.steps(cell.admitted_prompt),
            numbers.UNKNOWN if cell.wait_max is None else numbers.whole(cell.wait_max),
            numbers.UNKNOWN if cell.closed_share is None else numbers.share(cell.closed_share),
        )
        for cell in outcome.cells
    ]
    config = outcome.config
    ends = f"p = {config.p:g}" if config.ends is None else f"p = {config.ends:g} / B"
    return Table(
        "Imbalance",
        f"Tokens, after admission; {ends}, prompts uniform on 1 … {config.s_max}, FCFS computed exactly. "
        "Waiting in steps. Closed: decisions that the exact search brought to its own bound.",
        ("policy", "G", "B", "imbalance", "FCFS", "improvement", "admitted prompt", "longest wait", "closed"),
        rows,
    )


def _improvement_table(outcome: ScalingOutcome) -> Table:
    rows = [
        (
            cell.policy,
            f"{cell.fleet.G}",
            f"{cell.fleet.B}",
            f"{cell.fleet.B / cell.fleet.onset:.2g}",
            _ratio(cell.improvement),
            _ratio(cell.fleet.floor),
            "claimed" if CLEAR * cell.fleet.onset <= cell.fleet.B else "not claimed",
            f"{cell.mean.mean / cell.fleet.levelled:.2f}",
        )
        for cell in outcome.cells
        if _is_exact(cell)
    ]
    return Table(
        "The exact rule against the floor of Theorem 2",
        f"The floor is claimed from {CLEAR} B* on. The last column is the imbalance over the law G (G−1) (2−p) / "
        "(2 p² (s_max−1)), which does not depend on B and is derived for a pool that never lacks a size.",
        ("policy", "G", "B", "B / B*", "improvement", "floor", "which is", "over the law"),
        rows,
    )


def _is_exact(cell: ScalingCell) -> bool:
    return cell.policy == REPLETE or cell.policy.startswith("bf-io")


def _ratio(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.3g}×"
