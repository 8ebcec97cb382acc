"""The random numbers of the search: Lehmer's generator with multiplier 48271 modulo 2^31 - 1 (Park and Miller 1993).

It needs no more than 47 bits, hence runs the same compiled and uncompiled. `dice` (1,) int64 holds its state.
"""

import numpy as np

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

MODULUS = 2147483647


@kernel
def new_dice(seed: int) -> Ints:
    """State for a seed of any size."""
    dice = np.empty(1, np.int64)
    dice[0] = seed % (MODULUS - 1) + 1
    for _ in range(8):
        draw(dice, 2)
    return dice


@kernel
def draw(dice: Ints, n: int) -> int:
    """Draw from 0 .. n-1, n < 2^31."""
    dice[0] = dice[0] * 48271 % MODULUS
    return dice[0] % n
