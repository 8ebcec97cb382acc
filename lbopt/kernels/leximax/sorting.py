"""Sorting of short arrays: shell sort, which compiles in a fraction of the time that NumPy's sorts take in Numba."""

from lbopt.kernels.arrays import Ints
from lbopt.kernels.compile import kernel


@kernel
def sort_up(values: Ints, companion: Ints) -> None:
    """Sort `values` in place, ascending; `companion`, of the same length, follows."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value, other = values[i], companion[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j], companion[j] = values[j - gap], companion[j - gap]
                j -= gap
            values[j], companion[j] = value, other
        gap //= 3


@kernel
def sort_alone(values: Ints) -> None:
    """Sort `values` in place, ascending."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3
