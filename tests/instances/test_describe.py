"""The numbers that describe a trace, against their definitions."""

import numpy as np
import pytest

from lbopt.instances import describe
from lbopt.instances.describe import PERCENTS, power_of_two_edges
from lbopt.instances.families import generate
from lbopt.model.trace import Trace


def test_by_hand():
    trace = Trace(
        prompt=[10, 20, 0], output=[1, 2, 4], arrival=[0, 1, 4], name="hand", left_out={"no output tokens": 3}
    )
    found = describe(trace)
    assert (found.name, found.rows, dict(found.left_out)) == ("hand", 3, {"no output tokens": 3})
    assert (found.span, found.rate) == (4.0, 0.5)
    assert (found.prompt.mean, found.prompt.minimum, found.prompt.maximum) == (10, 0, 20)
    assert found.prompt.std == pytest.approx(np.sqrt(200 / 3))
    # resident at each decode step of each request: 10; 20, 21; 0, 1, 2, 3
    assert found.tokens_per_slot == pytest.approx((10 + 20 + 21 + 0 + 1 + 2 + 3) / 7)
    assert found.spearman == pytest.approx(-0.5)
    assert found.pearson == pytest.approx(np.corrcoef(trace.prompt, trace.output)[0, 1])
    assert found.prompt.edges.tolist() == [0, 1, 2, 4, 8, 16, 32]
    assert found.prompt.counts.tolist() == [1, 0, 0, 0, 1, 1]
    assert found.output.edges.tolist() == [1, 2, 4, 8]
    assert found.output.counts.tolist() == [1, 1, 1]


def test_against_libraries():
    from scipy.stats import spearmanr

    trace = generate("burstgpt-like", 5000, 3)
    found = describe(trace)
    assert found.spearman == pytest.approx(spearmanr(trace.prompt, trace.output).statistic, abs=1e-12)
    assert found.pearson == pytest.approx(np.corrcoef(trace.prompt, trace.output)[0, 1], abs=1e-12)
    assert list(found.prompt.percentiles) == list(PERCENTS)
    assert list(found.output.percentiles.values()) == np.percentile(trace.output, PERCENTS).tolist()
    for spread, values in ((found.prompt, trace.prompt), (found.output, trace.output)):
        assert spread.counts.sum() == len(trace)
        np.testing.assert_array_equal(spread.counts, np.histogram(values, [*spread.edges[:-1], np.inf])[0])


def test_degenerate_traces():
    one = describe(Trace(prompt=[0], output=[1], arrival=[5.0]))
    assert (one.span, one.rate, one.opening_rate, one.pearson, one.spearman) == (0.0, None, None, None, None)
    assert one.tokens_per_slot == 0
    flat = describe(Trace(prompt=[7, 7], output=[1, 9]))
    assert (flat.span, flat.rate, flat.pearson, flat.spearman) == (None, None, None, None)


def test_opening_ramp_is_seen():
    arrival = np.concatenate([np.arange(10) * 100.0, 1000 + np.arange(90) * 0.1])
    found = describe(Trace(prompt=[1] * 100, output=[1] * 100, arrival=arrival))
    assert found.opening_rate == pytest.approx(0.01)
    assert found.rate > 9 * found.opening_rate


@pytest.mark.parametrize(("largest", "smallest"), [(0, 0), (1, 0), (1, 1), (2, 0), (7, 3), (8, 8), (1000, 7)])
def test_edges_enclose(largest, smallest):
    edges = power_of_two_edges(largest, smallest)
    assert edges[0] <= smallest
    assert edges[-1] > largest
    assert (np.diff(edges) > 0).all()
