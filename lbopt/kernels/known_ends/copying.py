"""Copies of whole arrays as plain loops: Numba takes a tenth of a second to compile each assignment to a slice."""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel


@kernel
def copy_row(target: Ints, source: Ints) -> None:
    """Set target to source, both of one dimension."""
    for i in range(target.size):
        target[i] = source[i]


@kernel
def copy_rows(target: Ints, source: Ints) -> None:
    """Set target to source, both of two dimensions."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[i, j]


@kernel
def fill_row(target: Ints, number: int) -> None:
    """Set all of a row to one number."""
    for i in range(target.size):
        target[i] = number


@kernel
def fill_rows(target: Ints, number: int) -> None:
    """Set all of a table to one number."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = number


@kernel
def mix_row(target: Floats, source: Floats, share: float) -> None:
    """Let target take a share of source."""
    for i in range(target.size):
        target[i] += share * (source[i] - target[i])


@kernel
def mix_rows(target: Floats, source: Floats, share: float) -> None:
    """Let target take a share of source, both of two dimensions."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] += share * (source[i, j] - target[i, j])
