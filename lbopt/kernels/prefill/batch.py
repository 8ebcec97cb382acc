"""A batch that goes to one instance, what its requests cost there, and which unit has the least to compute."""

from typing import NamedTuple

from lbopt.kernels.arrays import Ints, Record, integers
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

#: An allocation, and the parameters of all of them.
RULE = integers(
    "code",  # see `codes`
    "printed",  # 1: the printed rule, 0: the mended one; they differ only with a cache
    "cache",  # 1: a request costs what is not cached
    "limit",  # kept more often than this, a request is refused; -1: never
    "whole",  # 1: keep what would exceed the chunk of a unit that is not empty
    "split",  # of BACKFILL: kept requests of more than so many hundredths of a pass are computed in parts
)


@by_reference
class Batch(NamedTuple):
    """Requests that are shown to a rule, and its answer."""

    rule: Record  # RULE
    length: Ints  # int64 (n,), tokens: see `state.Requests`
    hits: Ints  # int64 (n, N, D), tokens
    deferred: Ints  # int64 (n,), dispatches that kept each request at the scheduler
    shown: Ints  # int64 (m,), request numbers, the oldest first, in the first places
    key: Ints  # int64 (m,), scratch
    unit: Ints  # int64 (m,), output: the unit of each position, KEEP or REFUSE


@kernel
def cost(length: Ints, hits: Ints, i: int, g: int, d: int) -> int:
    """Return the tokens that request i costs on unit d of instance g."""
    return length[i] if hits.size == 0 else length[i] - hits[i, g, d]


@kernel
def least_cost(length: Ints, hits: Ints, i: int, g: int) -> int:
    """Return the tokens that request i costs where most of it is cached, on instance g."""
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


@kernel
def longest_first(length: Ints, shown: Ints, count: int, key: Ints) -> Ints:
    """Return the first `count` positions, the longest prompt first; of equal lengths the oldest."""
    for k in range(count):
        key[k] = -length[shown[k]]
    return key[:count].argsort(kind="mergesort")
