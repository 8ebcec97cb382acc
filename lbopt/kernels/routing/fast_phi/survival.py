"""Survival curves from sorted samples: the share of outputs that are longer than h steps, for h = 0, 1, ...

A request that is to be placed runs for at least one step, so its curve is that of the samples beyond zero, and begins
with one.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.forecast.ends import bucket_in_use, first_beyond


@kernel
def count_beyond(outputs: Ints, begin: int, end: int, counts: Floats) -> None:
    """Write how many of the ascending outputs[begin:end] are longer than h into counts[h], float64 (T,).

    Parameters
    ----------
    outputs
        int64, ascending within [begin, end), steps.
    begin, end
        Which of them.
    counts
        float64 (T,), written.
    """
    low = begin
    for h in range(counts.size):
        while low < end and outputs[low] <= h:
            low += 1
        counts[h] = end - low


@kernel
def survival_curve(outputs: Ints, starts: Ints, bucket: int, curve: Floats) -> bool:
    """Write S(h) of a request that starts now into curve[h], float64 (T,); returns whether anything is known of it.

    Parameters
    ----------
    outputs, starts
        int64, the samples in buckets, steps.
    bucket
        Of the request; hands over to bucket 0 as in `lbopt.kernels.forecast.ends`.
    curve
        float64 (T,), written.
    """
    b = bucket_in_use(outputs, starts, bucket, 0)
    begin, end = first_beyond(outputs, starts[b], starts[b + 1], 0), starts[b + 1]
    if begin == end:
        return False
    count_beyond(outputs, begin, end, curve)
    for h in range(curve.size):
        curve[h] /= end - begin
    return True
