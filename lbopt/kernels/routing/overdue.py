"""Requests that have waited too long go first: what bounds the wait of rules that choose which requests start."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.max_min import lightest_open


@kernel
def place_overdue(
    age_bound: int,
    load: Ints,
    free: Ints,
    pool: Ints,
    prompt: Ints,
    reveal_step: Ints,
    step: int,
    choice: Ints,
) -> int:
    """Place requests that have waited `age_bound` steps, oldest first; returns how many.

    Parameters
    ----------
    age_bound
        Steps; negative = never.
    load, free
        int64 (G,), tokens and free slots of each worker; changed in place.
    pool
        int64 (n,), request numbers in order of revelation.
    prompt
        int64 (N,), tokens, by request number.
    reveal_step
        int64 (N,), the step in which each request joined the pool.
    step
        Now.
    choice
        int64 (>= n,), written: the worker of each pool position, or -1.
    """
    placed = 0
    if age_bound < 0:
        return placed
    for position in range(pool.size):
        i = pool[position]
        if step - reveal_step[i] < age_bound:
            break  # pool order is order of revelation: all later ones are younger
        w = lightest_open(load, free)
        if w < 0:
            break
        choice[position] = w
        load[w] += prompt[i]
        free[w] -= 1
        placed += 1
    return placed
