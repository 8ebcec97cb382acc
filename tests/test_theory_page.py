"""The manual's page on the theory lists the whole ledger, with the verdicts that the ledger expects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lbopt.theory.ledger import CLAIMS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "theory.md"
NAMING = [PAGE, ROOT / "docs" / "scaling.md", ROOT / "README.md"]

_ROW = re.compile(r"^\| \[`([\w-]+)`\]\{#\1\} \| (.+) \| ([\w ]+) \| `(\w+)` \|$", re.MULTILINE)
_CLAIM = re.compile(r"`((?:theorem|lemma|waiting|fcfs|berry)-[\w-]+|slot-law|[\w-]+-adversary[\w-]*)`")


def rows() -> list[tuple[str, str, str, str]]:
    return _ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_the_table_is_the_ledger() -> None:
    """Every claim has one row, in the ledger's words for its verdict, and the row names its module."""
    listed = [name for name, *_ in rows()]
    assert sorted(listed) == sorted(CLAIMS)
    for name, says, verdict, module in rows():
        claim = CLAIMS[name]
        assert verdict == claim.expected.value, name
        assert claim.measure.__module__ == f"lbopt.theory.claims.{module}", name
        assert len(says) > 10, name


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.name)
def test_claims_that_are_named_exist(page: Path) -> None:
    """Whatever looks like the name of a claim in the text is one."""
    assert set(_CLAIM.findall(page.read_text(encoding="utf-8"))) <= set(CLAIMS)


def test_refuted_claims_are_told_of() -> None:
    """A refuted claim is more than a row: the story on the page says where it goes wrong."""
    story = PAGE.read_text(encoding="utf-8").partition("## Where the printed proofs fail")[2]
    untold = [name for name, claim in CLAIMS.items() if claim.expected.value == "refuted" and f"`{name}`" not in story]
    assert untold == []


def test_the_example_counts_the_ledger() -> None:
    """The page's number of claims is that of the ledger, and its shortened table shows the ledger's verdicts."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"The ledger has {len(CLAIMS)} claims" in text
    shown = re.findall(r"^\| ([\w-]+) \| .* \| (holds|refuted) \|$", text, re.MULTILINE)
    assert len(shown) == 8
    assert all(CLAIMS[name].expected.value == verdict for name, verdict in shown)
