"""Trees of placements: as a search of their own against enumeration, and their proofs against the independent check."""

import copy
import json
import random
from pathlib import Path

import numpy as np
import pytest
from lengths import quick_and_long
from planted import plant_tree, proved_by_trees
from solvers.certificates.naive_problem import optimum, step_problem

from lbopt import StepProblem, solve
from lbopt.exceptions import CertificateError
from lbopt.instances.families import generate
from lbopt.kernels.search.placement_tree import grow_tree, undecided
from lbopt.model import objective
from lbopt.solvers.budget import Limits
from lbopt.solvers.certificates import Certificate, check
from lbopt.solvers.exact.decision import Decision
from lbopt.solvers.exact.search import search_exactly
from tools.steady import SteadyFleet

pytestmark = pytest.mark.jit


def problems(first: int, count: int, **shape):
    """Problems of a handful of requests that leave something to decide."""
    seed = first
    while count:
        problem = step_problem(random.Random(seed), **shape)
        seed += 1
        if problem.num_admitted:
            count -= 1
            yield problem


def least_cost(problem: StepProblem) -> int:
    """The optimum by trees of placements alone, one for each envelope that could matter, from no good assignment."""
    decision = Decision(problem)
    _, cost = decision.first_assignment()
    search = decision.start(cost)
    step, masters = decision.step, decision.masters
    search.bank[0, : step.v.size] = step.floor
    search.known.prices = search.known.newest = 1
    M = max(step.heaviest, int((step.load + step.sums[step.slots]).max()))
    while (M * step.workers - step.total - step.most) < search.known.cost:
        plant_tree(search, masters, M)
        nodes = 0
        while grow_tree(step, search, masters, 0):
            nodes += 1
            assert nodes < 5000
        M += 1
    if search.known.cost < cost:
        assert objective(problem, decision.handed_out(search)) == search.known.cost
    return int(search.known.cost)


@pytest.mark.more
@pytest.mark.parametrize("first", [0, 10**5])
def test_trees_alone_find_the_optimum(first):
    for problem in problems(first, 150, workers=4, requests=9):
        assert least_cost(problem) == optimum(problem), problem.to_json()


