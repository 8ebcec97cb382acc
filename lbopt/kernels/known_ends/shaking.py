"""Leave a local optimum: a few requests of a worker that is heaviest at some step go elsewhere, or wait.

Chance is a linear congruence of its own, so that equal calls give equal answers on every machine.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.known_ends.copying import copy_rows
from lbopt.kernels.known_ends.placing import add_loads
from lbopt.kernels.known_ends.polish import note_tops
from lbopt.kernels.known_ends.state import Draft, Window


@kernel
def draw(chance: Ints, below: int) -> int:
    """Return a number in 0..below - 1 and go on; chance[0] stays below 2**31."""
    chance[0] = (chance[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return (chance[0] >> 8) % below


@kernel
def shake(window: Window, draft: Draft, pattern: Ints, moves: int, chance: Ints) -> None:
    """Set draft to `pattern` with about `moves` requests exchanged, most of them of a heaviest worker.

    Parameters
    ----------
    window
        The decision.
    draft
        Set in place.
    pattern, moves
        (W, Q) int64, classes, and how many exchanges are made.
    chance
        (1,) int64, the state of the draws; changed in place.
    """
    W, T = window.peak.shape
    copy_rows(draft.pattern, pattern)
    add_loads(window, draft)
    note_tops(draft.loads, draft.tops)
    heavy = draft.tops.worker[draw(chance, T)]
    if heavy < 0:
        heavy = draw(chance, W)
    for _ in range(moves):
        w = heavy if draw(chance, 3) > 0 else draw(chance, W)
        q = draw(chance, window.slots[w])
        old = draft.pattern[w, q]
        if draw(chance, 2) == 0 and window.must[old] == 0:
            k = draw(chance, window.n.size)
            if draft.left[k] > 0:
                draft.pattern[w, q] = k
                draft.left[k] -= 1
                draft.left[old] += 1
        else:
            u = draw(chance, W)
            p = draw(chance, window.slots[u])
            draft.pattern[w, q] = draft.pattern[u, p]
            draft.pattern[u, p] = old
    add_loads(window, draft)
