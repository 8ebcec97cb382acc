"""No option vanishes, and none changes its type, its default or how often it may be given; new ones are welcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frozen import command_line

DATA = Path(__file__).with_name("data")
FROZEN = json.loads((DATA / "options.json").read_text(encoding="utf-8"))
EXIT_CODES = json.loads((DATA / "exit_codes.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def verbs():
    return command_line.leaves()


@pytest.mark.parametrize("verb", FROZEN)
def test_a_verb_keeps_its_options(verbs, verb):
    """Every spelling still names a parameter of the same kind; a hidden alias may have a default of its own."""
    assert verb in verbs
    command = verbs[verb]
    now = {name: row for row in command_line.options(command) for name in row["names"] if name.startswith("-")}
    hidden = {name for p in command.params if getattr(p, "hidden", False) for name in (*p.opts, *p.secondary_opts)}
    arguments = [row for row in command_line.options(command) if row["kind"] == "argument"]
    frozen_arguments = [row for row in FROZEN[verb] if row["kind"] == "argument"]
    assert len(arguments) >= len(frozen_arguments)
    for row, kept in zip(frozen_arguments, arguments, strict=False):
        assert {**kept, "names": None} == {**row, "names": None}
    for row in FROZEN[verb]:
        for name in row["names"] if row["kind"] == "option" else ():
            assert name in now, f"lbopt {verb}: {name} is gone"
            left_out = {"names", "kind"} | ({"default"} if name in hidden else set())
            for key in set(row) - left_out:
                assert now[name][key] == row[key], f"lbopt {verb} {name}: {key}"


def test_exit_codes(tmp_path):
    """Help ends with 0, a misspelt option and wrong input with 2, and none of them writes anything."""
    codes = {line: command_line.typed(line, tmp_path)[0] for line in EXIT_CODES}
    assert codes == EXIT_CODES
    assert list(tmp_path.iterdir()) == []
