"""Draw a trace that looks like its source: the same lengths and tails, going together as there, Poisson arrivals.

Checkerboard copula: a cell of the table's grid of rank bins is drawn by its count, a uniform is drawn in each of its
two sides, and each uniform goes through the quantile table of its length, linearly between table entries and then
rounded to whole tokens.

Why not a Gaussian copula with the rank correlation of the source: it has the right Spearman and the wrong load. In
BurstGPT the longest prompts meet the longest outputs; a slot that is never empty holds 1,098 tokens on average there,
1,072 in a sample drawn from the grid, and 720 in one drawn through the Gaussian copula.
"""

from __future__ import annotations

import math

import numpy as np

from lbopt.exceptions import InputError
from lbopt.instances.families.table import EDGES, LEVELS, family_table
from lbopt.model.integers import IntArray
from lbopt.model.trace import FloatArray, Trace

LARGEST_COUNT = 10**8


def generate(family: str, count: int, seed: int, *, rate: float | None = None) -> Trace:
    """Draw a trace from a family.

    Parameters
    ----------
    family
        "azure-like" or "burstgpt-like".
    count
        Requests to draw.
    seed
        Of ``numpy.random.default_rng``; the same seed gives the same trace.
    rate
        Mean arrivals per second. None takes the rate of the source; where that is unknown (burstgpt-like: its source
        has no times) the trace has no arrival times.
    """
    table = family_table(family)
    count = _whole("count", count, low=1, high=LARGEST_COUNT)
    seed = _whole("seed", seed, low=0, high=2**63 - 1)
    if rate is not None and not (math.isfinite(rate) and rate > 0):
        raise InputError(f"rate is {rate!r}; expected requests per second, above 0")
    rng = np.random.default_rng(seed)
    rows, columns = _cells(table.grid, rng.integers(0, table.grid.sum(), count))
    first, second = _within(rows, rng.random(count)), _within(columns, rng.random(count))
    rate = table.rate if rate is None else rate
    arrival = None
    if rate is not None:
        # Whole microseconds, so that the last bit of a platform's logarithm cannot change a frozen sample.
        arrival = np.round(np.cumsum(rng.standard_exponential(count)) / rate, 6)
    return Trace(
        prompt=_lengths(table.prompt, first), output=_lengths(table.output, second), arrival=arrival, name=family
    )


def _cells(grid: IntArray, tickets: IntArray) -> tuple[IntArray, IntArray]:
    """Return the row and the column of the cell that holds each ticket, where a cell holds as many as its count."""
    cells = np.searchsorted(np.cumsum(grid), tickets, side="right")
    rows, columns = np.divmod(cells, grid.shape[1])
    return rows, columns


def _within(bins: IntArray, uniform: FloatArray) -> FloatArray:
    """Return a rank inside each bin."""
    edges = np.array(EDGES)
    return edges[bins] + uniform * np.diff(edges)[bins]


def _lengths(quantiles: IntArray, ranks: FloatArray) -> IntArray:
    return np.floor(np.interp(ranks, LEVELS, quantiles) + 0.5).astype(np.int64)


def _whole(name: str, value: object, *, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} is {value!r}; expected a whole number from {low} to {high}")
    return int(value)
