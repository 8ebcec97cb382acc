"""Survival curves from samples, and the load that is expected on each worker in h steps.

Survival curves from sorted samples: the share of outputs that are longer than h steps, for h = 0, 1, ...

A request that is to be placed runs for at least one step, so its curve is that of the samples beyond zero, and begins
with one.

The load that is expected on each worker in h steps, at given nodes h.

    L_g(h) = sum_i (size_i + h) S(a_i + h) / S(a_i)

over the running requests of worker g, a_i being their ages. Counts of samples stand for S. The samples of all requests,
bucket 0, are looked up in a table of counts; those of a bucket of its own by binary search from node to node. A bucket
without a sample beyond the age hands over to bucket 0; where that has none either the request counts as staying, or,
with `stays` off, as present in this step alone.

Cost: O(K A), with K nodes and A requests, and log n more where buckets are searched; over all steps K = T, and the
innermost loop runs over neighbouring steps.
"""

import numpy as np

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.forecast.ends import bucket_in_use, first_beyond
from lbopt.kernels.forecast.state import Samples
from lbopt.kernels.routing.fast_phi.state import Entries


@kernel
def count_beyond(outputs: Ints, begin: int, end: int, counts: Floats) -> None:
    """Write how many of the ascending outputs[begin:end] are longer than h into counts[h], float64 (T,).

    Parameters
    ----------
    outputs
        int64, ascending within [begin, end), steps.
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


@kernel
def project(
    samples: Samples,
    counts: Floats,
    decay: Floats,
    nodes: Ints,
    growth: int,
    stays: bool,
    entries: Entries,
    load: Floats,
) -> None:
    """Write the expected load of each worker at each node into `load`, float64 (K, G), tokens.

    Parameters
    ----------
    counts
        float64 (T,): how many samples of bucket 0 are longer than h; empty where that bucket is.
    decay
        float64 (K,): survival at the nodes, the same for every age, instead of samples; empty = by samples.
    nodes
        int64 (K,), ascending from 0.
    growth
        Tokens that a running request gains a step.
    stays
        Whether a request beyond all samples stays for good.
    """
    K, G = load.shape
    worker, size, members, age, bucket = entries
    order, first = _by_worker(worker, G)
    row = np.empty(K)
    every_step = K > 1 and nodes[K - 1] == K - 1
    for g in range(G):
        row[:] = 0.0
        for at in range(first[g], first[g + 1]):
            i = order[at]
            rate = growth * members[i]
            if decay.size > 0:
                for k in range(K):
                    row[k] += decay[k] * (size[i] + rate * nodes[k])
            elif bucket[i] > 0 or age[i] >= counts.size:
                _add_by_search(samples, nodes, stays, size[i], rate, age[i], bucket[i], row)
            elif every_step:
                _add_every_step(counts[age[i] :], size[i], rate, row)
            else:  # written out: a call would cost more than what it does
                alive = counts[age[i]]
                for k in range(K):
                    at_node = age[i] + nodes[k]
                    if at_node >= counts.size:
                        break
                    row[k] += (size[i] + rate * nodes[k]) * (counts[at_node] / alive)
        for k in range(K):
            load[k, g] = row[k]


@kernel
def _by_worker(worker: Ints, G: int) -> tuple[Ints, Ints]:
    """The places of `worker` in order of worker, and where each worker's begin, (G + 1,)."""
    first = np.zeros(G + 1, np.int64)
    for i in range(worker.size):
        first[worker[i] + 1] += 1
    for g in range(G):
        first[g + 1] += first[g]
    order = np.empty(worker.size, np.int64)
    at = first[:G].copy()
    for i in range(worker.size):
        order[at[worker[i]]] = i
        at[worker[i]] += 1
    return order, first


@kernel
def _add_every_step(counts: Floats, size: int, rate: int, row: Floats) -> None:
    """Add one entry's expected load at 0, 1, ... to `row`; `counts` begin at its age.

    Parameters
    ----------
    counts
        float64, how many samples are longer than each age, from the entry's age on.
    size, rate
        Tokens now, and tokens gained a step.
    row
        float64 (K,), tokens; changed in place.
    """
    row[0] += size
    share = 1 / counts[0]
    for h in range(1, min(row.size, counts.size)):
        row[h] += (size + rate * h) * (counts[h] * share)


@kernel
def _add_by_search(
    samples: Samples,
    nodes: Ints,
    stays: bool,
    size: int,
    rate: int,
    age: int,
    bucket: int,
    row: Floats,
) -> None:
    """Add one entry's expected load at each node to `row`.

    Parameters
    ----------
    rate
        Tokens gained a step.
    row
        float64 (K,), tokens; changed in place.
    """
    K = nodes.size
    outputs, starts = samples.outputs, samples.starts
    b = bucket_in_use(outputs, starts, bucket, age)
    end = starts[b + 1]
    low = first_beyond(outputs, starts[b], end, age)
    alive = end - low
    if alive == 0:
        row[0] += size
        if stays:
            for k in range(1, K):
                row[k] += size + rate * nodes[k]
        return
    for k in range(K):
        if outputs[low] <= age + nodes[k]:
            low = first_beyond(outputs, low, end, age + nodes[k])
            if low == end:
                break
        row[k] += (size + rate * nodes[k]) * ((end - low) / alive)
