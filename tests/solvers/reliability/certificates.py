"""Forged certificates of every sort: `python -m tests.solvers.reliability.certificates --per-sort 5000 --seed 1`.

It ends with exit code 1 at the first forgery that is believed above the optimum, that escapes as anything but an error
of lbopt, or whose refusal is no short sentence. A run that was stopped goes on.
"""

import argparse
import random
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # tests import each other from here

from solvers.reliability.forged import forgery  # noqa: E402
from solvers.reliability.long_run import run  # noqa: E402
from solvers.reliability.proofs import SORTS, Proof, some  # noqa: E402

#: Forgeries of one proof.
EACH = 50


@lru_cache(maxsize=64)
def proof_of(sort: str, seed: str) -> Proof:
    """The first proof of a seed."""
    return some(sort, seed, 1)[0]


def forge(seed: str, sort: str, number: int, seen: Counter, each: int = EACH) -> str | None:
    """Make one forgery of this sort; return what went wrong, None for nothing.

    Parameters
    ----------
    seed
        Any text.
    sort
        One of `SORTS`.
    number
        Number of the forgery.
    seen
        Counts what happened; changed in place.
    each
        Forgeries of one proof.
    """
    which = number // each
    proof, other = proof_of(sort, f"{seed}/{which}"), proof_of(sort, f"{seed}/{max(0, which - 1)}")
    ours: Counter = Counter()
    wrong = forgery(proof, other, ours, random.Random(f"{seed}/{sort}/{number}"))
    for what, count in ours.items():
        seen[f"{sort}: {what}"] += count
    return None if wrong is None else f"{sort} {number}: {wrong}"


def main() -> int:
    """Run as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-sort", type=int, default=5_000, help="forgeries of each sort")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--state", type=Path, help="file that a stopped run goes on from; default build/forged-SEED")
    given = parser.parse_args()

    def trial(number: int, seen: Counter) -> str | None:
        block, place = divmod(number, EACH)
        turn, which = divmod(block, len(SORTS))
        return forge(given.seed, SORTS[which], turn * EACH + place, seen)

    state = given.state or Path("build") / f"forged-{given.seed}.json"
    return run(trial, given.per_sort * len(SORTS), state)


if __name__ == "__main__":
    sys.exit(main())
