"""A request gives its memory up: where it is pre-empted, or where it was paused and its worker needs the room.

Definition: the manual, page *detail*, "A decision", 2 and 4.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.memory import lose
from lbopt.kernels.detail.state import PAUSED, SWAPPED
from lbopt.kernels.simulation.state import State


@kernel
def give_up_memory(i: int, w: int, state: State) -> None:
    """Free the blocks of request `i` on worker `w`: what was computed is moved out, or lost."""
    detail = state.detail
    track = detail.tracks[i]
    detail.used[w] -= track.blocks
    track.blocks = 0
    detail.tally.preemptions += 1
    if detail.rules.swaps == 1:
        track.held = SWAPPED
        detail.moved[w] += track.computed
        detail.tally.moved += track.computed
    else:
        lose(track)


@kernel
def reclaim_last(w: int, state: State) -> bool:
    """Free the blocks of the last paused request in worker `w`'s queue; returns whether there was one."""
    last, i = -1, state.queue_head[w]
    for _ in range(state.queued[w]):
        if state.detail.tracks[i].held == PAUSED:
            last = i
        i = state.next_in_queue[i]
    if last >= 0:
        give_up_memory(last, w, state)
    return bool(last >= 0)
