"""The two ways to settle which assignment is the most even: lists of patterns, quick where there are few, and tickets.

Load by load: each asks one question, which is a step problem again.

Let b_0 >= b_1 >= ... be the loads at hand. They are leximax where for every j no assignment has a largest load of at
most b_0, a second one of at most b_1, and so on, and a (j+1)-th one below b_j. To ask this for any j heaviest workers,
every worker gets one slot more and takes one ticket in it: there is one ticket for each of b_0, ..., b_{j-1}, and W - j
tickets for b_j - 1. A ticket for the limit b is a request of B + b_0 - b tokens, where B is more than any worker has
room for, and the margin of every worker grows by B. So no worker can take two, and the one that takes the ticket for b
has room for b. Can all tickets be handed out, and the tokens admitted? That is what the exact search answers for one
envelope: with an assignment, which is more even than the one at hand, or with the proof that there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbopt.kernels.arrays import record
from lbopt.kernels.leximax.choose import DONE, choose_rows
from lbopt.kernels.leximax.lists import CHOICE, Choice, Lists
from lbopt.kernels.search.envelopes import advance
from lbopt.kernels.search.open_ranges import MASTER
from lbopt.kernels.search.state import OPEN, PROVED, Step
from lbopt.model.integers import IntArray
from lbopt.solvers.budget import Limits
from lbopt.solvers.exact.decision import LARGEST
from lbopt.solvers.exact.leximax_room import Room
from lbopt.solvers.exact.workspace import workspace

#: Steps of the search, some 20 to 40 ns each: what takes longer is left to tickets.
_BRIEF = 100_000

#: Rows of all lists, and what is left of them at the nodes in hand: no more than these and a row for each step.
_ROWS, _STACK = 80_000, 1 << 19


def choose(room: Room, limits: Limits) -> bool:
    """Look for something more even than the assignment of `room`, and keep it there; False where something is left."""
    prices = room.best_prices()
    if prices is None or limits.stopped() is not None:
        return False
    step, slots, W = room.step, room.slots, room.slots.size
    low, high = room.window()
    ceiling = room.search.bound[:W].copy()
    lists = Lists(
        v=step.v,
        base=room.base,
        slots=slots,
        listed=_ints(W),
        profit=room.scale * step.v - prices,
        ceiling=ceiling,
        forced=(step.floor < 0).astype(np.int64),
        items=np.empty((_ROWS, int(slots.max())), dtype=np.int64),  # written before they are read
        loss=np.empty(_ROWS, dtype=np.int64),
        load=np.empty(_ROWS, dtype=np.int64),
    )
    choice = Choice(
        state=record(CHOICE),
        avail=step.n.copy(),
        row=np.full(W, -1),
        order=_ints(W + 1),
        cursor=_ints(W + 1),
        left=_ints(W + 2),
        need=np.full(W + 2, room.total),
        begin=_ints(W + 2, W),
        end=_ints(W + 2, W),
        rows=_ints(W + 2),
        live=np.empty(_STACK, dtype=np.int64),
        best=room.best,
        answer=room.held.copy(),
        lo=low.copy(),
        hi=high.copy(),
        even=room.even_loads(),
        loads=_ints(W),
        least=_ints(W),
    )
    choice.left[0] = int((prices * step.n).sum()) - room.scale * room.tokens + int(ceiling.sum())
    choice.state.deadline = limits.deadline()
    state = choose_rows(lists, choice, _BRIEF)
    if choice.state.gains:
        room.take(choice.answer)
    return bool(state == DONE)


def _ints(*shape: int) -> IntArray:
    return np.zeros(shape, dtype=np.int64)


#: Work for one load, about microseconds; less once a load has stayed open, because only evenness is left to be gained.
WORK_OF_A_STAGE, WORK_AFTERWARDS = 2_000_000, 100_000

#: Work between two looks at the clock.
SLICE = 2_000

#: Steps of exchanges between workers after an assignment was found.
_EXCHANGES = 30_000_000


class Tickets(NamedTuple):
    """The question for one load: the step problem, its envelope, and the limits that the tickets stand for."""

    step: Step
    envelope: int
    limits: IntArray  # (L,) tokens, ascending in the size of the ticket, so descending


def press_down(room: Room, limits: Limits) -> str:
    """Make the loads of `room` the least from the largest down; "done" where that is proved for each of them.

    Otherwise returns what `limits` say, or "stuck" where a question stayed open.
    """
    ending, j = "done", 0
    prices: dict[str, IntArray] = {}
    lightest = np.sort(room.base + room.step.sums[room.slots])[::-1]
    best, even = room.best, np.sort(room.even_loads())[::-1]
    while True:
        stopped = limits.stopped()
        if stopped is not None:
            return stopped
        if best[j] - best[-1] <= 1:  # the rest is as even as its sum allows
            return ending
        if best[j] == best[j + 1] or best[j] <= lightest[j] or (best[: j + 1] == even[: j + 1]).all():
            j += 1
            continue
        work = WORK_OF_A_STAGE if ending == "done" else WORK_AFTERWARDS
        answer, held = _asked(room, j, prices, work, limits)
        if held is not None:
            room.take(held)
            assert room.best.tolist() < best.tolist(), "the search answers with loads that were forbidden"
            room.even_out(_EXCHANGES)
            before, best, even = best, room.best, np.sort(room.even_loads())[::-1]
            j = int(np.argmax(best != before))
            continue
        if answer not in ("none", "open"):
            return answer
        if answer == "open":
            ending = "stuck"
        j += 1


def _asked(room: Room, j: int, prices: dict[str, IntArray], work: int, limits: Limits) -> tuple[str, IntArray | None]:
    """Ask whether the (j+1)-th load can be less; returns the classes held where it can.

    The answer is "found", "none", "open" or what `limits` say. `prices` are those of the last question; they change in
    place.
    """
    question = _question(room, j)
    if question is None:
        return "open", None
    step, envelope, allowed = question
    W, K, L = room.slots.size, room.step.v.size, step.v.size
    search, masters = workspace(W, L, int(step.slots.max()))
    if prices:
        search.bank[0, :K] = prices["requests"]
        order = np.argsort(prices["limits"])
        search.bank[0, K:L] = np.interp(allowed, prices["limits"][order], prices["tickets"][order])
        search.bank[0, :L] = np.maximum(search.bank[0, :L], step.floor)
    else:
        search.bank[0, :L] = step.floor
    search.bank_at[0] = envelope
    alone, known = search.ranges[0], search.known
    alone.fill(0)
    alone.first, alone.last, alone.beyond, alone.state = envelope, envelope, envelope, MASTER  # it has prices
    known.cost, known.ranges, known.prices, known.newest = envelope + 1, 1, 1, 1
    state, ending = OPEN, None
    while state == OPEN and ending is None:
        known.deadline = limits.deadline()
        state = advance(step, search, masters, SLICE)
        if state == OPEN:
            ending = limits.stopped() or ("time" if known.expired else None) or ("open" if known.work >= work else None)
    if known.cost <= envelope:
        return "found", _without_tickets(search.answer[:W, : step.slots.max()], room.slots, K)
    at = (int(known.newest) - 1) % search.bank.shape[0]
    prices.update(requests=search.bank[at, :K].copy(), tickets=search.bank[at, K:L].copy(), limits=allowed)
    return ending or ("none" if state == PROVED else "open"), None


def _question(room: Room, j: int) -> Tickets | None:
    """Return the step problem with tickets; None where its numbers are too large."""
    whole, slots, best = room.step, room.slots + 1, room.best
    W, top = room.slots.size, int(best[0])
    large = max(int(whole.v[-1]), top - int(room.base.min())) + 1
    wanted = np.concatenate([best[:j], np.full(W - j, best[j] - 1)])
    tickets, copies = np.unique(large + (top - wanted), return_counts=True)
    v, n = np.concatenate([whole.v, tickets]), np.concatenate([whole.n, copies])
    envelope = top + large
    floor = np.zeros(v.size, dtype=np.int64)
    scale, bonus, forced = whole.scale, 0, whole.forced
    if n.sum() > slots.sum():  # there is a choice, in which tickets must not be forgotten
        must = np.concatenate([whole.floor < 0, np.ones(tickets.size, dtype=np.bool_)])
        bonus = 2 * (envelope + int(v[-1]))
        floor[must] = -bonus * scale
        forced = int(n[must].sum())
    magnitude = int((v * n).sum()) + 2 * W * (envelope + int(slots.max()) * int(v[-1])) + 4 * bonus * int(slots.sum())
    if scale * magnitude > LARGEST:
        return None
    total = -(room.tokens + int((tickets * copies).sum()))
    smallest = np.repeat(v, np.minimum(n, slots.max()))[: slots.max()]
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(smallest)])
    step = Step(
        v,
        n,
        floor,
        room.base,
        slots,
        np.lexsort((-room.base, slots)),
        sums,
        1,
        total,
        envelope,
        scale,
        whole.most,
        0,
        forced,
    )
    return Tickets(step, envelope, top + large - tickets)


def _without_tickets(answer: IntArray, slots: IntArray, num_classes: int) -> IntArray:
    """Return the classes of requests in `answer` (W, Q + 1), one ticket taken out of each row."""
    held = np.zeros((slots.size, int(slots.max())), dtype=np.int64)
    for w, c in enumerate(slots.tolist()):
        requests = answer[w, : c + 1][answer[w, : c + 1] < num_classes]
        assert requests.size == c, "every worker takes one ticket"
        held[w, :c] = requests
    return held
