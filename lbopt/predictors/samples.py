"""Samples of output lengths, sorted into buckets once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.forecast.samples import Samples
from lbopt.model.integers import integer_array


def one_bucket(outputs: Any) -> Samples:
    """Return all outputs, int (n,), as one bucket for all requests."""
    values = np.sort(integer_array("outputs", outputs, ndim=(1,)))
    return _with_sums(values, np.array([0, values.size], dtype=np.int64))


def buckets_by_key(outputs: Any, keys: NDArray[np.int64], num_keys: int) -> Samples:
    """Return the bucket of all requests, then one per key 0..num_keys-1 (bucket = key + 1); keys are int64 (n,)."""
    values = integer_array("outputs", outputs, ndim=(1,))
    by_key = values[np.lexsort((values, keys))]
    counts = np.bincount(keys, minlength=num_keys)
    starts = np.concatenate([[0], values.size + np.concatenate([[0], np.cumsum(counts)])])
    return _with_sums(np.concatenate([np.sort(values), by_key]), starts.astype(np.int64))


def one_each(outputs: NDArray[np.int64]) -> Samples:
    """Return a bucket for each request (place + 1) with its own output; the bucket of all requests is empty."""
    return _with_sums(outputs, np.concatenate([[0], np.arange(outputs.size + 1)]).astype(np.int64))


def _with_sums(outputs: NDArray[np.int64], starts: NDArray[np.int64]) -> Samples:
    values = np.ascontiguousarray(outputs, dtype=np.int64)
    return Samples(values, starts, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)]))


def ends_by_samples(
    samples: Samples, buckets: NDArray[np.int64], generated: NDArray[np.int64], horizon: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p and mu of each request by its bucket and age, float64 (n,) each.

    Parameters
    ----------
    samples
        Outputs by bucket.
    buckets
        int64, (n,): bucket of each request.
    generated
        int64, (n,): emitted tokens.
    horizon
        Steps of the window.
    """
    from lbopt.kernels.forecast.ends import ends_within

    p, mu = np.empty(buckets.size), np.empty(buckets.size)
    ends_within(samples, buckets, np.ascontiguousarray(generated, dtype=np.int64), horizon, p, mu)
    return p, mu
