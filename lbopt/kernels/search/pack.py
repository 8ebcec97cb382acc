"""Place requests largest first at a fixed envelope, each on the worker with most room; what fits nowhere is left."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.state import Step


@kernel
def pack(step: Step, M: int, room: Ints, taken: Ints, pattern: Ints) -> int:
    """Place what fits; return its tokens. Slots that stay empty hold class 0, which is of size 0.

    Parameters
    ----------
    step
        The decision, with as many requests of class 0, of size 0, as there are slots.
    M
        Envelope, tokens; no load is above it.
    room, taken
        int64 (W,), scratch: tokens up to the envelope; slots in use.
    pattern
        int64 (W, Q) at least, written: classes of each worker.
    """
    v, load, slots = step.v, step.load, step.slots
    W = load.size
    for w in range(W):
        room[w], taken[w] = M - load[w], 0
        for q in range(slots[w]):
            pattern[w, q] = 0
    tokens = 0
    for k in range(v.size - 1, 0, -1):
        for _ in range(step.n[k]):
            best = -1
            for w in range(W):
                if taken[w] < slots[w] and room[w] >= v[k] and (best < 0 or room[w] > room[best]):
                    best = w
            if best < 0:
                break
            pattern[best, taken[best]] = k
            taken[best] += 1
            room[best] -= v[k]
            tokens += v[k]
    return tokens
