"""The gate of a fleet in detail: what ranks publish, and queues let in by what it decides.

Definition: the manual, page *detail*, "Gates".
"""

import math

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.queues import lacking, let_in
from lbopt.kernels.detail.state import has_room
from lbopt.kernels.gating import ATOM, decide_gate
from lbopt.kernels.simulation.state import State


@kernel
def let_in_gated(state: State) -> None:
    """Let the gate decide for this step, and let the heads of queues run by it."""
    gate, idle = state.detail.gate, state.progress.active == 0
    for w in range(gate.ranks.size):
        _publish(gate.ranks[w], w, state)
    decide_gate(state.progress.clock, idle, state.slots.min(), gate)
    gate.terms.shut = 0
    let_in(state)
    gate.terms.shut = 1  # until the next decision has sent what it sends
    for w in range(gate.ranks.size):
        rank = gate.ranks[w]
        if rank.stops == 0:
            rank.most = max(rank.most, rank.begun)
            rank.bound = 1 if state.queued[w] > 0 else 0


@kernel
def _publish(rank: Record, w: int, state: State) -> None:
    """Write what worker `w` runs and what waits there, and the tokens of a step that decoding leaves to new prompts.

    Parameters
    ----------
    rank, w
        RANK, changed in place; the worker's number.
    """
    detail, rules = state.detail, state.detail.rules
    tracks, seats, ran = detail.tracks, detail.seats[w], state.running[w]
    begun, lacks = 0, 0
    for seat in range(ran if rank.begun > 0 else 0):  # since the step requests have left, and none has come
        track = tracks[seats[seat]]
        if track.computed < track.tokens:
            begun += 1
            lacks += track.tokens - track.computed
    waiting, head = state.queued[w], state.queue_head[w]
    rank.decoding, rank.begun, rank.waiting = ran - begun, begun, waiting
    rank.present = 1 if detail.is_open[w] == 1 or ran + waiting > 0 else 0
    rank.room = rules.budget - (1 + rules.draft) * (ran - begun) - lacks
    rank.can_begin = 0
    if waiting > 0 and ran < state.slots[w] and lacking(head, w, state) > 0:
        rank.can_begin = 1 if has_room(head, w, ran, detail) else 0
    rank.usage = math.nan
    if rules.blocks >= 0:
        rank.usage = detail.used[w] / rules.blocks
    elif detail.gate.terms.capacity > 0:
        rank.usage = state.load[w] / detail.gate.terms.capacity
    if detail.gate.terms.code == ATOM:
        i = head
        for _ in range(waiting):
            if lacks >= rules.budget:
                break
            lacks += tracks[i].tokens - tracks[i].computed
            i = state.next_in_queue[i]
        rank.pending = min(lacks, rules.budget)
        rank.age = state.progress.clock - state.reveal_clock[head] if waiting > 0 else 0.0
