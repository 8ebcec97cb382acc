"""BR-H where an admitted request counts by its profile: it grows over the window and ends by its own forecast.

The same two stages as `br_h`, but the score of a batch that adds d_h tokens at step h is

    F = sum_h R_h * d_h - P_h * max(0, d_h - m_h),

which is no function of the batch's size any more. So stage 1 scores every waiting request and stage 2 every subset.
"""

import numpy as np

from lbopt.kernels.arrays import Ints, Record
from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.br_h import (
    largest_key,
)
from lbopt.kernels.routing.horizon_score import margins_of
from lbopt.kernels.routing.subset import comes_first
from lbopt.kernels.routing.two_stage import fill_window, rank_waiting, remove_placed, remove_rank, roomiest


@kernel
def br_h_profile(
    projected: Ints,
    free: Ints,
    profiles: Ints,
    sizes: Ints,
    waited: Ints,
    rewards: Ints,
    penalties: Ints,
    parameters: Record,
    choice: Ints,
) -> None:
    """Run one scheduling round, with admitted requests counted by their profiles.

    Parameters
    ----------
    projected, free
        int64 (G, H+1) and (G,), projected loads, tokens, and free slots; changed in place.
    profiles
        int64 (n, H+1), tokens of each waiting request over the window.
    sizes, waited
        int64 (n,), tokens and steps waited, in order of revelation.
    rewards, penalties
        int64 (H+1,), R_h and P_h.
    parameters
        `state.PARAMETERS`.
    choice
        int64 (n,), written: the worker of each waiting request, or -1.
    """
    width = penalties.size
    choice[:] = -1
    slots = free.sum()
    envelope = np.empty(width, np.int64)
    for h in range(width):
        envelope[h] = projected[:, h].max()
    margins = np.empty(width, np.int64)

    if parameters.age_bound >= 0:
        for position in range(sizes.size):
            if slots == 0 or waited[position] < parameters.age_bound:
                break
            g = _best_worker(projected, envelope, free, profiles[position], rewards, penalties, margins)
            choice[position] = g
            _admit(projected, envelope, g, profiles[position])
            free[g] -= 1
            slots -= 1

    ranked = np.empty(sizes.size, np.int64)
    ranked_size = np.empty(sizes.size, np.int64)
    rest = rank_waiting(sizes, choice, ranked, ranked_size)
    now = projected[:, 0].copy()
    while slots > parameters.stage_switch and rest > 0:
        g = roomiest(now, free)
        margins_of(projected, envelope, g, margins)
        r = _best_of(profiles, ranked, rest, rewards, penalties, margins)
        choice[ranked[r]] = g
        _admit(projected, envelope, g, profiles[ranked[r]])
        now[g] = projected[g, 0]
        free[g] -= 1
        slots -= 1
        rest = remove_rank(ranked, ranked_size, rest, r)

    window_rank = np.empty(parameters.window_size, np.int64)
    window = np.empty(parameters.window_size, np.int64)  # positions in the pool
    added = np.empty(width, np.int64)
    while slots > 0 and rest > 0:
        g = largest_key(parameters.key_product, projected, envelope, free)
        margins_of(projected, envelope, g, margins)
        length = min(parameters.window_size, rest)
        fill_window(parameters.window_by_arrival, ranked, rest, length, window_rank)
        for j in range(length):
            window[j] = ranked[window_rank[j]]
        mask, f = _best_subset(
            profiles, sizes, window, length, min(free[g], length), rewards, penalties, margins, added
        )
        if f <= 0:
            mask = 1 << _best_single(profiles, sizes, window, length, rewards, penalties, margins)
        for j in range(length):
            if mask >> j & 1:
                choice[window[j]] = g
                _admit(projected, envelope, g, profiles[window[j]])
                free[g] -= 1
                slots -= 1
        rest = remove_placed(ranked, ranked_size, rest, choice)


@kernel
def _score(added: Ints, rewards: Ints, penalties: Ints, margins: Ints) -> int:
    """Return F of a batch.

    Parameters
    ----------
    added
        int64 (H+1,), tokens of the batch.
    rewards, penalties
        int64 (H+1,), R_h and P_h.
    margins
        int64 (H+1,), tokens, of the worker.
    """
    f = 0
    for h in range(margins.size):
        f += rewards[h] * added[h] - penalties[h] * max(0, added[h] - margins[h])
    return f


