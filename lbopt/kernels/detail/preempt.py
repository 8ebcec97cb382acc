"""Where a worker's memory ran out, the last of its list wait again, at the head of its queue, until what is left fits.

Definition: the manual, page *detail*, "A decision", 2.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.queues import put_at_head
from lbopt.kernels.detail.reclaim import give_up_memory, reclaim_last
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
            if state.running[w] > 0:
                _preempt_last(w, state)
            else:
                reclaim_last(w, state)


@kernel
def _preempt_last(w: int, state: State) -> None:
    """Let the last of worker `w`'s list wait again."""
    state.running[w] -= 1
    i = state.detail.seats[w, state.running[w]]
    tokens = state.detail.tracks[i].tokens
    state.detail.size[i] = tokens
    state.load[w] -= tokens
    state.progress.active -= 1
    give_up_memory(i, w, state)
    put_at_head(i, w, state)
