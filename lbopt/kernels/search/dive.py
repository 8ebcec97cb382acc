"""Diving: keep the patterns that the master takes whole, solve it again along them, and so on until all are settled.

The master's optimum is a mixture of patterns, but most workers have one pattern at level one. Those are placed on the
path; the same master then prices what is left. Where nothing is whole, the pattern of the highest level is kept.
A dive can be taken up again: everything it needs is in arrays.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.deadline import used_up
from lbopt.kernels.search.columns import begin_columns, bonus_of, generate_columns
from lbopt.kernels.search.path import compose, leave, put, value_columns
from lbopt.kernels.search.state import CONVERGED, DIVE, NONE, SETTLE, Master, Path, Search, Step

#: Levels from which a pattern counts as taken whole, and below which an artificial one counts as not taken.
WHOLE, NOTHING = 0.999, 1e-6

#: What a dive answers that has to be called again.
UNFINISHED = -2


@kernel
def dive(step: Step, search: Search, m: Master, M: int, target: int, least: int, stop: int) -> int:
    """Complete the master's present optimum to an assignment at envelope M, in search.spare.

    Begins where search.pricing.phase is SETTLE, with the path and the columns of the optimum. It ends at `target`
    tokens; less than `least` are not worth the dive. Returns the tokens admitted, -1 where the dive ended at a worker
    that cannot be served, below `least` or beyond the deadline, UNFINISHED where the work reached `stop` before: the
    next call goes on.
    """
    path, found = search.path, search.pricing
    while True:
        if found.phase == SETTLE:
            if not _settle(step, path, m):
                return -1
            leave(step, path)
            if path.state.workers == 0:
                compose(step, path, search.leaf, search.spare)
                return path.state.tokens
            value_columns(m, step, path, M, bonus_of(step))
            begin_columns(search, False)
            found.phase = DIVE
        if not generate_columns(step, search, m, M, least - 1, stop):
            return UNFINISHED
        found.phase = SETTLE
        if used_up(search.known) or found.lowest == NONE or found.lowest // step.scale < least:
            return -1
        if found.top >= max(target, 0):
            return found.top
        if found.ended != CONVERGED:
            return -1


@kernel
def _settle(step: Step, path: Path, m: Master) -> bool:
    """Place the patterns that the master takes whole, or else the strongest one; False where that fails."""
    strongest, top = -1, 0.0
    for b in range(m.counts.tight):
        j = m.basic[b]
        if m.value[j] < 0.0:
            if m.level[b] > NOTHING:
                return False  # a worker cannot be served
        elif m.level[b] > top + 1e-9 and path.placed[m.owner[j]] < step.slots[m.owner[j]]:
            strongest, top = j, m.level[b]
    if strongest < 0:
        return False
    for b in range(m.counts.tight):
        j = m.basic[b]
        w = m.owner[j]
        if m.value[j] >= 0.0 and (j == strongest or m.level[b] > WHOLE) and path.placed[w] < step.slots[w]:
            for q in range(step.slots[w]):
                put(path, m.items[j, q], w)
    return True
