"""The horizon F-score of BalanceRoute, eq. (1) and (2), in exact integers.

With the margins m_0..m_H of a worker over the window, a batch that holds d_h tokens in step h scores

    F = sum_h R_h d_h - P_h max(0, d_h - m_h),      R_h = alpha gamma^h,  P_h = beta gamma^h,

weights in units of 2^-shift, rounded once, so that ties are ties and three ways to choose a subset agree. Reward,
penalty and margin of the steps are `terms`, (H+1,) of TERM. A batch is a row of `profiles`, int64
(., H+1), or (., 1) where it counts as constant. Then F is concave in its size; to the right of it the slope is the sum
of R less the P_h of all margins up to it. So the best of any set of sizes is the smallest at which the slope turns
negative, or the largest before it: two probes at the weighted quantile of the margins.

H = 0 with R_0 = 1, P_0 = G is the F-score of BR-0: by how much the batch lowers the imbalance. Summed over the
admissions of a round, with margins refreshed after each, these equal the fall of the imbalance (telescoping).
"""

from lbopt.kernels.arrays import Ints, Records, integers
from lbopt.kernels.compile import kernel

#: No margin makes the slope negative.
NEVER = 1 << 62

#: What a step of the window is worth on a worker: R_h, P_h and m_h.
TERM = integers("reward", "penalty", "margin")


@kernel
def score(terms: Records, profiles: Ints, row: int) -> int:
    """Return F of the batch that is this row of `profiles`."""
    f, grows = 0, profiles.shape[1] > 1
    for h in range(terms.size):
        tokens = profiles[row, h * grows]
        f += terms[h].reward * tokens - terms[h].penalty * max(0, tokens - terms[h].margin)
    return f


@kernel
def falls_beyond(terms: Records, delta: int) -> bool:
    """Return whether F of constant batches falls to the right of `delta` tokens."""
    slope = 0
    for h in range(terms.size):
        slope += terms[h].reward - (terms[h].penalty if terms[h].margin <= delta else 0)
    return slope < 0


@kernel
def peak(terms: Records) -> int:
    """Return the last delta at which F is largest, the weighted quantile of the margins; NEVER where F never falls."""
    best = NEVER
    for h in range(terms.size):
        if terms[h].margin < best and falls_beyond(terms, terms[h].margin):
            best = terms[h].margin
    return best


@kernel
def envelope_of(projected: Ints, envelope: Ints) -> None:
    """Write the largest of the projected loads, int64 (G, H+1), in each step into `envelope`, int64 (H+1,)."""
    envelope[:] = projected[0]
    for g in range(1, projected.shape[0]):
        for h in range(envelope.size):
            envelope[h] = max(envelope[h], projected[g, h])


@kernel
def look_at(projected: Ints, envelope: Ints, g: int, terms: Records) -> None:
    """Write the margins of worker g, envelope minus projected loads, into `terms`."""
    for h in range(envelope.size):
        terms[h].margin = envelope[h] - projected[g, h]


@kernel
def least_margin(projected: Ints, envelope: Ints, g: int) -> int:
    """Return worker g's smallest margin over the window."""
    least = envelope[0] - projected[g, 0]
    for h in range(1, envelope.size):
        least = min(least, envelope[h] - projected[g, h])
    return least
