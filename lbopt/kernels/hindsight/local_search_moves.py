"""Exchanges of chains of requests in a placement of a whole run, kept where the sum of the barriers falls.

A trial draws two steps and takes the one whose barrier is farther above what no placement is below, a request i of its
heaviest worker g, and another worker h, every second time the lightest. Request i goes to h. Where h has a request that
starts in the same step, that one comes to g for it; where h has a free slot, it may also be one that starts later and
runs with i, and if there is none, i just moves. From then on the slots have to work out, in every step of the run. Say
what has gone to h ends in step u and what has come to g ends in step v > u. Then g has one request more than before in
the steps u..v - 1. As long as g has a free slot nothing has to be done; in the first step in which it has none, some
request starts on g, and that one goes to h, too, where there is room for it. With u > v the same holds the other way
round. Where several requests start in such a step, every second time the one is taken whose end is next to that of the
other side. The chain ends where u = v, or where slots are free up to the later of the two: in a full fleet after some
requests, or in the drain; below saturation most often at once, so that a chain is a plain move or exchange.

In each step of a chain the new barrier is

    max(heaviest of the workers other than g and h, L_g - x, L_h + x),

with x what worker g loses; the heaviest of the others is among the three heaviest of all, which are kept for each step.
The same trials are made on the run read backwards, where requests come at their ends and get smaller: a chain then
begins at the end of its first request and restores the slots of the steps before it. So a request that ends in the
drain is moved where slots are free, and the steps before pay for it, not the other way round.

A trial costs the steps of its chain, not those of the run times the workers. Exchanges of pairs are those of Graham's
scheduling (2-exchange); chains that restore what an exchange breaks are ejection chains (Glover 1996).
"""

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.sampling.draw import uniform, word

#: Workers that are kept in order for each step: two may be left out, and one is still known.
KEPT = 3


#: Steps that are drawn for a trial, of which the one is taken whose barrier is farthest above its bound.
DRAWN = 2

#: Share of the trials, among those of a step in which h has a free slot, in which a request of h comes back whenever it
#: starts, not only one that starts with i.
EXCHANGED = 0.5

#: Requests of a chain, beyond which it is given up.
LONGEST_CHAIN = 512


class Placement(NamedTuple):
    """A placement of a run, changed in place.

    Parameters
    ----------
    start, prompt, output
        int64 (N,), requests in the order in which they come: the step, the tokens in it, and the steps that they stay.
    growth
        Tokens by which a request grows a step: 1, or -1 where the run is read backwards.
    slots
        B.
    last_start
        Step in which the last request starts; the drain comes after it.
    first
        int64 (K + 1,), the first request that starts in a step or later.
    spacing
        Steps between two that have a list of the requests that run in them.
    listed, lists
        int64 (K / spacing + 2,) and int64: where the list of each such step begins, and the lists.
    worker
        int64 (N,), where they run.
    loads, held
        int64 (K, G): tokens and requests of each worker in each step.
    heaviest, holder
        int64 (K, 3): the largest loads of each step and their workers; -1 and no tokens where there are fewer.
    barrier, leader
        int64 (K,): the first of these.
    least
        int64 (K,), what the barrier of each step cannot be below.
    moved
        int64 (K,), scratch, zeros: what g loses in each step.
    chain
        int64 (2, LONGEST_CHAIN), scratch: requests that go from g to h, and from h to g.
    """

    start: Ints
    prompt: Ints
    output: Ints
    growth: int
    slots: int
    last_start: int
    first: Ints
    spacing: int
    listed: Ints
    lists: Ints
    worker: Ints
    loads: Ints
    held: Ints
    heaviest: Ints
    holder: Ints
    barrier: Ints
    leader: Ints
    least: Ints
    moved: Ints
    chain: Ints


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
            if place == 0:
                placement.barrier[k], placement.leader[k] = load, g


@kernel
def _others(placement: Placement, k: int, g: int, h: int) -> int:
    """Return the largest load of the other workers.

    Parameters
    ----------
    placement
        The placement.
    k
        The step.
    g, h
        Workers that are left out.
    """
    for c in range(KEPT):
        if placement.holder[k, c] != g and placement.holder[k, c] != h:
            return placement.heaviest[k, c]
    return 0


