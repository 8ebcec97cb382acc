"""Pausing: a plan is made after a step, and the next decision carries it out instead of letting queues in.

Definition: the manual, page *detail*, "Pausing".
"""

import numpy as np

from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.queues import put_at_head, take_seat
from lbopt.kernels.detail.state import PAUSED, has_room
from lbopt.kernels.pausing import DYNAMIC, NEVER, STATIC, balance, strike_from, write_difference
from lbopt.kernels.simulation.state import State, take_out


@kernel
def plan_pauses(state: State) -> None:
    """Make the plan of the next decision, if it is to have one."""
    terms = state.detail.pausing.terms
    if terms.mode == NEVER:
        return
    begins = 0
    if terms.mode == DYNAMIC and terms.is_on == 0:
        begins = terms.long_came
        terms.is_on, terms.idle_steps, terms.long_came = begins, 0, 0
    terms.in_force = state.progress.step >= terms.first_step and (terms.mode == STATIC or terms.is_on == 1)
    if terms.in_force == 0:
        return
    _make_plan(state)
    if begins == 1 or terms.long_came == 1:
        terms.idle_steps = 0
    else:
        terms.idle_steps += 1
        if terms.idle_steps >= terms.stays:
            terms.is_on = 0
    terms.long_came = 0


@kernel
def _make_plan(state: State) -> None:
    """Write `Pausing.leaving`, `entering` and `candidates` from what runs and waits now."""
    detail, pausing = state.detail, state.detail.pausing
    for w in range(state.load.size):
        _take_stock(w, state)
    balance(state.slots, pausing.terms.threshold, pausing)
    for w in range(state.load.size):
        n, ran = pausing.num_inside[w], state.running[w]
        inside, entering = pausing.inside[w, :n], pausing.entering[w]
        if pausing.changed[w] == 0:  # those that fill slots stand behind the others
            pausing.num_leaving[w], pausing.num_entering[w] = 0, n - ran
            for place in range(n - ran):
                entering[place] = inside[ran + place] // 2
            continue
        before = np.empty(ran, dtype=np.int64)
        for seat in range(ran):
            before[seat] = _blocks(detail.tracks[detail.seats[w, seat]].tokens, detail.rules.block)
        for place in range(n):
            inside[place] //= 2
        left, entered = write_difference(before, inside, pausing.leaving[w], entering)
        pausing.num_leaving[w], pausing.num_entering[w] = left, entered


@kernel
def _blocks(tokens: int, block: int) -> int:
    """Return the blocks of so many tokens, without drafted ones: the load that plans go by."""
    return (tokens + block - 1) // block


@kernel
def _take_stock(w: int, state: State) -> None:
    """Count the blocks of worker `w`'s running requests, and of those in its queue whose memory is there."""
    detail, pausing = state.detail, state.detail.pausing
    block, n = detail.rules.block, state.running[w]
    for seat in range(n):
        tokens = detail.tracks[detail.seats[w, seat]].tokens
        pausing.inside[w, seat] = 2 * _blocks(tokens, block)
    pausing.num_inside[w] = n
    most, count, i = 2 * state.slots[w] - n, 0, state.queue_head[w]
    while count < min(most, state.queued[w]) and detail.ready[i] <= state.progress.clock:
        pausing.outside[w, count] = 2 * _blocks(detail.size[i], block)
        count += 1
        i = state.next_in_queue[i]
    pausing.num_outside[w] = count
    pausing.candidates[w] = count


@kernel
def carry_out(state: State) -> None:
    """Pause and let in what the plan names, if one is in force."""
    if state.detail.pausing.terms.in_force == 0:
        return
    for w in range(state.load.size):
        count = _pause(w, state)
        _let_in_planned(w, state)
        for place in range(count):
            put_at_head(state.detail.pausing.paused[place], w, state)


@kernel
def _pause(w: int, state: State) -> int:
    """Take those whose blocks the plan names out of worker `w`'s list into `Pausing.paused`; returns how many."""
    detail, pausing = state.detail, state.detail.pausing
    seats, block = detail.seats[w], detail.rules.block
    left = pausing.num_leaving[w]
    if left == 0:
        return 0
    kept, count = 0, 0
    for seat in range(state.running[w]):
        i = seats[seat]
        track = detail.tracks[i]
        if left > 0 and strike_from(pausing.leaving[w], left, _blocks(track.tokens, block)):
            left -= 1
            track.held = PAUSED
            detail.size[i] = track.tokens
            state.load[w] -= track.tokens
            pausing.paused[count] = i
            count += 1
        else:
            seats[kept] = i
            kept += 1
    state.running[w] = kept
    state.progress.active -= count
    detail.tally.pauses += count
    return count


@kernel
def _let_in_planned(w: int, state: State) -> None:
    """Let those of worker `w`'s queue run whose blocks the plan names, in their order, while they fit."""
    detail, pausing = state.detail, state.detail.pausing
    block, left = detail.rules.block, pausing.num_entering[w]
    before, i = -1, state.queue_head[w]
    for _ in range(min(pausing.candidates[w], state.queued[w])):
        following = state.next_in_queue[i]
        if left > 0 and strike_from(pausing.entering[w], left, _blocks(detail.size[i], block)):
            left -= 1
            if state.running[w] == state.slots[w] or not has_room(i, w, state.running[w], detail):
                return
            take_out(i, before, w, state)
            take_seat(i, w, state)
        else:
            before = i
        i = following
