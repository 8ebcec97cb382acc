"""Chains of two exchanges that improve a whole decision.

Worker u gives up a request a for a request b of worker w, who takes a waiting request c in its place; a waits then. All
pairs (u, a), (w, b) are looked at with the best c for each (w, b), and the best chain is carried out, until none gains.
With one request only, that is, where c is taken for b by worker w alone, nothing is left to gain after `fill`.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.state import FORBIDDEN, Search, Step

#: Most chains that are carried out.
_CHAINS = 60


@kernel
def exchange(step: Step, s: Search, M: int) -> bool:
    """Improve the decision in s.leaf and s.leaf_mode by chains within envelope M; return whether it changed.

    Parameters
    ----------
    step, s
        The decision, and the search, whose leaf changes in place; s.avail holds the requests that wait.
    M
        Envelope.
    """
    W, path, leaf, avail = step.slots.size, s.path, s.leaf, s.avail
    changed = False
    for _ in range(_CHAINS):
        _room_left(step, s, M)
        _successors(step, s)
        best, first, second = 0, -1, -1
        u_best, w_best = -1, -1
        for w in range(W):
            for j in range(path.placed[w], step.slots[w]):
                if s.successor[w, j] < 0:
                    continue
                b, gain = leaf[w, j], s.gained[w, j]
                for u in range(W):
                    if u == w or step.work[u, b] >= FORBIDDEN or path.banned[u, b] == 1:
                        continue
                    for i in range(path.placed[u], step.slots[u]):
                        a = leaf[u, i]
                        more = step.value[u, b] - step.value[u, a] + gain
                        if more > best and step.floor[a] >= 0 and _fits(step, s, u, a, b):
                            best, u_best, w_best, first, second = more, u, w, i, j
        if u_best < 0:
            return changed
        changed = True
        a, b, c = leaf[u_best, first], leaf[w_best, second], s.successor[w_best, second]
        leaf[u_best, first], leaf[w_best, second] = b, c
        avail[a] += 1
        avail[c] -= 1
    return changed


@kernel
def _room_left(step: Step, s: Search, M: int) -> None:
    """Set s.spare to what each worker has left of its margin and of the two resources."""
    spare, room, need = s.spare, step.room, step.need
    for w in range(step.slots.size):
        spare[0, w] = M - step.load[w] + step.mode_cut[s.leaf_mode[w]]
        spare[1, w], spare[2, w] = room[0, w], room[1, w]
        for i in range(step.slots[w]):
            k = s.leaf[w, i]
            spare[0, w] -= step.work[w, k]
            spare[1, w] -= need[0, k]
            spare[2, w] -= need[1, k]


@kernel
def _fits(step: Step, s: Search, w: int, old: int, new: int) -> bool:
    """Return whether worker w has room for a request in the place of another.

    Parameters
    ----------
    step, s
        The decision, and the search.
    w, old, new
        Worker, class it gives up, class it takes.
    """
    spare, need = s.spare, step.need
    return (
        step.work[w, new] - step.work[w, old] <= spare[0, w]
        and need[0, new] - need[0, old] <= spare[1, w]
        and need[1, new] - need[1, old] <= spare[2, w]
    )


@kernel
def _successors(step: Step, s: Search) -> None:
    """Set s.successor to the best waiting class for each request of a worker, -1 for none, and s.gained to its gain."""
    path = s.path
    for w in range(step.slots.size):
        for j in range(path.placed[w], step.slots[w]):
            b, best, choice = s.leaf[w, j], -FORBIDDEN, -1
            for c in range(step.copies.size):
                if s.avail[c] == 0 or c == b or step.value[w, c] <= best or step.work[w, c] >= FORBIDDEN:
                    continue
                if path.banned[w, c] == 0 and _fits(step, s, w, b, c):
                    best, choice = step.value[w, c], c
            s.successor[w, j], s.gained[w, j] = choice, best - step.value[w, b]
