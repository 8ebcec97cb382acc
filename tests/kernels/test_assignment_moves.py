"""Lists of moves between centres against a look at all points, as points come and go."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbopt.assignment.costs import Pairs, largest_size
from lbopt.assignment.level import Level, no_moves
from lbopt.kernels.assignment.costs import DONE, FORBIDDEN, INFINITY, OPEN, Moves, Points, scaled
from lbopt.kernels.assignment.moves import enter, label_cheapest, leave, list_again, list_first, settle, total_cost


def points_of(pairs: Pairs, rows: np.ndarray) -> Points:
    """Return points of a level that are nowhere yet."""
    labels = np.full(rows.size, -1, dtype=np.int32)
    return Points(costs=pairs.costs, start=pairs.start, centre=pairs.centre, cost=pairs.cost, rows=rows, labels=labels)


def listed(costs: np.ndarray) -> Pairs:
    """Return the allowed pairs of a matrix as lists, each in an order of its own."""
    rng, allowed = np.random.default_rng(costs.size), costs != FORBIDDEN
    near = [rng.permutation(np.flatnonzero(row)) for row in allowed]
    start = np.concatenate([[0], np.cumsum(allowed.sum(axis=1))])
    centre = np.concatenate(near).astype(np.int32)
    cost = np.concatenate([row[some] for row, some in zip(costs, near, strict=True)])
    return Pairs.of_lists(costs.shape[1], start, centre, cost)


def with_gaps(rng: np.random.Generator, costs: np.ndarray, share: float) -> np.ndarray:
    """Return costs of which such a share is forbidden, but of no point all."""
    forbidden = rng.random(costs.shape) < share
    forbidden[np.arange(len(costs)), rng.integers(0, costs.shape[1], len(costs))] = False
    return np.where(forbidden, FORBIDDEN, costs)


def check_lists(points: Points, moves: Moves, costs: np.ndarray) -> None:
    """What is known is right, and what is not known is bounded rightly; what is forbidden is no arc."""
    rows, centres = costs[points.rows], costs.shape[1]
    for k in range(centres):
        assert moves.least[k, k] == INFINITY
        for j in set(range(centres)) - {k}:
            there = np.flatnonzero(points.labels == k)
            there = there[rows[there, j] != FORBIDDEN]
            least = min((rows[there, j] - rows[there, k]).tolist(), default=INFINITY)
            if moves.ways.size:
                assert moves.ways[k, j] == there.size
                assert there.size or moves.least[k, j] == moves.bound[k, j] == INFINITY
            nearest = moves.nearest[k, j]
            if nearest >= 0:
                assert points.labels[nearest] == k
                assert moves.least[k, j] == rows[nearest, j] - rows[nearest, k] == least
            else:
                assert moves.least[k, j] == moves.bound[k, j] <= least


@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from((0, 3, 20, 1 << 60)),
    st.sampled_from((4, 30)),
    st.sampled_from(("matrix", "gaps", "lists")),
)
def test_lists_stay_right_as_points_come_and_go(seed, length, slack, highest, kind):
    rng = np.random.default_rng(seed)
    centres, count = int(rng.integers(2, 5)), int(rng.integers(1, 15))
    rows = np.sort(rng.choice(20, count, replace=False))
    costs = rng.integers(0, highest, (20, centres))
    costs = costs if kind == "matrix" else with_gaps(rng, costs, 0.5)
    points = points_of(listed(costs) if kind == "lists" else Pairs.of_matrix(costs), rows)
    price, margin = rng.integers(0, highest, centres), np.empty(count, dtype=np.int64)
    label_cheapest(points, price, np.full(centres, count), np.empty(centres, dtype=np.int64), margin)
    moves = no_moves(price, margin, length, slack, gaps=kind != "matrix")
    list_first(points, moves, price)
    check_lists(points, moves, costs)
    for _ in range(30):
        p, j = int(rng.integers(count)), int(rng.integers(centres))
        k = int(points.labels[p])
        if rng.random() < 0.2:
            price += rng.integers(0, 3, centres)
            list_again(points, moves, price, k)
        elif j != k and costs[rows[p], j] != FORBIDDEN:
            points.labels[p] = j
            leave(points, moves, k, p)
            enter(points, moves, j, p)
        check_lists(points, moves, costs)


@given(st.integers(0, 10**6), st.sampled_from(("matrix", "gaps", "lists")))
def test_labels_and_margins(seed, kind):
    rng = np.random.default_rng(seed)
    costs, price = rng.integers(-5, 5, (12, 4)), rng.integers(-5, 5, 4)
    upper, held, margin = rng.integers(0, 5, 4), np.empty(4, dtype=np.int64), np.empty(12, dtype=np.int64)
    costs = costs if kind == "matrix" else with_gaps(rng, costs, 0.5)
    points = points_of(listed(costs) if kind == "lists" else Pairs.of_matrix(costs), np.arange(12))
    label_cheapest(points, price, upper, held, margin)
    priced = np.where(costs == FORBIDDEN, INFINITY, costs + price)
    assert (priced[np.arange(12), points.labels] == priced.min(axis=1)).all()
    second = np.sort(priced, axis=1)[:, 1]
    assert (margin == np.minimum(INFINITY, second - priced.min(axis=1))).all()
    assert (held == np.bincount(points.labels, minlength=4)).all()
    assert total_cost(points) == costs[np.arange(12), points.labels].sum()
    for p in range(12):  # a full centre is taken only where no other of the cheapest has room
        before = np.bincount(points.labels[:p], minlength=4)
        cheapest = np.flatnonzero(priced[p] == priced[p].min())
        if before[points.labels[p]] >= upper[points.labels[p]]:
            assert (before[cheapest] >= upper[cheapest]).all()


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_settling_in_small_steps_comes_to_the_same(seed, limit):
    """The search may stop after any path; prices and labels fit each other at every stop."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 50, (25, 5))
    upper = np.full(5, 5)
    pairs = Pairs.of_matrix(costs)
    level = Level(pairs, np.arange(25), np.zeros(5, dtype=np.int64), upper, np.zeros(5, dtype=np.int64))
    points, centres = level._points, level._centres
    moves = no_moves(centres.price[:-1], level._margin, 2, 3)
    list_first(points, moves, centres.price)
    while settle(points, centres, moves, limit) == OPEN:
        check_lists(points, moves, costs)
        priced = costs + centres.price[:-1]
        assert (priced[np.arange(25), points.labels] == priced.min(axis=1)).all()
        held = np.bincount(points.labels, minlength=5)
        assert (centres.excess[:-1] == held - centres.flow).all()
        assert centres.excess[-1] == centres.flow.sum() - 25
    assert settle(points, centres, moves, limit) == DONE
    assert (np.bincount(points.labels, minlength=5) == 5).all()
    whole = Level(pairs, np.arange(25), np.zeros(5, dtype=np.int64), upper, np.zeros(5, dtype=np.int64))
    whole.settle()
    assert whole.total() == level.total()


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1))
def test_the_largest_size_shows_what_is_not_finite(values):
    costs = np.array(values)
    largest = largest_size(costs)
    if np.isfinite(costs).all():
        assert largest == np.abs(costs).max()
    else:
        assert not np.isfinite(largest)


def test_scaling_in_two_factors_rounds_once():
    costs = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e-300])
    assert scaled(costs, 1.0, 1.0).tolist() == [0, 2, 2, 0, -2, 0]
    assert scaled(costs * 2.0**-600, 2.0**300, 2.0**300).tolist() == [0, 2, 2, 0, -2, 0]
