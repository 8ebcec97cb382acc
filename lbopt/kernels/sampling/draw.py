"""Random numbers of the chains: a stream per slot, so that every policy meets the same ends.

SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the state goes up by an odd constant, and the output is a mix of it. So
the n-th number of a stream is a function of its start and n alone, in whatever order slots are visited: lifetimes are
the even numbers of a slot's stream and prompts the odd ones, and two policies that fill every slot at once have the
same ends, step by step (common random numbers).
"""

import math

import numpy as np
from numpy.typing import NDArray

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel

Words = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def word(start: np.uint64, n: int) -> np.uint64:
    """Return number `n` of the stream that begins at `start`."""
    z = start + np.uint64(n + 1) * _STEP
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@kernel
def uniform(drawn: np.uint64) -> float:
    """Return what `drawn` is as a number in [0, 1)."""
    return float(drawn >> _11) * 1.1102230246251565e-16  # 2^-53


@kernel
def lifetime(drawn: np.uint64, log_keep: float) -> int:
    """Return a draw of Geo(p) on 1, 2, ... by inversion; `log_keep` is log(1 - p), and -inf gives 1."""
    u = (float(drawn >> _11) + 0.5) * 1.1102230246251565e-16  # 2^-53: in (0, 1)
    return 1 + int(math.log(u) / log_keep)


@kernel
def column(drawn: np.uint64, columns: int) -> np.int64:
    """Return the column 0 .. `columns` - 1 of a table of aliases (Walker 1977) that the upper 32 bits name."""
    return np.int64(((drawn >> _32) * np.uint64(columns)) >> _32)


@kernel
def height(drawn: np.uint64) -> np.int64:
    """Return the lower 32 bits: the column's own value if they are below its threshold, else its alias's."""
    return np.int64(drawn & _LOW)


@kernel
def prompt(drawn: np.uint64, value: Ints, threshold: Ints, other: Ints) -> int:
    """Return the length that `drawn` names in a table of aliases, each (n,) with thresholds 0 .. 2^32.

    Loops that draw one every few nanoseconds write these lines out: counting references to the arrays takes longer.

    Parameters
    ----------
    drawn
        uint64.
    value, threshold, other
        int64 (n,), the prompt law's table of aliases; values in tokens.
    """
    i = column(drawn, value.size)
    return value[i] if height(drawn) < threshold[i] else value[other[i]]
