"""``python -m tools.library.runs``: search for whole small runs that are bad for rules, and show the worst of each.

All requests wait from the beginning; optima are exact. Ctrl-C ends it with what was found, exit code 130.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lbopt.cli.console import ProgressBar, print_table
from lbopt.exceptions import InputError, LbOptError
from lbopt.instances.library.collection import MEASURES, StoredRun
from lbopt.table import Table
from tools.library.runs.search import FLEETS, RULES, Searched, search, searches


def main(arguments: Sequence[str] | None = None) -> int:
    """Search; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.library.runs", description=__doc__)
    parser.add_argument("-p", "--policy", action="append", help="rule; may be given again (all that need no training)")
    parser.add_argument("--measure", default=",".join(MEASURES), help="placing, barriers or seconds (all)")
    parser.add_argument(
        "--fleets", default=",".join(f"{G}x{B}" for G, B in FLEETS), help="workers x slots (small ones)"
    )
    parser.add_argument("--trials", type=int, default=1000, help="runs judged for each rule, measure and fleet (1000)")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many (no limit)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file; what it has is not searched again")
    options = parser.parse_args(arguments)
    found: list[StoredRun] = []
    try:
        if options.trials < 1 or options.seed < 0 or (options.minutes is not None and not options.minutes > 0):
            raise InputError(
                f"trials is {options.trials}, minutes is {options.minutes} and seed is {options.seed}; expected 1 "
                "trial or more, some minutes, and a seed of 0 or more"
            )
        fleets = [_fleet(one) for one in options.fleets.split(",")]
        rules, measures = options.policy or RULES, options.measure.split(",")
        lines = searches(rules, measures, fleets, options.seed, options.trials)
        code = _searched(lines, options, found)
    except LbOptError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for table in worst_tables(found):
        print_table(table)
    return code


def _searched(lines: Sequence[Searched], options: argparse.Namespace, found: list[StoredRun]) -> int:
    """Search, keep what is found, and return the exit code."""
    ended = code = 0
    with ProgressBar() as bar:
        bar.begin("searching", len(lines))

        def advance(run: StoredRun | None) -> None:
            nonlocal ended
            found.extend([] if run is None else [run])
            ended += 1
            bar.advance()

        try:
            seconds = None if options.minutes is None else 60 * options.minutes
            found[:] = search(lines, options.out, seconds=seconds, advance=advance)
        except KeyboardInterrupt:
            code = 130
    if ended < len(lines):
        sys.stderr.write(f"{ended} of {len(lines)} searches ended{': interrupted' if code else ''}\n")
    return code


def _fleet(text: str) -> tuple[int, int]:
    workers, _, slots = text.partition("x")
    if not (workers.isdecimal() and slots.isdecimal()):
        raise InputError(f"the fleet is '{text}'; expected workers x slots, such as 2x3")
    return int(workers), int(slots)


def worst_tables(runs: Sequence[StoredRun]) -> list[Table]:
    """Return a table for each measure: the worst ratio found for each rule in each fleet, best worst case first."""
    return [_worst(measure, of) for measure in MEASURES if (of := [run for run in runs if run.measure == measure])]


def _worst(measure: str, runs: Sequence[StoredRun]) -> Table:
    fleets = sorted({(run.workers, run.slots) for run in runs})
    ratios: dict[str, dict[tuple[int, int], float]] = {}
    for run in runs:
        ratios.setdefault(run.rule, {})[run.workers, run.slots] = run.ratio
    # Rules that were not searched for in every fleet come last: their worst case is of fewer runs.
    ranked = sorted((len(fleets) - len(of), max(of.values()), rule) for rule, of in ratios.items())
    best = [rule for missing, worst, rule in ranked if (missing, worst) == ranked[0][:2]]
    return Table(
        title=f"{measure}: {MEASURES[measure]}",
        caption=f"Worst ratio found; the least worst case has {', '.join(best)}. More searching can only raise ratios.",
        headers=("rule", *(f"{G}x{B}" for G, B in fleets), "worst"),
        rows=[
            (rule, *(f"{of[fleet]:.3f}" if fleet in of else "–" for fleet in fleets), f"{worst:.3f}")
            for worst, rule, of in ((worst, rule, ratios[rule]) for _, worst, rule in ranked)
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
