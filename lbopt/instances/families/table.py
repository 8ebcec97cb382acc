"""The table behind a family: quantiles of prompt and output, how their ranks go together, and where they came from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.instances.names import did_you_mean
from lbopt.model.integers import IntArray

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

    def to_json(self) -> str:
        """Return the table as it is kept in the package."""
        fields = {
            "name": self.name,
            "provenance": asdict(self.provenance),
            "rate": self.rate,
            "rank_correlation": self.rank_correlation,
            "prompt": self.prompt.tolist(),
            "output": self.output.tolist(),
            "grid": self.grid.tolist(),
        }
        return "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in fields.items()) + "\n}\n"

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


def quantiles(values: IntArray) -> IntArray:
    """Return the quantiles of a sample at `LEVELS`, as members of the sample (no interpolation: they stay integers)."""
    marks: NDArray[np.int64] = np.quantile(values, LEVELS, method="inverted_cdf").astype(np.int64)
    return marks


def rank_grid(prompt: IntArray, output: IntArray) -> IntArray:
    """Return the counts of requests by bin of prompt rank and bin of output rank, (20, 20)."""
    # Ties are broken by one frozen shuffle: in file order they would tie the ranks to the time of day.
    shuffle = np.random.default_rng(0).permutation(prompt.size)
    rows, columns = (_rank_bins(values, shuffle) for values in (prompt, output))
    bins = len(EDGES) - 1
    counts = np.bincount(rows * bins + columns, minlength=bins * bins)
    return counts.astype(np.int64).reshape(bins, bins)


def _rank_bins(values: IntArray, shuffle: IntArray) -> IntArray:
    ranks = np.empty(values.size, dtype=np.float64)
    ranks[np.lexsort((shuffle, values))] = (np.arange(values.size) + 0.5) / values.size
    return np.searchsorted(EDGES, ranks, side="right").astype(np.int64) - 1
