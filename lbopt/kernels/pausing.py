"""Which requests pause, and for how long: the plan and its state.

What the loop knows of pausing: `Pausing`. Its arrays are empty where none pauses.

A request counts as ``2 * blocks``, plus 1 if the plan let it in to fill a slot.

DyntraLB's plan: swap and pause each worker's own requests until the heaviest worker is near the mean.

Nothing moves between workers. Slots are filled from the queue; then, again and again, the lightest worker swaps a
running request for a heavier one that waits, and the heaviest one for a lighter one; where neither can, the heaviest
pauses one if more requests a second come of it. Distances are compared as integers, times the number of workers.

Source: vllm-ascend, pull request 12292, ``patch_dyntra_lb_core.py``; restated in the manual, page *detail*, Pausing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.by_reference import by_reference
from lbopt.kernels.compile import kernel
from lbopt.kernels.stable_order import ascending

# modes
NEVER = 0
STATIC = 1  # a plan after every step
DYNAMIC = 2  # for some time after a long request has come

#: The options, and where balancing stands.
TERMS = np.dtype(
    [
        ("mode", np.int64),
        ("first_step", np.int64),
        ("threshold", np.float64),  # blocks above the mean; below 1 a share of the largest load
        ("long_blocks", np.int64),
        ("stays", np.int64),  # steps that balancing goes on without a long request
        ("is_on", np.int64),  # dynamic: balancing goes on
        ("idle_steps", np.int64),  # since the last long request
        ("long_came", np.int64),  # since this was last looked at
        ("in_force", np.int64),  # the next decision, or this one, follows a plan
    ],
    align=True,
)


@by_reference
class Pausing(NamedTuple):
    """Everything of G workers of B slots that only pausing needs; scratch but for `terms`, `leaving`, `entering`."""

    terms: Record  # TERMS
    inside: Ints  # int64 (G, 2B), counts of those that run; the first `num_inside` are meant
    num_inside: Ints  # int64 (G,)
    outside: Ints  # int64 (G, 2B), of those that wait
    num_outside: Ints  # int64 (G,)
    load: Ints  # int64 (G,), blocks of those that run
    order: Ints  # int64 (G,), workers by load
    changed: Ints  # int64 (G,), 1 where the plan did more than fill slots
    leaving: Ints  # int64 (G, 2B), the plan: blocks of requests to pause
    num_leaving: Ints  # int64 (G,)
    entering: Ints  # int64 (G, 2B), the plan: blocks of requests to let in
    num_entering: Ints  # int64 (G,)
    candidates: Ints  # int64 (G,), requests at the head of the queue that the plan knew
    paused: Ints  # int64 (B,)


MOST_ROUNDS = 1000
# a step's duration in the source's unit, times 5: a fixed part, and what each block of the heaviest worker adds
FIXED_PART = 100_000
PART_OF_BLOCK = 96
IS_NEW = 1  # a request counts as 2 * blocks, plus this if it fills a slot


@kernel
def balance(slots: Ints, threshold: float, pausing: Pausing) -> None:
    """Change `Pausing.inside` and `outside` into what the plan wants, and `load` with them.

    Parameters
    ----------
    slots
        int64 (G,).
    threshold
        Blocks by which the largest load may exceed the mean; below 1 a share of the largest load.
    pausing
        `inside`, `outside` and their numbers say what runs and waits; changed in place.
    """
    G = slots.size
    load, order = pausing.load, pausing.order
    for g in range(G):
        order[g] = g
        pausing.changed[g] = 0
        load[g] = 0
        for place in range(pausing.num_inside[g]):
            load[g] += pausing.inside[g, place] // 2
        _fill(g, slots[g], pausing)
    for _ in range(MOST_ROUNDS):
        _sort(order, load)
        if _is_level(load, threshold):
            return
        swapped = _swap(order[G - 1], 1, pausing)
        if swapped:
            if _is_level(load, threshold):
                return
            _sort(order, load)
        heaviest = order[0]
        swapped = _swap(heaviest, -1, pausing) or swapped
        if not swapped and not _pause_one(heaviest, pausing):
            return


@kernel
def _fill(g: int, slots: int, pausing: Pausing) -> None:
    """Let those that wait on worker `g` run, in their order, until its slots are taken."""
    count = min(slots - pausing.num_inside[g], pausing.num_outside[g])
    if count <= 0:
        return
    inside, outside = pausing.inside[g], pausing.outside[g]
    for place in range(count):
        inside[pausing.num_inside[g] + place] = outside[place] | IS_NEW
        pausing.load[g] += outside[place] // 2
    pausing.num_inside[g] += count
    pausing.num_outside[g] -= count
    for place in range(pausing.num_outside[g]):
        outside[place] = outside[place + count]


@kernel
def _sort(order: Ints, load: Ints) -> None:
    """Sort workers by load, heaviest first; equal ones keep their order.

    Parameters
    ----------
    order, load
        int64 (G,); the first is changed in place.
    """
    for place in range(1, order.size):
        g = order[place]
        at = place
        while at > 0 and load[order[at - 1]] < load[g]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = g


@kernel
def _is_level(load: Ints, threshold: float) -> bool:
    """Return whether the largest load is less than `threshold` above the mean."""
    largest, above = load.max(), load.max() * load.size - load.sum()  # above the mean, times G
    if threshold < 1:
        return bool(above < threshold * largest * load.size) if largest > 0 else bool(threshold > 0)
    return bool(above < threshold * load.size)


@kernel
def _swap(g: int, sign: int, pausing: Pausing) -> bool:
    """Swap one running request of worker `g` for one that waits, if that brings its load nearer to the mean.

    Parameters
    ----------
    sign
        1: for a heavier one; -1: for a lighter one.
    pausing
        Changed in place.
    """
    inside, outside = pausing.inside[g], pausing.outside[g]
    n, m, G = pausing.num_inside[g], pausing.num_outside[g], pausing.load.size
    above = pausing.load[g] * G - pausing.load.sum()
    nearest, was_new = abs(above), 0
    best_in, best_out = -1, -1
    for place in range(n):
        blocks, is_new = inside[place] // 2, inside[place] % 2
        for other in range(m):
            more = outside[other] // 2 - blocks
            if more * sign <= 0:
                continue
            distance = abs(above + more * (G - 1))
            if distance < nearest or (distance == nearest and is_new > was_new):
                nearest, was_new = distance, is_new
                best_in, best_out = place, other
    if best_in < 0:
        return False
    left, joined = inside[best_in], outside[best_out]
    _to_end(inside, best_in, n, joined)
    _to_end(outside, best_out, m, left)
    pausing.load[g] += joined // 2 - left // 2
    pausing.changed[g] = 1
    return True


@kernel
def _to_end(items: Ints, place: int, count: int, item: int) -> None:
    """Take `items[place]` out of the first `count`, and put `item` behind the others.

    Parameters
    ----------
    items
        int64; changed in place.
    place, count, item
        Which goes, how many are meant, and which comes.
    """
    for at in range(place, count - 1):
        items[at] = items[at + 1]
    items[count - 1] = item


@kernel
def _pause_one(g: int, pausing: Pausing) -> bool:
    """Pause one request of the heaviest worker `g`, if more requests a second come of it; returns whether it did."""
    load = pausing.load
    total = pausing.num_inside.sum()
    if total <= 1:
        return False
    second = 0
    for other in range(load.size):
        if other != g:
            second = max(second, load[other])
    inside, n = pausing.inside[g], pausing.num_inside[g]
    best, best_heaviest, was_new = -1, 0, 0
    for place in range(n):
        is_new = inside[place] % 2
        heaviest = max(load[g] - inside[place] // 2, second)
        if best < 0:
            now = total * (FIXED_PART + PART_OF_BLOCK * heaviest)
            then = (total - 1) * (FIXED_PART + PART_OF_BLOCK * load[g])
            better = then > now or (then == now and is_new == 1)
        else:
            better = heaviest < best_heaviest or (heaviest == best_heaviest and is_new > was_new)
        if better:
            best, best_heaviest, was_new = place, heaviest, is_new
    if best < 0:
        return False
    left = inside[best]
    _to_end(inside, best, n, left)
    pausing.num_inside[g] -= 1
    pausing.outside[g, pausing.num_outside[g]] = left
    pausing.num_outside[g] += 1
    load[g] -= left // 2
    pausing.changed[g] = 1
    return True


@kernel
def write_difference(before: Ints, after: Ints, leaving: Ints, entering: Ints) -> tuple[int, int]:
    """Write what is in `before` and not in `after`, and the reverse; equal counts cancel one by one.

    The source notes what leaves and enters, and cancels at the end; what is left is this difference.

    Parameters
    ----------
    before, after
        int64, blocks of what runs.
    leaving, entering
        int64, output.

    Returns
    -------
    tuple of ints
        How many leave and enter.
    """
    before, after = ascending(before), ascending(after)
    i, k, left, entered = 0, 0, 0, 0
    while i < before.size or k < after.size:
        if k == after.size or (i < before.size and before[i] < after[k]):
            leaving[left] = before[i]
            left, i = left + 1, i + 1
        elif i == before.size or after[k] < before[i]:
            entering[entered] = after[k]
            entered, k = entered + 1, k + 1
        else:
            i, k = i + 1, k + 1
    return left, entered


@kernel
def strike_from(items: Ints, count: int, item: int) -> bool:
    """Take one `item` out of the first `count` of `items`, if it is there; the last takes its place."""
    for place in range(count):
        if items[place] == item:
            items[place] = items[count - 1]
            return True
    return False
