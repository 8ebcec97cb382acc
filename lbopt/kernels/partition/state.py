"""The scratch that the search for fillings works in: two lists of subsets, and the buckets in which they are joined."""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, integers
from lbopt.kernels.by_reference import by_reference

#: See `lbopt.kernels.deadline`.
CLOCK = integers("deadline", "expired")


@by_reference
class Lists(NamedTuple):
    """Subsets of some numbers, those of one list behind those of the other, fewest numbers first."""

    total: Ints  # (L,) sum of each entry, in units of the sizes
    parent: Ints  # (L,) the entry that it grew from, -1 for the empty one
    last: Ints  # (L,) its last number
    first: Ints  # (L,) its first number
    merit: Floats  # (L,)
    start: Ints  # (64,) where the entries of 0, 1, 2, ... numbers begin in the first list
    second_start: Ints  # (64,) the same in the second one
    table: Ints  # (five times the longest layer,) buckets, then the entries in them
    clock: Record  # CLOCK
