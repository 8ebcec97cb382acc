"""The F-score of BalanceRoute, eq. (1): by how much a batch of total size `delta` lowers the imbalance.

Adding `delta` tokens to worker g raises the envelope by max(0, delta - m), m = max L - L_g being g's margin, so

    F = delta - G * max(0, delta - m)          (tokens)

Concave in `delta`, F(0) = 0, peak m at delta = m. Summed over the admissions of a round, with margins refreshed after
each, the scores equal the fall of the imbalance exactly (telescoping).
"""

from lbopt.kernels.compile import kernel


@kernel
def f_score(G: int, delta: int, margin: int) -> int:
    """Return F in tokens for a batch of `delta` tokens on a worker with this margin."""
    overflow = delta - margin
    if overflow <= 0:
        return delta
    return delta - G * overflow
