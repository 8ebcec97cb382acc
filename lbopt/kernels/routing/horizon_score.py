"""The horizon F-score of BalanceRoute, eq. (2), in exact integers.

With the margins m_0..m_H of a worker over the window, a batch of `delta` tokens that counts as constant scores

    F = R * delta - sum_h P_h * max(0, delta - m_h),      R = alpha * sum_h gamma^h,  P_h = beta * gamma^h,

weights in units of 2^-shift, rounded once, so that ties are ties and three ways to choose a subset agree. F is
concave; to the right of `delta` its slope is R minus the P_h of all margins up to `delta`. So the best of any set of
sizes is the smallest at which the slope turns negative, or the largest before it: two probes at the weighted quantile
of the margins.
H = 0 with R = 1, P_0 = G is the F-score of BR-0.
"""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

#: No margin makes the slope negative.
NEVER = 1 << 62


@kernel
def horizon_score(reward: int, penalties: Ints, margins: Ints, delta: int) -> int:
    """Return F of a batch of `delta` tokens; `penalties` and `margins` are int64 (H+1,).

    Parameters
    ----------
    reward
        R, in units of 2^-shift.
    penalties
        int64 (H+1,), P_h, in the same units.
    margins
        int64 (H+1,), tokens, of the worker.
    delta
        Tokens of the batch.
    """
    price = 0
    for h in range(margins.size):
        price += penalties[h] * max(0, delta - margins[h])
    return reward * delta - price


@kernel
def falls_beyond(reward: int, penalties: Ints, margins: Ints, delta: int) -> bool:
    """Return whether F falls to the right of `delta`.

    Parameters
    ----------
    reward, penalties, margins, delta
        As of `horizon_score`.
    """
    price = 0
    for h in range(margins.size):
        price += penalties[h] if margins[h] <= delta else 0
    return price > reward


@kernel
def peak(reward: int, penalties: Ints, margins: Ints) -> int:
    """Return the last delta at which F is largest, the weighted quantile of the margins; NEVER where F never falls."""
    best = NEVER
    for h in range(margins.size):
        if margins[h] < best and falls_beyond(reward, penalties, margins, margins[h]):
            best = margins[h]
    return best


@kernel
def margins_of(projected: Ints, envelope: Ints, g: int, margins: Ints) -> None:
    """Write worker g's margins over the window, envelope minus projected loads, int64 (H+1,).

    Parameters
    ----------
    projected
        int64 (G, H+1), tokens.
    envelope
        int64 (H+1,), largest projected load, tokens.
    g
        Worker.
    margins
        int64 (H+1,), written, tokens.
    """
    for h in range(envelope.size):
        margins[h] = envelope[h] - projected[g, h]


@kernel
def least_margin(projected: Ints, envelope: Ints, g: int) -> int:
    """Return worker g's smallest margin over the window."""
    least = envelope[0] - projected[g, 0]
    for h in range(1, envelope.size):
        least = min(least, envelope[h] - projected[g, h])
    return least
