"""The check of priced envelopes: it accepts what the plain reader accepts, and nothing that is false."""

import ast
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import quick_and_long
from solvers.certificates.mutations import mutated
from solvers.certificates.naive_certificates import holds, produce, to_dict
from solvers.certificates.naive_problem import Naive, optimum, step_problem
from solvers.certificates.pattern_records import branch, dead

from lbopt.exceptions import CertificateError
from lbopt.model import StepProblem
from lbopt.solvers import certificates
from lbopt.solvers.certificates import Certificate, check, choice, priced, priced_envelopes, profits
from lbopt.solvers.certificates.format import (
    Branch,
    Node,
    Placement,
    PricedBody,
    Refuted,
    placement,
    read_priced_body,
    refuted,
)

TINY = {"i": 0, "O": 0}
MODES = {
    "exact": {},
    "coarse": {"_TABLE_WORK": TINY, "_COARSE_WORK": {"i": 10, "O": 10}},
    "no table": {"_ROW_OPERATIONS": 0},
}


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    for name, value in MODES[request.param].items():
        monkeypatch.setattr(profits, name, value)
    return request.param


def accepted(problem, nested) -> bool:
    certificate = Certificate.from_json(Certificate.from_dict(to_dict(nested)).to_json())
    try:
        return check(problem, certificate) == nested["bound"]
    except CertificateError:
        return False


@pytest.mark.some(2)
@pytest.mark.parametrize("seeds", quick_and_long(100, 450))
def test_true_bounds_are_accepted_and_false_ones_refused(mode, seeds):
    """Every true bound has a certificate, the optimum included; honest attempts at more are all refused."""
    seen = Counter()
    for seed in range(seeds):
        rng = random.Random(seed)
        problem = step_problem(rng)
        best, unit = optimum(problem), Naive(problem).unit
        for bound in {best, best - unit, rng.randint(0, best)}:
            nested = produce(problem, bound, rng)
            assert accepted(problem, nested), (seed, bound)
            seen["tree" if any(node["tree"] for node in nested["nodes"]) else "prices"] += 1
        for bound in (best + 1, best + unit, best + rng.randint(1, 20)):
            assert not accepted(problem, produce(problem, bound, rng)), (seed, bound)
    assert min(seen["tree"], seen["prices"]) > seeds / 9


@pytest.mark.some(3)
@pytest.mark.parametrize("share", quick_and_long(1, 2))
def test_mutations(mode, share):
    """Hundreds of damaged certificates: accepted if and only if the plain reader accepts, and only what is true."""
    seen = Counter()
    seeds = share * (150 if mode == "exact" else 15)
    for seed in range(seeds):
        rng = random.Random(seed)
        problem = step_problem(rng)
        best = optimum(problem)
        if best == 0:
            continue
        true = produce(problem, best, rng)
        false = produce(problem, best + Naive(problem).unit, rng)
        for i in range(30):
            names, nested = [], (true, false)[i % 3 == 2]
            for _ in range(rng.choice([1, 1, 1, 2, 4])):
                name, nested = mutated(nested, problem, rng)
                names.append(name)
            passed = accepted(problem, nested)
            assert passed == holds(problem, nested), (seed, names, nested)
            assert not passed or nested["bound"] <= best, (seed, names, nested)
            if len(names) == 1 and i % 3 != 2:
                seen[names[0], passed] += 1
            seen[passed] += 1
    if mode == "exact":
        assert seen[True] > seeds
        assert seen[False] > 3 * seeds
        for never in ("raise_bound", "no_tree", "cut_short", "drop_child", "drop_node"):
            assert seen[never, False] >= (10 if share == 2 else 2)
        for often in ("lower_bound", "change_price", "move_range", "other_prices", "swap_subtrees"):
            assert seen[often, True] >= share
        assert seen["raise_bound", True] == 0


@pytest.mark.parametrize("seeds", quick_and_long(75, 250))
def test_other_problems(seeds):
    """One number of the problem is changed, the certificate says it is of the changed one: true, or refused."""
    seen = Counter()
    for seed in range(seeds):
        rng = random.Random(seed)
        problem = step_problem(rng)
        nested = produce(problem, optimum(problem), rng)
        for _ in range(4):
            loads, slots = problem.base[:, 0].tolist(), problem.slots.tolist()
            sizes, must = problem.work[:, 0].tolist(), problem.must_admit.tolist()
            row = rng.choice([row for row in (loads, slots, sizes, must) if row])
            i = rng.randrange(len(row))
            row[i] = not row[i] if row is must else max(0, row[i] + rng.choice([-1, 1]))
            if sum(must) > min(len(sizes), sum(slots)) or sum(slots) > 9:
                continue
            other = StepProblem.now(loads, slots, sizes, must)
            passed = accepted(other, {**nested, "problem_digest": other.digest})
            assert passed == holds(other, {**nested, "problem_digest": other.digest}), (seed, other.to_dict())
            assert not passed or nested["bound"] <= optimum(other)
            assert not accepted(other, nested) or other == problem
            seen[passed] += 1
    assert min(seen.values()) > seeds / 3