@kernel
def _admit(projected: Ints, envelope: Ints, g: int, profile: Ints) -> None:
    """Add a profile to worker g, and let the envelope follow.

    Parameters
    ----------
    projected, envelope
        int64 (G, H+1) and (H+1,), projected loads and the largest of each step, tokens; changed in place.
    g
        Worker.
    profile
        int64 (H+1,), tokens.
    """
    for h in range(envelope.size):
        projected[g, h] += profile[h]
        envelope[h] = max(envelope[h], projected[g, h])


@kernel
def _best_worker(
    projected: Ints, envelope: Ints, free: Ints, profile: Ints, rewards: Ints, penalties: Ints, margins: Ints
) -> int:
    """Worker with a free slot and the largest F for one request; ties: lighter now, then lower number.

    Parameters
    ----------
    projected, envelope
        int64 (G, H+1) and (H+1,), projected loads and the largest of each step, tokens.
    free
        int64 (G,), free slots.
    profile
        int64 (H+1,), tokens of the request.
    rewards, penalties
        int64 (H+1,), R_h and P_h.
    margins
        int64 (H+1,), scratch.
    """
    best = -1
    best_f = 0
    for g in range(free.size):
        if free[g] == 0:
            continue
        margins_of(projected, envelope, g, margins)
        f = _score(profile, rewards, penalties, margins)
        if best < 0 or f > best_f or (f == best_f and projected[g, 0] < projected[best, 0]):
            best, best_f = g, f
    return best


@kernel
def _best_of(profiles: Ints, ranked: Ints, rest: int, rewards: Ints, penalties: Ints, margins: Ints) -> int:
    """Rank of the largest F; ties: the first rank, which is the larger, then the earlier request.

    Parameters
    ----------
    profiles
        int64 (n, H+1), tokens of each waiting request over the window.
    ranked
        int64 (>= rest,), position in the pool of each rank.
    rest
        How many ranks there are, >= 1.
    rewards, penalties
        int64 (H+1,), R_h and P_h.
    margins
        int64 (H+1,), tokens, of the worker.
    """
    best = 0
    best_f = _score(profiles[ranked[0]], rewards, penalties, margins)
    for r in range(1, rest):
        f = _score(profiles[ranked[r]], rewards, penalties, margins)
        if f > best_f:
            best, best_f = r, f
    return best


@kernel
def _best_single(
    profiles: Ints, sizes: Ints, window: Ints, length: int, rewards: Ints, penalties: Ints, margins: Ints
) -> int:
    """Window position of the largest F; ties: larger, then earlier position.

    Parameters
    ----------
    profiles
        int64 (n, H+1), tokens of each waiting request over the window.
    sizes
        int64 (n,), tokens.
    window
        int64 (>= length,), positions in the pool.
    length
        Requests in the window, >= 1.
    rewards, penalties
        int64 (H+1,), R_h and P_h.
    margins
        int64 (H+1,), tokens, of the worker.
    """
    best = 0
    best_f = _score(profiles[window[0]], rewards, penalties, margins)
    for j in range(1, length):
        f = _score(profiles[window[j]], rewards, penalties, margins)
        if f > best_f or (f == best_f and sizes[window[j]] > sizes[window[best]]):
            best, best_f = j, f
    return best


@kernel
def _best_subset(
    profiles: Ints,
    sizes: Ints,
    window: Ints,
    length: int,
    most: int,
    rewards: Ints,
    penalties: Ints,
    margins: Ints,
    added: Ints,
) -> tuple[int, int]:
    """Best non-empty subset and its F; ties as in `horizon_subset`.

    Parameters
    ----------
    profiles
        int64 (n, H+1), tokens of each waiting request over the window.
    sizes
        int64 (n,), tokens.
    window
        int64 (>= length,), positions in the pool.
    length, most
        Requests in the window, and most members of a subset.
    rewards, penalties
        int64 (H+1,), R_h and P_h.
    margins
        int64 (H+1,), tokens, of the worker.
    added
        int64 (H+1,), scratch.
    """
    best_mask = 0
    best_f = 0
    best_total = 0
    best_count = 0
    for mask in range(1, 1 << length):
        total = 0
        count = 0
        added[:] = 0
        for j in range(length):
            if mask >> j & 1:
                total += sizes[window[j]]
                count += 1
                for h in range(added.size):
                    added[h] += profiles[window[j], h]
        if count > most:
            continue
        f = _score(added, rewards, penalties, margins)
        if comes_first(f, total, count, mask, best_f, best_total, best_count, best_mask):
            best_mask, best_f, best_total, best_count = mask, f, total, count
    return best_mask, best_f
