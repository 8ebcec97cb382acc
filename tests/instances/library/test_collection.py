"""The library as others use it: names, classes, entries that are what they say."""

import pytest

from lbopt import InputError
from lbopt.instances import library
from lbopt.solvers import solve

NAMES = library.names()


def test_every_class_has_names_and_they_add_up():
    """names() is the classes one after the other, without a name twice."""
    assert [name for kind in library.KINDS for name in library.names(kind)] == NAMES
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", library.names("tiny"))
def test_tiny_entries_are_exhausted(name):
    """Exhaustion finds what the tiny entries say."""
    entry = library.load(name)
    assert entry.status == "proved"
    assert solve(entry.problem, solver="brute-force").objective == entry.best == entry.bound


@pytest.mark.parametrize("call", [library.load, library.certificate])
def test_a_typo_gets_the_nearest_name(call):
    """An unknown name is one sentence with the nearest one."""
    with pytest.raises(InputError, match="did you mean 'tiny-makespan'"):
        call("tiny-makespam")
    with pytest.raises(InputError, match="lbopt library list"):
        call("qqqqqqqq")


def test_an_unknown_class():
    """So is an unknown class."""
    with pytest.raises(InputError, match="did you mean 'steady'"):
        library.names("stedy")
