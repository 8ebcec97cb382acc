"""The random numbers of the searches: Lehmer's generator with multiplier 48271 modulo 2^31 - 1 (Park and Miller 1993).

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
def following(state: int) -> int:
    """Return the number after `state`, 1 .. MODULUS - 1; compiled code may take an overflow for impossible: none is."""
    return state * 48271 % MODULUS


@kernel
def draw(dice: Ints, n: int) -> int:
    """Draw from 0 .. n-1, n < 2^31."""
    dice[0] = following(dice[0])
    return dice[0] % n
