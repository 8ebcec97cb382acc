"""The library as others use it: names and classes, and entries whose every number is computed again."""

import tomllib
from pathlib import Path

import pytest
from naive.objective import brute_force

from lbopt import InputError
from lbopt.instances import library
from lbopt.solvers import recount
from lbopt.solvers.certificates import Certificate, check
from tools.library.recipes import RECIPES

NAMES = library.names()

#: Recipes that draw at once; a busy fleet has to warm up first.
QUICK_RECIPES = [
    name for kind, recipes in RECIPES.items() for name in recipes if not name.startswith(("steady-", "hard-step-"))
]
WITH_CERTIFICATE = [name for name in NAMES if library.load(name).record.certificate == "kept"]


def numbers_of(problem):
    return recount.Numbers(
        problem.base.tolist(), problem.slots.tolist(), problem.work.tolist(), problem.must_admit.tolist()
    )


def redrawn(name):
    """Draw an entry's problem again and compare everything that the recipe says of it."""
    entry = library.load(name)
    draft = RECIPES[entry.kind][name]()
    assert draft.problem == entry.problem
    assert (draft.name, draft.explanation, draft.origin) == (entry.name, entry.explanation, entry.origin)


def test_the_classes_add_up():
    """names() is the classes one after the other, without a name twice; the recipes have the same."""
    assert [name for kind in library.KINDS for name in library.names(kind)] == NAMES
    assert [name for kind in library.KINDS for name in RECIPES[kind]] == NAMES
    assert len(set(NAMES)) == len(NAMES)
    assert all(library.names(kind) for kind in library.KINDS)


def test_the_library_covers_what_it_is_for():
    """Fleets of every size, both slots, windows, both pools; and entries of every standing that was asked for."""
    entries = [library.load(name) for name in NAMES]
    steady = [entry for entry in entries if entry.kind == "steady"]
    assert {entry.problem.num_workers for entry in steady} == {4, 8, 16, 32, 64, 144}
    assert {entry.origin.slots_per_worker for entry in steady} == {24, 72}
    assert {entry.problem.horizon for entry in steady} == {0, 20, 80}
    assert {entry.origin.parameters["shape"] for entry in steady} == {"rich", "leftover"}
    assert any(entry.problem.must_admit.any() for entry in entries)
    assert sum(entry.status == "proved" for entry in entries) > len(entries) // 2


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_computed_again(name):
    """The best assignment keeps every rule and is worth what is said; no bound is above it; proofs have a reason."""
    entry = library.load(name)
    problem, record = entry.problem, entry.record
    p = numbers_of(problem)
    assert entry.name == name
    assert recount.digest(p) == problem.digest
    workers = record.assignment.tolist()
    assert recount.broken_rule(p, workers) is None
    assert recount.idle_and_barrier(recount.loads_with(p, workers, []))[0] == record.best
    assert entry.bound <= entry.best
    assert record.claimed_bound is None or entry.bound < record.claimed_bound <= entry.best
    assert (record.claimed_bound is None) == (record.claimed_by is None)
    if record.proof == "elementary-bound":
        assert entry.bound <= recount.lower_bounds(p)[-1]
    if record.proof == "certificate":
        assert record.certificate in ("kept", "left out")
        assert record.certificate_digest
    else:
        assert record.certificate == "none"
        assert record.certificate_note, "an entry without a certificate says why"


@pytest.mark.parametrize("name", library.names("tiny"))
def test_tiny_entries_are_enumerated(name):
    """Plain enumeration of all assignments finds the best value of each tiny entry."""
    entry = library.load(name)
    p = entry.problem
    assert entry.status == "proved"
    value, optima = brute_force(p.base.tolist(), p.slots.tolist(), p.work.tolist(), p.must_admit.tolist())
    assert value == entry.best
    assert entry.record.assignment.tolist() in optima


@pytest.mark.some(20, but=("hard-wide-g4-c8-n40-max1000000000",))
@pytest.mark.parametrize("name", WITH_CERTIFICATE)
def test_certificates_prove_their_bounds(name):
    """A kept certificate is the one that the record names, and the independent check accepts it."""
    entry = library.load(name)
    certificate = Certificate.from_dict(library.certificate(name))
    assert certificate.digest == entry.record.certificate_digest
    assert check(entry.problem, certificate) == entry.bound


def test_certificates_are_kept_where_that_is_said():
    """There are many, and none beside those."""
    assert [name for name in NAMES if library.certificate(name) is not None] == WITH_CERTIFICATE
    assert len(WITH_CERTIFICATE) >= 30


@pytest.mark.parametrize("name", QUICK_RECIPES)
def test_problems_are_drawn_again(name):
    """The recipe of an entry gives its problem, byte for byte."""
    redrawn(name)


def test_a_small_steady_problem_is_drawn_again():
    """So does that of a busy fleet, which has to warm up."""
    redrawn("steady-rich-burstgpt-g4-b72-r16-h0")


@pytest.mark.slow
def test_every_problem_is_drawn_again():
    """So do all of them."""
    for name in NAMES:
        redrawn(name)


def test_every_file_of_the_library_is_packaged():
    """The patterns of package-data in pyproject.toml cover what is not Python."""
    root = Path(__file__).resolve().parents[3]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["lbopt"]
    packaged = {path for pattern in patterns for path in (root / "lbopt").glob(pattern)}
    place = root / "lbopt" / "instances" / "library"
    files = {path for path in place.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert files <= packaged
    assert sum(path.stat().st_size for path in files) < 2_000_000


@pytest.mark.parametrize("call", [library.load, library.certificate])
def test_a_typo_gets_the_nearest_name(call):
    """An unknown name is one sentence with the nearest one."""
    with pytest.raises(InputError, match="did you mean 'tiny-makespan'"):
        call("tiny-makespam")
    with pytest.raises(InputError, match="lbopt show problems"):
        call("qqqqqqqq")


def test_an_unknown_class():
    """So is an unknown class."""
    with pytest.raises(InputError, match="did you mean 'steady'"):
        library.names("stedy")
