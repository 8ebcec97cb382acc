"""Signatures, their quality and the layer mask: worked numbers, loop-only twins, and what must not change anything."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from locality import naive_signatures as naive
from scipy.stats import spearmanr

from lbopt.exceptions import InputError
from lbopt.kernels.locality import forward_selection as ranks
from lbopt.kernels.locality.forward_selection import distances, pair_products
from lbopt.locality import (
    TRANSFORMS,
    LayerMask,
    cosine_distances,
    fit_idf,
    fit_layer_mask,
    rank_correlation,
    sample_pairs,
    signature_quality,
    signatures,
    transformed,
)

COUNTS = np.array(
    [[[4, 2, 0], [3, 3, 0]], [[5, 0, 1], [4, 0, 2]], [[3, 3, 0], [2, 4, 0]], [[6, 0, 0], [0, 1, 5]]]
)  # fmt: skip
DECODE = np.array(
    [
        [[0.5, 0.4, 0.1], [0.5, 0.5, 0]],
        [[0.6, 0, 0.4], [0.6, 0, 0.4]],
        [[0.4, 0.5, 0.1], [0.3, 0.7, 0]],
        [[0.9, 0, 0.1], [0.1, 0.2, 0.7]],
    ]
)
PAIRS = sample_pairs(4, seed=0)
CELLS = transformed("count-idf", COUNTS, fit_idf(COUNTS))


def cubes(rng, N, L, E, ties):
    """Counts and activation with or without ties, empty layers and requests without mass."""
    counts = rng.integers(0, 3 if ties else 60, size=(N, L, E))
    counts[rng.random((N, L)) < 0.2] = 0
    decode = rng.integers(0, 4 if ties else 1000, size=(N, L, E)) / 7
    return counts, decode


def test_worked_signatures():
    assert np.allclose(fit_idf(COUNTS).weights, [[0, 0.510826, 0.916291], [0.223144, 0.223144, 0.510826]], atol=1e-6)
    assert np.allclose(
        signatures(CELLS),
        [
            [0, 0.733494, 0, 0.480617, 0.480617, 0],
            [0, 0, 0.559709, 0.545222, 0, 0.624067],
            [0, 0.837989, 0, 0.244039, 0.488077, 0],
            [0, 0, 0, 0, 0.087034, 0.996205],
        ],
        atol=1e-6,
    )
    lengths = np.sqrt((CELLS**2).sum(axis=(1, 2)))
    assert np.allclose(lengths, [1.392855, 1.637085, 1.828755, 2.563857], atol=1e-6)


def test_a_request_without_mass_is_like_nobody():
    alone = signatures(CELLS, [0])
    assert not alone[3].any()
    assert (cosine_distances(alone, PAIRS)[PAIRS[:, 1] == 3] == 1).all()


def test_worked_quality():
    assert PAIRS.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    near = [0.737957, 0.033472, 0.958170, 0.866945, 0.378301, 0.957521]
    assert np.allclose(cosine_distances(signatures(CELLS), PAIRS), near, atol=1e-6)
    far = [0.345711, 0.051259, 0.454661, 0.548933, 0.226426, 0.536954]
    assert np.allclose(cosine_distances(DECODE, PAIRS), far, atol=1e-6)
    for layers, rho in ((None, 0.771429), ([0], 0.654654), ([1], 0.771429)):
        assert signature_quality(signatures(CELLS, layers), DECODE, PAIRS) == pytest.approx(rho, abs=1e-6)
    count = signatures(transformed("count", COUNTS))
    assert signature_quality(count, DECODE, PAIRS) == pytest.approx(0.885714, abs=1e-6)


def test_worked_mask():
    mask = fit_layer_mask(CELLS, DECODE, PAIRS)
    assert mask.order.tolist() == [1, 0]
    assert np.allclose(mask.curve, 0.771429, atol=1e-6)
    assert (mask.num_kept, mask.kept.tolist()) == (1, [1])


def test_weights_may_be_left_to_the_mask():
    rng = np.random.default_rng(6)
    counts, decode = cubes(rng, 30, 5, 150, False)  # more experts than a row of lanes holds
    pairs, idf = sample_pairs(30, seed=0), fit_idf(counts)
    one = fit_layer_mask(transformed("count-idf", counts, idf), decode, pairs)
    other = fit_layer_mask(counts, decode, pairs, idf.weights)
    assert one.order.tolist() == other.order.tolist() and one.curve.tolist() == other.curve.tolist()
    with pytest.raises(InputError, match=r"weights are of shape \(4, 150\)"):
        fit_layer_mask(counts, decode, pairs, idf.weights[1:])


def test_the_six_transforms():
    prob, logit = np.full(COUNTS.shape, 0.5), np.full(COUNTS.shape, -2.0)
    idf = fit_idf(COUNTS)
    for name, kind in TRANSFORMS.items():
        cells = transformed(name, COUNTS if kind == "counts" else prob if kind == "gate_prob" else logit, idf)
        for place in np.ndindex(COUNTS.shape):
            c = int(COUNTS[place])
            assert cells[place] == pytest.approx(
                {
                    "count": c,
                    "count-idf": c * idf.weights[place[1:]],
                    "sqrt-count": c**0.5,
                    "binary": float(c >= 1),
                    "gate-prob": 0.5,
                    "gate-logit": -2.0,
                }[name]
            )


@given(st.integers(0, 2**32), st.integers(3, 9), st.integers(1, 4), st.integers(1, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_twins(seed, N, L, E, ties):
    rng = np.random.default_rng(seed)
    counts, decode = cubes(rng, N, L, E, ties)
    pairs = sample_pairs(N, seed, most=int(rng.integers(2, 40)))
    assert np.allclose(fit_idf(counts).weights, naive.idf(counts.tolist()), atol=1e-14)
    cells = transformed("sqrt-count", counts)
    layers = sorted(rng.permutation(L)[: rng.integers(1, L + 1)].tolist())
    rows = signatures(cells, layers)
    twins = [naive.signature(c, layers) for c in cells.tolist()]
    assert np.allclose(rows, twins, atol=1e-14)
    near = [naive.distance(twins[i], twins[j]) for i, j in pairs]
    # both are rounded to 12 decimals, and may fall to neighbours
    assert np.allclose(cosine_distances(rows, pairs), near, rtol=0, atol=1.5e-12)
    if rows.any():
        assert signature_quality(rows, decode, pairs) == pytest.approx(
            naive.quality(cells.tolist(), decode.tolist(), pairs.tolist(), layers), abs=1e-12
        )


@given(st.integers(0, 2**32), st.integers(4, 9), st.integers(1, 5), st.integers(2, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_greedy_choice_is_the_naive_one(seed, N, L, E, ties):
    rng = np.random.default_rng(seed)
    counts, decode = cubes(rng, N, L, E, ties)
    pairs = sample_pairs(N, seed)
    assume(counts.any() and np.unique(cosine_distances(decode, pairs)).size > 1)
    mask = fit_layer_mask(counts, decode, pairs)
    order, curve = naive.greedy(counts.tolist(), decode.tolist(), pairs.tolist())
    assert np.allclose(mask.curve, curve, rtol=0, atol=1e-12)
    assert mask.order.tolist() == order


def test_greedy_choice_is_that_of_ranking_all_at_a_larger_size():
    """Enough pairs that brackets decide; each step is compared with scipy's rho of every candidate."""
    rng = np.random.default_rng(5)
    kind = rng.integers(4, size=120)
    decode = rng.gamma(0.5 + 3 * rng.random((4, 6, 16)))[kind] * rng.gamma(3, size=(120, 6, 16))
    noise = np.linspace(0.1, 4, 6)[:, np.newaxis]
    counts = rng.poisson(20 * decode * np.exp(noise * rng.standard_normal(decode.shape)))
    counts[:, 4] = counts[:, 1]  # twins: the lower one goes first
    pairs = sample_pairs(120, seed=1)
    mask = fit_layer_mask(counts, decode, pairs)
    target, kept = cosine_distances(decode, pairs), []
    for at, rho in zip(mask.order, mask.curve, strict=True):
        tried = {
            layer: spearmanr(cosine_distances(signatures(counts, [*kept, layer]), pairs), target).statistic
            for layer in set(range(6)) - set(kept)
        }
        assert rho == pytest.approx(max(tried.values()), abs=1e-12)
        assert tried[int(at)] == pytest.approx(rho, abs=1e-12)
        kept.append(int(at))
    assert mask.order.tolist().index(1) < mask.order.tolist().index(4)
    assert mask.num_kept < 6
    assert signature_quality(signatures(counts, mask.kept), decode, pairs) == pytest.approx(mask.quality, abs=1e-12)


