"""Nodes and weights: which steps stand for all steps of a sum over a request's life.

*Published*: nodes at percentiles of the output lengths, trapezoid weights. Percentiles make panels of equal
probability, not of equal width, and the last one stays wide however many nodes there are.

*Product*: the survival is summed exactly and only the overflow is interpolated between nodes:

    w_k = sum_h S(h) psi_k(h),        psi_k the hat function at node k

On a panel of n steps the interpolant errs by at most n / 4 times the bends of the
overflow inside, so nodes are placed with density sqrt(S): then the error falls with the square of K.
"""

import math

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

#: Two sums of one thing in different order count as equal; relative.
ROUNDING = 1e-9


@kernel
def percentile_nodes(outputs: Ints, percentile: float, num_steps: int, nodes: Ints) -> int:
    """Write 0 and the K - 1 quantiles (inverse CDF) up to `percentile` of the ascending outputs; returns how many.

    Nodes lie in 0..num_steps-1 and are distinct, so there may be fewer than nodes.size = K of them.

    Parameters
    ----------
    outputs
        int64, ascending, steps.
    percentile
        Up to 100.
    nodes
        int64 (K,), written.
    """
    nodes[0] = 0
    used = 1
    for k in range(1, nodes.size):
        rank = math.ceil(outputs.size * (percentile / 100) * k / (nodes.size - 1) - ROUNDING)
        node = min(outputs[max(rank, 1) - 1], num_steps - 1)
        if node > nodes[used - 1]:
            nodes[used] = node
            used += 1
    return used


@kernel
def root_nodes(curve: Floats, nodes: Ints) -> int:
    """Write K nodes from 0 to T - 1 with density sqrt(S), S = curve, float64 (T,); returns how many are distinct."""
    total = 0.0
    for h in range(curve.size):
        total += math.sqrt(curve[h])
    nodes[0] = 0
    used = 1
    reached = math.sqrt(curve[0])
    h = 0
    for k in range(1, nodes.size):
        if k == nodes.size - 1:
            h = curve.size - 1
        while reached < total * k / (nodes.size - 1) * (1 - ROUNDING) and h < curve.size - 1:
            h += 1
            reached += math.sqrt(curve[h])
        if h > nodes[used - 1]:
            nodes[used] = h
            used += 1
    return used


@kernel
def trapezoid_weights(nodes: Ints, corrected: bool, weights: Floats) -> None:
    """Write the trapezoid weights of ascending nodes; corrected: half a step more at both ends.

    The sum over *whole steps* from the first to the last node counts its ends in full, the trapezoid half.
    """
    last = nodes.size - 1
    if last == 0:
        weights[0] = 1.0
        return
    weights[0] = (nodes[1] - nodes[0]) / 2
    weights[last] = (nodes[last] - nodes[last - 1]) / 2
    for k in range(1, last):
        weights[k] = (nodes[k + 1] - nodes[k - 1]) / 2
    if corrected:
        weights[0] += 0.5
        weights[last] += 0.5


@kernel
def product_weights(curve: Floats, nodes: Ints, weights: Floats) -> None:
    """Write sum_h S(h) psi_k(h), S = curve, float64 (T,); nodes ascend from 0 to T - 1.

    A single node stands for itself.
    """
    weights[:] = 0.0
    for k in range(nodes.size - 1):
        begin, end = nodes[k], nodes[k + 1]
        near, far = 0.0, 0.0
        for h in range(begin, end):
            near += curve[h] * (end - h)
            far += curve[h] * (h - begin)
        weights[k] += near / (end - begin)
        weights[k + 1] += far / (end - begin)
    weights[nodes.size - 1] += curve[nodes[nodes.size - 1]]
