"""The tables of a locality study: the sweeps, every printed statement beside ours, and how many of them agree."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.report import numbers
from lbopt.report.locality_sweeps import interval_said, shown, sweep_tables, workloads_of
from lbopt.studies.locality import RATE, WORKERS, Claim, Judged, LocalityConfig, LocalityOutcome
from lbopt.studies.locality.claims import claims
from lbopt.studies.verdict import ALIKE, VERDICTS
from lbopt.table import Table

NO_ANSWER = "no answer"
_TITLES = {
    "signatures": "Signatures and batches",
    "routers": f"Routers on {WORKERS} decoders, mean over rates",
    "band": f"Width of the band, {WORKERS} decoders at {RATE:g} requests/s",
    "clusters": f"Clusters, band of 0.1, {WORKERS} decoders at {RATE:g} requests/s",
    "pool": "Number of decode workers, mean over rates",
}
_CAPTIONS = {
    "signatures": "Of a batch: against one of all domains. rho as in the table above.",
    "routers": "What stands behind the comma is compared with; best balancer: the best of them in the same world.",
    "band": "Change against round-robin, where no other is named.",
    "clusters": "Change against round-robin, where no other is named.",
    "pool": "Change of eldr against round-robin.",
}


def locality_tables(outcome: LocalityOutcome) -> list[Table]:
    """Return what a terminal shows; nothing where no world has ended."""
    if not workloads_of(outcome):
        return []
    answers = answered(outcome)
    items = {claim.item for claim, _ in answers}  # nothing is printed of the barrier, nor of the pool on task
    beside = [_claim_table(outcome, item, answers) for item in _TITLES if item in items]
    return [*sweep_tables(outcome), *beside, *([_count_table(answers)] if beside else [])]


def answered(outcome: LocalityOutcome) -> list[tuple[Claim, Judged[Claim] | None]]:
    """Return all claims on the chosen items and workloads that ran; None with those that no world could answer."""
    known = {_name(judged.claim): judged for judged in outcome.judged()}
    return [
        (claim, known.get(_name(claim)))
        for claim in claims()
        if claim.item in outcome.config.items and claim.workload in workloads_of(outcome)
    ]


def verdict_said(claim: Claim, judged: Judged[Claim] | None) -> str:
    """Return the verdict; calibrated is what the workload was made to meet."""
    if judged is None:
        return NO_ANSWER
    return f"{judged.verdict} (calibrated)" if claim.calibrated else judged.verdict


def _name(claim: Claim) -> tuple[str, str, str]:
    return claim.item, claim.workload, claim.quantity


def _claim_table(outcome: LocalityOutcome, item: str, answers: Sequence[tuple[Claim, Judged[Claim] | None]]) -> Table:
    rows = []
    for claim, judged in answers:
        if claim.item == item:
            form, signed = (numbers.fixed(1), item != "signatures" or "P50" in claim.quantity)
            if not claim.unit:
                form, signed = numbers.fixed(3), False
            ours = shown(judged.ours if judged else None, form, signed=signed)
            quantity = f"{claim.workload}: {claim.quantity}"
            rows.append((quantity, _with_unit(claim), ours, verdict_said(claim, judged)))
    caption = [_CAPTIONS[item], interval_said(outcome)]
    if item in ("routers", "pool"):
        caption.append(_rates_said(outcome.config))
    if any(verdict == NO_ANSWER for *_, verdict in rows):
        caption.append("No answer: no domain has as many prompts as the batch; give more --prompts.")
    if any("(calibrated)" in verdict for *_, verdict in rows):
        caption.append("Calibrated: the workload was made to meet it, so that it agrees says nothing.")
    return Table(
        f"{_TITLES[item]}: printed and ours", " ".join(caption), ("quantity", "printed", "ours", "verdict"), rows
    )


def _with_unit(claim: Claim) -> str:
    return f"{claim.printed} {claim.unit}".strip() if claim.printed[-1].isdigit() else claim.printed


def _rates_said(config: LocalityConfig) -> str:
    rates = ", ".join(f"{rate:g}" for rate in config.rates)
    published = LocalityConfig().rates
    if config.rates == published:
        return f"Rates: {rates} requests/s."
    return f"Rates: {rates} requests/s; printed are means over {', '.join(f'{rate:g}' for rate in published)}."


def _count_table(answers: Sequence[tuple[Claim, Judged[Claim] | None]]) -> Table:
    """Return how many statements of each item got which verdict; calibrated ones are counted apart."""
    columns = (*VERDICTS, NO_ANSWER)
    told = {item: [pair for pair in answers if pair[0].item == item] for item in _TITLES}
    rows = []
    for item, pairs in [*told.items(), ("all", list(answers))]:
        if pairs:
            said = [verdict_said(claim, judged) for claim, judged in pairs]
            calibrated = sum(claim.calibrated for claim, _ in pairs)
            rows.append((item, *(str(said.count(one)) for one in columns), str(calibrated)))
    return Table(
        "Verdicts",
        "Agrees: our mean is in the printed range; where an end is 0 or the only one, all of its interval. "
        f"A single number stands for ±{ALIKE:.0%} of it. Undecided: the interval reaches into the range, or there "
        "is one world. Weaker, stronger: it lies on the printed side of nothing, short of the range or beyond it. "
        "Differs: none of these. "
        "Printed ranges span three models; ours is one, and synthetic.",
        ("item", *columns, "calibrated, not counted"),
        rows,
    )
