"""Balanced K-means: exact sub-steps, bounds, conventions, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from lbopt.assignment import BalancedKMeans, balanced_assignment
from lbopt.exceptions import InputError


def blobs(sizes, seed=0, spread=0.05):
    """Points around the corners of a square, so many at each."""
    rng = np.random.default_rng(seed)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    return np.concatenate([corners[k] + spread * rng.standard_normal((n, 2)) for k, n in enumerate(sizes)])


def test_clusters_of_equal_size_are_found():
    points = blobs([25, 25, 25, 25])
    model = BalancedKMeans(4).fit(points)
    assert np.bincount(model.labels_).tolist() == [25] * 4
    for start in range(0, 100, 25):
        assert len(set(model.labels_[start : start + 25])) == 1
    assert np.array_equal(model.predict(points), model.labels_)


def test_bounds_split_what_is_too_large():
    points = blobs([70, 10, 10, 10])
    assert np.bincount(BalancedKMeans(4).fit(points).labels_).tolist() == [25] * 4
    sizes = np.bincount(BalancedKMeans(4, size_max=80, size_min=5).fit(points).labels_, minlength=4)
    assert sorted(sizes.tolist()) == [10, 10, 10, 70]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_where_it_ends_both_steps_are_at_rest(metric):
    """The labels are a cheapest assignment to the centres, by another solver; the centres are what is best for them."""
    points = np.random.default_rng(3).standard_normal((60, 5))
    model = BalancedKMeans(7, metric=metric, n_init=2).fit(points)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True) if metric == "cosine" else points
    centers = model.cluster_centers_
    if metric == "cosine":
        costs = 1 - unit @ centers.T
    else:
        costs = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2)
    slots = np.repeat(costs, 9, axis=1)  # ceil(60 / 7)
    rows, columns = linear_sum_assignment(slots)
    assert costs[np.arange(60), model.labels_].sum() == pytest.approx(slots[rows, columns].sum(), rel=1e-9)
    assert model.inertia_ == pytest.approx(slots[rows, columns].sum(), rel=1e-9)
    for k in range(7):
        mean = unit[model.labels_ == k].mean(axis=0)
        expected = mean / np.linalg.norm(mean) if metric == "cosine" else mean
        assert np.allclose(centers[k], expected)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 8),
    st.integers(1, 4),
    st.sampled_from(["euclidean", "cosine"]),
    st.integers(0, 5),
    st.booleans(),
)
def test_totals_never_rise_and_bounds_hold(count, clusters, dimension, metric, seed, coarse):
    clusters = min(clusters, count)
    rng = np.random.default_rng(seed)
    points = (
        rng.integers(-2, 3, (count, dimension)).astype(float) if coarse else rng.standard_normal((count, dimension))
    )
    least = count // clusters
    model = BalancedKMeans(clusters, metric=metric, n_init=2, size_min=least, random_state=seed).fit(points)
    sizes = np.bincount(model.labels_, minlength=clusters)
    assert sizes.sum() == count
    assert sizes.max() <= -(-count // clusters)
    assert sizes.min() >= least
    assert all(b <= a + 1e-9 * max(1.0, a) for a, b in zip(model.totals_, model.totals_[1:], strict=False))
    assert model.inertia_ <= model.totals_[-1] + 1e-9 * max(1.0, model.totals_[0])
    assert np.isfinite(model.cluster_centers_).all()


def test_a_given_start_is_followed_once_and_more_starts_are_no_worse():
    points = np.random.default_rng(1).standard_normal((200, 3))
    one, many = BalancedKMeans(10, n_init=1).fit(points), BalancedKMeans(10, n_init=6).fit(points)
    assert many.inertia_ <= one.inertia_
    again = BalancedKMeans(10, init=one.cluster_centers_).fit(points)
    assert again.n_iter_ <= 2
    assert again.inertia_ == pytest.approx(one.inertia_)
    assert np.array_equal(BalancedKMeans(10, n_init=1).fit_predict(points), one.labels_)  # a seed is a seed


@pytest.mark.parametrize("far", [0.0, 1e8, -1e10])
def test_clusters_far_from_zero_are_found(far):
    rng = np.random.default_rng(3)
    corners = np.repeat([(0, 0), (3, 0), (0, 3), (3, 3)], 50, axis=0)
    rows = corners + rng.normal(0, 0.1, corners.shape) + far
    model = BalancedKMeans(4, n_init=3).fit(rows)
    assert all(len(set(part)) == 1 for part in model.labels_.reshape(4, 50))
    assert (model.predict(rows) == model.labels_).all()
    assert model.inertia_ == pytest.approx(((rows - model.cluster_centers_[model.labels_]) ** 2).sum(), rel=1e-3)
    given = BalancedKMeans(4, init=corners[::50] + far).fit(rows)
    assert given.labels_.tolist() == np.repeat(range(4), 50).tolist()


@pytest.mark.parametrize("size", [1e-300, 1e-158, 1e-8, 1e8, 1e149])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.filterwarnings("error")
def test_rows_of_any_size_are_clustered(size, metric):
    rng = np.random.default_rng(0)
    rows = size * (np.repeat(np.eye(3), 20, axis=0) + 0.02 * rng.random((60, 3)))
    if metric == "euclidean" and size < 1e-160:
        assert BalancedKMeans(3).fit(rows).inertia_ == 0.0  # squares of such distances are no numbers
        return
    model = BalancedKMeans(3, metric=metric, n_init=3).fit(rows)
    assert all(len(set(part)) == 1 for part in model.labels_.reshape(3, 20))
    assert np.isfinite(model.cluster_centers_).all()


def test_one_round_is_one_exact_assignment():
    points = np.random.default_rng(2).standard_normal((50, 2))
    init = points[:5]
    model = BalancedKMeans(5, init=init, max_iter=1).fit(points)
    costs = ((points[:, None, :] - init[None]) ** 2).sum(axis=2)
    assert model.totals_ == pytest.approx([balanced_assignment(costs, 10).cost])


def test_zero_rows_are_as_far_from_every_centre():
    points = np.concatenate([np.zeros((4, 3)), np.eye(3), np.eye(3) * 2])
    model = BalancedKMeans(5, metric="cosine").fit(points)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == pytest.approx(4.0)  # the four zero rows cost 1 each, all others find their direction


def test_conventions():
    model = BalancedKMeans(3, metric="cosine")
    twin = BalancedKMeans(**model.get_params())
    assert twin.get_params() == model.get_params()
    assert model.set_params(n_clusters=4) is model and model.n_clusters == 4
    with pytest.raises(InputError, match="unknown parameter of BalancedKMeans 'n_cluster': did you mean n_clusters"):
        model.set_params(n_cluster=4)
    with pytest.raises(InputError, match="no centres yet; call fit first"):
        model.predict(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("given", "rows", "message"),
    [
        ({"n_clusters": 0}, 5, "n_clusters is 0; expected 1 to the 5 rows"),
        ({"n_clusters": 6}, 5, "n_clusters is 6; expected 1 to the 5 rows"),
        ({"n_clusters": 2, "size_max": [3, 2]}, 5, r"size_max is \[3, 2\]; expected one integer for all clusters"),
        ({"n_clusters": 2, "size_min": None}, 5, "size_min is None; expected one integer"),
        ({"n_clusters": 2, "size_max": 2}, 5, "size_max is 2; 2 clusters of 5 rows need at least 3"),
        ({"n_clusters": 2, "size_min": 3}, 5, "size_min is 3; 2 clusters of 5 rows have room for 0 to 2"),
        ({"n_clusters": 2, "metric": "cosin"}, 5, "unknown metric 'cosin': did you mean cosine"),
        ({"n_clusters": 2, "n_init": 0}, 5, "n_init is 0"),
        ({"n_clusters": 2, "max_iter": 0}, 5, "max_iter is 0"),
        ({"n_clusters": 2, "tol": -1.0}, 5, "tol is -1.0"),
        ({"n_clusters": 2, "init": np.ones((3, 2))}, 5, r"init has shape \(3, 2\); expected finite centres, \(2, 2\)"),
    ],
)
def test_what_cannot_be_is_refused(given, rows, message):
    with pytest.raises(InputError, match=message):
        BalancedKMeans(**given).fit(np.random.default_rng(0).standard_normal((rows, 2)))


def test_points_that_cannot_be_are_refused():
    with pytest.raises(InputError, match=r"X holds 1e\+200 in size, whose square is beyond float64; divide all by"):
        BalancedKMeans(2).fit([[1e200, 0.0], [0.0, 1.0]])
    points = np.ones((4, 2))
    points[2, 1] = np.nan
    with pytest.raises(InputError, match="row 2 of X holds a value that is not finite"):
        BalancedKMeans(2).fit(points)
    with pytest.raises(InputError, match=r"X has shape \(4,\)"):
        BalancedKMeans(2).fit(np.ones(4))
    with pytest.raises(InputError, match="rows have 3 entries; the centres have 2"):
        BalancedKMeans(2).fit(np.random.default_rng(0).random((5, 2))).predict(np.ones((2, 3)))