@st.composite
def garbage(draw):
    """A problem, and a certificate of the right form for whatever bound: random prices, ranges and trees."""
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    problem = step_problem(rng, requests=6)
    naive = Naive(problem)
    best = optimum(problem)
    scale = rng.choice([1, 2, 64])

    def tree(undecided):
        if not undecided or rng.random() < 0.5:
            return ("dead", rng.sample(undecided, rng.randint(0, len(undecided))))
        g = rng.choice(undecided)
        ones = naive.patterns[naive.slots[g]]
        kept = ones if rng.random() < 0.7 else rng.sample(ones, rng.randint(0, len(ones)))
        return (g, {one: tree([other for other in undecided if other != g]) for one in kept})

    def node(first):
        grown = tree(naive.open) if rng.random() < 0.7 else None
        return {"envelopes": [first, first + rng.choice([0, 1, 5])], "prices": rng.randrange(3), "tree": grown}

    low = [-5 * scale if must else 0 for must in naive.forced]
    return problem, {
        "problem_digest": problem.digest,
        "bound": rng.choice([best, best + 1, rng.randint(1, best + 5)]),
        "scale": scale,
        "prices": [[rng.choice([0, rng.randint(least, 9 * scale)]) for least in low] for _ in range(3)],
        "nodes": [node(naive.least + rng.randint(-2, 9)) for _ in range(rng.randint(0, 6))],
    }


@settings(max_examples=400, deadline=None)
@given(garbage())
def test_garbage_proves_nothing_false(both):
    problem, nested = both
    passed = accepted(problem, nested)
    assert passed == holds(problem, nested)
    assert not passed or nested["bound"] <= optimum(problem)


def large_problem(rng):
    """A small problem times a huge number, plus small change, so that nothing divides and totals approach 2**60."""
    small = step_problem(rng, requests=6)
    top = int(small.base.max()) + int(small.work.sum()) + 1
    factor = 2**60 // (small.num_workers * top)
    change = rng.choice([0, 1, 1000])
    loads = [factor * load + rng.randint(0, change) for load in small.base[:, 0].tolist()]
    sizes = [max(0, factor * size - rng.randint(0, change)) for size in small.work[:, 0].tolist()]
    return StepProblem.now(loads, small.slots, sizes, small.must_admit)


@pytest.mark.some(2)
@pytest.mark.parametrize("share", quick_and_long(1, 4))
def test_large_numbers(mode, share):
    trees = 0
    for seed in range(share * (40 if mode == "exact" else 10)):
        rng = random.Random(seed)
        problem = large_problem(rng)
        best, unit = optimum(problem), Naive(problem).unit
        nested = produce(problem, best, rng)
        trees += any(node["tree"] for node in nested["nodes"])
        assert accepted(problem, nested)
        assert not accepted(problem, produce(problem, best + unit, rng))
        assert not accepted(problem, {**nested, "bound": best + 1})
    assert trees >= (1 if share == 1 else 6 if mode == "exact" else 2)


@pytest.mark.parametrize("seeds", quick_and_long(120, 400))
def test_without_patience_only_the_truth_passes(monkeypatch, seeds):
    """Best profits known only from above: fewer certificates pass, but every one that does is true."""
    monkeypatch.setattr(profits, "_TABLE_WORK", TINY)
    monkeypatch.setattr(profits, "_COARSE_WORK", {"i": 4, "O": 4})
    monkeypatch.setattr(priced, "_STEPS", 0)
    monkeypatch.setattr(choice, "_FEW", (0, 0))
    monkeypatch.setattr(choice.Choice, "_rough", lambda one: 10**9)
    seen = Counter()
    for seed in range(seeds):
        rng = random.Random(seed)
        problem = step_problem(rng)
        best = optimum(problem)
        for bound in (best, best + 1, max(0, best - rng.randint(1, 30))):
            passed = accepted(problem, produce(problem, bound, rng))
            assert not passed or bound <= best
            seen[bound <= best, passed] += 1
    assert seen[True, False] > seeds / 40
    assert seen[True, True] > seeds / 2


