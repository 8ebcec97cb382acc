"""How a locality study is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes

from lbopt import numbers
from lbopt.report.claims import claim_columns, count_table
from lbopt.report.locality_figures import draw_routers, locality_figures
from lbopt.report.locality_sweeps import BASE, interval_said, shown, sweep_tables, workloads_of
from lbopt.report.study_report import StudyReport
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.locality import RATE, WORKERS, Judged, LocalityConfig, LocalityOutcome, Question
from lbopt.studies.locality.plan import CACHE_RATE, LARGE_RATES, LARGE_WORKERS
from lbopt.studies.locality.questions import signature
from lbopt.studies.printed import NO_ANSWER, VERDICTS_SAID
from lbopt.table import Column, Table, records


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
    answers = outcome.asked()
    items = {one.question.item for one in answers}  # nothing is printed of the barrier, nor of the pool on task
    beside = [_printed_table(outcome, item, answers) for item in _TITLES if item in items]
    given = [laws_table(outcome)] if outcome.at_laws() else []
    return [*sweep_tables(outcome), *beside, *([_count_table(answers)] if beside else []), *given]


def _said(answers: Sequence[Judged]) -> list[str]:
    """Return the verdicts, and why the tally leaves one out: a figure that two items ask for counts in one of them."""
    items, said = {one.question.item for one in answers}, []
    for one in answers:
        repeated = f" (counted in {one.question.repeats})" if one.question.repeats in items else ""
        left_out = " (calibrated)" if one.question.printed.calibrated else repeated
        said.append(f"{one.verdict}{left_out if one.values else ''}")
    return said


def _printed_table(outcome: LocalityOutcome, item: str, answers: Sequence[Judged]) -> Table:
    rows = [
        (f"{one.question.workload}: {one.question.quantity}", _with_unit(one.question), _ours(one), said)
        for one, said in zip(answers, _said(answers), strict=True)
        if one.question.item == item
    ]
    caption = [_CAPTIONS[item], interval_said(outcome)]
    if item in ("routers", "pool", "first-token", "models"):
        caption.append(_rates_said(outcome.config))
    said_here = " ".join(said for *_, said in rows)
    caption += [sentence for word, sentence in _WORDS.items() if word in said_here]
    return Table(
        f"{_TITLES[item]}: printed and ours", " ".join(caption), ("quantity", "printed", "ours", "verdict"), rows
    )


#: What a word in a column of verdicts means.
_WORDS = {
    NO_ANSWER: "No answer: no domain has as many prompts as the batch; give more --prompts.",
    "(calibrated)": "Calibrated: the workload was made to meet it, so agreement says nothing.",
    "(counted in": "Counted in another item: it is the same figure of ours.",
}


def _ours(one: Judged) -> str:
    asked, unit = one.question, one.question.printed.unit
    if not unit:
        return shown(one.ours, numbers.fixed(3), signed=False)
    signed = asked.item != "signatures" or "P50" in asked.quantity
    return shown(one.ours, numbers.fixed(2 if unit == "ms" else 1), signed=signed)


def _with_unit(asked: Question) -> str:
    text, unit = asked.printed.text, asked.printed.unit
    return f"{text} {unit}".strip() if text[-1].isdigit() else text


def _rates_said(config: LocalityConfig) -> str:
    rates = ", ".join(f"{rate:g}" for rate in config.rates)
    published = LocalityConfig().rates
    if config.rates == published:
        return f"Rates: {rates} requests/s."
    return f"Rates: {rates} requests/s; printed are means over {', '.join(f'{rate:g}' for rate in published)}."


def _count_table(answers: Sequence[Judged]) -> Table:
    """Return how many statements of each item got which verdict; the last column are those that are left out."""
    pairs = [(one.question.item, said) for one, said in zip(answers, _said(answers), strict=True)]
    groups = {item: [said for of, said in pairs if item in (of, "all")] for item in (*_TITLES, "all")}
    return count_table(
        f"{VERDICTS_SAID} Undecided also where there is one world. "
        "Not counted: calibrated, or the figure of another item. "
        "Printed ranges span three models; ours is one, and synthetic.",
        "item",
        {item: said for item, said in groups.items() if said},
        "not counted",
    )


#: What is known of a run, and its unit.
UNITS = {"p50": "s", "p99": "s", "experts": "", "running": "requests", "busiest_over_mean": ""}

#: The item that looks at the wait for the first step, and its unit.
WAITS = {"first-token": {"wait": "s"}}


_CLAIMS = (
    *claim_columns(("item", "workload", "quantity", "unit"), "worlds"),
    Column("calibrated", "whether the workload was made to meet it", of="question.printed.calibrated"),
)


def question_rows(outcome: LocalityOutcome) -> list[dict[str, Any]]:
    """Return a row a printed statement."""
    return records(_CLAIMS, outcome, outcome.asked())


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
            value = outcome.over(workload, signature(*path))
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
