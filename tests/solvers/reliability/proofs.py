"""Proofs that the searches really write, of every sort that a certificate can have, and the true optimum."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from naive.step_optimum import least_imbalance
from planted import proved_by_trees
from solvers.reliability.drawn import Drawn, drawn

from lbopt import Result, StepProblem, solve
from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.exact import written_known_ends_proof
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.known_ends import KnownEnds

#: What is forged: the sorts of evidence, and the word "exhaustion" on a partition, which `verify` enumerates again.
SORTS = ("priced envelopes", "placements", "boxes", "window prices", "known ends", "partition")

#: Largest load for trees of placements, which without good prices are written for one envelope after another.
_LARGEST_PLACED = 200

#: Longest certificate that is forged, in characters: it is copied and checked dozens of times.
_LONGEST = 60_000


@dataclass(frozen=True)
class Proof:
    """A problem, its optimum, the search's answer, and its certificate; None for the word of an exhaustion."""

    one: Drawn
    optimum: int
    result: Result
    certificate: Certificate | None

    @property
    def problem(self) -> StepProblem:
        """The problem."""
        return self.one.problem


def proofs(sort: str, seed: str) -> Iterator[Proof]:
    """Yield proofs of the optimum, which is above 0, without end.

    Parameters
    ----------
    sort
        One of `SORTS`.
    seed
        Any text.
    """
    number = 0
    while True:
        number += 1
        one = drawn(f"{sort}/{seed}/{number}", requests=9 if sort == "placements" else 8)
        if not _asked_of(sort, one) or one.admitted == 0:
            continue
        optimum = least_imbalance(one.base, one.slots, one.work, one.must)
        if optimum == 0:
            continue
        result = solve(one.problem, "search", time_limit=2)
        try:
            certificate = _written(sort, one, optimum, result)
        except CertificateError:  # too long to be written down
            continue
        if certificate is not None or (sort == "partition" and result.proof == "exhaustion"):
            yield Proof(one, optimum, result, certificate)


def _asked_of(sort: str, one: Drawn) -> bool:
    """Tell whether the problem is of the kind that this sort speaks of."""
    horizon = len(one.base[0]) - 1
    if sort == "placements" and max(map(max, (*one.base, *one.work))) > _LARGEST_PLACED:
        return False
    if sort in ("priced envelopes", "placements"):
        return horizon == 0 and len(one.work) > sum(one.slots)
    if sort == "partition":
        return horizon == 0 and len(one.work) <= sum(one.slots)
    return horizon > 0 and (one.kind == "known ends") == (sort == "known ends")


def _written(sort: str, one: Drawn, optimum: int, result: Result) -> Certificate | None:
    """Return the certificate of this sort for the optimum, None where there is none."""
    if sort == "placements":
        decision = Decision(one.problem)
        if decision.scale == 0:  # numbers too large for this search
            return None
        certificate = proved_by_trees(one.problem, optimum)
    elif sort in ("window prices", "known ends"):  # any window can be proved by prices
        certificate = written_known_ends_proof(one.problem, optimum) if KnownEnds(one.problem).fits else None
    else:
        certificate = result.certificate()
    if certificate is None or certificate.bound != optimum or len(certificate.to_json()) > _LONGEST:
        return None
    found = _sorts_of(certificate)
    return certificate if sort in found or sort == "partition" else None


def _sorts_of(certificate: Certificate) -> tuple[str, ...]:
    if certificate.kind == "window-boxes":
        return ("boxes",)
    if certificate.kind == "window-prices":
        return ("window prices", "known ends")
    records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
    return ("placements",) if records else ("priced envelopes",)


def some(sort: str, seed: str, count: int) -> list[Proof]:
    """Return the first proofs of a seed.

    Parameters
    ----------
    sort, seed
        As in `proofs`.
    count
        How many.
    """
    endless = proofs(sort, seed)
    return [next(endless) for _ in range(count)]


def worse(one: Drawn, optimum: int, rng: random.Random) -> tuple[list[int], int] | None:
    """Return a feasible assignment above the optimum and its cost; None where a few tries find none.

    Parameters
    ----------
    one
        The problem.
    optimum
        Its optimum, tokens.
    rng
        Draws.
    """
    free = [g for g, count in enumerate(one.slots) for _ in range(min(count, len(one.work)))]
    for _ in range(8):
        rng.shuffle(free)
        order = sorted(range(len(one.work)), key=lambda i: (not one.must[i], rng.random()))
        placed = [-1] * len(one.work)
        for i, g in zip(order[: one.admitted], free, strict=False):
            placed[i] = g
        loads = [list(row) for row in one.base]
        for i, g in enumerate(placed):
            if g >= 0:
                loads[g] = [a + b for a, b in zip(loads[g], one.work[i], strict=True)]
        cost = sum(max(column) - load for column in zip(*loads, strict=True) for load in column)
        if cost > optimum:
            return placed, cost
    return None