@pytest.mark.parametrize(
    "problem",
    [
        StepProblem.now([3, 5, 9], [0, 0, 0], [4, 1]),
        StepProblem.now([3, 5, 9], [0, 0, 0], []),
        StepProblem.now([3, 5, 9], [2, 0, 1], []),
        StepProblem.now([0, 0], [1, 1], [0, 0, 0]),
        StepProblem.now([4], [2], [1, 2, 3]),
        StepProblem.now([4], [0], [1]),
        StepProblem.now([0, 7], [3, 3], [5, 5, 5, 5], [True] * 4),
        StepProblem.now([0, 7], [1, 2], [5, 5, 5, 5, 1], [True, False, True, False, True]),
        StepProblem.now([2**58, 2**59], [1, 1], [2**58, 2**58 + 1, 3]),
    ],
)
def test_corner_cases(problem):
    best, unit = optimum(problem), Naive(problem).unit
    for seed in range(20):
        rng = random.Random(seed)
        assert accepted(problem, produce(problem, best, rng))
        assert not accepted(problem, produce(problem, best + unit, rng))
    for bound in (0, -1, -(2**70)):
        assert check(problem, priced_envelopes(problem.digest, bound, 1, [], [])) == bound


def test_a_slot_number_without_end():
    """More free slots than any table could list: the caps answer, at once."""
    problem = StepProblem.now([0, 9], [10**15, 3], [4, 5])
    body = [[0, 0, 0], [0, 4, 5]]
    assert check(problem, priced_envelopes(problem.digest, 0, 1, body, [])) == 0
    with pytest.raises(CertificateError, match="node 0"):
        check(problem, priced_envelopes(problem.digest, 1, 1, body, [(0, 10, 0, None)]))


def test_a_class_that_prices_do_not_name_costs_nothing():
    """One of three requests is admitted: at a price of 1 for each of them the bound would be 6 tokens, not 4."""
    problem = StepProblem.now([0, 10], [1, 0], [4, 4, 4])
    certificate = priced_envelopes(problem.digest, 6, 1, [[0]], [(10, 10, 0, None)])
    assert certificate.body["prices"] == [[]]
    assert check(problem, certificate) == 6


def test_numbers_from_zero_on_are_read():
    """Classes, workers and prices of all kinds of records."""
    tree = [placement(0, 0, True, [0, 1]), refuted(0), branch(0, [[1, 0]]), dead([0])]
    body = {"scale": 1, "prices": [[[0, 0]]], "nodes": [{"envelopes": [0, 5], "prices": 0, "tree": tree}]}
    records = Placement(0, 0, True, (0, 1)), Refuted(0), Branch(0, 0, ((1, 0),)), Refuted(0)
    assert read_priced_body(body) == PricedBody(1, ({0: 0},), (Node(0, 5, 0, records),))


def test_a_tree_as_deep_as_there_are_workers():
    """One request too few for everybody: 299 workers take one each, and only an empty one is left for the last."""
    problem = StepProblem.now([0] * 300, [1] * 300, [0] + [1] * 299 + [9])
    tree = [branch(g, [[1]]) for g in range(299)]
    nodes = [(0, 0, 0, None), (1, 1, 0, [*tree, dead([299])])]
    assert check(problem, priced_envelopes(problem.digest, 1, 64, [[0, 0, 0]], nodes)) == 1
    nodes[1] = (1, 1, 0, [*tree[:200], branch(200, [[0]]), dead([299])])
    with pytest.raises(CertificateError, match=r"record 200 of the tree: pattern \[1\] of worker 200 is missing"):
        check(problem, priced_envelopes(problem.digest, 1, 64, [[0, 0, 0]], nodes))


def test_it_shares_nothing_with_any_search():
    """NumPy, the standard library, the verifier's own arithmetic, and nothing else."""
    folder = Path(certificates.__file__).parent
    allowed = {"numpy", "numpy.typing", "lbopt.exceptions", "lbopt.files.json_text", "lbopt.solvers.allowance"}
    allowed |= {"lbopt.solvers.recount"}
    standard = {
        "__future__",
        "contextlib",
        "bisect",
        "collections",
        "collections.abc",
        "dataclasses",
        "functools",
        "hashlib",
        "itertools",
        "json",
        "operator",
    }
    standard |= {"math", "pathlib", "typing"}
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text())
        modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        modules |= {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        own = {name for name in modules if name.startswith("lbopt.solvers.certificates.")}
        inner = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node not in tree.body]
        runs = {"os", "shutil", "subprocess"} if path.name == "formal.py" else set()  # it runs the verified checker
        types = {"lbopt.model", "lbopt.solvers.result"} if runs else {"lbopt.model"}
        assert {node.module for node in inner} <= types, path
        assert modules - own - allowed - standard - runs <= {"lbopt.solvers"}, path
