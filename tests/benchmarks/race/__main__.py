"""`python -m tests.benchmarks.race --solvers exact,highs -i tiny`: who proves it first?

Solvers on the same step problems, each run in a process of its own. Prints the tables and writes results.csv into
`--out`; what the folder's race.sqlite holds is not run again. Exit code 1 if a bound that counts excludes a placement.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lbopt.cli.console import ProgressBar, out, print_table
from lbopt.exceptions import LbOptError
from lbopt.report.folder import write_csv
from tests.benchmarks.race.config import DEFAULT_SOLVERS, RaceConfig
from tests.benchmarks.race.instances import gather_instances
from tests.benchmarks.race.race import run_race
from tests.benchmarks.race.tables import race_csv, race_tables


def _names(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def main(arguments: Sequence[str] | None = None) -> int:
    """Race, print and write; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.race", description=__doc__)
    parser.add_argument("--solvers", type=_names, default=DEFAULT_SOLVERS, help="who takes part, with commas")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a run, for the solver proper (20)")
    parser.add_argument("-i", "--instances", type=_names, default=(), help="names or kinds of the library, all, files")
    parser.add_argument("--states", type=_names, default=(), help="classes of steady states, e.g. rich-burstgpt-g16")
    parser.add_argument("--count", type=int, default=20, help="states of each class (20)")
    parser.add_argument("--shift", type=int, default=0, help="added to the seeds of the classes, for tuning")
    parser.add_argument("--data", help="folder of the traces that the states are drawn from")
    parser.add_argument("--reference", help="solver that times are divided by (the first)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; more than one disturbs the timing")
    parser.add_argument("--retry-failures", action="store_true", help="make stored failures again")
    parser.add_argument("-o", "--out", type=Path, default=Path(".benchmarks/race"), help="folder; the same one goes on")
    given = vars(parser.parse_args(arguments))
    folder, limit = given.pop("out"), given.pop("limit")
    try:
        config = RaceConfig(time_limit=limit, **given)
        with ProgressBar() as bar:
            instances = gather_instances(config, bar)
            folder.mkdir(parents=True, exist_ok=True)
            outcome = run_race(config, instances, folder / "race.sqlite", bar)
    except LbOptError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    write_csv(folder / "results.csv", race_csv(outcome))
    for table in race_tables(outcome):
        print_table(table)
    for note in outcome.notes:
        out.print(f"note: {note}")
    for one in outcome.contradictions:
        out.print(f"{'CONTRADICTION' if one.grave else 'refuted claim'}: {one}", soft_wrap=True)
    if outcome.interrupted:
        out.print("interrupted: what was done is kept; the same command goes on")
        return 130
    return int(any(one.grave for one in outcome.contradictions))


if __name__ == "__main__":
    sys.exit(main())
