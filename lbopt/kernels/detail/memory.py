"""Memory in blocks: what a request occupies, whether one more fits, and who is pre-empted where it ran out.

The last of the list goes first, as in vLLM. That is the longest head of the list that fits with what every request of
it needs next. Definition: the manual, page *detail*, "A decision", 2 and 4.
"""

from lbopt.kernels.arrays import Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.detail.state import Detail


@kernel
def blocks_of(size: int, rules: Record) -> int:
    """Return the blocks that a running request of `size` tokens occupies, those of the drafted tokens included."""
    return (size + rules.draft + rules.block - 1) // rules.block


@kernel
def has_room(size: int, w: int, running: int, detail: Detail) -> bool:
    """Return whether a request of `size` tokens fits on worker `w` beside its `running` ones.

    Parameters
    ----------
    size, w, running
        Tokens, worker, and the length of its list.
    detail
        Of the run.
    """
    rules = detail.rules
    if rules.blocks < 0 or running == 0:
        return True
    return bool(detail.used[w] + blocks_of(size, rules) <= rules.blocks - rules.kept_free)


@kernel
def lose(track: Record) -> None:
    """Let a request lose what was computed of it."""
    track.lost += track.computed
    track.computed = 0
    track.swapped = 0
