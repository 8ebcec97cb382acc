"""Does a request end within H more steps, and when? The conditional law of its samples, by two binary searches.

Of the n samples of its bucket those beyond its age a count, lo..n; those of them up to a + H end inside the window:

    p = (hi - lo) / (n - lo)            mu = (sum of samples lo..hi) / (hi - lo) - a

(BalanceRoute, section 4.2 (a)). A bucket without a sample beyond the age hands over to bucket 0; where that has none
either, nothing is known, and p = 0, mu = H: the request outlives the window.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.forecast.state import Samples


@kernel
def first_beyond(outputs: Ints, begin: int, end: int, age: int) -> int:
    """First place in the ascending outputs[begin:end] with more than `age` steps; `end` where there is none.

    Parameters
    ----------
    outputs
        int64 (S,), decode steps, ascending from `begin` to `end`.
    begin, end, age
        The part that is searched, and decode steps.
    """
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if outputs[middle] <= age:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def bucket_in_use(outputs: Ints, starts: Ints, bucket: int, age: int) -> int:
    """`bucket`, or 0 where no sample of it is longer than `age`.

    Parameters
    ----------
    outputs, starts
        See `Samples`.
    bucket, age
        The bucket, and decode steps.
    """
    end = starts[bucket + 1]
    return bucket if end > starts[bucket] and outputs[end - 1] > age else 0


@kernel
def ends_within(samples: Samples, buckets: Ints, generated: Ints, horizon: int, p: Floats, mu: Floats) -> None:
    """Write for each request the chance to end within `horizon` more steps, and the mean of them if it does.

    `buckets` and `generated` are int64 (n,), `p` and `mu` float64 (n,), written.

    Parameters
    ----------
    buckets, generated
        int64 (n,), bucket of each request, and the tokens that it has generated.
    horizon
        Decode steps.
    p, mu
        float64 (n,), written.
    """
    outputs, starts, sums = samples.outputs, samples.starts, samples.sums
    for i in range(buckets.size):
        age = generated[i]
        b = bucket_in_use(outputs, starts, buckets[i], age)
        begin, end = starts[b], starts[b + 1]
        low = first_beyond(outputs, begin, end, age)
        high = first_beyond(outputs, low, end, age + horizon)
        if high == low:
            p[i] = 0.0
            mu[i] = horizon
        else:
            p[i] = (high - low) / (end - low)
            mu[i] = (sums[high] - sums[low]) / (high - low) - age
