"""The report of a check, as a page that needs nothing else and as Markdown for the manual."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from latex2mathml.converter import convert
from markupsafe import Markup, escape

from lbopt.report.page import render_page
from lbopt.report.theory_tables import finding_table, verdict_lead, verdict_table
from lbopt.studies.check import CheckOutcome, ClaimOutcome
from lbopt.table import Table
from lbopt.theory.proofs import PROOFS, WHOLE, how_proved

#: Parts of a claim that may hold formulas.
_WRITTEN = ("title", "source", "statement", "refuted_by", "remark")

#: What Markdown, or MyST, would take for markup in a cell.
_MARKUP = re.compile(r"[\\`*_{\[<$|]")

_FORMULA = re.compile(r"\$([^$]+)\$")


def render_theory_page(outcome: CheckOutcome, provenance: dict[str, Any], command: str) -> str:
    """Return the page as HTML; formulas are MathML."""
    return render_page(
        "theory_page.html.jinja",
        version=provenance["versions"]["lbopt"],
        machine=f"{provenance['processor']}, {provenance['cpu_count']} cores",
        lead=verdict_lead(outcome),
        interrupted=outcome.interrupted,
        notes=outcome.notes,
        verdicts=verdict_table(outcome),
        claims=[
            {
                "name": one.claim.name,
                "verdict": one.verdict.value,
                "table": finding_table(one),
                "again": again(one, outcome),
                "proof": how_proved(one.claim.name) if one.claim.name in PROOFS else "",
                **{part: with_formulas(getattr(one.claim, part)) for part in _WRITTEN},
            }
            for one in outcome.claims
        ],
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in provenance["versions"].items()),
    )


def theory_markdown(outcome: CheckOutcome, provenance: dict[str, Any], command: str) -> str:
    """Return the report as Markdown with formulas between dollar signs."""
    parts = [
        "# The theory, checked",
        f"{verdict_lead(outcome)} Made by `{command}` in {outcome.seconds:.0f} s with lbopt "
        f"{provenance['versions']['lbopt']}; {provenance['processor']}, {provenance['cpu_count']} cores.",
        *(["Interrupted. This report covers the part that was finished."] if outcome.interrupted else []),
        *(f"Note: {_plain(note)}" for note in outcome.notes),
        "## Verdicts",
        _verdicts(outcome),
    ]
    for one in outcome.claims:
        table = finding_table(one)
        parts += [
            f"({one.claim.name})=\n## {one.claim.name}: {one.verdict.value}",
            f"{one.claim.title}. {one.claim.source}.",
            one.claim.statement,
            f"*Refuted by:* {one.claim.refuted_by}",
            *([f"*Remark:* {one.claim.remark}"] if one.claim.remark else []),
            *([f"*Proof:* {proof_link(one.claim.name)}."] if one.claim.name in PROOFS else []),
            _markdown_table(table),
            f"Command: `{again(one, outcome)}`",
        ]
    return "\n\n".join(parts) + "\n"


def with_formulas(text: str) -> Markup:
    """Return text as HTML, with what stands between dollar signs as MathML."""
    parts = _FORMULA.split(text)
    return Markup("").join(Markup(convert(part)) if place % 2 else escape(part) for place, part in enumerate(parts))


def again(one: ClaimOutcome, outcome: CheckOutcome) -> str:
    """Return the command that measures a claim again."""
    return f"lbopt check {shlex.join(one.chosen.specs)} --{outcome.config.level} --seed {outcome.config.seed}"


def proof_link(claim: str) -> str:
    """Return where in the manual a claim is proved, and which theorems Coq has checked, as Markdown."""
    proof = PROOFS[claim]
    names = ", ".join(f"`{name}`" for name in proof.names)
    part = "" if proof.checked == WHOLE else f" ({proof.checked})"
    return f"[in the manual](#{proof.label})" + (f", checked by Coq{part}: {names}" if names else "")


def _verdicts(outcome: CheckOutcome) -> str:
    """Return the table of verdicts: a link to each claim's section, verdict and statement first, the command last."""
    table = verdict_table(outcome)
    rows = [
        [
            f"[{row[0]}](#{row[0]})",
            row[-1],
            _in_cell(one.claim.statement),
            *map(_plain, row[1:-1]),
            f"`{again(one, outcome)}`",
        ]
        for row, one in zip(table.rows, outcome.claims, strict=True)
    ]
    return _piped([table.headers[0], table.headers[-1], "statement", *table.headers[1:-1], "command"], rows)


def _markdown_table(table: Table) -> str:
    return _piped(table.headers, [[_plain(cell) for cell in row] for row in table.rows])


def _piped(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _in_cell(text: str) -> str:
    """Return text with formulas for a cell of a table, in which a bar would end the cell."""
    parts = _FORMULA.split(text)
    return "".join(
        "$" + part.replace("|", r"\vert ") + "$" if place % 2 else _plain(part) for place, part in enumerate(parts)
    )


def _plain(cell: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", cell.replace("\n", " "))
