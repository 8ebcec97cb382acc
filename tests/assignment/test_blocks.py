"""Costs by blocks: the answer of the whole matrix, whatever the blocks are, and the kernels that choose candidates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.assignment import CostBlocks, NoAssignmentError, balanced, balanced_assignment, costs
from lbopt.exceptions import CertificateError, InputError
from lbopt.kernels.assignment.costs import FORBIDDEN, cheaper_elsewhere, keep_cheapest


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from((3, 50)))
def test_candidates_and_what_is_cheaper_elsewhere(seed, most, highest):
    """Against sorting and a look at all."""
    rng = np.random.default_rng(seed)
    n, centres = 6, 5
    costs = np.where(rng.random((n, centres)) < 0.4, FORBIDDEN, rng.integers(-highest, highest, (n, centres)))
    price, labels = rng.integers(-highest, highest, centres), rng.integers(0, centres, n)
    costs[np.arange(n), labels] = rng.integers(-highest, highest, n)
    centre, cost, count = (
        np.full(shape, -9, kind) for shape, kind in (((n, most), "i4"), ((n, most), "i8"), (n, "i8"))
    )
    keep_cheapest(costs, price, centre, cost, count)
    elsewhere = np.empty(n, dtype=np.int32)
    found = cheaper_elsewhere(costs, price, labels, elsewhere)
    for i in range(n):
        allowed = [k for k in range(centres) if costs[i, k] != FORBIDDEN]
        priced = sorted(int(costs[i, k] + price[k]) for k in allowed)[:most]
        near = centre[i, : count[i]]
        assert count[i] == min(most, len(allowed)) == len(set(near.tolist())) and set(near.tolist()) <= set(allowed)
        assert (cost[i, : count[i]] == costs[i, near]).all()
        assert (cost[i, : count[i]] + price[near]).tolist() == priced
        own, least = costs[i, labels[i]] + price[labels[i]], priced[0]
        assert (elsewhere[i] == -1) == (own == least)
        assert own == least or costs[i, elsewhere[i]] + price[elsewhere[i]] == least
    assert found == (elsewhere >= 0).sum()


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows and samples of a few points, so that candidates are missing at first."""
    monkeypatch.setattr(balanced, "BLOCK_ENTRIES", 64)
    monkeypatch.setattr(balanced, "SAMPLE_PER_CENTRE", 2)
    monkeypatch.setattr(balanced, "FIRST", 1)
    monkeypatch.setattr(costs, "BLOCK_ENTRIES", 100)


@pytest.mark.some(8)
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seed", range(40))
def test_as_the_whole_matrix(seed):
    rng = np.random.default_rng(seed)
    points, centres = int(rng.integers(1, 120)), int(rng.integers(1, 9))
    costs = rng.integers(0, 40, (points, centres)) if seed % 2 else rng.normal(size=(points, centres)) ** 3
    if seed % 3 == 0:
        costs = np.ma.MaskedArray(costs, rng.random(costs.shape) < 0.3)
    capacity = rng.multinomial(points + seed % 4, rng.dirichlet(np.full(centres, 3.0)))
    lower = np.minimum(capacity, rng.integers(0, 3, centres)) if seed % 5 == 0 else None
    blocks = CostBlocks.of_array(costs)
    assert repr(blocks) == f"<CostBlocks of {points} points and {centres} centres>"
    try:
        wanted = balanced_assignment(costs, capacity, lower=lower)
    except NoAssignmentError:
        with pytest.raises(NoAssignmentError) as refusal:
            balanced_assignment(blocks, capacity, lower=lower)
        refusal.value.shortage.check(costs, capacity, lower)
        return
    found = balanced_assignment(blocks, capacity, lower=lower)
    assert (found.scaled_cost, found.exponent) == (wanted.scaled_cost, wanted.exponent)
    for given_costs in (costs, blocks):
        found.check(given_costs)
        wanted.check(given_costs)
    again = balanced_assignment(blocks, capacity, lower=lower, prices=found.prices)
    assert again.scaled_cost == wanted.scaled_cost


