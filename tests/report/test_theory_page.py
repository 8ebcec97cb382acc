"""The report of a check as its readers get it: all closed on the page, balanced formulas, even tables in Markdown."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt

from lbopt.report.check_report import render_theory_page, theory_markdown
from lbopt.report.study_report import write_study_folder
from lbopt.report.theory_tables import finding_table, ledger_table, verdict_lead, verdict_table
from lbopt.studies.check import CheckConfig, CheckOutcome, ClaimOutcome
from lbopt.theory.finding import Finding
from lbopt.theory.ledger import CLAIMS

HOW: dict[str, Any] = {"versions": {"lbopt": "0", "numpy": "2"}, "processor": "a chip", "cpu_count": 2}


def finding(**given: Any) -> Finding:
    usual: dict[str, Any] = {"regime": "G=2, s in {1,8}", "quantity": "E|Y-EY|³ * n_1", "kind": "mean", "relation": "="}
    return Finding(**{**usual, "measured": -1234567.25, "predicted": 0.5, "error": 2e6, "trials": 12345, **given})


FINDINGS = (
    finding(),
    finding(kind="computed", relation="<=", measured=0.4, tolerance=0.002, note="a <b> & $5 | more"),
    finding(kind="exact", relation="<=", measured=-1.0, predicted=0.0, undecided=1, outside="B = 3 is below 4 B* = 9"),
    finding(kind="frequency", relation="<=", measured=0.1, trials=50),
    finding(kind="fit", measured=0.3),
)


def everything() -> CheckOutcome:
    """All claims of the ledger, each with one finding of every kind."""
    config = CheckConfig.of([], everything=True)
    return CheckOutcome(config, [ClaimOutcome(one, FINDINGS) for one in config.chosen], notes=["a note & more"])


class Page(HTMLParser):
    """Counts what opens and closes, and keeps the text outside code."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.ids += [given["id"]] if given.get("id") else []
        self.links += [given["href"]] if given.get("href") else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"code", "pre", "style"} & set(self.open):
            self.text.append(data)


@pytest.fixture(scope="module")
def page() -> Page:
    found = Page()
    found.feed(render_theory_page(everything(), HOW, "lbopt check all"))
    return found


def test_formulas_of_the_ledger_are_plain_text(page: Page) -> None:
    """No command, dollar or unbalanced bracket stands on the page or in a table of a terminal."""
    assert page.open == []
    shown = "".join(page.text).replace("a <b> & $5 | more", "").replace("\u00a0", " ")
    for one in CLAIMS.values():
        assert one.statement in shown
        for text in (one.title, one.source, one.statement, one.refuted_by, one.remark):
            assert not set("$\\") & set(text), one.name
            assert text.count("{") == text.count("}"), one.name
    tables = [
        ledger_table(),
        *(finding_table(ClaimOutcome(one, ())) for one in CheckConfig.of([], everything=True).chosen),
    ]
    for table in tables:
        assert not set("$\\") & set(" ".join([table.title, table.caption, *map(" ".join, table.rows)]))


def test_every_claim_has_its_place(page: Page) -> None:
    assert page.ids == list(CLAIMS)
    assert page.links == [f"#{name}" for name in CLAIMS]
    assert "a note & more" in page.text


def test_markdown_has_an_even_row_for_each_claim() -> None:
    text = theory_markdown(everything(), HOW, "lbopt check all")
    rows = text.split("\n\n")[-1].splitlines()
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert [row.split("]")[0] for row in rows[2:]] == [f"| [{name}" for name in CLAIMS]


def test_markdown_shows_what_was_written() -> None:
    """No star, underscore or dollar of a cell or a note is taken for markup."""
    config = CheckConfig.of(["lemma-8"])
    found = (finding(quantity="$5 *here*, E|Y|_2", regime="s in {1,8}"),)
    text = theory_markdown(CheckOutcome(config, [ClaimOutcome(config.chosen[0], found)], notes=["*b*"]), HOW, "c")
    shown = MarkdownIt("commonmark").enable("table").render(text)
    assert re.findall(r"<(?:em|strong)>(.*?)<", shown) == ["Detects"]
    assert "$5 *here*, E|Y|_2; s in {1,8}" in shown
    assert "\\$5" in text
    assert "Note: \\*b\\*" in text


