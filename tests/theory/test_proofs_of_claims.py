"""The table of proofs: claims of the ledger, theorems that stand in Coq files without a gap, labels of the manual."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lbopt.report.theory_tables import ledger_table
from lbopt.theory.ledger import CLAIMS, PROOFS, REFUTED, WHOLE, Proof, how_proved

ROOT = Path(__file__).resolve().parents[2]
THEORIES = ROOT / "proofs" / "theories"
PAGES = [ROOT / "docs" / "proofs.md", *sorted((ROOT / "docs" / "proofs").glob("*.md")), ROOT / "docs" / "online.md"]
LEDGER_PAGE = ROOT / "docs" / "theory.md"

_PROOF_OF = r"^(?:Theorem|Corollary) {name}\b.*?^(?:Proof\.)(.*?)(Qed|Defined|Admitted|Abort)\."


def proof_text(theorem: str) -> tuple[str, str]:
    """Return what stands between ``Proof.`` and its end in the file of a theorem, and the word that ends it."""
    file, _, name = theorem.partition(".")
    text = (THEORIES / f"{file}.v").read_text(encoding="utf-8")
    found = re.search(_PROOF_OF.format(name=name), text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{theorem} is no theorem of {file}.v"
    return found[1], found[2]


def pages_of(label: str) -> list[str]:
    """Return the names of the pages that have a label of the manual."""
    mark = re.compile(rf"^\({re.escape(label)}\)=$", re.MULTILINE)
    return [page.name for page in PAGES for _ in mark.findall(page.read_text(encoding="utf-8"))]


def table_rows() -> list[str]:
    """Return the rows of the manual's table of proofs, as the map makes them."""
    rows = []
    for claim in CLAIMS:
        if claim in PROOFS:
            proof = PROOFS[claim]
            names = ", ".join(f"`{name}`" for name in proof.names)
            cells = (
                f"[`{claim}`](#{claim})",
                CLAIMS[claim].expected.value,
                f"[proof](#{proof.label})",
                names,
                proof.checked,
            )
            rows.append("| " + " | ".join(cells) + " |")
    return rows


def test_claims_are_the_ledgers() -> None:
    """A claim that was renamed or taken out would leave a proof of nothing."""
    assert sorted(set(PROOFS) - set(CLAIMS)) == []
    assert sum(bool(proof.coq) for proof in PROOFS.values()) >= 15


@pytest.mark.parametrize("claim", sorted(claim for claim, proof in PROOFS.items() if proof.coq))
def test_theorems_are_proved(claim: str) -> None:
    """Every theorem that a claim names stands in its file as a theorem or corollary, and its proof ends with Qed."""
    for theorem in PROOFS[claim].coq:
        body, end = proof_text(theorem)
        assert end == "Qed", theorem
        assert not re.search(r"\b(admit|give_up|Admitted)\b", body), theorem


def test_a_gap_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A theorem that is admitted, and one that is only a lemma, do not pass."""
    (tmp_path / "Open.v").write_text(
        "Theorem left_open x : x = x.\nProof.\nadmit.\nAdmitted.\nLemma small : True.\nProof. by []. Qed.\n"
    )
    monkeypatch.setattr("tests.theory.test_proofs_of_claims.THEORIES", tmp_path)
    assert proof_text("Open.left_open")[1] == "Admitted"
    with pytest.raises(AssertionError, match=r"no theorem of Open\.v"):
        proof_text("Open.small")


@pytest.mark.parametrize("claim", sorted(PROOFS))
def test_the_manual_has_the_proof(claim: str) -> None:
    """The label of a proof stands on one page, and that page links to the claim."""
    pages = pages_of(PROOFS[claim].label)
    assert len(pages) == 1, f"{PROOFS[claim].label} is on {pages}"
    named = [page.name for page in PAGES if f"<{claim}>`" in page.read_text(encoding="utf-8")]
    assert pages[0] in named


def test_the_ledgers_page_links_to_the_proofs() -> None:
    """In docs/theory.md the row of a claim that is proved has a link to its proof, and no other row has one."""
    rows = re.findall(
        r"^\| \[`([\w-]+)`\]\{#\1\} \| (.+?) \| [\w ]+ \| `\w+` \|$", LEDGER_PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert len(rows) == len(CLAIMS)
    linked = {claim: re.findall(r"\[proof\]\(#([\w-]+)\)", says) for claim, says in rows}
    assert linked == {claim: [PROOFS[claim].label] if claim in PROOFS else [] for claim in CLAIMS}


def test_the_manuals_table_is_the_map() -> None:
    """docs/proofs.md has a row per proof, in the order of the ledger."""
    text = PAGES[0].read_text(encoding="utf-8")
    shown = text.partition("<!-- table of proofs -->")[2].partition("<!-- end of table -->")[0].strip().splitlines()
    assert shown[2:] == table_rows()


def test_claims_without_a_proof_are_named() -> None:
    """docs/proofs.md says of every other claim of the ledger that it is measured, or whose theorem it is."""
    _, _, after = PAGES[0].read_text(encoding="utf-8").partition("<!-- end of table -->")
    said = after.partition("What of the paper is not proved:")[0]
    assert sorted(re.findall(r"`([a-z\d]+(?:-[a-z\d]+)+)`", said)) == sorted(set(CLAIMS) - set(PROOFS))


def test_what_covers_what() -> None:
    """A refuted claim is not covered as a whole by a theorem, and one that holds has no counterexample."""
    for claim, proof in PROOFS.items():
        refuted = CLAIMS[claim].expected.value == "refuted"
        assert proof.checked != (WHOLE if refuted else REFUTED), claim


def test_the_ledger_says_how() -> None:
    """`lbopt show claims` names a theorem of each claim that Coq has checked."""
    table = ledger_table()
    shown = {row[0]: row[-1] for row in table.rows}
    assert table.headers[-1] == "proof"
    assert shown["lemma-2"] == "Coq: gap_replete"
    assert shown["lemma-2-definition-1"] == "Coq: gap_leximax and 3 more"
    assert shown["lemma-2-steps"] == "Coq, in part: gap_replete"
    assert shown["lemma-3"] == "proved"
    assert shown["leader-drift"] == "–"


def test_a_report_says_how() -> None:
    """A part that Coq has checked is not said to be the whole, nor a counterexample to be a proof."""
    assert how_proved("lemma-2") == "checked by Coq: gap_replete"
    assert how_proved("lemma-1-printed") == "checked by Coq (a counterexample): printed_lemma1_is_false"
    assert how_proved("lemma-2-steps") == "checked by Coq (the first of the two bounds): gap_replete"


def test_a_proof_is_whole_or_empty() -> None:
    """Theorems without a word on what they cover are refused."""
    with pytest.raises(ValueError, match="give both"):
        Proof(anchor="x", coq=("A.b",))
