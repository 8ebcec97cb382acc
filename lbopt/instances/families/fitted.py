"""Families fitted to a public trace: their tables, and traces drawn from them with the lengths and tails of the source.

A table holds quantiles of prompt and output, how their ranks go together, and where they came from
(`tools/families.py` of a checkout fits it).

Checkerboard copula: a cell of the table's grid of rank bins is drawn by its count, a uniform is drawn in each of its
two sides, and each uniform goes through the quantile table of its length, linearly between table entries and then
rounded to whole tokens. Arrivals are Poisson.

Why not a Gaussian copula with the rank correlation of the source: it has the right Spearman and the wrong load. In
BurstGPT the longest prompts meet the longest outputs; a slot that is never empty holds 1,098 tokens on average there,
1,072 in a sample drawn from the grid, and 720 in one drawn through the Gaussian copula.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.model.integers import IntArray
from lbopt.model.trace import FloatArray, Trace
from lbopt.spec import did_you_mean

FOLDER = Path(__file__).parent
NAMES = ("azure-like", "burstgpt-like")

#: Every 1/128, and twice as deep again and again in both tails, where the tokens are: 0, 2**-13, ..., 1 - 2**-13, 1.
_TAIL = tuple(2.0**-power for power in range(13, 7, -1))
LEVELS = (0.0, *_TAIL, *(k / 128 for k in range(1, 128)), *(1.0 - p for p in reversed(_TAIL)), 1.0)

#: Bins of the ranks: sixteenths, and the last one halved again and again, for long prompts with long outputs make the
#: load of a busy slot.
EDGES = (*(k / 16 for k in range(16)), 31 / 32, 63 / 64, 127 / 128, 255 / 256, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The file that a table was fitted to."""

    file: str
    sha256: str
    rows: int
    source: str
    licence: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FamilyTable:
    """Everything that the sampler knows of its source.

    Parameters
    ----------
    name
        Of the family.
    prompt, output
        int64, (K,): quantiles at `LEVELS`, non-decreasing; the first is the minimum, the last the maximum.
    grid
        int64, (20, 20): requests of the source with prompt rank in bin i and output rank in bin j of `EDGES`.
    rank_correlation
        Spearman's, of prompt and output: what a sample is to reproduce.
    rate
        Mean arrivals per second; None where the source has no times.
    provenance
        The source.
    """

    name: str
    prompt: IntArray
    output: IntArray
    grid: IntArray
    rank_correlation: float
    rate: float | None
    provenance: Provenance

    @staticmethod
    def from_json(text: str) -> FamilyTable:
        """Return the table that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        fields["provenance"] = Provenance(**fields["provenance"])
        for array in ("prompt", "output", "grid"):
            values = np.array(fields[array], dtype=np.int64)
            values.flags.writeable = False
            fields[array] = values
        return FamilyTable(**fields)


@cache
def family_table(name: str) -> FamilyTable:
    """Return the committed table of a family."""
    if name not in NAMES:
        raise InputError(f"no family {name!r}; the families are {', '.join(NAMES)}{did_you_mean(name, NAMES)}")
    return FamilyTable.from_json((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


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
    count = whole("count", count, 1, LARGEST_COUNT)
    seed = whole("seed", seed, 0, 2**63 - 1)
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
