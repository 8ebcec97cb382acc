"""Certificates of every form that the verified checker covers, true ones and forged ones.

The forms: prices alone, trees of patterns, trees of placements. True certificates come from the plain producer; a tree
of placements is written out to the last request. A forged one claims a bound above the optimum, or is damaged.
"""

import random
from dataclasses import replace
from typing import NamedTuple

from solvers.certificates.mutations import mutated
from solvers.certificates.naive_certificates import produce, to_dict
from solvers.certificates.naive_problem import Naive, optimum, step_problem

from lbopt.model import StepProblem
from lbopt.solvers.certificates import Certificate
from lbopt.solvers.certificates.format import placement, refuted

FORMS = ("prices", "patterns", "placements")

#: A tree of placements of more records is not written.
MOST_RECORDS = 1500


class Case(NamedTuple):
    """A certificate, the optimum of its problem, and what was done to it (None: nothing)."""

    problem: StepProblem
    certificate: Certificate
    optimum: int
    damage: str | None


class TooLongError(Exception):
    """The tree would have more records than are written."""


def form_of(certificate):
    """The form of the first tree, or prices where there is none."""
    records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
    if not records:
        return "prices"
    return "placements" if any("class" in r or "prices" in r for r in records) else "patterns"


def true_cases(form, count):
    """Yield `count` certificates of the form for bounds that are true, mostly the optimum."""
    seed = 0
    while count:
        seed += 1
        rng = random.Random(f"{form} {seed}")
        problem = drawn(form, rng)
        best = optimum(problem)
        bound = rng.choice([best, best, best, rng.randint(0, best)])
        certificate = certified(form, problem, bound, rng)
        if certificate is not None and form_of(certificate) == form:
            count -= 1
            yield Case(problem, certificate, best, None)


def forged_cases(form, count):
    """Yield `count` certificates of the form that claim more than the optimum: honest attempts, and damage besides."""
    seed = 0
    while count:
        seed += 1
        rng = random.Random(f"forged {form} {seed}")
        problem = drawn(form, rng)
        best = optimum(problem)
        bound = best + rng.choice([1, Naive(problem).unit, rng.randint(1, 20)])
        if rng.random() < 0.5:
            certificate, damage = certified(form, problem, bound, rng), "attempt at more"
        else:
            certificate, damage = damaged(form, problem, best, rng)
            certificate = certificate and replace(certificate, bound=bound)
        if certificate is not None and form_of(certificate) == form:
            count -= 1
            yield Case(problem, certificate, best, damage)


def damaged_cases(form, count):
    """Yield `count` damaged certificates of the form; some of them prove what they claim all the same."""
    seed = 0
    while count:
        seed += 1
        rng = random.Random(f"damaged {form} {seed}")
        problem = drawn(form, rng)
        best = optimum(problem)
        certificate, damage = damaged(form, problem, best, rng)
        if certificate is not None and form_of(certificate) == form:
            count -= 1
            yield Case(problem, certificate, best, damage)


def drawn(form, rng):
    """A small problem; trees of placements are long, so that theirs is smaller."""
    return step_problem(rng, workers=3, requests=5, slots=2) if form == "placements" else step_problem(rng)


def certified(form, problem, bound, rng):
    """A certificate for a bound; None where it would be too long."""
    nested = produce(problem, bound, rng)
    if form != "placements":
        return Certificate.from_dict(to_dict(nested))
    try:
        return with_placements(problem, nested)
    except TooLongError:
        return None


def damaged(form, problem, best, rng):
    """A damaged certificate and the name of the damage."""
    if form != "placements":
        name, nested = mutated(produce(problem, best, rng), problem, rng)
        return Certificate.from_dict(to_dict(nested)), name
    whole = certified(form, problem, best, rng)
    trees = [node["tree"] for node in whole.body["nodes"] if "tree" in node] if whole else []
    if not trees:
        return None, ""
    tree = rng.choice(trees)
    at = rng.randrange(len(tree))
    record = tree[at]
    if "class" not in record:
        del tree[at]
        return whole, "a record is missing"
    if record["workers"] and rng.random() < 0.5:
        record["workers"].pop()
        return whole, "a worker is missing"
    record["waits"] = False
    return whole, "waiting is left out"


def with_placements(problem, nested):
    """The certificate with a tree of placements in place of every tree of patterns."""
    naive = Naive(problem)
    dear = -4 * nested["scale"] * (1 + naive.most)  # a forced request that is left over refutes a case by this price
    prices = [[[k, price] for k, price in enumerate(row) if price] for row in nested["prices"]]
    prices += [[], [[k, dear] for k, must in enumerate(naive.forced) if must]]
    nodes = []
    for node in nested["nodes"]:
        written = {"envelopes": node["envelopes"], "prices": node["prices"]}
        if node["tree"] is not None:
            top = max(t for t in naive.relevant(nested["bound"]) if t <= node["envelopes"][1])
            places = {g: (naive.slots[g], top - naive.loads[g]) for g in naive.open}
            written["tree"] = written_out(naive, tuple(naive.counts), places, len(prices) - 2, [MOST_RECORDS])
        nodes.append(written)
    body = {"scale": nested["scale"], "prices": prices, "nodes": nodes}
    return Certificate(problem.digest, "priced-envelopes", nested["bound"], body)


def written_out(naive, left, places, free, budget):
    """Records in preorder: class after class is placed until slots or requests run out."""
    budget[0] -= 1
    if budget[0] < 0:
        raise TooLongError
    there = [k for k, n in enumerate(left) if n]
    if not places or not there:
        return [refuted(free + any(naive.forced[k] for k in there))]
    k = there[-1]
    records = [placement(k, free, True, places)]
    waiting = (*left[:k], 0, *left[k + 1 :])
    records += [refuted(free)] if naive.forced[k] else written_out(naive, waiting, places, free, budget)
    for g, (slots, room) in places.items():
        if room < naive.sizes[k]:
            records.append(refuted(free))  # impossible, so that any record will do
            continue
        rest = {h: place for h, place in places.items() if h != g}
        if slots > 1:
            rest[g] = (slots - 1, room - naive.sizes[k])
        fewer = (*left[:k], left[k] - 1, *left[k + 1 :])
        records += written_out(naive, fewer, dict(sorted(rest.items())), free, budget)
    return records
