"""The lists of subsets stay within their arrays: what is counted beforehand is what is written."""

import numpy as np
import pytest

from lbopt.kernels.arrays import record
from lbopt.kernels.deadline import NEVER
from lbopt.kernels.draw import new_dice
from lbopt.kernels.partition.fillings import RARE, all_fillings
from lbopt.kernels.partition.plan import MOST_ENTRIES, grown_entries, list_entries
from lbopt.kernels.partition.state import CLOCK, Lists
from lbopt.kernels.partition.subset_sums import find_subsets

#: Entries of the lists that `balance.Balancing` makes.
ROOM = 1 << 19

UNTOUCHED = -77


def lists_in(room: int, spare: int, kept: int, slots: int) -> tuple[Lists, np.ndarray]:
    """Lists with `room` entries, and the arrays that they are the beginning of."""
    whole = np.full((4, room + spare), UNTOUCHED, dtype=np.int64)
    merit = np.zeros(room + spare)
    start, second_start = np.zeros((2, 64), dtype=np.int64)
    lists = Lists(
        *(row[:room] for row in whole),
        merit=merit[:room],
        start=start,
        second_start=second_start,
        table=np.zeros(5 * room, dtype=np.int64),
        clock=record(CLOCK),
        dice=new_dice(0),
        picks=np.zeros((kept, slots), dtype=np.int64),
        merits=np.zeros(kept),
    )
    lists.clock.deadline = NEVER
    return lists, whole


@pytest.mark.parametrize(("m", "q", "whole", "spread"), [(9, 4, 1, 0), (9, 4, 0, 0), (10, 5, 0, 1), (11, 6, 0, 3)])
def test_as_many_entries_are_written_as_are_counted(m, q, whole, spread):
    lists, arrays = lists_in(4_000, 0, 8, q)
    value = np.arange(1, m + 1, dtype=np.int64)
    find_subsets(lists, value, np.zeros(m), q, -5, -1, whole, spread)
    assert int((arrays[0] != UNTOUCHED).sum()) == grown_entries(m, q, whole, spread)


def test_few_entries_to_join_can_grow_from_many():
    """Loads far apart leave a worker fifteen slots: the joined layers are short, those below them are not."""
    crowded = [
        (m, q, spread)
        for m in range(20, 70)
        for q in range(3, 24)
        for spread in (0, 1, 3)
        if list_entries(m, q, 0, spread) <= MOST_ENTRIES and grown_entries(m, q, 0, spread) > ROOM
    ]
    assert crowded


@pytest.mark.jit
@pytest.mark.parametrize("slots", range(3, 20, 4))
def test_no_filling_writes_beyond_its_lists(slots):
    rng = np.random.default_rng(slots)
    room = 1 << 12
    lists, arrays = lists_in(room, 1 << 19, 64, slots)
    for n in range(slots, 70, 3):
        value = np.sort(rng.integers(1, 60_000, n))
        lists.dice[:] = new_dice(0)
        hits, kind, _ = all_fillings(lists, value, slots, int(value[-slots:].sum()), 0, -1, 1, 500.0)
        assert kind != RARE or hits == 0
    assert (arrays[:, room:] == UNTOUCHED).all()
