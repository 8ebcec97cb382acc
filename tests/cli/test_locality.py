"""`lbopt export`, `lbopt fit` and `lbopt show tables` of captures as a terminal sees it."""

import re

import numpy as np
import pytest

SMALL = ("--requests", 40, "--layers", 3, "--experts", 12, "--per-token", 2)


@pytest.fixture
def capture(type_in, here):
    assert type_in("export", "task", *SMALL, "--gate", "--out", "capture.npz")[0] == 0
    return here / "capture.npz"


def test_from_end_to_end(type_in, here, capture):
    code, shown, _ = type_in("fit", "capture.npz", "--workers", 4, "--out", "table.npz")
    assert code == 0
    for line in (
        r"calibration requests +40",
        r"model +synthetic task, seed 0",
        r"shape +3 layers, 12 experts, 2 a token",
        r"layers kept +\d of 3: [0-2 ]+",
        r"workers +4",
        r"rho with all layers +0\.\d{4}",
        r"rho with the kept layers +0\.\d{4}",
        r"cluster sizes +balanced, 10 to 10",
        r"seconds +\d+\.\d\d",
        r"routing table: table\.npz",
    ):
        assert re.search(rf"^{line}$", shown, re.MULTILINE), line
    code, shown, _ = type_in("show", "tables", "table.npz")
    assert code == 0
    assert re.search(r"^transform +count-idf$", shown, re.MULTILINE)
    assert re.search(r"^workers +4$", shown, re.MULTILINE)
    assert sorted(p.name for p in here.iterdir()) == ["capture.npz", "table.npz"]


def test_a_seed_is_a_seed(type_in, here, capture):
    again = ("export", "task", *SMALL, "--gate", "--out")
    assert type_in(*again, "same.npz")[0] == type_in(*again, "other.npz", "--seed", 1)[0] == 0
    files = [np.load(here / name)["counts"] for name in ("capture.npz", "same.npz", "other.npz")]
    assert np.array_equal(files[0], files[1]) and not np.array_equal(files[0], files[2])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--vanilla",), r"cluster sizes +vanilla, \d+ to \d+"),
        (("--all-layers",), r"layers kept +3 of 3: 0 1 2"),
        (("--transform", "gate-prob"), r"transform +gate-prob"),
        (("--pairs", 50, "--seed", 2), r"workers +4"),
    ],
)
def test_options_of_a_fit(type_in, capture, words, line):
    code, shown, _ = type_in("fit", "capture.npz", "-G", 4, "-o", "table.npz", *words)
    assert code == 0
    assert re.search(rf"^{line}$", shown, re.MULTILINE)


FIT = ("fit", "capture.npz", "-G", 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("export", "tsk", "-o", "x.npz"), "no entry 'tsk' in the library"),
        (
            ("export", "task", "-o", "no/x.npz"),
            "capture of calibration requests 'no/x.npz' cannot be written",
        ),
        (("export", "task", "-o", "notes.txt"), "'notes.txt' exists and is no capture"),
        (("export", "task", "-o", ".", *SMALL), "'.' is a folder; give the name of a file"),
        (("export", "task", "-o", "x.npz", "--requests", 0), "requests is 0; expected a whole number"),
        (("export", "task", "-o", "x.npz", "--layers", 0), "num_layers is 0"),
        (("export", "task", "-o", "x.npz", *SMALL, "--seed", -1), "seed is -1; expected a whole number"),
        (("export", "task", "-o", 300 * "x", *SMALL), "cannot be written: File name too long"),
        ((*FIT, "-o", "x.npz", "--seed", -1), "seed is -1; expected a whole number of 0 or more"),
        (("fit", "nowhere.npz", "-G", 4, "-o", "x.npz"), "'nowhere.npz': No such file or directory"),
        (("fit", "notes.txt", "-G", 4, "-o", "x.npz"), "'notes.txt' is no capture of calibration requests"),
        ((*FIT, "-o", "capture.npz"), "'capture.npz' exists and is no routing table of lbopt; give another name"),
        ((*FIT, "-o", "no/x.npz"), "'no' does not exist"),
        ((*FIT, "-o", "x.npz", "--transform", "count-idff"), "unknown transform 'count-idff': did you mean count-idf"),
        ((*FIT, "-o", "x.npz", "--pairs", 0), "number of pairs is 0"),
        ((*FIT, "-o", "x.npz", "--pairs", 1), "expected (P, 2) with two pairs or more"),
        ((*FIT[:2], "-G", 41, "-o", "x.npz"), "40 calibration requests for 41 workers"),
        (("show", "tables", "capture.npz"), "'capture.npz' is no routing table of lbopt; make one with"),
    ],
)
def test_wrong_words(type_in, here, capture, words, message):
    (here / "notes.txt").write_text("mine")
    before = {p.name: p.read_bytes() for p in here.iterdir()}
    code, shown, said = type_in(*words)
    assert code == 2, said
    assert not shown
    assert [line[:7] for line in said.splitlines()] == ["error: "], said
    assert message in said
    assert {p.name: p.read_bytes() for p in here.iterdir()} == before
