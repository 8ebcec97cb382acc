"""Calibration requests are measured as if each had been left out, which is checked by leaving each out."""

import numpy as np
import pytest

from lbopt.locality import MoEShape, draw_workload, fit_routing, task_workload


@pytest.mark.parametrize("transform", ["count-idf", "sqrt-count", "gate-prob"])
def test_each_request_is_left_out(transform):
    activity = draw_workload(task_workload(shape=MoEShape(3, 24, 2), requests=40, prompt_tokens=9), seed=5)[1]
    fit = fit_routing(activity, 6, transform=transform, starts=1)
    found = fit.table.drift
    for r in range(40):
        near = fit.table.centroids @ fit.rows[r]
        mates = (fit.labels == fit.labels[r]) & (np.arange(40) != r)
        centre = fit.rows[mates].sum(axis=0)
        near[fit.labels[r]] = centre @ fit.rows[r] / np.linalg.norm(centre) if mates.any() else 0.0
        assert found.cosines[r] == pytest.approx(near, abs=1e-6)
        counts = activity.counts[:, fit.table.layers]
        others = np.delete(counts, r, axis=0).sum(axis=0) > 0
        strange = counts[r][~others].sum() / counts[r].sum()
        assert found.strange[r] == pytest.approx(0.0 if transform == "gate-prob" else strange, abs=1e-6)
    if transform != "gate-prob":
        assert np.array_equal(found.used, counts.sum(axis=0) > 0) and found.strange.max() > 0


def test_a_fit_says_what_it_is_of():
    activity = draw_workload(task_workload(shape=MoEShape(2, 8, 2), requests=12), seed=1)[1]
    fit = fit_routing(activity, 3, workers=("a", "b", "c"), starts=1)
    assert fit.table.unknown == "" and fit.table.names == ("a", "b", "c")
    other = fit.for_workers(4, workers=("a", "b", "c", "d"))
    assert other.table.made == fit.table.made and other.table.names[3] == "d"
    assert other.table.drift.cosines.shape == (12, 4) and other.table.table_id != fit.table.table_id
    again = fit_routing(draw_workload(task_workload(shape=MoEShape(2, 8, 2), requests=12), seed=2)[1], 3, starts=1)
    assert again.table.made.calibration != fit.table.made.calibration