def test_kept_layers_ascend_in_whatever_order_they_were_chosen():
    mask = LayerMask(np.array([2, 0, 1]), np.array([0.5, 0.7, 0.7]))
    assert (mask.num_kept, mask.kept.tolist(), mask.quality) == (2, [0, 2], 0.7)


def test_rounding_noise_splits_no_ties():
    """The same numbers in another order: cosines that are equal, and sums that are not."""
    rng = np.random.default_rng(0)
    base, other = rng.random(40), rng.random(40)
    rows = np.array([np.r_[base[q], other[q]] for q in (rng.permutation(40) for _ in range(12))])
    cells = np.stack([np.stack([r[:40], r[40:]]) for r in rows])[:, :, np.newaxis].reshape(24, 1, 40)
    pairs = np.array([[2 * i, 2 * i + 1] for i in range(12)])
    assert np.unique(cosine_distances(cells, pairs)).size == 1
    products, squares = np.empty((1, 12)), np.empty((1, 24))
    pair_products(cells, np.ones((1, 40)), pairs, products, squares)
    values, first, second = np.empty(12), pairs[:, 0].copy(), pairs[:, 1].copy()
    distances(np.zeros(12), np.zeros(24), products[0], squares[0], first, second, np.empty(24), values)
    assert np.unique(products).size > 1
    assert np.unique(values).size == 1


