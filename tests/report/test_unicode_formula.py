"""Formulas of the ledger as a terminal shows them."""

from __future__ import annotations

import re

import pytest

from lbopt.report.theory_tables import finding_table, ledger_table
from lbopt.report.unicode_formula import readable, unicode_formula
from lbopt.studies.check import CheckConfig, ClaimOutcome
from lbopt.theory.ledger import CLAIMS


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"|L_g-L_h|\le s_{\max}-1", "|L_g−Lₕ| ≤ s_max−1"),
        (r"\mathbb E[W]=\frac{\rho T}{2(1-\rho)}", "E[W] = ρT/(2(1−ρ))"),
        (r"\delta=\frac{1-\eta}{2s_{\max}-1}", "δ = (1−η)/(2s_max−1)"),
        (r"P(E_k)\ge1-2G\,e^{-\delta^2pB/3}", "P(Eₖ) ≥ 1−2G e^(−δ²pB/3)"),
        (r"\frac{G}{G-1}\,\frac{\sigma_s}{s_{\max}-1}\,e_G\sqrt B", "(G/(G−1)) (σₛ/(s_max−1)) e_G √B"),
        (r"\bar s\min c-(\bar s-1)\max c", "s̄ min c−(s̄−1) max c"),
        (r"\lceil n/G\rceil\tau_H+T_{sync}", "⌈n/G⌉τ_H+T_sync"),
        (r"E[\mathrm{Imb}_{BF\text{-}IO}]", "E[Imb_BF‐IO]"),
        (r"X'=(X-N)^++\mathrm{Poisson}(N\rho)", "X' = (X−N)⁺+Poisson(Nρ)"),
    ],
)
def test_formulas(latex: str, shown: str) -> None:
    assert unicode_formula(latex) == shown


def test_text_around_formulas_stays() -> None:
    assert readable(r"if $a \le b$ - and only then") == "if a ≤ b - and only then"


@pytest.mark.parametrize("name", CLAIMS)
def test_no_latex_is_left(name: str) -> None:
    """No command, dollar or unbalanced bracket is printed for any claim of the ledger."""
    claim = CLAIMS[name]
    for text in (claim.title, claim.source, claim.statement, claim.refuted_by, claim.remark):
        shown = readable(text)
        assert not re.search(r"[\\$]", shown)
        formulas = [unicode_formula(part) for part in re.findall(r"\$([^$]+)\$", text)]
        assert all(one.count("(") == one.count(")") and one.count("{") == one.count("}") for one in formulas)


def test_the_tables_of_a_terminal_hold_no_latex() -> None:
    config = CheckConfig.of([], everything=True)
    tables = [ledger_table(), *(finding_table(ClaimOutcome(one, ())) for one in config.chosen)]
    for table in tables:
        assert not re.search(
            r"[\\$]", " ".join([table.title, table.caption, *(cell for row in table.rows for cell in row)])
        )
