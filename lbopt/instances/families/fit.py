"""Make the table of a family from a trace: ``python -m lbopt.instances.families.fit FILE NAME``.

It writes NAME.json into the folder of this file (or ``--output``). NAME must be one of the families of `table.NAMES`,
whose sources and licences are listed below.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lbopt.exceptions import InputError, LbOptError
from lbopt.instances.describe import describe
from lbopt.instances.families.table import FOLDER, FamilyTable, Provenance, quantiles, rank_grid
from lbopt.instances.names import did_you_mean
from lbopt.instances.readers import read_trace
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and write; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lbopt.instances.families.fit", description=__doc__)
    parser.add_argument("file", type=Path, help="the trace to fit")
    parser.add_argument("name", help=f"family: {', '.join(SOURCES)}")
    parser.add_argument("--output", type=Path, help="where to write the table (default: into the package)")
    options = parser.parse_args(arguments)
    try:
        table = fit(options.file, options.name)
        target = options.output or FOLDER / f"{options.name}.json"
        write_file(target, table.to_json())
    except (LbOptError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    logging.getLogger(__name__).info("wrote %s", target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
