"""The scratch that the search for fillings works in: two lists of subsets, their buckets, draws, and what is found."""

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints, Record, integers
from lbopt.kernels.by_reference import by_reference

#: `deadline` and `expired`, see `lbopt.kernels.deadline`; `kept`: fillings in use; `hits`: found so far.
CLOCK = integers("deadline", "expired", "kept", "hits")


@by_reference
class Lists(NamedTuple):
    """Subsets of some numbers, those of one list behind those of the other, fewest numbers first; and fillings."""

    total: Ints  # (L,) sum of each entry, in units of the sizes
    parent: Ints  # (L,) the entry that it grew from, -1 for the empty one
    last: Ints  # (L,) its last number
    first: Ints  # (L,) its first number
    merit: Floats  # (L,)
    start: Ints  # (64,) where the entries of 0, 1, 2, ... numbers begin in the first list
    second_start: Ints  # (64,) the same in the second one
    table: Ints  # (five times the longest layer,) buckets, then the entries in them
    clock: Record  # CLOCK
    dice: Ints  # (1,) state of the draws
    picks: Ints  # (cap, slots at least) the fillings found: positions
    merits: Floats  # (cap,) their merits


@by_reference
class Taking(NamedTuple):
    """Requests that are being taken from a pool, ascending in size."""

    value: Ints  # (n,) the pool
    taken: Ints  # (n,) positions that are not free are not 0
    picked: Ints  # (slots,) positions picked
    dice: Ints  # (1,) state of the draws
