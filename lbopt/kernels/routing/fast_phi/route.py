"""The expected overflow cost of one request on every worker, and where it goes.

    cost_g = sum_k c_k max(0, x_k - m_gk)  +  lambda sum_k c_k (L_gk - mean L_k) x_k

x_k being the request's load at node k if it still runs, c_k weight times survival. The second sum, off by default, is
the first-order drift of the variance of loads.

Ties are frequent: every worker with room for the whole request costs nothing. They go to the lightest worker, which
makes one node the rule `jsq-load`; to the lowest number, and requests pile up there.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.fast_phi.state import Board, How, Law


@kernel
def overflow_costs(board: Board, law: Law, how: How, size: int) -> None:
    """Write what a request of `size` tokens would cost on each worker into `board.cost`."""
    nodes, load, peak, cost = board.nodes, board.load, board.peak, board.cost
    drift, by_mean, growth = how.drift, how.by_mean, how.growth
    K, G = load.shape
    cost[:] = 0.0
    for k in range(K):
        c = law.coefficient[k]
        if c == 0:
            continue
        present = float(size + growth * nodes[k])
        room = peak[k] - present
        for g in range(G):
            cost[g] += c * max(load[k, g] - room, 0.0)
        if drift == 0:
            continue
        mean = 0.0
        for g in range(G):
            mean += load[k, g]
        mean /= G
        scale = drift
        if by_mean:
            scale = drift / mean if mean > 0 else 0.0
        for g in range(G):
            cost[g] += scale * c * present * (load[k, g] - mean)


@kernel
def cheapest(cost: Floats, tokens: Ints, free: Ints, by_load: bool) -> int:
    """Worker of least cost among those with a free slot, or -1; ties: fewest tokens where `by_load`, lowest number.

    Parameters
    ----------
    cost
        float64 (G,), tokens times steps.
    tokens
        int64 (G,), held by each worker.
    free
        int64 (G,), free slots; empty: every worker will do.
    by_load
        Whether ties go to the fewest tokens.
    """
    best = -1
    for g in range(cost.size):
        if free.size > 0 and free[g] <= 0:
            continue
        if best < 0 or cost[g] < cost[best] or (by_load and cost[g] == cost[best] and tokens[g] < tokens[best]):
            best = g
    return best


@kernel
def route(board: Board, law: Law, how: How, size: int, free: Ints) -> int:
    """Place one request where it costs least and return that worker, or -1 where no slot is free.

    Parameters
    ----------
    size
        Tokens of the request.
    free
        int64 (G,), free slots, or empty; changed in place.
    """
    overflow_costs(board, law, how, size)
    g = cheapest(board.cost, board.tokens, free, how.by_load)
    if g < 0:
        return g
    nodes, load, peak = board.nodes, board.load, board.peak
    for k in range(nodes.size):
        load[k, g] += (size + how.growth * nodes[k]) * law.alive[k]
        peak[k] = max(peak[k], load[k, g])
    board.tokens[g] += size
    board.requests[g] += 1
    if free.size > 0:
        free[g] -= 1
    return g


@kernel
def still_as_placed(
    tokens: Ints,
    requests: Ints,
    total_age: int,
    loads: Ints,
    queued_tokens: Ints,
    running: Ints,
    queued: Ints,
    generated: Ints,
) -> bool:
    """Whether the workers hold what the placements so far have given them, and none has aged.

    Parameters
    ----------
    tokens, requests
        int64 (G,), held by each worker by the placements so far.
    total_age
        Tokens made by all running requests at the last placement.
    loads, queued_tokens, running, queued
        int64 (G,), what the workers hold now.
    generated
        int64 (A,), tokens made by each running request.
    """
    for g in range(tokens.size):
        if tokens[g] != loads[g] + queued_tokens[g] or requests[g] != running[g] + queued[g]:
            return False
    age = 0
    for i in range(generated.size):
        age += generated[i]
    return age == total_age