@kernel
def _draw(placement: Placement, k: int, g: int, share: float) -> int:
    """Return one of the requests that run on a worker in a step; -1 for none.

    Parameters
    ----------
    placement
        The placement.
    k, g
        The step and the worker.
    share
        In [0, 1): which of them, in the order of their starts.
    """
    place = k // placement.spacing
    begin, end = placement.listed[place], placement.listed[place + 1]
    born, until = placement.first[place * placement.spacing + 1], placement.first[k + 1]
    running = 0
    for again in range(2):
        wanted, seen = int(share * running), 0
        for c in range(end - begin + max(0, until - born)):
            i = placement.lists[begin + c] if c < end - begin else born + c - (end - begin)
            if placement.worker[i] == g and placement.start[i] + placement.output[i] > k:
                if again == 1 and seen == wanted:
                    return i
                seen += 1
        running = seen
    return -1


@kernel
def _starting(placement: Placement, k: int, g: int, share: float, near: int) -> int:
    """Return one of the requests that start on a worker in a step; -1 for none.

    Parameters
    ----------
    placement
        The placement.
    k, g
        The step and the worker.
    share
        In [0, 1): which of them; beyond 1 / 2 the one whose end is next to `near`.
    near
        A step.
    """
    if share >= 0.5:
        best, distance = -1, 0
        for i in range(placement.first[k], placement.first[k + 1]):
            off = abs(placement.start[i] + placement.output[i] - near)
            if placement.worker[i] == g and (best < 0 or off < distance):
                best, distance = i, off
        return best
    share = 2 * share
    count = 0
    for i in range(placement.first[k], placement.first[k + 1]):
        count += placement.worker[i] == g
    wanted = int(share * count)
    for i in range(placement.first[k], placement.first[k + 1]):
        if placement.worker[i] == g:
            if wanted == 0:
                return i
            wanted -= 1
    return -1


@kernel
def _move(placement: Placement, i: int, sign: int) -> None:
    """Write into `moved` that request i leaves g, or with sign -1 that it comes."""
    for age in range(placement.output[i]):
        placement.moved[placement.start[i] + age] += sign * (placement.prompt[i] + placement.growth * age)


@kernel
def _change(placement: Placement, g: int, h: int, first: int, last: int, give_up: int) -> int:
    """Return by how much barriers change in sum if worker g loses what `moved` says, and h gets it.

    Parameters
    ----------
    placement
        The placement.
    g, h
        The workers.
    first, last
        Steps that are counted: first..last - 1.
    give_up
        Tokens; counting stops once the sum is above.
    """
    change = 0
    for k in range(first, last):
        x = placement.moved[k]
        if x != 0:
            new = max(placement.loads[k, g] - x, placement.loads[k, h] + x)
            top = placement.leader[k]
            if top != g and top != h and new <= placement.barrier[k]:
                continue  # most steps: another worker is the heaviest, and stays it
            change += max(new, _others(placement, k, g, h)) - placement.barrier[k]
            if change > give_up:
                break
    return change


@kernel
def _carry(placement: Placement, i: int, h: int) -> None:
    """Let request i run on worker h instead."""
    g = placement.worker[i]
    for age in range(placement.output[i]):
        k, size = placement.start[i] + age, placement.prompt[i] + placement.growth * age
        placement.loads[k, g] -= size
        placement.loads[k, h] += size
        placement.held[k, g] -= 1
        placement.held[k, h] += 1
    placement.worker[i] = h


