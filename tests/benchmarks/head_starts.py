"""`python -m tests.benchmarks.head_starts --data SHARED/data CLASS ...`: what a head start could save the search.

A router that solves step after step could hand the search the prices of the step before, or run two searches beside
each other. The first is bounded by a state solved again with *its own* last prices, handed over once the first
placement is made; the second by the better of two searches that draw otherwise. Work is counted in the search's own
units (about a microsecond each), so that a busy machine does not matter.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbopt.kernels.search.state import OPEN, PROVED
from lbopt.model import StepProblem
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.workspace import what_is_known
from tests.benchmarks.measure import shared_folder
from tests.benchmarks.state_class import states_of

#: Units of work after which a state is given up, and between two looks.
EFFORT, LOOK = 60_000, 5_000


@dataclass(frozen=True)
class Ending:
    """Whether a search ended with a proof, its work, and its last prices with their envelope."""

    proved: bool
    work: int
    prices: np.ndarray | None
    envelope: int


def searched(problem: StepProblem, seed: int = 0, head_start: Ending | None = None) -> Ending:
    """Search until the proof or `EFFORT`; with a head start, its prices are the newest as soon as others are there."""
    decision = Decision(problem)
    search = decision.start(decision.first_assignment()[1], seed, 1 << 40)
    state = decision.advance(search, 0)
    if head_start is not None and head_start.prices is not None:
        while state == OPEN and what_is_known(search).newest == 0:
            state = decision.advance(search, 1)
        at = what_is_known(search).prices
        search.bank[at, : head_start.prices.size] = head_start.prices
        search.bank_at[at] = head_start.envelope
        search.known.prices = search.known.newest = at + 1
    while state == OPEN and what_is_known(search).work < EFFORT:
        state = decision.advance(search, LOOK)
    known = what_is_known(search)
    at = max(0, known.newest - 1) % search.bank.shape[0]
    last = search.bank[at, : decision.step.v.size].copy() if known.newest else None
    return Ending(state == PROVED, known.work, last, int(search.bank_at[at]))


def main() -> None:
    """Print a line a class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("classes", nargs="+", metavar="CLASS")
    parser.add_argument("--data", type=Path, default=(shared_folder() or Path()) / "data")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--shift", type=int, default=1000)
    options = parser.parse_args()
    print("| class | proved, % | own prices | two draws | work, sum | own prices | two draws |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name in options.classes:
        rows = []
        for problem in states_of(name, str(options.data), options.shift)[: options.count]:
            plain = searched(problem)
            other = searched(problem, seed=1)
            best = min(plain, other, key=lambda ending: (not ending.proved, ending.work))
            rows.append([(end.proved, end.work) for end in (plain, searched(problem, head_start=plain), best)])
        proved, work = np.moveaxis(np.array(rows, dtype=np.float64), 2, 0)
        shares = " | ".join(f"{100 * share:.0f}" for share in proved.mean(axis=0))
        sums = work.sum(axis=0)
        print(f"| {name} | {shares} | {sums[0]:,.0f} | {sums[1] / sums[0]:.2f} | {sums[2] / sums[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
