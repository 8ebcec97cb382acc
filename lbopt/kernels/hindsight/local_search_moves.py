"""Moves and exchanges of requests in a placement of a whole run, kept where the sum of the barriers falls.

A trial draws a request i and a step of its life. Where its worker g is not the heaviest in that step, the trial ends:
moving i could not lower this barrier. Else i moves to another worker h with a free slot in every step of its life, or
changes places with a request j of worker h that starts near it; slots are checked in the steps in which one of the two
runs and the other does not. In each step of the two lives the new barrier is

    max(heaviest of the workers other than g and h, L_g - x, L_h + x),

with x what worker g loses; the heaviest of the others is among the three heaviest of all, which are kept for each step.
So a trial costs the steps of two lives, not those of the run times the workers. Where all slots are full in all steps
no trial but that of requests with the same life passes the check: there the beam has to do the work
(`local_search_beam`). Below saturation most requests can move.
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import uniform, word

#: Workers that are kept in order for each step: two may be left out, and one is still known.
KEPT = 3


class Placement(NamedTuple):
    """A placement of a run, changed in place.

    Parameters
    ----------
    start, prompt, output
        int64 (N,), the requests in the order of their starts.
    slots
        B.
    worker
        int64 (N,), where they run.
    loads, held
        int64 (K, G): tokens and requests of each worker in each step.
    heaviest, holder
        int64 (K, 3): the largest loads of each step and their workers; -1 and no tokens where there are fewer.
    """

    start: Ints
    prompt: Ints
    output: Ints
    slots: int
    worker: Ints
    loads: Ints
    held: Ints
    heaviest: Ints
    holder: Ints


@kernel
def sort_steps(placement: Placement, first: int, last: int) -> None:
    """Find the three heaviest workers of the steps first..last - 1 anew."""
    G = placement.loads.shape[1]
    for k in range(first, last):
        for c in range(KEPT):
            placement.heaviest[k, c], placement.holder[k, c] = 0, -1
        for g in range(G):
            load, place = placement.loads[k, g], KEPT
            while place > 0 and (placement.holder[k, place - 1] < 0 or load > placement.heaviest[k, place - 1]):
                place -= 1
            for c in range(KEPT - 1, place, -1):
                placement.heaviest[k, c], placement.holder[k, c] = (
                    placement.heaviest[k, c - 1],
                    placement.holder[k, c - 1],
                )
            if place < KEPT:
                placement.heaviest[k, place], placement.holder[k, place] = load, g


@kernel
def _fits(placement: Placement, g: int, first: int, last: int) -> bool:
    """Return whether worker g has a free slot in each of the steps first..last - 1."""
    k = first
    while k < last and placement.held[k, g] < placement.slots:
        k += 1
    return k >= last


@kernel
def _others(placement: Placement, k: int, g: int, h: int) -> int:
    """Return the largest load in step k of the workers other than g and h."""
    for c in range(KEPT):
        if placement.holder[k, c] != g and placement.holder[k, c] != h:
            return placement.heaviest[k, c]
    return 0


@kernel
def _change(placement: Placement, g: int, h: int, i: int, j: int) -> int:
    """Return by how much the barriers change in sum if i goes from g to h, and j, unless it is -1, from h to g."""
    start, end = placement.start[i], placement.start[i] + placement.output[i]
    first, last = start, end
    other_start, other_end = 0, 0
    if j >= 0:
        other_start, other_end = placement.start[j], placement.start[j] + placement.output[j]
        first, last = min(first, other_start), max(last, other_end)
    change = 0
    for k in range(first, last):
        x = 0
        if start <= k < end:
            x += placement.prompt[i] + k - start
        if j >= 0 and other_start <= k < other_end:
            x -= placement.prompt[j] + k - other_start
        if x != 0:
            new = max(placement.loads[k, g] - x, placement.loads[k, h] + x)
            change += max(new, _others(placement, k, g, h)) - placement.heaviest[k, 0]
    return change


@kernel
def _carry(placement: Placement, i: int, h: int) -> None:
    """Let request i run on worker h instead."""
    g = placement.worker[i]
    for age in range(placement.output[i]):
        k, size = placement.start[i] + age, placement.prompt[i] + age
        placement.loads[k, g] -= size
        placement.loads[k, h] += size
        placement.held[k, g] -= 1
        placement.held[k, h] += 1
    placement.worker[i] = h


@kernel
def _exchange_fits(placement: Placement, i: int, j: int) -> bool:
    """Return whether i and j, of two workers, may change places."""
    g, h = placement.worker[i], placement.worker[j]
    start, end = placement.start[i], placement.start[i] + placement.output[i]
    other_start, other_end = placement.start[j], placement.start[j] + placement.output[j]
    if other_start >= end or start >= other_end:
        return _fits(placement, h, start, end) and _fits(placement, g, other_start, other_end)
    return (
        _fits(placement, h, start, other_start)
        and _fits(placement, g, other_start, start)
        and _fits(placement, h, other_end, end)
        and _fits(placement, g, end, other_end)
    )


@kernel
def improve(placement: Placement, near: int, first: int, last: int, seed: np.uint64) -> int:
    """Try moves and exchanges, and return by how much the sum of the barriers has fallen.

    Parameters
    ----------
    placement
        Changed in place.
    near
        Requests before and after i in the order of the starts that are drawn from for an exchange.
    first, last
        Numbers of the first trial and of the one after the last; a trial draws by its number alone.
    seed
        Begins the stream of random numbers.
    """
    N, G, saved = placement.start.size, placement.loads.shape[1], 0
    if N < 1 or G < 2:
        return 0
    for trial in range(first, last):
        i = int(uniform(word(seed, 3 * trial)) * N)
        g = placement.worker[i]
        start, end = placement.start[i], placement.start[i] + placement.output[i]
        if placement.holder[start + int(uniform(word(seed, 3 * trial + 1)) * (end - start)), 0] != g:
            continue
        best, chosen, to = 0, -2, -1
        for h in range(G):
            if h != g and _fits(placement, h, start, end):
                change = _change(placement, g, h, i, -1)
                if change < best:
                    best, chosen, to = change, -1, h
        j = i - near + int(uniform(word(seed, 3 * trial + 2)) * (2 * near + 1))
        if 0 <= j < N and placement.worker[j] != g and _exchange_fits(placement, i, j):
            change = _change(placement, g, placement.worker[j], i, j)
            if change < best:
                best, chosen, to = change, j, placement.worker[j]
        if chosen == -2:
            continue
        saved -= best
        _carry(placement, i, to)
        if chosen >= 0:
            _carry(placement, chosen, g)
            sort_steps(placement, placement.start[chosen], placement.start[chosen] + placement.output[chosen])
        sort_steps(placement, start, end)
    return saved
