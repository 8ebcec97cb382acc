"""The tables of a check: the ledger, the verdicts, and the findings of one claim."""

from __future__ import annotations

from lbopt import numbers
from lbopt.studies.check import CheckOutcome, ClaimOutcome
from lbopt.table import Table
from lbopt.theory.finding import Finding, Plant, Verdict
from lbopt.theory.ledger import CLAIMS, PROOFS, briefly_proved, how_proved

_SIGNS = {"=": "=", "<=": "≤", ">=": "≥"}


def ledger_table() -> Table:
    """Return all claims of the ledger."""
    rows = [(one.name, one.title, one.source, one.expected.value, briefly_proved(one.name)) for one in CLAIMS.values()]
    return Table(
        "The ledger",
        "Check one by its name: lbopt check NAME. A regime of your own: lbopt check NAME:parameter=value. "
        "The proofs are in the manual's chapter Proofs; the theorems that Coq has checked are in proofs/theories.",
        ("claim", "statement", "source", "verdict", "proof"),
        rows,
    )


def verdict_table(outcome: CheckOutcome) -> Table:
    """Return a row per claim: the finding that decides it."""
    return Table(
        "Verdicts",
        "A row shows the finding that decides the claim: a violation, or the least probable of its averages. "
        "Intervals are joint 99 % ones over the claim's regimes. Detects: the smallest planted error that "
        "the row's evidence would refute, and of an exponent of B what all of the claim's would.",
        ("claim", "where", "measured", "interval", "claimed", "p-value", "trials", "detects", "verdict"),
        [_verdict_row(one) for one in outcome.claims],
    )


def finding_table(one: ClaimOutcome) -> Table:
    """Return a row per finding of a claim."""
    return Table(
        f"{one.claim.name}: {one.claim.title}",
        f"Claim: {one.claim.statement}\n{_beside(one)}",
        ("regime", "quantity", "measured", "interval", "claimed", "trials", "verdict", "detects", "note"),
        [_finding_row(one, finding) for finding in one.findings],
    )


def finding_rows(outcome: CheckOutcome) -> list[dict[str, object]]:
    """Return one row per finding of every claim, with its interval and verdict."""
    rows = []
    for one in outcome.claims:
        for finding in one.findings:
            row: dict[str, object] = {"claim": one.claim.name, **finding.to_dict()}
            del row["counterexample"]
            low, high = finding.interval(one.share) or (None, None)
            rows.append(
                row
                | {"low": low, "high": high, "p_value": finding.p_value(), "verdict": str(one.judged(finding))}
                | _detected(one.plant(finding))
            )
    return rows


def _beside(one: ClaimOutcome) -> str:
    """Return the remark on a claim, or else what would refute it, and how it is proved, where it is."""
    claim = one.claim
    beside = f"Remark: {claim.remark}" if claim.remark else f"Refuted by: {claim.refuted_by}"
    return f"{beside}\nProof: {how_proved(claim.name)}." if claim.name in PROOFS else beside


def verdict_lead(outcome: CheckOutcome) -> str:
    """Return the answer in a sentence or two."""
    counts = {verdict: sum(one.verdict is verdict for one in outcome.claims) for verdict in Verdict}
    said = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)
    other = [one for one in outcome.claims if not one.as_expected]
    text = f"{len(outcome.claims)} claim{'s' * (len(outcome.claims) != 1)}: {said}."
    for one in other:
        text += f" {one.claim.name}: {one.verdict.value}, where the ledger has '{one.claim.expected.value}'."
    return text if other else f"{text} All verdicts are the expected ones."


def number(value: float) -> str:
    """Return a number with six digits at most, and a true minus sign."""
    return f"{value:,.6g}".replace("-", "−")


def _verdict_row(one: ClaimOutcome) -> tuple[str, ...]:
    finding = one.tightest
    if finding is None:
        return (one.claim.name, "nothing was measured", *["–"] * 6, one.verdict.value)
    trials = sum(other.trials for other in one.findings)
    return (
        one.claim.name,
        f"{finding.quantity}; {finding.regime}",
        number(finding.measured),
        _interval(one, finding),
        _claimed(finding),
        _chance(finding),
        numbers.whole(trials),
        _claim_detects(one),
        one.verdict.value,
    )


def _finding_row(one: ClaimOutcome, finding: Finding) -> tuple[str, ...]:
    notes = [finding.note, f"outside: {finding.outside}" if finding.outside else ""]
    if finding.kind == "exact":
        notes.insert(0, f"{finding.violations} violation{'s' * (finding.violations != 1)}")
    if finding.undecided:
        notes.append(f"{finding.undecided} {'optimum' if finding.undecided == 1 else 'optima'} not proved")
    if finding.counterexample:
        notes.append(str(finding.counterexample["says"]))
    return (
        finding.regime,
        finding.quantity,
        number(finding.measured),
        _interval(one, finding),
        _claimed(finding),
        numbers.whole(finding.trials),
        one.judged(finding).value,
        _detects(finding, one.plant(finding)),
        "; ".join(note for note in notes if note),
    )


def _interval(one: ClaimOutcome, finding: Finding) -> str:
    if finding.kind == "fit":
        return numbers.UNKNOWN  # a p-value has none
    found = finding.interval(one.share)
    if found is None and finding.kind == "mean":
        return Verdict.NOTHING_LEFT.value if finding.nothing_left else "no spread"
    return "exact" if found is None else f"{number(found[0])} … {number(found[1])}"


def _claimed(finding: Finding) -> str:
    if finding.kind == "fit":
        return "fits"
    slack = f" ± {100 * finding.tolerance:g} %" if finding.tolerance > 1e-6 else ""
    return f"{_SIGNS[finding.relation]} {number(finding.predicted)}{slack}"


def _chance(finding: Finding) -> str:
    return f"{finding.p_value():.2g}" if finding.is_sampled else "–"


def _detected(plant: Plant | None) -> dict[str, object]:
    """Return the columns of a row that say what it detects; `detects` is "share" or "shift"."""
    if plant is None:
        return {"detects": "", "detects_below": None, "detects_above": None}
    return {
        "detects": "share" if plant.is_share else "shift",
        "detects_below": plant.below,
        "detects_above": plant.above,
    }


def _detects(finding: Finding, plant: Plant | None) -> str:
    """Return the smallest planted error in words: ``± 1.4 %``, ``− 1 token``, ``± 0.04``."""
    if plant is None or plant.smallest is None:
        return numbers.UNKNOWN
    sign = plant.sign.replace("-", "−")
    if plant.is_share:
        return f"{sign} {100 * plant.smallest:.2g} %"
    unit = f" token{'s' * (plant.smallest != 1)}" if finding.kind == "exact" and "(tokens)" in finding.quantity else ""
    return f"{sign} {plant.smallest:.3g}{unit}"


def _claim_detects(one: ClaimOutcome) -> str:
    """Return the smallest planted error that the row shown detects, and the exponent that all findings do."""
    finding = one.tightest
    shown = numbers.UNKNOWN if finding is None else _detects(finding, one.plant(finding))
    parts = [shown] if shown != numbers.UNKNOWN else []
    if one.exponent is not None:
        parts.append(f"B^± {one.exponent:.2g}")
    return ", ".join(parts) or numbers.UNKNOWN
