"""The search under conditions as an engine, and its proof in writing: prices, the ranges that they close, and trees.

The search has kept all of it; only the prices that closed something are written. Nothing here has to be trusted:
`lbopt.solvers.certificates.conditioned` believes none of it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from lbopt.exceptions import CertificateError
from lbopt.model import StepProblem
from lbopt.solvers.budget import Budget
from lbopt.solvers.certificates.format import Certificate
from lbopt.solvers.conditions.priced_search import Answered, Searched, search_under_conditions
from lbopt.solvers.engine import Engine, Known

#: Words of trees, and vectors of prices, up to which a proof is written.
_WORDS, _VECTORS = 60_000, 6_000


class UnderConditions(Engine):
    """Single steps under conditions; where it would take too much memory others go on."""

    def refusal(self) -> str | None:
        """Refuse plain problems, and windows."""
        if self.problem.conditions is None:
            return "no conditions"
        return "window" if self.problem.horizon > 0 else None

    def run(self, known: Known, budget: Budget) -> Known:
        """Search from the hint; a search that finds nothing says at most that there is nothing."""
        answered = search_under_conditions(self.problem, known.best, budget)
        if answered is None:
            return known
        found = answered.outcome
        if found.best is None:
            return replace(found, solver="search") if found.stop == "infeasible" else replace(known, stop=found.stop)
        evidence = partial(written_proof, self.problem, answered)
        return replace(found, evidence=evidence, final=found.stop != "memory")


def written_proof(problem: StepProblem, answered: Answered) -> Certificate:
    """Return the certificate of the bounds of all goals that the search proved by prices.

    Raises
    ------
    CertificateError
        Where the proof is too long to be written down.
    """
    bounds = answered.outcome.bounds
    goals = [
        _goal(one, answered.classes.workers.tolist())
        for one, bound in zip(answered.goals, bounds, strict=False)
        if bound.proof == "certificate"
    ]
    reached = {one.goal.name: one.value for one in answered.goals[:-1]}
    body = {"reached": reached, "goals": goals}
    return Certificate(problem_digest=problem.digest, kind="priced-conditions", bound=bounds[-1].value, body=body)


def _goal(one: Searched, workers: list[int]) -> dict[str, Any]:
    known = one.search.known
    if not known.written or known.records > _WORDS or known.prices > _VECTORS:
        raise CertificateError(
            f"the proof of {one.goal.name} is not written: it has {int(known.records)} words of trees and "
            f"{int(known.prices)} vectors of prices or more"
        )
    blank = one.search.price.size - 1
    used: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    least = 0
    for i in range(int(known.ranges)):
        part = one.search.ranges[i]
        node: dict[str, Any] = {"envelopes": [int(part.first), int(part.last)]}
        least = min(least, int(part.first)) if i else int(part.first)
        if part.tree >= 0:
            words = one.search.records[part.tree : part.tree + part.length].tolist()
            node["tree"] = _tree(words, workers, used)
        else:
            node["prices"] = used.setdefault(int(part.priced), len(used))
        nodes.append(node)
    if least > 0:  # no worker can have a load as small
        nodes.append({"envelopes": [0, least - 1], "prices": used.setdefault(0, len(used))})
    rows = [one.search.prices[row, : blank + 1].tolist() for row in used]
    return {
        "goal": one.goal.name,
        "bound": one.bound,
        "weight": one.goal.weight,
        "scale": one.scale,
        "prices": [[[k, price] for k, price in enumerate(row) if price] for row in rows],
        "nodes": nodes,
    }


def _tree(words: list[int], workers: list[int], used: dict[int, int]) -> list[list[int]]:
    """Return a tree as records in preorder: [row of prices] for a leaf, [class, worker, first case] for a branch."""
    records: list[list[int]] = []
    place = 0
    while place < len(words):
        if words[place] < 0:
            records.append([used.setdefault(words[place + 1], len(used))])
            place += 2
        else:
            k, w, first = words[place : place + 3]
            records.append([k, workers[w], first])
            place += 3
    return records
