"""What the manual says of the proofs is there: every theorem that it names stands in a file of `proofs/theories`."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
THEORIES = sorted((ROOT / "proofs" / "theories").glob("*.v"))
PAGES = [ROOT / "docs" / "proofs.md", ROOT / "proofs" / "README.md", *sorted((ROOT / "docs" / "proofs").glob("*.md"))]
STATED = re.compile(r"^(?:Theorem|Lemma|Corollary|Definition|Fixpoint|Record) (\w+)", re.MULTILINE)


def stated():
    """Names of all theorems and definitions, by file."""
    return {path.name: set(STATED.findall(path.read_text(encoding="utf-8"))) for path in THEORIES}


def test_the_theories_are_read():
    """The tests below look at real files."""
    names = stated()
    assert len(names) > 15
    assert "check_sound" in names["Checker.v"]


def named_theorems(text):
    """Words in backticks with an underscore are theorems; `_CoqProject` and the like begin otherwise."""
    return {word for word in re.findall(r"`([a-z]\w*_\w*)`", text) if word != "priced_envelopes"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_theorem_that_is_named_is_there(page):
    """No page names a theorem or a file that does not exist."""
    text = page.read_text(encoding="utf-8")
    assert sorted(named_theorems(text) - set().union(*stated().values())) == []
    files = set(re.findall(r"`(\w+\.v)`", text))
    assert sorted(files - set(stated()) - {"Instances.v"}) == []


def test_pages_name_theorems():
    """The test above has something to look at."""
    named = {page.name: named_theorems(page.read_text(encoding="utf-8")) for page in PAGES}
    assert len(named["README.md"]) > 40
    assert len(set().union(*named.values())) > 50


def test_every_file_is_compiled():
    """`_CoqProject` lists the files in the order in which a reader may take them, and leaves none out."""
    text = (ROOT / "proofs" / "_CoqProject").read_text(encoding="utf-8")
    listed = re.findall(r"^theories/(\w+\.v)$", text, re.MULTILINE)
    assert sorted(listed) == [path.name for path in THEORIES]


def test_no_proof_is_left_open():
    """`make proofs` asks Coq; this test needs no Coq."""
    left = re.compile(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Abort)\b")
    assert [path.name for path in THEORIES if left.search(path.read_text(encoding="utf-8"))] == []


def test_lines_are_short():
    """As in the rest of the project."""
    long = [
        f"{path.name}:{number}"
        for path in [*THEORIES, *sorted((ROOT / "proofs" / "checker").iterdir())]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > 120
    ]
    assert long == []
