"""Balanced assignment against everybody who can say what the least total is; every answer's proof is checked too."""

import numpy as np
import pytest
from assignment.problems import KINDS, drawn, lower_bounds
from naive.assignment import cheapest_by_flow, cheapest_by_trying
from scipy.optimize import linear_sum_assignment

from lbopt.assignment import balanced_assignment


def hungarian(costs, capacity):
    """The least total on the matrix in which every place at a centre is a column."""
    expanded = np.repeat(costs, capacity, axis=1)
    rows, columns = linear_sum_assignment(expanded)
    return expanded[rows, columns].sum()


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_hungarian_method_on_slots(kind):
    for seed in range(100):
        costs, capacity = drawn(kind, seed)
        answer = balanced_assignment(costs, capacity)
        answer.check(costs)
        assert answer.scaled_cost == sum(int(costs[i, k]) for i, k in enumerate(answer.labels))
        if kind != "huge":
            assert answer.scaled_cost == hungarian(costs, capacity)
        else:  # SciPy counts in float64, whose sums are good to the last bit or two here
            assert answer.scaled_cost == pytest.approx(hungarian(costs.astype(float), capacity), rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_as_the_textbook_flow_with_and_without_lower_bounds(kind, seed):
    costs, capacity = drawn(kind, seed)
    costs = costs[:12]
    if costs.shape[1] > 12:
        costs, capacity = costs[:, :12], capacity[:12] + 1
    lower = lower_bounds(len(costs), capacity, seed)
    for least in (None, lower):
        answer = balanced_assignment(costs, capacity, lower=least)
        answer.check(costs)
        given = None if least is None else least.tolist()
        assert answer.scaled_cost == cheapest_by_flow(costs.tolist(), capacity.tolist(), given)


@pytest.mark.parametrize("seed", range(20))
def test_as_trying_everything(seed):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 6, (5, 3))
    capacity = np.array([2, 2, 2]) + rng.integers(0, 2, 3)
    lower = rng.integers(0, 2, 3)
    answer = balanced_assignment(costs, capacity, lower=lower)
    answer.check(costs)
    assert answer.scaled_cost == cheapest_by_trying(costs.tolist(), capacity.tolist(), lower.tolist())


def test_the_worked_example_of_the_eldr_sheet():
    costs = np.array([(0.05, 0.60), (0.10, 0.50), (0.15, 0.45), (0.20, 0.30), (0.25, 0.40), (0.55, 0.10)])
    answer = balanced_assignment(costs, 3)
    answer.check(costs)
    assert answer.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert answer.cost == pytest.approx(1.10, abs=answer.rounding)
    assert 0.15 - 1e-12 <= answer.prices[0] - answer.prices[1] <= 0.30 + 1e-12


