"""Where a worker's memory ran out, the last of its list wait again, at the head of its queue, until what is left fits.

Definition: the manual, page *engine*, "A decision", 2.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.engine.memory import lose
from lbopt.kernels.engine.queues import put_at_head
from lbopt.kernels.simulation.state import State


@kernel
def make_fit(state: State) -> None:
    """Pre-empt on every worker until its memory suffices."""
    engine = state.engine
    blocks = engine.rules.blocks
    if blocks < 0:
        return
    for w in range(engine.used.size):
        engine.stopped[w] = 0
        while engine.used[w] > blocks:
            _preempt_last(w, state)
            engine.stopped[w] = 1


@kernel
def _preempt_last(w: int, state: State) -> None:
    """Let the last of worker `w`'s list wait again."""
    engine = state.engine
    state.running[w] -= 1
    i = engine.seats[w, state.running[w]]
    track = engine.tracks[i]
    engine.size[i] = track.tokens
    state.load[w] -= track.tokens
    state.progress.active -= 1
    engine.used[w] -= track.blocks
    track.blocks = 0
    engine.tally.preemptions += 1
    if engine.rules.swaps == 1:
        track.swapped = 1
        engine.moved[w] += track.computed
        engine.tally.moved += track.computed
    else:
        lose(track)
    put_at_head(i, w, state)
