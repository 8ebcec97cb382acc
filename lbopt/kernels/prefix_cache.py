"""Caches of prefixes: which blocks of prompts a worker still holds from requests that ran there.

The caches of all workers: `PrefixCache`. Its arrays are empty where nobody caches.

Blocks are numbered from 0; a block's number stands for its tokens and all before it. What a worker holds is a chain in
the order of last use.

A cache of blocks that forgets the least recently used ones.

A request finds the longest head of its blocks that the worker holds. When it starts, all its blocks are used, the
first of them last, so that of a prefix the end is forgotten before the beginning.
Definition: the manual, page *detail*, "Prefix caches".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel

Links = NDArray[np.int32]

# links of a block that is at an end of the chain, or not held
NONE = -1
ABSENT = -2


@by_reference
class PrefixCache(NamedTuple):
    """Caches of G workers, of M different blocks."""

    first: Ints  # int64 (N + 1,), where the blocks of a request begin in `blocks`
    blocks: Ints  # int64 (K,), full blocks of the prompts, in order
    newer: Links  # int32 (G, M), the block used next after this one; NONE or ABSENT
    older: Links  # int32 (G, M)
    newest: Ints  # int64 (G,)
    oldest: Ints  # int64 (G,)
    held: Ints  # int64 (G,), blocks
    to_compute: Ints  # int64 (G,), scratch: tokens that come before a request's first token, if it goes there


@kernel
def num_found(i: int, w: int, cache: PrefixCache) -> int:
    """Return how many blocks at the head of request `i`'s prompt worker `w` holds."""
    first = cache.first[i]
    count = cache.first[i + 1] - first
    for place in range(count):
        if cache.newer[w, cache.blocks[first + place]] == ABSENT:
            return place
    return count


@kernel
def use_blocks(i: int, w: int, capacity: int, cache: PrefixCache) -> None:
    """Let worker `w` hold the blocks of request `i`.

    Parameters
    ----------
    i, w
        Request and worker.
    capacity
        Blocks that it holds at most.
    cache
        Changed in place.
    """
    first = cache.first[i]
    for at in range(cache.first[i + 1] - 1, first - 1, -1):
        block = cache.blocks[at]
        if cache.newer[w, block] == ABSENT:
            cache.held[w] += 1
        else:
            _unlink(block, w, cache)
        _make_newest(block, w, cache)
        if cache.held[w] > capacity:
            _forget_oldest(w, cache)


@kernel
def forget_all(w: int, cache: PrefixCache) -> None:
    """Empty the cache of worker `w`."""
    while cache.held[w] > 0:
        _forget_oldest(w, cache)


@kernel
def _forget_oldest(w: int, cache: PrefixCache) -> None:
    """Forget the least recently used block."""
    block = cache.oldest[w]
    _unlink(block, w, cache)
    cache.newer[w, block] = ABSENT
    cache.held[w] -= 1


@kernel
def _unlink(block: int, w: int, cache: PrefixCache) -> None:
    """Take a block out of the chain."""
    newer, older = cache.newer[w, block], cache.older[w, block]
    if newer == NONE:
        cache.newest[w] = older
    else:
        cache.older[w, newer] = older
    if older == NONE:
        cache.oldest[w] = newer
    else:
        cache.newer[w, older] = newer


@kernel
def _make_newest(block: int, w: int, cache: PrefixCache) -> None:
    """Put a block at the end of the chain that was used last."""
    before = cache.newest[w]
    cache.older[w, block] = before
    cache.newer[w, block] = NONE
    cache.newest[w] = block
    if before == NONE:
        cache.oldest[w] = block
    else:
        cache.newer[w, before] = block
