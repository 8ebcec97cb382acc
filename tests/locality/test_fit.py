"""The offline fit: its parts by the public definitions, other numbers of workers, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.locality import (
    MoEShape,
    draw_workload,
    fit_idf,
    fit_layer_mask,
    sample_pairs,
    signature_quality,
    signatures,
    task_workload,
    transformed,
)
from lbopt.locality.band_router import BandRouter
from lbopt.locality.capture import capture_of
from lbopt.locality.fit import fit_routing

SHAPE = MoEShape(5, 24, 3)


@pytest.fixture(scope="module")
def activity():
    config = task_workload(shape=SHAPE, requests=90, prompt_tokens=64, decode_steps=32)
    return draw_workload(config, seed=4)[1]


def test_the_fit_is_its_parts(activity):
    fit = fit_routing(activity, 7, seed=3, model="toy")
    idf, pairs = fit_idf(activity.counts), sample_pairs(90, seed=3)
    cells = transformed("count-idf", activity.counts, idf)
    mask = fit_layer_mask(cells, activity.decode, pairs)
    assert np.array_equal(fit.table.idf.weights, idf.weights)
    assert fit.table.layers.tolist() == mask.kept.tolist()
    rows = signatures(cells, mask.kept)
    assert np.allclose(fit.rows, rows, rtol=0, atol=1e-15)
    assert fit.quality == pytest.approx(signature_quality(rows, activity.decode, pairs), abs=1e-12)
    assert fit.quality_of_all == pytest.approx(signature_quality(signatures(cells), activity.decode, pairs), abs=1e-12)
    assert (fit.table.model, fit.table.shape, fit.table.transform) == ("toy", SHAPE, "count-idf")
    assert fit.table.num_workers == 7 and fit.sizes.max() <= 13 and fit.sizes.sum() == 90
    sums = np.array([rows[fit.labels == k].sum(axis=0) for k in range(7)])
    assert np.allclose(fit.table.centroids, sums / np.linalg.norm(sums, axis=1, keepdims=True), rtol=0, atol=1e-9)
    near = fit.table.similarities(activity.counts)
    assert np.allclose(near, rows @ fit.table.centroids.T, rtol=0, atol=1e-12)
    assert fit.objective == pytest.approx((1 - near[np.arange(90), fit.labels]).sum())
    nearest = BandRouter(fit.table, 0.0)
    assert [nearest.route(c, np.zeros(7, int)) for c in activity.counts] == near.argmax(axis=1).tolist()


def test_another_number_of_workers_keeps_weights_and_layers(activity):
    eight, four = fit_routing(activity, 8), fit_routing(activity, 4)
    again = eight.for_workers(4)
    assert again.table.idf is eight.table.idf
    assert np.array_equal(again.table.centroids, four.table.centroids)
    assert np.array_equal(again.labels, four.labels) and again.objective == four.objective
    assert again.for_workers(8).objective == eight.objective


def test_vanilla_clusters_are_of_any_size_and_nearer(activity):
    balanced = fit_routing(activity, 6)
    vanilla = balanced.for_workers(6, balanced=False)
    assert balanced.sizes.max() == 15 < vanilla.sizes.max()
    assert vanilla.objective < balanced.objective
    assert np.array_equal(vanilla.labels, fit_routing(activity, 6, balanced=False).labels)
    near = vanilla.table.similarities(activity.counts)
    assert np.allclose(near[np.arange(90), vanilla.labels], near.max(axis=1), rtol=0, atol=1e-9)


def test_strict_sizes(activity):
    sizes = fit_routing(activity, 7, strict=True).sizes
    assert (sizes.min(), sizes.max()) == (12, 13)
    free, strict = (fit_routing(activity, 17, strict=one).sizes for one in (False, True))  # 17 * 6 leaves much room
    assert free.min() < 5 == strict.min() and free.max() == strict.max() == 6


@pytest.mark.parametrize("transform", ["count", "sqrt-count", "binary", "gate-prob", "gate-logit"])
def test_every_transform_can_be_fitted(activity, transform):
    fit = fit_routing(activity, 4, transform=transform)
    assert fit.table.idf is None and fit.table.transform == transform
    assert 0 < fit.quality >= fit.quality_of_all


def test_without_a_mask_all_layers_are_kept(activity):
    fit = fit_routing(activity, 4, mask=False)
    assert fit.mask is None and fit.table.layers.tolist() == [0, 1, 2, 3, 4]
    assert fit.quality == fit.quality_of_all == pytest.approx(fit_routing(activity, 4).quality_of_all, abs=1e-12)


def test_a_capture_is_fitted_as_what_it_was_made_of(activity):
    one, other = fit_routing(activity, 5), fit_routing(capture_of(activity, 3, "toy"), 5)
    assert np.array_equal(one.table.centroids, other.table.centroids)
    assert (other.table.model, other.table.shape) == ("toy", SHAPE)


def test_errors(activity):
    few = replace(activity, counts=activity.counts[:2])
    alike = replace(activity, counts=np.repeat(activity.counts[:1], 90, axis=0))
    without = capture_of(activity, 3)
    for act, words in (
        (lambda: fit_routing(activity, 4, transform="idf"), "unknown transform 'idf'"),
        (lambda: fit_routing(activity, 0), "number of workers is 0; expected a whole number of 1 or more"),
        (lambda: fit_routing(activity, 91), "90 calibration requests for 91 workers"),
        (lambda: fit_routing(activity, 4).for_workers(91), "90 calibration requests for 91 workers"),
        (lambda: fit_routing(few, 1), "there are 2 calibration requests; expected 3 or more"),
        (lambda: fit_routing(alike, 4), "all 90 signatures are zero"),
        (lambda: fit_routing(replace(without, gate_prob=None), 4, transform="gate-prob"), "needs gate_prob, which"),
        (lambda: fit_routing(activity, 4, num_pairs=0), "number of pairs is 0"),
    ):
        with pytest.raises(InputError, match=words):
            act()
