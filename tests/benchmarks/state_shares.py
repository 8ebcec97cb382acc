"""`python -m tests.benchmarks.state_shares --data SHARED/data [CLASS ...]`: what the search proves of frozen states.

One line a class: the share of states proved within 60 ms and within the limit, the median time, and what is left open
at the limit in percent of the barrier (G times the largest load). Results lie in a store in `--out`, so that the
command goes on where it was stopped; `--shift` draws other states, for tuning.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar, out
from tests.benchmarks.measure import shared_folder
from tests.benchmarks.race.profile import quantile, share_within
from tests.benchmarks.state_class import run_class
from tools.steady import read_state_sets

HEADER = (
    "| class | states | proved in 60 ms, % | in {limit:g} s, % | median, ms | open, % of the barrier, P99 | worst |"
)


def main() -> None:
    """Run the classes that are named, or all of one step; print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "classes", nargs="*", metavar="CLASS", help="frozen classes of states [default: all of one step]"
    )
    parser.add_argument("--data", type=Path, default=(shared_folder() or Path()) / "data", help="folder of the traces")
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/state_shares"), help="folder of the store")
    parser.add_argument("--count", type=int, default=100, help="states of a class")
    parser.add_argument("--checks", type=int, default=0, help="proofs of a class that are written down and checked")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds a state")
    parser.add_argument("--shift", type=int, default=0, help="added to the seeds: other states")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.classes or [name for name, one in read_state_sets().items() if one.horizon == 0]
    out.print(HEADER.format(limit=options.limit), soft_wrap=True)
    out.print("|---|--:|--:|--:|--:|--:|--:|")
    for name in names:
        with ProgressBar() as bar:
            runs = run_class(
                name,
                count=options.count,
                checks=options.checks,
                limit=options.limit,
                store=options.out / "state_shares.sqlite",
                data=options.data,
                shift=options.shift,
                progress=bar,
            )
        median = quantile(runs.times, 0.5, options.limit)
        shown = f"{1e3 * median.high:.2f}" if median is not None and np.isfinite(median.high) else "open"
        left = 100 * runs.open_share
        quick, slow = (100 * share_within(runs.times, seconds) for seconds in (0.06, options.limit))
        wrong = [said for said in runs.checked if said]
        out.print(
            f"| {name} | {runs.proved.size} | {quick:.0f} | {slow:.0f} | {shown} | {np.quantile(left, 0.99):.4f} "
            f"| {left.max():.4f} |" + (f" {len(wrong)} proofs not confirmed: {wrong[0]}" if wrong else ""),
            soft_wrap=True,
        )


if __name__ == "__main__":
    main()
