"""What the running requests will hold over the window h = 0..H in expectation, by their survival curves.

A request of age a and present size w counts at step h as (w + growth * h) * S(a + h) / S(a), S(t) being the share of
its samples that are longer than t (the projection of fast-phi, section 3 of its source). Expected loads are rounded to
whole tokens per worker and step. A request older than every sample counts whole at every step.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.forecast.ends import bucket_in_use, first_beyond
from lbopt.kernels.forecast.samples import Samples


@kernel
def project_weighted(
    worker: Ints,
    size: Ints,
    generated: Ints,
    samples: Samples,
    buckets: Ints,
    growth: int,
    projected: Ints,
) -> None:
    """Write the expected loads, int64 (G, H+1), tokens, into `projected`.

    Parameters
    ----------
    worker, size, generated, buckets
        int64 (A,), one entry per running request: worker, tokens held, tokens made, and bucket of samples.
    samples
        Lengths to compare with, see `forecast.samples`.
    growth
        Tokens that a running request gains a step.
    projected
        int64 (G, H+1), written, tokens.
    """
    G, width = projected.shape
    outputs, starts = samples.outputs, samples.starts
    expected = np.zeros((G, width))
    everybody = np.empty(0, np.int64)  # everybody[t]: samples of bucket 0 longer than t; made when it is needed
    for i in range(worker.size):
        g, held, age = worker[i], size[i], generated[i]
        b = bucket_in_use(outputs, starts, buckets[i], age)
        begin, end = starts[b], starts[b + 1]
        low = first_beyond(outputs, begin, end, age)
        if low == end:
            for h in range(width):
                expected[g, h] += held + growth * h
            continue
        if b == 0:
            if everybody.size == 0:
                everybody = _longer(outputs, begin, end)
            alive = float(everybody[age])
            for h in range(min(width, everybody.size - age)):
                expected[g, h] += (held + growth * h) * (everybody[age + h] / alive)
        else:
            alive = float(end - low)
            place = low
            for h in range(width):
                while place < end and outputs[place] <= age + h:
                    place += 1
                expected[g, h] += (held + growth * h) * ((end - place) / alive)
    for g in range(G):
        for h in range(width):
            projected[g, h] = int(np.rint(expected[g, h]))


@kernel
def _longer(outputs: Ints, begin: int, end: int) -> Ints:
    """For each t up to the longest of the ascending outputs[begin:end], how many of them are longer than t."""
    counts = np.zeros(outputs[end - 1] + 1, np.int64)
    place = begin
    for t in range(counts.size):
        while place < end and outputs[place] <= t:
            place += 1
        counts[t] = end - place
    return counts