def medium(points=300, centres=20, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 10_000, (points, centres)), np.full(centres, -(-points // centres))


@pytest.mark.parametrize("seed", range(3))
def test_as_or_tools_min_cost_flow(seed):
    flow = pytest.importorskip("ortools.graph.python.min_cost_flow")
    costs, capacity = medium(seed=seed)
    points, centres = costs.shape
    graph = flow.SimpleMinCostFlow()
    tail, head = np.repeat(np.arange(points), centres), points + np.tile(np.arange(centres), points)
    graph.add_arcs_with_capacity_and_unit_cost(tail, head, np.ones(tail.size, dtype=np.int64), costs.ravel())
    last = points + centres
    graph.add_arcs_with_capacity_and_unit_cost(
        np.arange(points, last), np.full(centres, last), capacity, np.zeros(centres, dtype=np.int64)
    )
    supply = np.zeros(last + 1, dtype=np.int64)
    supply[:points], supply[last] = 1, -points
    graph.set_nodes_supplies(np.arange(last + 1), supply)
    assert graph.solve() == graph.OPTIMAL
    answer = balanced_assignment(costs, capacity)
    answer.check(costs)
    assert answer.scaled_cost == graph.optimal_cost()


@pytest.mark.parametrize("seed", range(2))
def test_as_the_linear_program_with_lower_bounds(seed):
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron

    costs, capacity = medium(points=80, centres=6, seed=seed)
    points, centres = costs.shape
    lower = np.array([0, 20, 0, 14, 1, 0])
    capacity = np.maximum(capacity + 3, lower)
    once = kron(eye_array(points), np.ones((1, centres)), format="csr")
    counts = kron(np.ones((1, points)), eye_array(centres), format="csr")
    from scipy.sparse import vstack

    program = linprog(
        costs.ravel(),
        A_eq=once,
        b_eq=np.ones(points),
        A_ub=vstack([counts, -counts]),
        b_ub=np.concatenate([capacity, -lower]),
        method="highs-ds",
    )
    answer = balanced_assignment(costs, capacity, lower=lower)
    answer.check(costs)
    assert answer.scaled_cost == round(program.fun)


@pytest.mark.jit
@pytest.mark.parametrize(("points", "centres"), [(20_000, 16), (3_000, 200), (400, 400)])
def test_several_levels_and_many_centres(points, centres):
    rng = np.random.default_rng(5)
    places, hubs = rng.normal(size=(points, 3)), rng.normal(size=(centres, 3))
    costs = ((places[:, None] - hubs) ** 2).sum(axis=2)
    for capacity in (
        np.full(centres, -(-points // centres)),
        1 + rng.multinomial(points, rng.dirichlet(np.ones(centres))),
    ):
        answer = balanced_assignment(costs, capacity)
        answer.check(costs)
        again = balanced_assignment(costs, capacity, prices=answer.prices + rng.normal(scale=0.1, size=centres))
        again.check(costs)
        assert again.scaled_cost == answer.scaled_cost
        by_lower = balanced_assignment(costs, capacity, lower=points // centres // 2 * (capacity > points // centres))
        by_lower.check(costs)
        assert by_lower.scaled_cost >= answer.scaled_cost


@pytest.mark.jit
def test_ties_everywhere_at_some_size():
    rng = np.random.default_rng(6)
    for costs in (
        np.zeros((5_000, 12), dtype=int),
        rng.integers(0, 3, (5_000, 12)),
        np.tile(np.arange(12), (5_000, 1)),
    ):
        capacity = rng.multinomial(5_000, np.full(12, 1 / 12))
        answer = balanced_assignment(costs, capacity)
        answer.check(costs)
    assert answer.scaled_cost == int(capacity @ np.arange(12))


@pytest.mark.slow
@pytest.mark.jit
def test_thousands_of_middling_problems():
    """Hundreds of points, levels, ties, skew, lower bounds and prices of all kinds to start from."""
    rng = np.random.default_rng(77)
    for _ in range(5_000):
        points, centres = int(rng.integers(1, 400)), int(rng.integers(1, 60))
        kind = rng.integers(3)
        if kind == 0:
            costs = rng.integers(0, int(rng.choice([2, 5, 50, 10**6])), (points, centres))
        elif kind == 1:
            costs = rng.random((points, centres)) ** rng.integers(1, 9)
        else:
            places = rng.normal(size=(points, 2))
            hubs = places[rng.choice(points, centres)] * rng.choice([0.01, 1, 3])
            costs = ((places[:, None] - hubs) ** 2).sum(axis=2)
        room = points + int(rng.integers(0, 3) * rng.integers(0, points + 1))
        capacity = rng.multinomial(room, rng.dirichlet(np.full(centres, rng.choice([0.2, 1, 50]))))
        answer = balanced_assignment(costs, capacity)
        answer.check(costs)
        least = float(hungarian(costs, np.minimum(capacity, points)))
        assert abs(least - answer.cost) <= answer.rounding + 1e-9 * abs(answer.cost)
        size = np.abs(answer.prices).mean() + 1e-9
        prices = answer.prices + rng.normal(size=centres) * size * rng.choice([1e-3, 0.1, 10])
        again = balanced_assignment(costs, capacity, prices=prices)
        again.check(costs)
        assert again.scaled_cost == answer.scaled_cost
        bounds = lower_bounds(points, capacity, int(rng.integers(10**6)))
        bounded = balanced_assignment(costs, capacity, lower=bounds, prices=prices)
        bounded.check(costs)
        assert bounded.scaled_cost >= answer.scaled_cost
