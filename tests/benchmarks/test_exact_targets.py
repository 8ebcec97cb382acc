"""What the benchmark of the exact search calls met, and that its instances are what they should be."""

import math
from importlib import import_module
from pathlib import Path

import pytest

from lbopt.solvers import elementary_bound
from tests.benchmarks.race.profile import Bracket
from tests.benchmarks.race.small_race import record

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def targets(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("tests.benchmarks.exact_targets")


@pytest.fixture
def sources(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("tests.benchmarks.exact_instances")


@pytest.mark.parametrize(
    ("found", "met"),
    [
        (Bracket(1500.0, 1500.0), True),
        (Bracket(999.0, 999.0), False),
        (Bracket(1200.0, math.inf), True),
        (Bracket(900.0, math.inf), None),
        (Bracket(0.0, 900.0), False),
        (None, None),
    ],
)
def test_a_ratio_that_is_known_from_below_only(targets, found, met):
    """A limit too short to tell is not a miss."""
    assert targets.reaches(found, 1000.0) is met


@pytest.mark.parametrize(
    ("records", "met", "reached"),
    [
        ([record(seconds=0.5), record(seconds=1.0)], True, "1.00 s"),
        ([record(seconds=0.5), record(seconds=1.5)], False, "1.50 s"),
        ([record(), record(status="claimed")], False, "1 of 2 not proved"),
        ([record(status="open", stop="time", value=12, bound=10)], False, "open (time), gap 2"),
        ([record(status="failed", stop="died", value=None, bound=None)], False, "failed (died)"),
    ],
)
def test_all_of_them_proved_in_time(targets, records, met, reached):
    """One that is late, unproved or failed is enough to miss the target."""
    line = targets.proved_within("x", 1.0, records)
    assert (line.met, line.reached) == (met, reached)


def test_a_median_that_falls_on_an_open_run(targets):
    """Is at least the limit, and no target is met by it."""
    line = targets.at_most("x", 0.003, Bracket(5.0, math.inf))
    assert (line.met, line.reached) == (False, "≥ 5.00 s")


def test_partitions_are_frozen(sources):
    """Three empty workers with room for all, and the same draw on every machine."""
    first, *rest = sources.partitions(20, 3)
    assert len(rest) == 2
    assert (first.problem.num_workers, first.problem.num_admitted) == (3, 20)
    assert first.problem.work[:4, 0].tolist() == FIRST_FOUR
    assert int(first.problem.work.max()) < 1 << 16


#: Of the first draw of 20 numbers.
FIRST_FOUR = [56785, 42151, 29827, 47669]


def test_the_published_instances(sources, shared_dir):
    """Eight of them; the published optimum is never below the elementary bound."""
    found = sources.bmnp(shared_dir / "data")
    assert len(found) == 8
    assert [one.problem.num_requests for one in found] == sorted(one.problem.num_requests for one in found)
    assert all(one.best >= elementary_bound(one.problem) for one in found[:4])