def least_cost_by_ranges(problem: StepProblem, width: int) -> tuple[int, int]:
    """The optimum by one tree for `width` envelopes each, halved where a tree cannot decide; and how many were."""
    decision = Decision(problem)
    search = decision.start(decision.first_assignment()[1])
    step, masters = decision.step, decision.masters
    search.bank[0, : step.v.size] = step.floor
    search.known.prices = search.known.newest = 1
    halved = 0
    M = max(step.heaviest, int((step.load + step.sums[step.slots]).max()))
    while (M * step.workers - step.total - step.most) < search.known.cost:
        waiting = [(M, M + width - 1)]
        while waiting:
            a, b = waiting.pop()
            plant_tree(search, masters, a, b)
            while grow_tree(step, search, masters, 0):
                if undecided(step, search, masters.tree, 0):
                    assert a < b
                    waiting += [(a, (a + b) // 2), ((a + b) // 2 + 1, b)]
                    halved += 1
                    break
        M += width
    return int(search.known.cost), halved


@pytest.mark.parametrize("width", [2, 7, 50])
def test_trees_of_narrow_ranges_find_the_optimum(width):
    """An assignment within a range may cost more than the best one and still not be excluded at the range's end."""
    halved = 0
    for problem in problems(3 * 10**5, 60, workers=4, requests=9):
        cost, more = least_cost_by_ranges(problem, width)
        assert cost == optimum(problem), problem.to_json()
        halved += more
    assert halved > 10


def tight(seed: int) -> StepProblem:
    """Six workers of two or three slots and two requests too many, all alike: prices often do not suffice."""
    rng = np.random.default_rng(seed)
    slots = rng.integers(2, 4, 6)
    return StepProblem.now(rng.integers(0, 60, 6), slots, rng.integers(100, 200, int(slots.sum()) + 2))


def few_huge(seed: int, huge: int = 10, small: int = 14, workers: int = 4) -> StepProblem:
    """A few requests as large as all that a worker holds, among small ones: every envelope is a range of its own."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([rng.integers(10**4, 2 * 10**5, huge), rng.integers(500, 4500, small)])
    loads, slots = rng.integers(5 * 10**5, 6 * 10**5, workers), rng.integers(1, 4, workers)
    return StepProblem.now(loads, slots, rng.permutation(sizes))


@pytest.mark.more
def test_few_huge_requests_are_solved_and_proved_in_writing():
    """Thousands of envelopes are open, and halving closes none; the proofs have ranges with trees, and hold as such."""
    with_trees = long = 0
    for problem in (*map(few_huge, range(12)), few_huge(9, 14, 10, 6), few_huge(4, 12, 30, 6)):
        result = solve(problem, "search")
        assert result.proved
        assert objective(problem, result.assignment) == result.objective == result.bound
        certificate = result.certificate()
        if certificate is None:
            continue  # elementary reasoning is enough
        check(problem, certificate)
        log = search_exactly(problem, None, Limits()).closures
        as_it_stands = log.certificate(problem)  # trees are left out only where prices are known to do
        assert check(problem, as_it_stands) == result.bound
        nodes = as_it_stands.body["nodes"]
        with_trees += any("tree" in node and node["envelopes"][0] < node["envelopes"][1] for node in nodes)
        long += len(nodes) > 300
    assert with_trees > 1 and long > 1


def kinds(certificate: Certificate) -> list[str]:
    records = [record for node in certificate.body["nodes"] for record in node.get("tree", ())]
    return ["placement" if "class" in one else "refuted" if "prices" in one else "pattern" for one in records]


@pytest.mark.parametrize("share", quick_and_long(1, 4))
def test_their_proofs_hold_and_no_more_can_be_written(share):
    written, records = 0, 0
    small = [(problem, optimum(problem)) for problem in problems(0, 40 * share, workers=4, requests=9)]
    larger = [(problem, solve(problem, "search").objective) for problem in map(tight, range(80 * share))]
    for problem, best in small + larger:
        if best == 0:
            continue
        certificate = proved_by_trees(problem, best)
        assert check(problem, Certificate.from_json(certificate.to_json())) == best
        written += 1
        records += kinds(certificate).count("placement")
        assert "pattern" not in kinds(certificate)
        with pytest.raises(CertificateError):
            check(problem, proved_by_trees(problem, best + 1))
    assert written > 20 * share and records > 25 * share


def damaged(certificate: Certificate, rng: random.Random) -> Certificate | None:
    """A copy with one record of a tree, or one price, changed; None where there is no tree."""
    body = copy.deepcopy(certificate.body)
    nodes = [node for node in body["nodes"] if "tree" in node]
    if not nodes:
        return None
    tree = rng.choice(nodes)["tree"]
    at = rng.randrange(len(tree))
    record = tree[at]
    turn = rng.randrange(7)
    if turn == 0 and "class" in record:
        record["class"] = max(0, record["class"] + rng.choice([-1, 1]))
    elif turn == 1 and record.get("workers"):
        record["workers"][rng.randrange(len(record["workers"]))] += rng.choice([-1, 1])
        record["workers"] = [max(0, g) for g in record["workers"]]
    elif turn == 2 and record.get("workers"):
        record["workers"].pop()
    elif turn == 3 and "class" in record:
        record["waits"] = not record["waits"]
    elif turn == 4:
        record["prices"] = rng.randrange(len(body["prices"]))
    elif turn == 5:
        tree[at] = {"prices": record["prices"]}
    elif turn == 6 and body["prices"] and rng.choice(body["prices"]):
        pair = rng.choice([pair for row in body["prices"] for pair in row])
        pair[1] += rng.choice([-1, 1, -pair[1]])
    else:
        tree.pop(at)
    return Certificate(certificate.problem_digest, certificate.kind, certificate.bound, body)


def test_damaged_proofs_never_prove_what_is_false():
    rng = random.Random(7)
    seen = {True: 0, False: 0}
    lies = 0
    small = [(problem, optimum(problem)) for problem in problems(5000, 20, workers=4, requests=9)]
    larger = [(problem, solve(problem, "search").objective) for problem in map(tight, range(12))]
    for problem, best in small + larger:
        if best == 0:
            continue
        certificate = proved_by_trees(problem, best)
        for _ in range(4):
            changed = damaged(certificate, rng)
            if changed is None:
                continue
            for bound in (best, best + 1, best + 3):
                claim = Certificate(changed.problem_digest, changed.kind, bound, changed.body)
                try:
                    check(problem, Certificate.from_json(claim.to_json()))
                    passed = True
                except CertificateError:
                    passed = False
                assert not passed or bound <= best, (problem.to_json(), claim.to_json())
                lies += bound > best
                seen[passed] += bound == best
    assert seen[False] > 10 and lies > 50


def test_what_a_tree_of_placements_must_not_do():
    problem = StepProblem.now([0, 0], [2, 2], [10, 10, 10, 3, 1])
    best = solve(problem, "search").objective

    def refusal(tree) -> str:
        node = {"envelopes": [0, 10**6], "prices": 0, "tree": tree}
        body = {"scale": 1, "prices": [[]], "nodes": [node]}
        with pytest.raises(CertificateError) as error:
            check(problem, Certificate(problem.digest, "priced-envelopes", best, body))
        return str(error.value)

    leaf = {"prices": 0}
    assert "calls a case refuted" in refusal([leaf])
    assert "leaves out that worker" in refusal([{"class": 2, "prices": 0, "waits": True, "workers": []}, leaf])
    waits = {"class": 2, "prices": 0, "waits": False, "workers": [0, 1]}
    assert "leaves out that all of class 2 waits" in refusal([waits, leaf, leaf])
    assert "names a worker twice" in refusal([{**waits, "workers": [0, 0]}, leaf, leaf])
    assert "there are only 3 classes" in refusal([{**waits, "class": 9}, leaf, leaf])
    assert "cases are open" in refusal([{**waits, "waits": True}])
    assert "is no pattern of worker 0" in refusal([{"worker": 0, "patterns": [[2]]}, leaf])
    assert "of worker 0 is missing" in refusal([{"worker": 0, "patterns": [[2, 1]]}, leaf])
    assert "waits is 1" in refusal([{**waits, "waits": 1}])
    assert "prices is 5" in refusal([{"prices": 5}])


def test_steady_states_by_placements():
    trace = generate("burstgpt-like", 2_000, seed=3)
    fleet = SteadyFleet(trace, workers=8, slots=24, pool=64, shape="rich", seed=5)
    records = []
    for problem in fleet.problems(3, warm_up=300, spacing=20):
        result = solve(problem, "search", time_limit=20)
        assert result.proved
        certificate = proved_by_trees(problem, result.objective)
        assert check(problem, certificate) == result.objective
        records += kinds(certificate)
    assert len(records) > 20 and "pattern" not in records


@pytest.mark.more
def test_a_class_of_which_nothing_is_left_is_not_placed_again():
    """The case in which it was found: rounding made a placed request look split, and it was placed a second time."""
    data = json.loads((Path(__file__).parent / "split_class.json").read_text())
    sizes = [data["smallest"]] * (data["requests"] - len(data["sizes"])) + data["sizes"]
    problem = StepProblem.now(data["loads"], data["slots"], sizes)
    result = solve(problem, "search", effort=20_000_000)
    assert result.objective == 390_850 and result.status == "optimal"
