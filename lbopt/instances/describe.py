"""What a trace looks like in numbers: sizes, spread, pace, and the load that a busy slot carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lbopt.model.integers import IntArray
from lbopt.model.trace import Trace

PERCENTS = (1, 5, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """Distribution of one length.

    Parameters
    ----------
    mean, std
        Of the sample (the standard deviation divides by N).
    minimum, maximum
        Smallest and largest.
    percentiles
        Value for each of `PERCENTS`, interpolated.
    edges, counts
        int64, (K + 1,) and (K,): histogram with bins [edge, next edge); edges are 0 and powers of two.
    """

    mean: float
    std: float
    minimum: int
    maximum: int
    percentiles: Mapping[int, float]
    edges: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TraceDescription:
    """A trace in numbers.

    Parameters
    ----------
    name, rows, left_out
        Of the trace.
    span
        Seconds from the first to the last arrival; None without times.
    rate
        Requests per second over the span, (N - 1) / span; None without times or where the span is 0.
    opening_rate
        The same over the first tenth of the requests. Far below `rate`, a study that starts at the first row sees
        idle workers and finds every rule equal.
    prompt, output
        Their distributions.
    pearson, spearman
        Correlation of prompt and output, of the values and of their ranks; None where either is constant.
    tokens_per_slot
        Mean tokens resident in a slot that is never empty: (E[s o] + E[o (o - 1) / 2]) / E[o].
    """

    name: str
    rows: int
    left_out: Mapping[str, int]
    span: float | None
    rate: float | None
    opening_rate: float | None
    prompt: Spread
    output: Spread
    pearson: float | None
    spearman: float | None
    tokens_per_slot: float


def describe(trace: Trace) -> TraceDescription:
    """Return a trace in numbers."""
    s, o = trace.prompt.astype(np.float64), trace.output.astype(np.float64)
    return TraceDescription(
        name=trace.name,
        rows=len(trace),
        left_out=MappingProxyType(dict(trace.left_out)),
        span=None if trace.arrival is None else float(trace.arrival[-1]),
        rate=_rate(trace.arrival),
        opening_rate=None if trace.arrival is None else _rate(trace.arrival[: max(2, len(trace) // 10)]),
        prompt=_spread(trace.prompt),
        output=_spread(trace.output),
        pearson=correlation(s, o),
        spearman=rank_correlation(s, o),
        tokens_per_slot=trace.mean_resident_tokens,
    )


def correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    """Return Pearson's correlation; None where either side is constant."""
    x, y = left - left.mean(), right - right.mean()
    if not x.any() or not y.any():
        return None
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def rank_correlation(left: NDArray[np.float64], right: NDArray[np.float64]) -> float | None:
    """Return Spearman's correlation; ties share their mean rank."""
    from scipy.stats import rankdata

    return correlation(np.asarray(rankdata(left)), np.asarray(rankdata(right)))


def power_of_two_edges(largest: int, smallest: int = 0) -> IntArray:
    """Return bin edges that enclose all values: powers of two, with 0 first where something lies below 1."""
    low = max(smallest, 1).bit_length() - 1
    edges = [2**power for power in range(low, largest.bit_length() + 1)] if largest else [1]
    return np.array([0, *edges] if smallest < 1 else edges, dtype=np.int64)


def _spread(values: IntArray) -> Spread:
    smallest, largest = int(values.min()), int(values.max())
    edges = power_of_two_edges(largest, smallest)
    # searchsorted and not numpy.histogram: the last bin of the latter is closed on both sides
    counts = np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=edges.size - 1)
    marks = np.percentile(values, PERCENTS)
    return Spread(
        mean=float(values.mean()),
        std=float(values.std()),
        minimum=smallest,
        maximum=largest,
        percentiles=MappingProxyType(dict(zip(PERCENTS, marks.tolist(), strict=True))),
        edges=edges,
        counts=counts.astype(np.int64),
    )


def _rate(arrival: NDArray[np.float64] | None) -> float | None:
    if arrival is None or arrival.size < 2 or arrival[-1] <= arrival[0]:
        return None
    return float((arrival.size - 1) / (arrival[-1] - arrival[0]))
