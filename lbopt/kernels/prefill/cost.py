"""What a request costs on a unit, and which unit has the least to compute."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def cost(length: Ints, hits: Ints, i: int, g: int, d: int) -> int:
    """Return the tokens that request i costs on unit d of instance g.

    Parameters
    ----------
    length, hits
        int64 (n,), (n, N, D), tokens: see `state.Requests`.
    i, g, d
        Request, instance, unit.
    """
    return length[i] if hits.size == 0 else length[i] - hits[i, g, d]


@kernel
def least_cost(length: Ints, hits: Ints, i: int, g: int) -> int:
    """Return the tokens that request i costs where most of it is cached, on instance g.

    Parameters
    ----------
    length, hits, i, g
        As of `cost`.
    """
    if hits.size == 0:
        return length[i]
    most = 0
    for d in range(hits.shape[2]):
        most = max(most, hits[i, g, d])
    return length[i] - most


@kernel
def least_loaded(load: Ints) -> int:
    """Return the unit with the least load; ties go to the lowest number."""
    d = 0
    for other in range(1, load.size):
        if load[other] < load[d]:
            d = other
    return d
