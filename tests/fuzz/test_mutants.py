"""Damaged files of every format, hundreds or thousands: read, or refused in one short sentence that can be printed."""

import tempfile
from pathlib import Path

import pytest
from lengths import quick_and_long

from tests.fuzz.formats import FORMATS
from tests.fuzz.tally import fuzz

#: Mutants of each format; `python -m tests.fuzz` goes on from here.
MUTANTS = 2000

#: Seconds of the slowest mutant; most take a thousandth.
SLOWEST = 20.0

#: The smallest share of mutants that are read, and that are refused: neither all nor none.
SHARE = 0.01


@pytest.fixture(scope="module")
def folder():
    """A folder in memory where there is one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        yield Path(place)


@pytest.mark.parametrize("name", FORMATS)
def test_seeds_are_read(name, folder):
    form = FORMATS[name]
    for seed in form.seeds():
        (folder / form.file).write_bytes(seed)
        form.read(folder / form.file)


@pytest.mark.parametrize("mutants", quick_and_long(400, MUTANTS))
@pytest.mark.parametrize("name", FORMATS)
def test_mutants(name, mutants, folder):
    tally = fuzz(name, range(mutants), folder)
    assert tally.failures == []
    assert tally.slowest < SLOWEST, tally
    assert min(tally.read, tally.refused) > SHARE * mutants, tally
