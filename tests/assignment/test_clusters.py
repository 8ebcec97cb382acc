"""Integer costs of points at moving centres: by vectors and by products of points alike, and as defined."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.assignment import BalancedKMeans, balanced_assignment
from lbopt.assignment.costs import largest_cost
from lbopt.assignment.k_means import Clusters, Points


def unit(rows):
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def defined(rows, centers, cosine):
    if cosine:
        return 1.0 - rows @ centers.T
    return ((rows[:, None, :] - centers[None]) ** 2).sum(axis=2)


def best(rows, labels, centers, cosine):
    moved = centers.copy()
    for k in range(len(centers)):
        total = rows[labels == k].sum(axis=0)
        if (labels == k).any() and np.linalg.norm(total) > (1e-7 if cosine else -1):
            moved[k] = total / (np.linalg.norm(total) if cosine else (labels == k).sum())
    return moved


@given(st.integers(0, 2**32), st.integers(3, 12), st.integers(1, 50), st.booleans(), st.booleans())
def test_costs_and_centres_follow_the_definition(seed, N, d, cosine, on_points):
    """Over some rounds of labels by lot, which leave clusters empty and fill them again."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, d)) * rng.choice([0.1, 30.0]) + rng.choice([0.0, 2.0])
    rows = unit(rows) if cosine else rows
    K = int(rng.integers(1, N + 1))
    start = rng.permutation(N)[:K]
    centers = rows[start] if on_points else rows[start] + 0.0
    points = Points(rows, cosine)
    assert (points.gram is None) == (d <= N)
    clusters = Clusters(points, start if on_points else centers)
    assert clusters.costs.max() <= largest_cost(N, K)
    unit_of_cost = math.ldexp(1.0, -clusters.exponent)
    for _ in range(4):
        wanted = defined(rows, centers, cosine)
        size = max(1.0, np.abs(rows).max() ** 2 * d)
        assert np.allclose(clusters.costs * unit_of_cost, wanted, rtol=0, atol=1e-12 * size + unit_of_cost)
        labels = rng.integers(0, K, size=N) if rng.random() < 0.7 else np.zeros(N, dtype=np.int64)
        centers = best(rows, labels, centers, cosine)
        clusters.move(labels)
        clusters.update()
        assert np.allclose(clusters.centers(), centers, rtol=0, atol=1e-9 * math.sqrt(size))
        assert points.total_cost(labels, centers) == pytest.approx(
            defined(rows, centers, cosine)[np.arange(N), labels].sum(), abs=1e-9 * size
        )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_many_entries_give_the_clusters_of_few(metric):
    """Zeros added to points change no cost, only the way in which it is found."""
    rng = np.random.default_rng(7)
    few = rng.gamma(0.5, size=(60, 12))
    many = np.concatenate([few, np.zeros((60, 100))], axis=1)[:, rng.permutation(112)]
    one, other = (BalancedKMeans(5, metric=metric, random_state=1).fit(rows) for rows in (few, many))
    assert np.array_equal(one.labels_, other.labels_)
    assert other.totals_ == pytest.approx(one.totals_, rel=1e-12)
    assert other.inertia_ == pytest.approx(one.inertia_, rel=1e-12)
    assert np.array_equal(other.predict(many), one.predict(few))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_round_is_an_exact_assignment_of_the_costs_as_defined(metric):
    rng = np.random.default_rng(3)
    rows = unit(rng.gamma(0.5, size=(40, 90)))
    model = BalancedKMeans(4, metric=metric, init=rows[:4], max_iter=1).fit(rows)
    exact = balanced_assignment(defined(rows, rows[:4], metric == "cosine"), 10)
    assert model.totals_ == pytest.approx([exact.cost], rel=1e-12)


def test_one_centre_far_off_does_not_overflow():
    rows = np.random.default_rng(0).standard_normal((20, 3))
    init = np.array([[0.0, 0, 0], [1e6, 0, 0]])
    model = BalancedKMeans(2, init=init).fit(rows)
    assert np.bincount(model.labels_).tolist() == [10, 10]
    assert (np.diff(model.totals_) <= 0).all()


def test_starting_centres_of_cosines_count_by_their_direction():
    rows = np.random.default_rng(1).gamma(1.0, size=(30, 4))
    one, other = (BalancedKMeans(3, metric="cosine", init=f * rows[:3]).fit(rows) for f in (1.0, 100.0))
    assert np.array_equal(one.labels_, other.labels_) and one.totals_ == pytest.approx(other.totals_)


@pytest.mark.parametrize("seed", range(10))
def test_starts_are_drawn_far_from_all_drawn_before(seed):
    rng = np.random.default_rng(seed)
    rows = np.repeat(100.0 * np.eye(5), 8, axis=0) + 1e-3 * rng.standard_normal((40, 5))
    drawn = BalancedKMeans(5)._spread(Points(rows, False), rng)
    assert sorted(drawn // 8) == [0, 1, 2, 3, 4], "one in each of five heaps"
