"""Values by bucket are what prometheus-client's own histogram makes of them."""

from __future__ import annotations

import random

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from lbopt.serving.families import Tally

BOUNDS = (0.00005, 0.001, 0.3, 1, 30)


def test_a_tally_reads_as_the_histogram_of_prometheus():
    """Value by value, those on a bound and beyond the last one too."""
    draw = random.Random(1)
    tally, registry, own = Tally(BOUNDS), CollectorRegistry(), CollectorRegistry()
    histogram = Histogram("x_seconds", "X", registry=registry, buckets=BOUNDS)
    for value in (*BOUNDS, 0.0, 1e9, *(draw.expovariate(1.0) for _ in range(200))):
        tally.note(value)
        histogram.observe(value)

    class Tallies(Collector):
        def collect(self):
            yield HistogramMetricFamily("x_seconds", "X", buckets=tally.buckets(), sum_value=tally.sum)

    own.register(Tallies())
    expected = [line for line in generate_latest(registry).splitlines() if b"_created" not in line]
    assert generate_latest(own).splitlines() == expected
