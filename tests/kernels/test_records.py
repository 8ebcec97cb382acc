"""Records are read and set by name, alike in Python and in kernels, in place."""

import pytest

from lbopt.kernels.arrays import integers, record, records
from lbopt.kernels.compile import kernel
from lbopt.kernels.search.state import KNOWN
from lbopt.solvers.exact.workspace import Known, what_is_known, workspace

KIND = integers("used", "left")


@kernel
def use_one(state, nodes):
    """Take one from a record and from the last of several."""
    state.used += 1
    nodes[nodes.size - 1].left = state.used
    return state.left


def test_kernels_change_the_records_that_python_holds():
    state, nodes = record(KIND), records(3, KIND)
    state.left = 7
    assert use_one(state, nodes) == 7
    assert use_one(state, nodes) == 7
    assert state.used == 2
    assert nodes.left.tolist() == [0, 0, 2]
    assert nodes[-1].left == 2


def test_a_copy_is_another_record():
    state = record(KIND)
    other = state.copy()
    other.used = 4
    assert (state.used, other.used) == (0, 4)
    other.fill(0)
    assert other.used == 0


@pytest.mark.parametrize("name", ["size", "base", "copy"])
def test_names_that_arrays_have_are_refused(name):
    with pytest.raises(ValueError, match=name):
        integers("used", name)


def test_what_python_reads_of_a_search_at_once_is_in_the_order_of_the_record():
    assert Known._fields == KNOWN.names
    search, _ = workspace(2, 2, 2)
    search.known.bound, search.known.patience = 5, 3
    assert (what_is_known(search).bound, what_is_known(search).patience) == (5, 3)
    workspace(2, 2, 2)
    assert set(what_is_known(search)) == {0}
