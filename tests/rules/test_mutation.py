"""Every module that is mutated has tests, and what is listed as equivalent is still there."""

from tests.mutation import scope


def modules():
    """Return the modules in scope; all their mutants are made for it, when a test first asks."""
    return [name for room in scope.ROOMS for name in scope.modules(room.folder)]


def test_every_module_in_scope_has_tests():
    """The map from modules to tests knows each module, and the test files exist."""
    untested = [name for name in modules() if not scope.nearest(name)]
    assert untested == [], "name their tests under by_hand in tests/mutation/nearest.toml"
    named = {test for name in modules() for test in scope.nearest(name)}
    assert sorted(test for test in named if not (scope.ROOT / test).is_file()) == []


def test_equivalents_are_still_there():
    """A mutant that is listed as equivalent exists, changes what the list says, and has a reason."""
    known = {m.id: m.change for room in scope.ROOMS for own in scope.modules(room.folder).values() for m in own}
    listed = scope.equivalents()
    gone = [name for name, entry in listed.items() if known.get(name) != entry["change"]]
    assert gone == [], "look at these again: the code has changed; `python -m tests.mutation --list --only ID` shows it"
    assert [name for name, entry in listed.items() if len(entry["reason"]) < 20] == []


def test_the_map_names_no_module_that_is_gone():
    """A module that is deleted or renamed leaves the map."""
    assert sorted(set(scope.mapped()) - set(modules())) == []
