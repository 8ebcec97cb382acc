"""Where a worker's memory ran out, the last of its list wait again, at the head of its queue, until what is left fits.

Definition: the manual, page *detail*, "A decision", 2.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.memory import lose
from lbopt.kernels.detail.queues import put_at_head
from lbopt.kernels.simulation.state import State


@kernel
def make_fit(state: State) -> None:
    """Pre-empt on every worker until its memory suffices."""
    detail = state.detail
    blocks = detail.rules.blocks
    if blocks < 0:
        return
    for w in range(detail.used.size):
        while detail.used[w] > blocks:
            _preempt_last(w, state)


@kernel
def _preempt_last(w: int, state: State) -> None:
    """Let the last of worker `w`'s list wait again."""
    detail = state.detail
    state.running[w] -= 1
    i = detail.seats[w, state.running[w]]
    track = detail.tracks[i]
    detail.size[i] = track.tokens
    state.load[w] -= track.tokens
    state.progress.active -= 1
    detail.used[w] -= track.blocks
    track.blocks = 0
    detail.tally.preemptions += 1
    if detail.rules.swaps == 1:
        track.swapped = 1
        detail.moved[w] += track.computed
        detail.tally.moved += track.computed
    else:
        lose(track)
    put_at_head(i, w, state)