@pytest.mark.usefixtures("small_blocks")
def test_candidates_that_leave_no_assignment_are_more_until_they_do():
    """All points like one centre best, and have it for their only candidate at first; the last has to hold ten."""
    costs = np.tile(np.array([0, 5, 9, 20]), (40, 1)) + np.arange(40)[:, None] % 3
    found = balanced_assignment(CostBlocks.of_array(costs), [12, 10, 10, 12], lower=[0, 0, 0, 10])
    found.check(costs)
    assert found.counts.tolist() == [12, 10, 8, 10]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_points_and_centres(metric, kind):
    rng = np.random.default_rng(3)
    points, centers = rng.normal(size=(90, 4)).astype(kind), rng.normal(size=(6, 4)).astype(kind)
    points[5] = 0.0
    blocks = CostBlocks.of_points(points, centers, metric)
    wide, middle = points.astype(float), centers.astype(float)
    if metric == "cosine":
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        costs = 1 - wide / np.where(lengths > 0, lengths, 1) @ (middle / np.linalg.norm(middle, axis=1)[:, None]).T
    else:
        costs = ((wide[:, None] - middle) ** 2).sum(axis=2)
    assert np.allclose(blocks.rows(0, 90), np.maximum(costs, 0), rtol=0, atol=1e-12)
    assert (blocks.rows(7, 31) == blocks.rows(0, 90)[7:31]).all(), "a row does not depend on its block"
    found = balanced_assignment(blocks, 15)
    found.check(blocks)
    assert found.cost == pytest.approx(balanced_assignment(costs, 15).cost, abs=1e-11)


@pytest.mark.jit
def test_a_file_of_costs_is_read_by_blocks(tmp_path):
    rng = np.random.default_rng(0)
    costs = np.memmap(tmp_path / "costs", dtype=np.float32, mode="w+", shape=(30_000, 12))
    costs[:] = rng.random(costs.shape)
    most = [0]

    def rows(begin, end):
        most[0] = max(most[0], end - begin)
        return costs[begin:end]

    found = balanced_assignment(CostBlocks(rows, *costs.shape), 2_500)
    found.check(costs)
    assert found.scaled_cost == balanced_assignment(costs, 2_500).scaled_cost
    assert most[0] <= balanced.BLOCK_ENTRIES // 12
    few = np.memmap(tmp_path / "costs", dtype=np.float32, mode="r", shape=(20, 12))
    balanced_assignment(CostBlocks.of_array(few), 2).check(few)


def test_no_points():
    answer = balanced_assignment(CostBlocks(lambda begin, end: np.zeros((end - begin, 3)), 0, 3), 0)
    assert (answer.labels.size, answer.cost) == (0, 0.0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CostBlocks(lambda begin, end: None, 3, 0), "3 points and 0 centres cannot be"),
        (lambda: CostBlocks.of_array(np.zeros(3)), r"costs must be 2-D, .* its shape is \(3,\)"),
        (lambda: CostBlocks.of_points(np.zeros((3, 2)), np.zeros((2, 3))), r"shapes \(3, 2\) and \(2, 3\)"),
        (lambda: CostBlocks.of_points(np.zeros((3, 2)), np.zeros((2, 2)), "cosin"), "did you mean cosine"),
        (
            lambda: balanced_assignment(CostBlocks(lambda begin, end: np.zeros((1, 2)), 3, 2), 2),
            r"the costs of points 0 to 2 are float64 of shape \(1, 2\); expected numbers of shape \(3, 2\)",
        ),
        (
            lambda: balanced_assignment(CostBlocks.of_array(np.array([[1.0, 2.0], [1.0, np.nan]])), 1),
            "the cost of point 1 at centre 1 is nan; expected finite costs: mask a pair",
        ),
        (lambda: balanced_assignment(CostBlocks.of_array(np.array([[2**60, 1]])), 1), "a cost is 1152921504606846976"),
        (lambda: balanced_assignment(CostBlocks.of_array(np.ones((3, 2))), 1), "capacities add up to 2"),
    ],
)
def test_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_two_kinds_and_blocks_that_change():
    with pytest.raises(InputError, match="some blocks of costs are integers and others reals"):
        balanced_assignment(CostBlocks(lambda b, e: np.ones((e - b, 4), dtype=float if b else int), 40, 4), 20)
    rng = np.random.default_rng(0)
    costs = rng.random((40, 4))
    found = balanced_assignment(CostBlocks.of_array(costs), 10)
    with pytest.raises(CertificateError):
        found.check(CostBlocks.of_array(rng.random((40, 4))))
