"""``python -m tools.library``: build the library into the package, or improve what is open in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from lbopt.exceptions import LbOptError
from lbopt.instances.library import Entry
from tools.library.building import build


def main(arguments: Sequence[str] | None = None) -> int:
    """Build; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.library", description=__doc__)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="names of entries to solve, e.g. 'cold-*' (all)")
    parser.add_argument("--resolve-open", action="store_true", help="solve again what is not settled yet")
    parser.add_argument("--solver", default="exact", help="solver (exact)")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds a problem, 0 for none (5)")
    parser.add_argument("--out", type=Path, help="folder to write to (default: into the package)")
    options = parser.parse_args(arguments)
    try:
        with as_file(files("lbopt.instances.library").joinpath("data")) as packaged:
            build(
                options.out or packaged,
                time_limit=options.time_limit,
                solver=options.solver,
                patterns=options.patterns or ["*"],
                resolve_open=options.resolve_open,
                listener=_tell,
            )
    except (LbOptError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: what was known stays known\n")
        return 130
    return 0


def _tell(entry: Entry, before: Entry | None) -> None:
    if before is not None and before.record is entry.record:
        return
    was = "" if before is None else f"  (was {before.best}, at least {before.bound}, {before.status})"
    best = "none" if entry.best is None else str(entry.best)
    sys.stdout.write(f"{entry.name}: {best}, at least {entry.bound}, {entry.status} by {entry.record.proof}{was}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
