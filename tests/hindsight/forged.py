"""Forged certificates of runs, of every kind: `python -m tests.hindsight.forged --per-sort 5000 --seed 1`.

A forger knows the format and computes digests. What he wants is a sum of barriers above the least one called a lower
bound, so he mostly claims it beside a placement that is as dear. The truth comes from trying every placement. The exit
code is 1 at the first forgery that is believed above the truth, or that ends in anything but a CertificateError.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests import each other from here

from hindsight.small_runs import KINDS, least_barriers, small_run
from solvers.certificates.damage import damaged
from solvers.reliability.long_run import run

from lbopt.exceptions import CertificateError
from lbopt.hindsight.bounds import step_bounds
from lbopt.hindsight.certificate import BoundCertificate, clip, digest
from lbopt.hindsight.check import check_optimum
from lbopt.hindsight.optimum import HindsightResult
from lbopt.hindsight.search_start import greedy
from lbopt.hindsight.search_surplus import surplus_bound
from lbopt.hindsight.timetable import Timetable
from lbopt.hindsight.windows import cut

#: What a certificate rests on: one window of each kind, or windows of several kinds.
SORTS = ("steps", "covers", "surplus", "parts")

#: Forgeries of one proof.
EACH = 50

#: Values that belong nowhere.
ODD = (None, True, "1", "", "\x1b[31m\x00", 1.5, float("nan"), float("inf"), [], {}, [[]], -1, 2**62, 2**128, -(2**200))

#: Seconds of the processor after which an answer came too late.
_PATIENCE = 20.0

#: A certificate as a file holds it.
Content = dict[str, Any]


@dataclass(frozen=True)
class Proof:
    """A run, the least sum of its barriers, and a true certificate as a file holds it."""

    timetable: Timetable
    least: int
    content: Content


@lru_cache(maxsize=64)
def proof_of(sort: str, seed: str) -> Proof:
    """Return the first proof of a seed, of a run whose certificate rests on this sort.

    Parameters
    ----------
    sort
        One of `SORTS`.
    seed
        Any text.
    """
    words = np.frombuffer(f"{sort}/{seed}".encode(), dtype=np.uint8)
    rng = np.random.default_rng(words)
    while True:
        timetable = small_run(KINDS[rng.integers(len(KINDS))], rng)
        steps = timetable.num_steps
        marks = [0, steps] if sort != "parts" else sorted({0, steps, *rng.integers(0, steps, 2).tolist()})
        kinds = [sort] if sort != "parts" else rng.choice(SORTS[:3], len(marks) - 1).tolist()
        rows = [
            _window(timetable, first, last, kind)
            for first, last, kind in zip(marks[:-1], marks[1:], kinds, strict=True)
        ]
        if sort == "parts" or rows[0][3] == sort:
            return Proof(timetable, least_barriers(timetable), {"timetable": digest(timetable), "windows": rows})


def _window(timetable: Timetable, first: int, last: int, kind: str) -> list[Any]:
    """Return a true row for steps `first` to before `last`; of kind "steps" where the other proves no more."""
    piece = clip(timetable, first, last)
    floors = int(step_bounds(piece).sum())
    by_steps = [first, last, floors, "steps"]
    if kind == "covers" and (least := least_barriers(piece)) > floors:
        return [first, last, least, "covers"]
    if kind == "surplus" and piece.num_workers > 1 and piece.num_requests > 1:
        found = surplus_bound(piece, greedy(piece, cut(piece)) // piece.slots_per_worker, 600.0)
        if found is not None and found.lower > floors:
            return [first, last, found.lower, "surplus", found.cuts.tolist(), found.prices.tolist()]
    return by_steps


# ---------------------------------------------------------------------- changes


def damage(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Change one value somewhere."""
    content["windows"] = damaged(content["windows"], rng)


