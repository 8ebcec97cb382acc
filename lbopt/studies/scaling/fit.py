r"""Exponents of B and of log G in the imbalance of a worker, with bootstrap intervals.

The law that is fitted is Imb / G = c B^beta (log G)^gamma, a plane through logarithms by least squares, cells alike.
Theory gives FCFS beta = gamma = 1/2 for large B and G. Intervals come from resampling each cell's batches (SciPy's
percentile bootstrap): they say how well the grid's exponents are known, and not whether the law holds off the grid.
Resampled means of n batches spread by (n-1)/n of their true variance, so deviations are widened by sqrt(n/(n-1)) first;
``tests/studies/test_scaling_fit.py`` counts how often the intervals cover a known exponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.statistics import CONFIDENCE

RESAMPLES = 999


@dataclass(frozen=True, slots=True)
class Exponents:
    """A fitted law; an interval is (low, high), and an exponent is None where the grid has one value alone.

    Parameters
    ----------
    slots, slots_interval
        beta, of B.
    workers, workers_interval
        gamma, of log G.
    worst
        Largest share by which a cell misses the fitted law.
    """

    slots: float | None
    slots_interval: tuple[float, float] | None
    workers: float | None
    workers_interval: tuple[float, float] | None
    worst: float


def fit_exponents(cells: Sequence[tuple[int, int, Sequence[float]]], seed: int = 0) -> Exponents | None:
    """Fit cells of (G, B, batch means of the imbalance in tokens); None where one has no imbalance, or all are one."""
    from scipy import stats

    G = np.array([one[0] for one in cells], np.float64)
    B = np.array([one[1] for one in cells], np.float64)
    samples = [np.asarray(one[2], np.float64) for one in cells]
    if min((sample.mean() for sample in samples), default=0.0) <= 0:
        return None
    columns: dict[str, NDArray[np.float64]] = {}
    if np.unique(B).size > 1:
        columns["slots"] = np.log(B)
    if np.unique(G).size > 1:
        columns["workers"] = np.log(np.log(G))
    design = np.column_stack([np.ones(G.size), *columns.values()])
    if not columns or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    solve = np.linalg.pinv(design)
    logs = np.log([sample.mean() for sample in samples] / G)
    fitted = solve @ logs
    intervals: Any = np.full((design.shape[1], 2), np.nan)
    if min(sample.size for sample in samples) > 1:

        def statistic(*resampled: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
            means = np.stack([one.mean(axis=axis) for one in resampled])
            with np.errstate(invalid="ignore", divide="ignore"):
                found: NDArray[np.float64] = np.tensordot(solve, np.log(means / _like(G, means)), axes=1)
            return found

        widened = [one.mean() + (one - one.mean()) * np.sqrt(one.size / (one.size - 1)) for one in samples]
        resampled = stats.bootstrap(
            widened,
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(seed),
        ).confidence_interval
        intervals = np.column_stack([resampled.low, resampled.high])
    exponents = {
        name: (float(value), None if np.isnan(low) else (float(low), float(high)))
        for name, value, (low, high) in zip(columns, fitted[1:], intervals[1:], strict=True)
    }
    (slots, of_slots), (workers, of_workers) = (exponents.get(name, (None, None)) for name in ("slots", "workers"))
    return Exponents(slots, of_slots, workers, of_workers, float(np.max(np.abs(np.expm1(logs - design @ fitted)))))


def _like(values: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    return values.reshape((-1,) + (1,) * (wanted.ndim - 1))