@given(st.integers(0, 2**32), st.integers(2, 400), st.sampled_from([2, 30, 10**6]), st.integers(1, 200))
@settings(max_examples=80, deadline=None)
def test_brackets_hold_the_correlation(seed, P, distinct, bins):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.integers(0, distinct, size=P) ** rng.choice([1, 2])).astype(float)
    rng.shuffle(values)
    other = values + rng.choice([-1, 0, 1, 100]) * values.std() * rng.standard_normal(P)
    fixed = 2 * np.array(naive.average_ranks(other.tolist())) - (P + 1)
    assume(fixed.any())
    low = values.min() + rng.choice([0.0, 0.2]) * np.ptp(values)  # a range that some values are outside of
    scale = bins / max(np.ptp(values) * rng.choice([0.5, 1.0]), 1.0)
    exact = naive.spearman(values.tolist(), other.tolist())
    squares = float(fixed @ fixed)
    lower, upper = ranks.bracket(
        values, ranks.pack(fixed), squares, low, scale, np.empty(bins, np.int64), np.empty(P, np.int32)
    )
    assert lower <= exact <= upper
    starts, keys = np.empty(bins + 1, np.int64), np.empty(P, np.int64)
    assert ranks.correlation(values, fixed, squares, low, scale, starts, np.empty(P, np.int32), keys) == pytest.approx(
        exact
    )
    assert (keys >> ranks.PLACE == np.sort(values)).all()


@given(st.integers(0, 2**32), st.integers(2, 200))
@settings(max_examples=30, deadline=None)
def test_rank_correlation_is_that_of_scipy(seed, size):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, size=size), rng.standard_normal(size).round(1)
    assume(np.unique(x).size > 1 and np.unique(y).size > 1)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    assert rank_correlation(np.ones(size), y) == 0.0


