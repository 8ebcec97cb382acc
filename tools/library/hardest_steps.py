"""``python -m tools.library.hardest_steps``: the step of each walk that takes the exact search longest.

It prints the numbers for `STEPS` in the recipe `hard_steps`. A step that is not proved within the limit counts as
longest; among several of those the first one is taken, for what they cost depends on the machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import islice

from tools.library.effort import effort
from tools.library.recipes.hard_steps import WALKS, Walk


def hardest_step(walk: Walk, steps: int, seconds: float) -> tuple[int, int | None]:
    """Return the number of the hardest among the first steps, and its work (None: not proved within the limit)."""
    hardest, most = 0, -1
    for number, problem in enumerate(islice(walk.problems(), steps)):
        if not problem.num_free_slots:
            continue
        work = effort(problem, seconds)
        if work is None:
            return number, None
        if work > most:
            hardest, most = number, work
    return hardest, most


def main(arguments: Sequence[str] | None = None) -> int:
    """Walk and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.library.hardest_steps", description=__doc__)
    parser.add_argument("--steps", type=int, default=300, help="steps of a walk (300)")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds a step (2)")
    options = parser.parse_args(arguments)
    for walk in WALKS:
        step, work = hardest_step(walk, options.steps, options.limit)
        sys.stdout.write(f"{step},  # {walk}: {'not proved in time' if work is None else work}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
