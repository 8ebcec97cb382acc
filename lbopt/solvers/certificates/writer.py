"""Build a certificate from what a search has at hand: arrays of prices, ranges of envelopes, records of trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.solvers.certificates.format import Certificate

#: (first envelope, last envelope, index of the price vector, records of the tree in preorder or None)
NodeRow = tuple[int, int, int, Sequence[dict[str, Any]] | None]


class ContradictedError(CertificateError):
    """Something below the bound was found, so there is no proof of it."""


def priced_envelopes(
    problem_digest: str, bound: int, scale: int, prices: Iterable[Iterable[int]], nodes: Iterable[NodeRow]
) -> Certificate:
    """Return a certificate of the kind "priced-envelopes"; nothing is checked here.

    Parameters
    ----------
    problem_digest
        `StepProblem.digest`.
    bound
        No assignment costs less, tokens.
    scale
        Units of price per token.
    prices
        One row per price vector: the integer price of every class, zeros included, in units of 1/scale token. Classes
        are the distinct (size, must_admit) pairs in ascending order, the requests of size zero that fill up a short
        pool included.
    nodes
        (first envelope, last envelope, row of `prices`, tree or None), tokens. A tree is the list of its records in
        preorder: see `branch` and `dead`.
    """
    body = {
        "scale": int(scale),
        "prices": [[[k, int(price)] for k, price in enumerate(row) if price] for row in prices],
        "nodes": [
            {"envelopes": [int(first), int(last)], "prices": int(row)} | ({} if tree is None else {"tree": list(tree)})
            for first, last, row, tree in nodes
        ],
    }
    return Certificate(problem_digest=problem_digest, kind="priced-envelopes", bound=int(bound), body=body)


def branch(worker: int, patterns: Iterable[Iterable[int]]) -> dict[str, Any]:
    """Return the record of a branch; the subtrees of the patterns have to follow it in the same order."""
    return {"worker": int(worker), "patterns": [sorted(map(int, pattern), reverse=True) for pattern in patterns]}


def dead(workers: Iterable[int]) -> dict[str, Any]:
    """Return the record of a leaf."""
    return {"dead": [int(g) for g in workers]}


def placement(kind: int, prices: int, waits: bool, workers: Iterable[int]) -> dict[str, Any]:
    """Return the record of a placement; the subtrees have to follow, the case that all waits first.

    Parameters
    ----------
    kind
        Size class that is placed.
    prices
        Row of `prices` at which the subtrees are bounded.
    waits
        Whether the case that all requests of the class wait is among the children.
    workers
        Workers that may take one.
    """
    return {"class": int(kind), "prices": int(prices), "waits": bool(waits), "workers": [int(g) for g in workers]}


def refuted(prices: int) -> dict[str, Any]:
    """Return the record of a case that these prices (a row) refute."""
    return {"prices": int(prices)}
