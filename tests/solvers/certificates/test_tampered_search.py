"""Proofs that the exact search really wrote, damaged on purpose, with digests that fit again.

A claim that is false (a bound above the optimum) must be refused whatever its evidence says. A claim that stays true
may pass or not; on small problems the plain reader (`naive_certificates.holds`) says which, and on all of them a gap
between the ranges of envelopes must be noticed. Results are forged as well, with and without their certificates.
"""

import copy
import json
import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from solvers.certificates.mutations import MUTATIONS
from solvers.certificates.naive_certificates import holds, to_dict
from solvers.certificates.naive_problem import optimum, step_problem
from solvers.stated import stated

from lbopt import Result, StepProblem, solve, verify
from lbopt.exceptions import CertificateError
from lbopt.instances import library
from lbopt.instances.families import generate
from lbopt.model import check_assignment, objective
from lbopt.solvers.certificates import Certificate, check
from tools.steady import SteadyFleet

pytestmark = pytest.mark.jit

#: Records of a tree beyond which a certificate is left alone: it would be checked thousands of times.
LARGEST_TREE = 300


class Facts:
    """What the mutations ask of a problem, without the list of all patterns that `Naive` makes."""

    def __init__(self, problem: StepProblem):
        self.loads, slots = problem.base[:, 0].tolist(), problem.slots.tolist()
        items = list(zip(problem.work[:, 0].tolist(), problem.must_admit.tolist(), strict=True))
        free = sum(slots)
        items += [(0, False)] * max(0, free - len(items))
        self.classes = sorted(set(items))
        self.open = [g for g, c in enumerate(slots) if c]
        self.unit = math.gcd(*(size for size, _ in items), *(a - self.loads[0] for a in self.loads)) or 1
        light = sorted(size for size, _ in items)
        self.first = max(a + sum(light[:c]) for a, c in zip(self.loads, slots, strict=True))
        forced = [size for size, must in items if must]
        loose = sorted((size for size, must in items if not must), reverse=True)
        self.most = sum(forced) + sum(loose[: free - len(forced)])

    def last(self, bound: int) -> int:
        cheaper = (bound - 1) // self.unit * self.unit
        return (cheaper + sum(self.loads) + self.most) // len(self.loads)

    def covered(self, nested) -> bool:
        """Whether the ranges cover every envelope that loads can have: all are equal modulo `unit`."""
        missing = self.first + (self.loads[0] - self.first) % self.unit
        for a, b in sorted(node["envelopes"] for node in nested["nodes"]):
            if a > missing:
                break
            if b >= missing:
                missing += ((b - missing) // self.unit + 1) * self.unit
        return missing > self.last(nested["bound"])


def by_patterns(certificate: Certificate) -> bool:
    """Whether all trees decide on whole patterns; trees of placements are damaged in exact/test_placements.py."""
    records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
    return all("dead" in record or "patterns" in record for record in records)


def nested_of(certificate: Certificate, classes: int):
    """The certificate as the mutations want it: dense prices, nested trees."""

    def read(records):
        record = next(records)
        if "dead" in record:
            return ("dead", record["dead"])
        return (record["worker"], {tuple(one): read(records) for one in record["patterns"]})

    body = copy.deepcopy(certificate.body)
    prices = []
    for row in body["prices"]:
        known = dict(map(tuple, row))
        prices.append([known.get(k, 0) for k in range(classes)])
    nodes = [
        {
            "envelopes": node["envelopes"],
            "prices": node["prices"],
            "tree": read(iter(node["tree"])) if "tree" in node else None,
        }
        for node in body["nodes"]
    ]
    return {
        "problem_digest": certificate.problem_digest,
        "bound": certificate.bound,
        "scale": body["scale"],
        "prices": prices,
        "nodes": nodes,
    }


def accepted(problem: StepProblem, nested) -> bool:
    certificate = Certificate.from_json(Certificate.from_dict(to_dict(nested)).to_json())
    try:
        return check(problem, certificate) == nested["bound"]
    except CertificateError:
        return False


def damaged(nested, facts: Facts, rng: random.Random):
    """Change it in one to three ways; returns their names and the copy."""
    names = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        changed = None
        while changed is None:
            mutation = rng.choice(MUTATIONS)
            changed = mutation(copy.deepcopy(nested), rng, facts)
        nested = changed
        names.append(mutation.__name__)
    return names, nested


def lying(nested, best: int, facts: Facts, rng: random.Random):
    """Claim more than the optimum; the ranges are stretched over what has to be covered then, as a liar would."""
    nested = copy.deepcopy(nested)
    nested["bound"] = best + rng.choice([1, facts.unit, facts.unit, 7, 1 + best // 10])
    if nested["nodes"] and rng.random() < 0.8:
        node = max(nested["nodes"], key=lambda node: node["envelopes"][1])
        node["envelopes"][1] = max(node["envelopes"][1], facts.last(nested["bound"]))
    return nested


def proofs_of_small_problems(first: int, count: int):
    """Small enough for the plain reader."""
    seed, found = first, 0
    while found < count:
        problem = step_problem(random.Random(seed), workers=4, requests=10)
        seed += 1
        if problem.num_admitted == 0:
            continue
        result = solve(problem, "search", time_limit=5)
        if result.proof != "certificate" or not result.proved or result.bound == 0:
            continue
        try:
            certificate = result.certificate()
        except CertificateError:
            continue
        if not by_patterns(certificate):
            continue
        found += 1
        yield problem, result, certificate


def proofs_of_steady_states(first: int, count: int):
    """States of fleets fed from the packaged families, of several shapes."""
    seen = 0
    for seed in range(first, first + 10_000):
        rng = random.Random(seed)
        trace = generate(rng.choice(["burstgpt-like", "azure-like"]), 2_000, seed=seed)
        fleet = SteadyFleet(
            trace,
            workers=rng.choice([3, 4, 8, 16]),
            slots=24,
            pool=rng.choice([32, 64, 128]),
            shape=rng.choice(["rich", "rich", "leftover"]),
            seed=seed,
        )
        for problem in fleet.problems(4, warm_up=150, spacing=13):
            if seen == count:
                return
            result = solve(problem, "search", time_limit=2)
            if result.proof != "certificate" or not result.proved or result.bound == 0:
                continue
            try:
                certificate = result.certificate()
            except CertificateError:
                continue
            records = sum(len(node.get("tree", ())) for node in certificate.body["nodes"])
            if records <= LARGEST_TREE and by_patterns(certificate):
                seen += 1
                yield problem, result, certificate


def tamper(problem, certificate, best: int, rng, copies: int, seen: Counter, *, plain_reader: bool) -> None:
    facts = Facts(problem)
    nested = nested_of(certificate, len(facts.classes))
    assert accepted(problem, nested), "the proof itself has to pass"
    assert facts.covered(nested)
    seen["proofs"] += 1
    for turn in range(copies):
        names, changed = damaged(nested, facts, rng)
        if turn % 2:
            changed = lying(changed, best, facts, rng)
            names.append("lie")
        passed = accepted(problem, changed)
        what = (names, best, json.dumps(to_dict(changed)), problem.to_json())
        assert not passed or changed["bound"] <= best, what
        assert not passed or changed["bound"] <= 0 or facts.covered(changed), what
        if plain_reader:
            assert passed == holds(problem, changed), what
            seen["judged by the plain reader"] += 1
        truth = "false" if changed["bound"] > best else "true"
        seen[f"{truth} claims, {'accepted' if passed else 'refused'}"] += 1
        seen["tampered"] += 1
        if len(names) == 1:
            seen[f"{names[0]}: {'accepted' if passed else 'refused'}"] += 1


def tamper_small(first: int, count: int, copies: int) -> Counter:
    seen: Counter = Counter()
    for problem, result, certificate in proofs_of_small_problems(first, count):
        best = optimum(problem)
        assert best == result.objective
        tamper(problem, certificate, best, random.Random(problem.digest), copies, seen, plain_reader=True)
    return seen


def tamper_steady(first: int, count: int, copies: int) -> Counter:
    seen: Counter = Counter()
    for problem, result, certificate in proofs_of_steady_states(first, count):
        best = objective(problem, check_assignment(problem, result.assignment))
        tamper(problem, certificate, best, random.Random(problem.digest), copies, seen, plain_reader=False)
        forge(problem, result, random.Random(problem.digest), seen)
    return seen


def forge(problem: StepProblem, result: Result, rng: random.Random, seen: Counter) -> None:
    """Results that say what is not so: refused, or, where they rest on a word, not called established."""
    best = result.objective
    worse = elsewhere(problem, result.assignment, rng)
    value = objective(problem, worse)

    def book(assignment, bound, proof="certificate", evidence=result.evidence, stop="proved"):
        return stated(
            problem,
            assignment,
            bound=bound,
            proof=proof,
            stop_reason=stop,
            solver="exact",
            seconds=0.1,
            evidence=evidence,
        )

    certificate = result.certificate()
    raised = replace(certificate, bound=value)
    lies = {
        "objective": replace(result, objective=best - 1),
        "objective and bound": replace(result, objective=best - 1, bound=best - 1),
        "bound": replace(result, bound=best + 1, gap=-1),
        "a gap that is none": replace(result, status="feasible", stop_reason="time"),
        "another assignment": replace(result, assignment=worse) if value != best else None,
        "of another problem": replace(result, problem_digest="0" * 64),
        "certificate of another problem": book(
            result.assignment, best, evidence=replace(certificate, problem_digest="0" * 64)
        ),
        "certificate of less": book(result.assignment, best, evidence=replace(certificate, bound=best - 1)),
    }
    if value > best:
        lies |= {
            "worse, called optimal": book(worse, value),
            "worse, with a raised certificate": book(worse, value, evidence=raised),
            "worse, by elementary reasoning": book(worse, value, proof="elementary-bound", evidence=None),
        }
    for name, lie in lies.items():
        if lie is None:
            continue
        with pytest.raises(CertificateError):
            verify(problem, lie, exhaust_limit=0)
            pytest.fail(f"'{name}' passed: {lie.to_dict(certificate=True)} of {problem.to_json()}")
        seen["forged results refused"] += 1
    if value == best:
        return
    for proof, stop in (("claimed:exact", "claimed"), ("exhaustion", "proved"), ("certificate", "proved")):
        word = Result.from_json(book(worse, value, proof=proof, evidence=None, stop=stop).to_json())
        try:
            established = verify(problem, word, exhaust_limit=0).bound_established
        except CertificateError:  # found out, by an enumeration of its own
            established = False
        assert not established, (proof, word.to_json(), problem.to_json())
        seen["false words not believed"] += 1


def elsewhere(problem: StepProblem, assignment, rng: random.Random):
    """A feasible assignment that is a few exchanges away."""
    other = assignment.copy()
    swapped = np.flatnonzero(~problem.must_admit)
    for _ in range(4):
        if swapped.size >= 2:
            i, k = rng.sample(swapped.tolist(), 2)
            other[i], other[k] = other[k], other[i]
    return check_assignment(problem, other)


def test_tampered_proofs_of_small_problems():
    seen = tamper_small(10**6, 20, 10)
    assert seen["true claims, accepted"] > 5
    assert min(seen["true claims, refused"], seen["false claims, refused"]) > 20
    assert seen["false claims, accepted"] == 0


def test_tampered_proofs_of_steady_states():
    seen = tamper_steady(10**6, 8, 10)
    assert seen["tampered"] == 80
    assert seen["forged results refused"] > 40
    assert seen["false claims, accepted"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400_000, 100_000))
def test_tampered_proofs_at_length(first):
    """Each block damages 1,000 proofs or more: of small problems and of steady states."""
    small, steady = tamper_small(first, 60, 10), tamper_steady(first, 40, 10)
    print("\nsmall", first, dict(small))
    print("steady", first, dict(steady))
    assert small["tampered"] + steady["tampered"] >= 1000
    for mutation in ("drop_node", "raise_bound", "change_price"):
        assert small[f"{mutation}: refused"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in library.names() if library.certificate(name)])
def test_tampered_proofs_of_the_library(name):
    """What the library keeps, trees of thousands of records left out."""
    entry = library.load(name)
    certificate = Certificate.from_dict(library.certificate(name))
    records = sum(len(node.get("tree", ())) for node in certificate.body.get("nodes", ()))
    if entry.best != certificate.bound or entry.best == 0 or entry.problem.horizon or records > LARGEST_TREE:
        pytest.skip("its certificate is large, or not of an optimum above 0")
    if not by_patterns(certificate):
        pytest.skip("its trees are of placements")
    seen: Counter = Counter()
    tamper(entry.problem, certificate, entry.best, random.Random(name), 12, seen, plain_reader=False)
    print("\n", name, records, dict(seen))
