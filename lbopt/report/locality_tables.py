"""The tables of a locality study: the sweeps, every printed statement beside ours, and how many of them agree."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt import numbers
from lbopt.report.locality_constants import constants_table, laws_table
from lbopt.report.locality_sweeps import interval_said, shown, sweep_tables, workloads_of
from lbopt.studies.locality import RATE, WORKERS, Judged, LocalityConfig, LocalityOutcome, Question, questions
from lbopt.studies.locality.plan import CACHE_RATE, LARGE_RATES, LARGE_WORKERS
from lbopt.studies.verdict import VERDICTS, VERDICTS_SAID
from lbopt.table import Table

NO_ANSWER = "no answer"
Answer = tuple[Question, Judged[Question] | None]
_TITLES = {
    "signatures": "Signatures and batches",
    "routers": f"Routers on {WORKERS} decoders, mean over rates",
    "band": f"Width of the band, {WORKERS} decoders at {RATE:g} requests/s",
    "clusters": f"Clusters, band of 0.1, {WORKERS} decoders at {RATE:g} requests/s",
    "pool": "Number of decode workers, mean over rates",
    "first-token": f"Wait for the first step, {WORKERS} decoders, mean over rates",
    "cache": f"Prefix cache, GPT-OSS-120B, {WORKERS} decoders at {CACHE_RATE:g} requests/s",
    "models": f"Other models, {WORKERS} decoders, mean over rates",
    "large": f"Qwen3-235B-A22B, {LARGE_WORKERS} decoders, mean of {LARGE_RATES[0]:g} to {LARGE_RATES[-1]:g} requests/s",
}
_CAPTIONS = {
    "signatures": "Of a batch: against one of all domains. rho as in the table above.",
    "routers": "What stands behind the comma is compared with; best balancer: the best of them in the same world.",
    "band": "Change against round-robin, where no other is named.",
    "clusters": "Change against round-robin, where no other is named.",
    "pool": "Change of eldr against round-robin.",
    "first-token": "From the hand-over to the first step; 0: among the balancers. Prefill is not in it.",
    "cache": "Off: requests come when a prefill worker has computed their whole prompt. On: they come at once.",
    "models": "Step times by the models' shapes; the gate is that of Qwen3. Printed are ranges over three models.",
    "large": "Four ranks a decoder. The source does not name its reference.",
}


def locality_tables(outcome: LocalityOutcome) -> list[Table]:
    """Return what a terminal shows; nothing where no world has ended."""
    if not workloads_of(outcome):
        return []
    answers = answered(outcome)
    items = {asked.item for asked, _ in answers}  # nothing is printed of the barrier, nor of the pool on task
    beside = [_printed_table(outcome, item, answers) for item in _TITLES if item in items]
    bands = [constants_table(outcome)] if outcome.constant_bands() else []
    given = [laws_table(outcome)] if outcome.at_laws() else []
    return [*sweep_tables(outcome), *beside, *([_count_table(answers)] if beside else []), *bands, *given]


def answered(outcome: LocalityOutcome) -> list[Answer]:
    """Return all questions on the chosen items and workloads that ran; None with those that no world could answer."""
    known = {_name(judged.question): judged for judged in outcome.judged()}
    return [
        (asked, known.get(_name(asked)))
        for asked in questions()
        if asked.item in outcome.config.items and asked.workload in workloads_of(outcome)
    ]


def verdict_said(asked: Question, judged: Judged[Question] | None, repeated: bool = False) -> str:
    """Return the verdict, and why the tally leaves it out where it does."""
    if judged is None:
        return NO_ANSWER
    if asked.printed.calibrated:
        return f"{judged.verdict} (calibrated)"
    return f"{judged.verdict} (counted in {asked.repeats})" if repeated else judged.verdict


def _said(answers: Sequence[Answer]) -> list[tuple[Question, str]]:
    """Return the questions with what is said of each: a figure of ours that two items ask for counts in one of them."""
    items = {asked.item for asked, _ in answers}
    return [(asked, verdict_said(asked, judged, asked.repeats in items)) for asked, judged in answers]


def _name(asked: Question) -> tuple[str, str, str]:
    return asked.item, asked.workload, asked.quantity


def _printed_table(outcome: LocalityOutcome, item: str, answers: Sequence[Answer]) -> Table:
    rows = []
    for (asked, judged), (_, said) in zip(answers, _said(answers), strict=True):
        if asked.item == item:
            form, signed = (numbers.fixed(1), item != "signatures" or "P50" in asked.quantity)
            if asked.printed.unit == "ms":
                form = numbers.fixed(2)
            if not asked.printed.unit:
                form, signed = numbers.fixed(3), False
            ours = shown(judged.ours if judged else None, form, signed=signed)
            rows.append((f"{asked.workload}: {asked.quantity}", _with_unit(asked), ours, said))
    caption = [_CAPTIONS[item], interval_said(outcome)]
    if item in ("routers", "pool", "first-token", "models"):
        caption.append(_rates_said(outcome.config))
    said_here = " ".join(said for *_, said in rows)
    if NO_ANSWER in said_here:
        caption.append("No answer: no domain has as many prompts as the batch; give more --prompts.")
    if "(calibrated)" in said_here:
        caption.append("Calibrated: the workload was made to meet it, so agreement says nothing.")
    if "(counted in" in said_here:
        caption.append("Counted in another item: it is the same figure of ours.")
    return Table(
        f"{_TITLES[item]}: printed and ours", " ".join(caption), ("quantity", "printed", "ours", "verdict"), rows
    )


def _with_unit(asked: Question) -> str:
    text, unit = asked.printed.text, asked.printed.unit
    return f"{text} {unit}".strip() if text[-1].isdigit() else text


def _rates_said(config: LocalityConfig) -> str:
    rates = ", ".join(f"{rate:g}" for rate in config.rates)
    published = LocalityConfig().rates
    if config.rates == published:
        return f"Rates: {rates} requests/s."
    return f"Rates: {rates} requests/s; printed are means over {', '.join(f'{rate:g}' for rate in published)}."


def _count_table(answers: Sequence[Answer]) -> Table:
    """Return how many statements of each item got which verdict; the last column are those that are left out."""
    columns = (*VERDICTS, NO_ANSWER)
    pairs = _said(answers)
    rows = []
    for item in (*_TITLES, "all"):
        said = [one for asked, one in pairs if item in (asked.item, "all")]
        if said:
            counts = [said.count(one) for one in columns]
            rows.append((item, *map(str, counts), str(len(said) - sum(counts))))
    return Table(
        "Verdicts",
        f"{VERDICTS_SAID} Undecided also where there is one world. "
        "Not counted: calibrated, or the figure of another item. "
        "Printed ranges span three models; ours is one, and synthetic.",
        ("item", *columns, "not counted"),
        rows,
    )