def test_what_leaves_rho_as_it_is():
    rng = np.random.default_rng(3)
    counts, decode = rng.integers(0, 50, size=(40, 3, 8)), rng.random((40, 3, 8))
    pairs = sample_pairs(40, seed=2)
    rho = signature_quality(signatures(counts), decode, pairs)
    scaled = signatures(counts * rng.integers(1, 9, size=(40, 1, 1)))
    assert signature_quality(scaled, decode, pairs) == pytest.approx(rho, abs=1e-6)
    cells = rng.permutation(24)
    permuted = counts.reshape(40, 24)[:, cells].reshape(40, 3, 8), decode.reshape(40, 24)[:, cells].reshape(40, 3, 8)
    assert signature_quality(signatures(permuted[0]), permuted[1], pairs) == pytest.approx(rho, abs=1e-6)
    assert signature_quality(signatures(decode), decode, pairs) == 1.0


def test_shuffled_signatures_say_nothing():
    rng = np.random.default_rng(4)
    decode = rng.gamma(1.0, size=(60, 2, 8))
    pairs = sample_pairs(60, seed=2)
    shuffled = [signature_quality(signatures(decode)[rng.permutation(60)], decode, pairs) for _ in range(200)]
    assert abs(np.mean(shuffled)) < 3 * np.std(shuffled) / np.sqrt(200) + 0.01


@given(st.integers(2, 60), st.integers(1, 2000), st.integers(0, 9))
def test_pairs_are_different_and_in_range(N, most, seed):
    pairs = sample_pairs(N, seed, most)
    assert len(pairs) == min(most, N * (N - 1) // 2) == len({tuple(p) for p in pairs.tolist()})
    assert (pairs[:, 0] >= 0).all() and (pairs[:, 0] < pairs[:, 1]).all() and (pairs[:, 1] < N).all()
    assert (pairs == sample_pairs(N, seed, most)).all()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: fit_idf(-COUNTS), "count of tokens is -6"),
        (lambda: fit_idf(COUNTS / 2), "float64"),
        (lambda: fit_idf(COUNTS[0]), "counts are of shape"),
        (lambda: transformed("idf", COUNTS), "unknown transform 'idf'"),
        (lambda: transformed("count-idf", COUNTS), "fit_idf"),
        (lambda: transformed("count-idf", COUNTS[:, :1], fit_idf(COUNTS)), "one model"),
        (lambda: transformed("gate-prob", -DECODE), "gate probabilities is -0.9"),
        (lambda: transformed("gate-logit", DECODE * np.nan), "NaN"),
        (lambda: signatures(CELLS, []), "keeps no layer"),
        (lambda: signatures(CELLS, [2]), r"\[2\]"),
        (lambda: signatures(CELLS, [0, 0]), "different numbers"),
        (lambda: signatures(CELLS, [True, False]), "type bool"),
        (lambda: signature_quality(0 * signatures(CELLS), DECODE, PAIRS), "all 4 signatures are zero"),
        (lambda: signature_quality(signatures(CELLS), DECODE[:3], PAIRS), "4 signatures and 3"),
        (lambda: signature_quality(signatures(CELLS), DECODE, PAIRS + 1), "names request 4"),
        (lambda: fit_layer_mask(0 * CELLS, DECODE, PAIRS), "all 4 signatures are zero"),
        (lambda: fit_layer_mask(CELLS, DECODE[:1].repeat(4, axis=0), PAIRS), "same distance"),
        (lambda: fit_layer_mask(CELLS * np.inf, DECODE, PAIRS), "NaN"),
        (lambda: fit_layer_mask(CELLS, DECODE, np.zeros((100_001, 2), int)), "at most 100000"),
        (lambda: sample_pairs(1, 0), "number of requests is 1"),
    ],
)
def test_errors(act, words):
    with pytest.raises(InputError, match=words), np.errstate(invalid="ignore"):
        act()
