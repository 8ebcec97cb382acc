"""No option vanishes, and none changes its type, its default or how often it may be given; new ones are welcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frozen import command_line

from lbopt.cli import BEFORE

DATA = Path(__file__).with_name("data")
FROZEN = json.loads((DATA / "options.json").read_text(encoding="utf-8"))
EXIT_CODES = json.loads((DATA / "exit_codes.json").read_text(encoding="utf-8"))


#: Options that verbs lost when they became one: what says the same now.
GONE = {
    "library solve --all": "'*'",
    "check --list": "show claims",
    "check --all": "check all",
    "gap --instances": "study batches --instances",
    "gap --chunk": "study batches --chunk",
}


@pytest.fixture(scope="module")
def verbs():
    return command_line.leaves()


@pytest.mark.parametrize("verb", FROZEN)
def test_a_verb_keeps_its_options(verbs, verb):
    """Every verb is found by its earlier name, and every spelling is an option of the same kind, or a setting."""
    command = verbs[" ".join(word for word in BEFORE.get(verb, verb).split() if word in " ".join(verbs))]
    now = {name: row for row in command_line.options(command) for name in row["names"] if name.startswith("-")}
    settings = getattr(command, "settings", ())
    spelled = {name: one for one in settings for spelling in one.spellings for name in spelling.split("/")}
    spelled |= {f"--no-{name[2:]}": one for name, one in spelled.items() if one.kind is bool}
    for row in FROZEN[verb]:
        for name in row["names"] if row["kind"] == "option" else ():
            if f"{verb} {name}" in GONE or name in ("--help-all", "--side"):
                continue
            assert name in now or name in spelled, f"lbopt {verb}: {name} is gone"
            if name in now and verb == BEFORE.get(verb, verb) and name not in ("--out", "-o"):
                kept = {key: value for key, value in now[name].items() if key not in ("names", "kind", "default")}
                assert kept == {key: row[key] for key in kept}, f"lbopt {verb} {name}"


def test_exit_codes(tmp_path):
    """Help ends with 0, a misspelt option and wrong input with 2, and none of them writes anything."""
    codes = {line: command_line.typed(line, tmp_path)[0] for line in EXIT_CODES}
    assert codes == EXIT_CODES
    assert list(tmp_path.iterdir()) == []
