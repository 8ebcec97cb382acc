"""How a locality study is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes

from lbopt import numbers
from lbopt.report.locality_figures import draw_routers, locality_figures
from lbopt.report.locality_sweeps import BASE, interval_said, shown, sweep_tables, workloads_of
from lbopt.report.study_report import StudyReport
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.locality import RATE, WORKERS, Judged, LocalityConfig, LocalityOutcome, Question, questions
from lbopt.studies.locality.plan import CACHE_RATE, LARGE_RATES, LARGE_WORKERS
from lbopt.studies.verdict import VERDICTS, VERDICTS_SAID
from lbopt.table import Table


def laws_table(outcome: LocalityOutcome) -> Table:
    """Return a row a statement and step time that was given."""
    rows = [
        (
            f"{found.judged.question.workload}: {found.judged.question.quantity}",
            found.law or "as assumed",
            f"{found.judged.question.printed.text} %",
            shown(found.judged.ours),
            found.judged.verdict,
        )
        for found in outcome.at_laws()
    ]
    rates = ", ".join(f"{rate:g}" for rate in outcome.config.rates)
    return Table(
        "Verdicts by step time",
        "What a name leaves out is as assumed: 6 ms of a step beside experts and 50 µs a request. "
        f"{interval_said(outcome)} Mean over {rates} requests/s.",
        ("quantity", "step time", "printed", "ours", "verdict"),
        rows,
    )


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
    given = [laws_table(outcome)] if outcome.at_laws() else []
    return [*sweep_tables(outcome), *beside, *([_count_table(answers)] if beside else []), *given]


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


#: What is known of a run, and its unit.
UNITS = {"p50": "s", "p99": "s", "experts": "", "running": "requests", "busiest_over_mean": ""}

#: The item that looks at the wait for the first step, and its unit.
WAITS = {"first-token": {"wait": "s"}}


def question_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a printed statement; an open end of its range is empty."""
    return [
        {
            "item": asked.item,
            "workload": asked.workload,
            "quantity": asked.quantity,
            "unit": asked.printed.unit,
            "printed": asked.printed.text,
            "printed_low": None if math.isinf(asked.printed.low) else asked.printed.low,
            "printed_high": None if math.isinf(asked.printed.high) else asked.printed.high,
            **_interval("ours", judged.ours if judged else None),
            "worlds": len(judged.values) if judged else 0,
            "verdict": judged.verdict if judged else NO_ANSWER,
            "calibrated": asked.printed.calibrated,
        }
        for asked, judged in answered(outcome)
    ]


def run_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a workload, run and quantity; its change is against round-robin, in %, paired by worlds.

    Where some runs have another step time than the default, a column names it.
    """
    found, runs = [], outcome.config.runs
    units = UNITS | {of: unit for item in outcome.config.items for of, unit in WAITS.get(item, {}).items()}
    laws = any(run.law for run in runs)
    for workload in workloads_of(outcome):
        for run in runs:
            for of, unit in units.items():
                change = None if run.policy == BASE else outcome.change(workload, run, of)
                found.append(
                    {
                        "workload": workload,
                        "fleet": run.fleet,
                        "workers": run.workers,
                        "requests_per_second": run.rate,
                        "policy": run.policy,
                        **({"law": run.law} if laws else {}),
                        "quantity": of,
                        "unit": unit,
                        **_interval("mean", outcome.mean(workload, run, of)),
                        **_interval("change_percent", change, "change_"),
                        "worlds": len(outcome.answers[workload]),
                    }
                )
    return found


def law_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a statement and step time that was given."""
    return [
        {
            "workload": found.judged.question.workload,
            "quantity": found.judged.question.quantity,
            "law": found.law,
            "unit": found.judged.question.printed.unit,
            **_interval("ours", found.judged.ours),
            "worlds": len(found.judged.values),
            "verdict": found.judged.verdict,
        }
        for found in outcome.at_laws()
    ]


def signature_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a workload and quantity of signatures; `of` is the transform, batch or width that it is of."""
    found = []
    for workload in workloads_of(outcome):
        for path in _paths(outcome.answers[workload][0]["signatures"]):
            value = outcome.signature(workload, *path)
            quantity, of = (*path, "")[:2]
            found.append({"workload": workload, "quantity": quantity, "of": of, **_interval("mean", value)})
    return found


def _paths(signatures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in signatures.items():
        if isinstance(value, dict):
            yield from ((name, of) for of in value)
        else:
            yield (name,)


def _interval(name: str, value: MeanOverSeeds | None, ends: str = "") -> dict[str, float | None]:
    if value is None:
        return {name: None, f"{ends}low": None, f"{ends}high": None}
    return {name: value.mean, f"{ends}low": value.low, f"{ends}high": value.high}


def draw_first_workload(outcome: LocalityOutcome, axes: Axes) -> None:
    """Draw the change of the median latency against the rate, a line for each router, on the first workload."""
    draw_routers(outcome, axes, next(iter(outcome.answers)), "p50")
    axes.set_xlabel("requests/s")
    axes.set_ylabel("change against round-robin (%)")
    axes.legend(frameon=False)


REPORT = StudyReport(
    tables=locality_tables,
    csv={
        "claims": question_rows,
        "runs": run_rows,
        "signatures": signature_rows,
        "laws": law_rows,
    },
    figures=locality_figures,
    draw=draw_first_workload,
)
