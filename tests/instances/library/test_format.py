"""Entries in files: what is written is read again, and what is not an entry is refused in one sentence."""

import copy
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt import InputError, StepProblem
from lbopt.instances import library
from lbopt.instances.library import Entry
from lbopt.instances.library.collection import Archive
from lbopt.instances.library.entry import compact, expanded
from tools.library.archive import write_archive

GOOD = library.load("tiny-makespan").to_dict()


@st.composite
def problems(draw):
    """Step problems in every form that `compact` knows: flat and moving loads, requests that grow alike or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    workers, requests, width = (int(rng.integers(low, 5)) for low in (1, 0, 1))
    base = rng.integers(0, 50, (workers, draw(st.sampled_from([1, width]))))
    work = rng.integers(0, 50, (requests, draw(st.sampled_from([1, width]))))
    if draw(st.booleans()):
        work = work[:, :1] + draw(st.integers(0, 3)) * np.arange(base.shape[1])
    slots = rng.integers(0, 4, workers)
    must = np.zeros(requests, dtype=bool)
    must[: rng.integers(0, min(requests, slots.sum()) + 1)] = True
    return StepProblem(base=base, slots=slots, work=work, must_admit=must)


@given(problems())
def test_a_short_form_is_the_same_problem(problem):
    """compact and back, through JSON, is the same problem."""
    again = expanded(json.loads(json.dumps(compact(problem))), source="here")
    assert again == problem
    assert again.digest == problem.digest


def test_an_entry_comes_back(tmp_path):
    """An archive gives back entries and certificates in order, and equal content gives an equal file."""
    entries = [library.load(name) for name in library.names("tiny")[:3]]
    certificates = {entries[1].name: {"format": "x"}}
    for name in ("a.zip", "b.zip"):
        write_archive(tmp_path / name, entries, certificates)
    content = (tmp_path / "a.zip").read_bytes()
    assert content == (tmp_path / "b.zip").read_bytes()
    archive = Archive(content, "a.zip")
    assert archive.names == [entry.name for entry in entries]
    assert [archive.entry(name).to_dict() for name in archive.names] == [entry.to_dict() for entry in entries]
    assert [archive.certificate(name) for name in archive.names] == [None, {"format": "x"}, None]


def test_an_archive_is_plain_json(tmp_path):
    """Anybody can unzip a file of the library and read an entry without lbopt."""
    write_archive(tmp_path / "a.zip", [library.load("tiny-makespan")], {})
    with zipfile.ZipFile(tmp_path / "a.zip") as opened:
        assert json.loads(opened.read("tiny-makespan.json")) == GOOD


def test_a_file_that_is_no_archive():
    """Anything but a zip is refused."""
    with pytest.raises(InputError, match=r"x\.zip is not a zip archive that can be read"):
        Archive(b"PK nonsense", "x.zip")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((), [], "not a library entry"),
        (("format",), "lbopt-result", "not a library entry"),
        (("version",), 2, "format version 2"),
        (("version",), True, "format version|version is True"),
        (("name",), "Tiny Makespan", "lower-case words"),
        (("name",), 7, "name is 7; expected a text"),
        (("kind",), None, "kind is None; expected a text"),
        (("surprise",), 1, "unknown field 'surprise'"),
        (("origin", "seed"), "one", "seed is 'one'; expected a whole number or None"),
        (("origin", "surprise"), 1, "unknown field 'surprise'"),
        (("known", "best"), 2, "best is 2, but its assignment is worth 1"),
        (("known", "best"), None, "belong together"),
        (("known", "best"), True, "best is True; expected"),
        (("known", "bound"), 2, "best is 1, below the proved bound 2"),
        (("known", "proof"), "my word", "proof is 'my word'"),
        (("known", "certificate"), "somewhere", "certificate is 'somewhere'"),
        (("known", "assignment"), [0, 0, -1], "sends 2 requests to worker 0"),
        (("known", "assignment"), [0, 1, 1], "sends 2 requests to worker 1"),
        (("known", "assignment"), [0, 5, 1], "worker 5"),
        (("known", "assignment"), [0, "x", 1], "assignment"),
        (("known", "assignment"), [0, 1], r"shape \(2,\)"),
        (("known", "assignment"), [0, 0.5, 1], "assignment"),
        (("problem", "slots"), [2, 0], "it was changed after it was written"),
        (("problem", "sizes"), [1, -1, 12], "zero or more"),
        (("problem", "sizes"), [1, "x", 12], "problem"),
        (("problem", "sizes"), [1, 2**80, 12], "problem"),
        (("problem", "sizes"), None, "either sizes and growth, or work"),
        (("problem", "horizon"), -1, "horizon is -1"),
        (("problem", "horizon"), 2**40, "horizon is"),
        (("problem", "must_admit"), [3], "must_admit names request 3"),
        (("problem", "base"), [[1], [2, 3]], "base|rectangular"),
        (("problem", "digest"), "0" * 64, "it was changed after it was written"),
    ],
    ids=str,
)
def test_what_is_not_an_entry_is_refused(path, value, message):
    """One wrong field is one sentence that names it."""
    data = copy.deepcopy(GOOD)
    if not path:
        data = value
    else:
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    with pytest.raises(InputError, match=message):
        Entry.from_dict(data, source="here")


@pytest.mark.parametrize("key", [*GOOD, "known best", "origin seed", "problem slots"])
def test_a_missing_field_is_named(key):
    """So is one field that is missing."""
    data = copy.deepcopy(GOOD)
    place = data
    *outer, last = key.split()
    for word in outer:
        place = place[word]
    del place[last]
    with pytest.raises(InputError, match="not a library entry|format version|lacks " + last):
        Entry.from_dict(data, source="here")
