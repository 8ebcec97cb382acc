"""Make the table of a family from a trace: ``python -m tools.families FILE NAME``.

It writes NAME.json into the package (or ``--output``). NAME must be one of the families of `fitted.NAMES`,
whose sources and licences are listed below.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError, LbOptError
from lbopt.instances.describe import describe
from lbopt.instances.families.fitted import EDGES, FOLDER, LEVELS, FamilyTable, Provenance
from lbopt.instances.readers import read_trace
from lbopt.model.integers import IntArray
from lbopt.spec import did_you_mean
from lbopt.whole_file import write_file

SOURCES = {
    "azure-like": ("Azure LLM inference trace 2023, conversation; github.com/Azure/AzurePublicDataset", "CC BY"),
    "burstgpt-like": (
        "8,000 BurstGPT requests drawn by github.com/Echoscd/Load-Balancing-Release; github.com/HPMLL/BurstGPT",
        "CC BY 4.0",
    ),
}


def fit(path: Path, name: str) -> FamilyTable:
    """Return the table of a family, fitted to a trace file."""
    if name not in SOURCES:
        raise InputError(f"no family {name!r}; expected {', '.join(SOURCES)}{did_you_mean(name, SOURCES)}")
    source, licence = SOURCES[name]
    trace = read_trace(path)
    summary = describe(trace)
    if summary.spearman is None:
        raise InputError(f"{path}: prompt or output is constant, so that they have no correlation to fit")
    return FamilyTable(
        name=name,
        prompt=quantiles(trace.prompt),
        output=quantiles(trace.output),
        grid=rank_grid(trace.prompt, trace.output),
        rank_correlation=round(summary.spearman, 6),
        rate=None if summary.rate is None else float(np.round(summary.rate, 6)),
        provenance=Provenance(
            file=path.name,
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            rows=len(trace),
            source=source,
            licence=licence,
        ),
    )


def text_of(table: FamilyTable) -> str:
    """Return the table as it is kept in the package."""
    fields = {
        "name": table.name,
        "provenance": asdict(table.provenance),
        "rate": table.rate,
        "rank_correlation": table.rank_correlation,
        "prompt": table.prompt.tolist(),
        "output": table.output.tolist(),
        "grid": table.grid.tolist(),
    }
    return "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in fields.items()) + "\n}\n"


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and write; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.families", description=__doc__)
    parser.add_argument("file", type=Path, help="the trace to fit")
    parser.add_argument("name", help=f"family: {', '.join(SOURCES)}")
    parser.add_argument("--output", type=Path, help="where to write the table (default: into the package)")
    options = parser.parse_args(arguments)
    try:
        table = fit(options.file, options.name)
        target = options.output or FOLDER / f"{options.name}.json"
        write_file(target, text_of(table))
    except (LbOptError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    logging.getLogger(__name__).info("wrote %s", target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