def test_again_is_a_command_that_can_be_pasted() -> None:
    config = CheckConfig.of(["fcfs-drift:G=4,growth=0+1+3", "lemma-8", "lemma-8:p=0.4"], seed=7, level="full")
    outcome = CheckOutcome(config, [ClaimOutcome(one, FINDINGS) for one in config.chosen])
    page = render_theory_page(outcome, HOW, "c")
    assert "lbopt check fcfs-drift:G=4,growth=0+1+3 --full --seed 7" in page
    assert "lbopt check lemma-8 lemma-8:p=0.4 --full --seed 7" in page


def test_tables_are_even_in_every_state() -> None:
    config = CheckConfig.of(["lemma-8"])
    for findings in ((), FINDINGS):
        one = ClaimOutcome(config.chosen[0], findings)
        for table in (finding_table(one), verdict_table(CheckOutcome(config, [one])), ledger_table()):
            assert {len(row) for row in table.rows} <= {len(table.headers)}


def test_numbers_as_a_reader_meets_them() -> None:
    one = ClaimOutcome(CheckConfig.of(["lemma-8"]).chosen[0], FINDINGS)
    rows = finding_table(one).rows
    assert rows[0][2] == "−1.23457e+06"
    assert [row[4] for row in rows] == ["= 0.5", "≤ 0.5 ± 0.2 %", "≤ 0", "≤ 0.5", "fits"]
    assert [row[3] for row in rows if "…" not in row[3]] == ["exact", "exact", "–"]
    assert [row[7] for row in rows] == ["–", "− 20 %", "–", "− 99 %", "–"]
    assert rows[2][8] == "0 violations; outside: B = 3 is below 4 B* = 9; 1 optimum not proved"


def test_the_lead_says_what_differs() -> None:
    config = CheckConfig.of(["lemma-8"])
    good = CheckOutcome(config, [ClaimOutcome(config.chosen[0], (finding(kind="computed", predicted=-1234567.25),))])
    assert verdict_lead(good) == "1 claim: 1 holds. All verdicts are the expected ones."
    bad = CheckOutcome(config, [ClaimOutcome(config.chosen[0], (finding(kind="computed"),))])
    assert verdict_lead(bad) == "1 claim: 1 refuted. lemma-8: refuted, where the ledger has 'holds'."


def test_folder(tmp_path: Any) -> None:
    config = CheckConfig.of(["lemma-8", "lemma-1-printed"])
    example = {"problem": {"base": [0]}, "says": "least imbalance 3", "assignment": [0]}
    refuting = dataclasses.replace(FINDINGS[2], outside="", violations=1, counterexample=example)
    outcome = CheckOutcome(
        config, [ClaimOutcome(config.chosen[0], FINDINGS), ClaimOutcome(config.chosen[1], (refuting,))]
    )
    write_study_folder("check", outcome, tmp_path / "out", "lbopt check")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {*run["files"], "run.json"}
    assert run["counterexamples"] == {
        "counterexample-lemma-1-printed-0.json": {"says": "least imbalance 3", "assignment": [0]}
    }
    assert run["verdicts"] == {"lemma-8": "holds", "lemma-1-printed": "refuted"}
    with (tmp_path / "out" / "findings.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["claim"] for row in rows] == ["lemma-8"] * 5 + ["lemma-1-printed"]
    assert [float(row["measured"]) for row in rows] == [one.measured for one in (*FINDINGS, refuting)]
    assert rows[2]["verdict"] == "outside the regime"
    assert [bool(row["low"]) for row in rows] == [True, False, False, True, False, False]
    assert float(rows[3]["p_value"]) == pytest.approx(FINDINGS[3].p_value())


def test_both_reports_say_what_is_missing() -> None:
    config = CheckConfig.of(["lemma-8"])
    outcome = CheckOutcome(config, [ClaimOutcome(config.chosen[0], (), 5)], notes=["5 of 5 are *missing*"])
    outcome.interrupted = True
    page, text = render_theory_page(outcome, HOW, "c"), theory_markdown(outcome, HOW, "c")
    for found in (page, text):
        assert "This report covers the part that was finished." in found
    assert "5 of 5 are *missing*" in page
    assert "Note: 5 of 5 are \\*missing\\*" in text
    assert "Interrupted" not in theory_markdown(everything(), HOW, "c")
