"""Memory in blocks: what a request occupies, whether one more fits, and who is pre-empted where it ran out.

The last of the list goes first, as in vLLM. That is the longest head of the list that fits with what every request of
it needs next. Definition: the manual, page *detail*, "A decision", 2 and 4.
"""

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.state import NOTHING, PAUSED, Detail


@kernel
def blocks_of(size: int, rules: Record) -> int:
    """Return the blocks that a running request of `size` tokens occupies, those of the drafted tokens included."""
    return (size + rules.draft + rules.block - 1) // rules.block


@kernel
def has_room(i: int, w: int, running: int, detail: Detail) -> bool:
    """Return whether request `i`, which waits on worker `w`, fits there beside its `running` ones.

    Parameters
    ----------
    i, w, running
        Request, worker, and the length of its list.
    detail
        Of the run.
    """
    rules = detail.rules
    if rules.blocks < 0 or detail.tracks[i].held == PAUSED:
        return True
    kept_free = rules.kept_free if running > 0 else 0
    return bool(detail.used[w] + blocks_of(detail.size[i], rules) <= rules.blocks - kept_free)


@kernel
def lose(track: Record) -> None:
    """Let a request lose what was computed of it."""
    track.lost += track.computed
    track.computed = 0
    track.held = NOTHING