def odd_value(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Put a value where it does not belong: into a row, or one or all of its numbers."""
    row = rng.choice(content["windows"])
    at = rng.randrange(len(row))
    if isinstance(row[at], list) and row[at] and rng.random() < 0.7:
        value = rng.choice(ODD)
        places = range(len(row[at])) if rng.random() < 0.5 else [rng.randrange(len(row[at]))]
        for place in places:
            row[at][place] = copy.deepcopy(value)
    else:
        row[at] = copy.deepcopy(rng.choice(ODD))


def other_span(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Move the ends of a window: a little, to nothing, backwards, over all."""
    row = rng.choice(content["windows"])
    step = rng.choice([-1, 1, 2])
    last = content["windows"][-1][1]
    row[:2] = rng.choice(
        [
            [row[0] + step, row[1]],
            [row[0], row[1] + step],
            [row[0], row[0]],
            [row[1], row[1]],
            [row[1], row[0]],
            [0, last],
            [-step, row[1]],
        ]
    )


def empty_window(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Add a window of no steps that claims much, or have it alone; it has a price for each request that runs there."""
    rows, timetable = content["windows"], proof.timetable
    at = rng.randint(-1, timetable.num_steps + 1)
    running = int(((timetable.start < at) & (timetable.end > at)).sum())
    prices = [rng.choice([0, 10**6, 2**40])] * running
    window = [at, at, rng.randint(1, 9), "surplus", [0], prices]
    rows[:] = [window] if rng.random() < 0.5 else sorted([*rows, window], key=lambda row: row[:2])


def other_prices(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Give prices, cuts or both that prove nothing: others, or all of one odd value."""
    row, timetable = rng.choice(content["windows"]), proof.timetable
    running = int(((timetable.start < row[1]) & (timetable.end > row[0])).sum())
    cuts, prices = row[4:] if len(row) == 6 else ([0, row[1] - row[0]], [0] * running)
    if rng.random() < 0.3:
        prices = [rng.choice(ODD)] * len(prices)
    else:
        prices = [price + rng.choice([0, 0, 1, -1, 10**6, -(10**6), 2**61]) for price in prices]
    cuts = rng.choice([cuts, cuts, cuts, cuts[:-1], [*cuts, cuts[-1] + 1], [0], [], cuts[::-1], [0, *cuts]])
    row[3:] = ["surplus", cuts, prices]


def other_kind(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Call a window one of another kind, or of none."""
    rng.choice(content["windows"])[3] = rng.choice(["steps", "covers", "surplus", "", "exhaustion", None])


def drop_or_double(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Leave a window out, or count it twice."""
    rows = content["windows"]
    at = rng.randrange(len(rows))
    rows[at : at + 1] = [] if len(rows) > 1 and rng.random() < 0.5 else [rows[at], copy.deepcopy(rows[at])]


def cut_apart(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Cut a window into two that overlap, leave a gap or meet, and share out its bound."""
    rows = content["windows"]
    at = rng.randrange(len(rows))
    first, last, bound, *rest = rows[at]
    middle, part = rng.randint(first, last), rng.randint(0, bound + 2)
    more = rng.choice([-1, 0, 0, 1])
    rows[at : at + 1] = [
        [first, middle, part, *copy.deepcopy(rest)],
        [middle + more, last, bound - part + rng.choice([0, 1]), *copy.deepcopy(rest)],
    ]


def take_part(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Take windows from the proof of another run."""
    rows = copy.deepcopy(other.content["windows"])
    content["windows"][rng.randrange(len(content["windows"])) :] = rows


def other_run(content: Content, proof: Proof, other: Proof, rng: random.Random) -> None:
    """Say that it is of another run, or leave a field out."""
    content["timetable"] = rng.choice(["0" * 64, other.content["timetable"], None, [], 7])
    if rng.random() < 0.3:
        del content[rng.choice(sorted(content))]


CHANGES = (
    damage,
    odd_value,
    other_span,
    empty_window,
    other_prices,
    other_kind,
    drop_or_double,
    cut_apart,
    take_part,
    other_run,
)


def changed(proof: Proof, other: Proof, rng: random.Random) -> tuple[Any, list[str]]:
    """Return a certificate that was changed in up to three ways, and what these are."""
    content, names = copy.deepcopy(proof.content), []
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        change = rng.choice(CHANGES)
        before = copy.deepcopy(content)
        try:
            change(content, proof, other, rng)
            names.append(change.__name__)
        except (
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            ArithmeticError,
        ):  # too broken by now to be changed further
            content = before
    more = rng.choice([1, 1, 2, 7, 1 + proof.least // 10])
    numbers = [row for row in _rows(content) if len(row) > 2 and type(row[2]) is int]
    if numbers and rng.random() < 0.75:
        row = rng.choice(numbers)
        row[2] = proof.least + more - sum(one[2] for one in numbers if one is not row)
        names.append("higher bound")
    return content, names


def _rows(content: Any) -> list[list[Any]]:
    rows = content.get("windows") if isinstance(content, dict) else None
    return [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []


def claim_of(proof: Proof, certificate: BoundCertificate, rng: random.Random) -> HindsightResult:
    """Return what is claimed by the certificate: mostly beside a placement that is dear enough, all numbers derived."""
    timetable = proof.timetable
    try:
        lower = certificate.bound
    except TypeError:
        lower = proof.least + 1
    placed = [_placement(timetable, rng) for _ in range(12)]
    dear = [one for one in placed if timetable.barriers(one) >= lower] if type(lower) is int else []
    worker = (dear or placed)[0]
    upper = timetable.barriers(worker)
    workers, total = timetable.num_workers, int(timetable.totals().sum())
    stop = "proved" if lower == upper else "time"
    claim = HindsightResult(
        lower, upper, workers * lower - total, workers * upper - total, worker, 0, 0.0, stop, certificate
    )
    if rng.random() < 0.1:
        name = rng.choice(["lower", "upper", "lower_imbalance", "upper_imbalance", "stop"])
        value = getattr(claim, name)
        odd = rng.choice([*ODD, *([] if name == "stop" else [value + 1, value - 1, float(value)])])
        claim = dataclasses.replace(claim, **{name: odd})
    if rng.random() < 0.05:
        wrong = rng.choice([worker + 1, worker - 1, worker[:-1], worker * 1.0, worker[:, None], worker.astype(bool)])
        claim = dataclasses.replace(claim, worker=wrong)
    return claim


def _placement(timetable: Timetable, rng: random.Random) -> np.ndarray:
    """Return a feasible placement, drawn: whoever has a slot when a request starts has one until it ends."""
    chosen: list[int] = []
    start, end = timetable.start.tolist(), timetable.end.tolist()
    for i in range(timetable.num_requests):
        held = Counter(g for j, g in enumerate(chosen) if end[j] > start[i])
        free = [g for g in range(timetable.num_workers) if held[g] < timetable.slots_per_worker]
        chosen.append(rng.choice(free[: rng.randint(1, len(free))]))
    return np.array(chosen, dtype=np.int64)


# ---------------------------------------------------------------------- trials


def forge(seed: str, sort: str, number: int, seen: Counter[str], each: int = EACH) -> str | None:
    """Make one forgery; return what the check should not have done, None where it did well.

    Parameters
    ----------
    seed, sort
        Any text, and one of `SORTS`.
    number
        Number of the forgery.
    seen
        Counts what happened; changed in place.
    each
        Forgeries of one proof.
    """
    which = number // each
    proof, other = proof_of(sort, f"{seed}/{which}"), proof_of(sort, f"{seed}/{max(0, which - 1)}")
    rng = random.Random(f"{seed}/{sort}/{number}")
    content, names = changed(proof, other, rng)
    begun = time.process_time()
    seen[f"{sort}: forgeries"] += 1
    claim = None
    try:
        claim = claim_of(proof, BoundCertificate.from_dict(content), rng)
        above = type(claim.lower) is int and claim.lower > proof.least
        seen[f"{sort}: of bounds above the optimum"] += above
        report = check_optimum(proof.timetable, claim)
    except CertificateError as error:
        seen[f"{sort}: refused"] += 1
        wrong = None if len(str(error)) <= 500 else f"a message of {len(str(error))} characters"
    except Exception as error:
        wrong = f"{error!r} escaped"
    else:
        if report.bound_established and above:
            wrong = f"{claim.lower} established, the optimum is {proof.least}"
        else:
            wrong = None
            seen[f"{sort}: {'accepted, and true' if report.bound_established else 'named as not verified'}"] += 1
    if wrong is None and time.process_time() - begun > _PATIENCE:
        wrong = "the check took long"
    if wrong is None:
        return None
    t = proof.timetable
    rows = (t.num_workers, t.slots_per_worker, t.start.tolist(), t.prompt.tolist(), t.output.tolist())
    placed = None if claim is None else claim.worker.tolist()
    return f"{sort} {number}: {names}: {wrong}: {json.dumps(content)} with {placed} of {rows}"


def main() -> int:
    """Run as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-sort", type=int, default=5_000, help="forgeries of each sort")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--state", type=Path, help="file that a stopped run goes on from")
    given = parser.parse_args()

    def trial(number: int, seen: Counter[str]) -> str | None:
        block, place = divmod(number, EACH)
        turn, which = divmod(block, len(SORTS))
        return forge(given.seed, SORTS[which], turn * EACH + place, seen)

    state = given.state or Path("build") / f"forged-runs-{given.seed}.json"
    return run(trial, given.per_sort * len(SORTS), state)


if __name__ == "__main__":
    sys.exit(main())