@kernel
def _try_chain(placement: Placement, i: int, h: int, partner: int, seed: np.uint64, number: int, give_up: int) -> int:
    """Let request i go to worker h with all that this takes, if the barriers fall, and return by how much.

    Parameters
    ----------
    placement
        Changed in place where the barriers fall.
    i, h
        The request, and the worker that it goes to.
    partner
        A request of worker h that comes for it, and does not start before it; -1 for one that starts in the same step.
    seed, number
        The stream of random numbers, and the first that is drawn from it.
    give_up
        A chain is given up once the barriers have risen by more than this, tokens.
    """
    g, begin = placement.worker[i], placement.start[i]
    workers = (g, h)
    given = placement.output[i] + begin  # u: what has gone to h ends here
    taken = begin  # v: what has come to g ends here
    chain, counts, last, counted, change = placement.chain, np.array([1, 0]), given, begin, 0
    chain[0, 0] = i
    _move(placement, i, 1)
    closed = False
    j = partner
    if partner < 0:
        j = _starting(placement, begin, h, uniform(word(seed, number)), given)
    elif placement.start[partner] > begin:
        j = -1
    else:
        partner = -1
    if j >= 0:
        chain[1, 0], counts[1], taken = j, 1, begin + placement.output[j]
        last = max(last, taken)
        _move(placement, j, -1)
    while not closed:
        side = 0 if given < taken else 1  # who has a request too many: g, or h
        full, k, end = workers[side], min(given, taken), max(given, taken)
        if partner >= 0 and placement.start[partner] < k:
            partner = -1  # too late: the chain has run past it
        comes = placement.start[partner] if side == 1 and partner >= 0 else end
        while k < min(comes, end) and placement.held[k, full] < placement.slots:
            k += 1
        if k == end:
            closed = True
            break
        if k == comes:
            j, partner = partner, -1
        else:
            number += 1
            j = _starting(placement, k, full, uniform(word(seed, number)), end)
        if j < 0 or counts[side] == LONGEST_CHAIN:
            break
        chain[side, counts[side]] = j
        counts[side] += 1
        end = k + placement.output[j]
        last = max(last, end)
        _move(placement, j, 1 if side == 0 else -1)
        if side == 0:
            given = end
        else:
            taken = end
        change += _change(placement, g, h, counted, k, give_up - change)  # later members start in k or later
        counted = k
        if change > give_up:
            break
    if closed:
        change += _change(placement, g, h, counted, last, -change)
    for k in range(begin, last):
        placement.moved[k] = 0
    if not closed or change >= 0:
        return 0
    for side in range(2):
        for c in range(counts[side]):
            _carry(placement, chain[side, c], workers[1 - side])
    sort_steps(placement, begin, last)
    return -change


@kernel
def improve(placement: Placement, first: int, last: int, give_up: float, seed: np.uint64) -> int:
    """Try chains, and return by how much the sum of the barriers has fallen.

    Parameters
    ----------
    placement
        Changed in place.
    first, last
        Numbers of the first trial and of the one after the last; a trial draws by its number alone.
    give_up
        Tokens by which barriers may rise before a chain is given up, at least: a tenth of the trials are ten times as
        patient. A chain that is to mend a step of the drain is not given up, since what it saves comes last.
    seed
        Begins the stream of random numbers.
    """
    K, G, saved = placement.loads.shape[0], placement.loads.shape[1], 0
    if K < 1 or G < 2:
        return 0
    draws = LONGEST_CHAIN * 2 + 10 + DRAWN
    for trial in range(first, last):
        number = trial * draws
        k = int(uniform(word(seed, number)) * K)
        for more in range(1, DRAWN):
            other = int(uniform(word(seed, number + draws - more)) * K)
            if placement.barrier[other] - placement.least[other] > placement.barrier[k] - placement.least[k]:
                k = other
        g = placement.leader[k]
        i = _draw(placement, k, g, uniform(word(seed, number + 1)))
        if i < 0:
            continue
        share = 2 * uniform(word(seed, number + 2))
        h = int(np.argmin(placement.loads[k])) if share < 1 else int((share - 1) * G)
        if h == g:
            continue
        u = uniform(word(seed, number + 3))
        patience = int(min(give_up / (1 - u), 1e18)) if k <= placement.last_start else 10**18
        partner = -1
        if placement.held[k, h] < placement.slots and uniform(word(seed, number + 4)) < EXCHANGED:
            partner = _draw(placement, k, h, uniform(word(seed, number + 5)))
        if partner >= 0 and placement.start[partner] < placement.start[i]:
            i, h, partner = partner, g, i
        saved += _try_chain(placement, i, h, partner, seed, number + 6, patience)
    return saved
