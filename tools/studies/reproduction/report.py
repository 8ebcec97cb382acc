"""How the reproductions are shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lbopt.report.figures import COLOURS, line_style, new_figure
from lbopt.report.study_report import StudyReport
from lbopt.studies.printed import VERDICTS, VERDICTS_SAID
from lbopt.table import Table
from tools.studies.reproduction import ITEMS, ReproductionOutcome, Row
from tools.studies.reproduction.dilution import COLUMNS, LOAD, diluted, published_barrier
from tools.studies.reproduction.tolerances import every_digit

_TITLES = {
    "energy": "Energy column of BF-IO's Table 1",
    "balance-route": "BalanceRoute's tables, as orderings and ratios",
    "dilution": "Overhead dilution of the EP-barrier post",
    "scaling": "G-scaling of the EP-barrier post",
    "kv-spread": "KV spread of staggered batching",
}


def reproduction_tables(outcome: ReproductionOutcome) -> list[Table]:
    """Return what a terminal shows: the rows, and how many of each item agree."""
    if not outcome.rows:
        return []
    return [_group_table(rows) for item in ITEMS for rows in groups_of(outcome.of(item))] + [_count_table(outcome)]


def groups_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows of an item by the requests and the fleet that they are about, in their order."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.question.requests, row.question.fleet), []).append(row)
    return list(groups.values())


def reproduction_csv(outcome: ReproductionOutcome) -> list[dict[str, Any]]:
    """Return a row per published number, with full precision."""
    found = []
    for row in outcome.rows:
        asked, ours = row.question, row.ours
        low, high = row.one_run or (None, None)
        found.append(
            {
                "item": asked.item,
                "quantity": asked.quantity,
                "unit": asked.printed.unit,
                "published": asked.printed.value,
                "source": asked.printed.source,
                "ours": ours.mean,
                "low": ours.low,
                "high": ours.high,
                "one_run_low": low,
                "one_run_high": high,
                "seeds": len(row.values),
                "exact": asked.exact,
                "requests": asked.requests,
                "fleet": asked.fleet,
                "arrivals": asked.arrivals,
                "dispatch": asked.dispatch,
                "criterion": _criterion(row),
                "verdict": row.verdict,
                "why": row.why,
            }
        )
    return found


def shown_value(row: Row) -> str:
    """Return our value with its interval, or the word "exact"."""
    ours, text = row.ours, shown(row.ours.mean)
    if _to_every_digit(row):
        return repr(ours.mean)
    if row.question.exact:
        return f"{text} exact"
    if ours.low is None or ours.high is None:
        return text
    return f"{text} ({shown(ours.low)} … {shown(ours.high)})"


def shown(value: float) -> str:
    """Return a number with three digits, or all before the point where there are more."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")
    return ("0" if value == 0 else text).replace("-", "−")


def _published(row: Row) -> str:
    value = row.question.printed.value
    assert value is not None  # every question is about one number
    return repr(value) if _to_every_digit(row) else shown(value)


def _criterion(row: Row) -> str:
    return row.question.printed.tolerance + (", single runs" if row.question.printed.single_run else "")


def _to_every_digit(row: Row) -> bool:
    return row.question.printed.tolerance == every_digit().text


def reasons_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return a letter for each reason of disagreement among the rows, in their order."""
    reasons = dict.fromkeys(row.why for row in rows if row.why)
    return dict(zip(reasons, _letters(), strict=False))


def _letters() -> Iterator[str]:
    """Yield a, b, ..., z, aa, ab, ..."""
    for length in itertools.count(1):
        yield from map("".join, itertools.product(ascii_lowercase, repeat=length))


def _group_table(rows: Sequence[Row]) -> Table:
    letters = reasons_of(rows)
    lines = [
        (
            row.question.quantity,
            f"{row.question.arrivals}; {row.question.dispatch}" if row.question.cells else "no run",
            f"{_published(row)} {row.question.printed.unit}".strip(),
            shown_value(row),
            _criterion(row),
            f"{row.verdict} {letters.get(row.why, '')}".strip(),
        )
        for row in rows
    ]
    asked = rows[0].question
    setting = f": {asked.requests}; {asked.fleet}" if asked.cells else ": the table against its own law"
    caption = ["Ours with its 95 % interval over seeds."]
    if any(row.question.printed.single_run for row in rows):
        caption.append(
            "Single runs: the print is of one run, so the range of our single runs is judged, which is wider."
        )
    if letters:
        caption.append("Why not: " + "; ".join(f"({letter}) {why}" for why, letter in letters.items()) + ".")
    return Table(
        _TITLES[asked.item] + setting,
        " ".join(caption),
        ("quantity", "arrivals; dispatch", "published", "ours", "criterion", "verdict"),
        lines,
    )


def _count_table(outcome: ReproductionOutcome) -> Table:
    lines = []
    for item in ITEMS:
        verdicts = [row.verdict for row in outcome.of(item)]
        if verdicts:
            lines.append((item, *(str(verdicts.count(one)) for one in VERDICTS)))
    return Table(
        "Verdicts",
        f"{VERDICTS_SAID} One criterion for each kind of number, the same in all its rows. A disagreement is a result; "
        "its reason stands below its table.",
        ("item", *VERDICTS),
        lines,
    )


#: So that intervals of two rules do not hide each other.
_ASIDE = 0.02


def dilution_figure(outcome: ReproductionOutcome) -> Figure | None:
    """Return the figure of `draw_dilution`; None where the item was not run."""
    if not any(_gains(outcome, rule) for rule in COLUMNS):
        return None
    figure, axes = new_figure()
    draw_dilution(outcome, axes)
    return figure


def draw_dilution(outcome: ReproductionOutcome, axes: Axes) -> None:
    """Draw the gains against the overhead b: as published, by the law, and ours."""
    groups = {rule: gains for rule in COLUMNS if (gains := _gains(outcome, rule))}
    overheads, x = np.linspace(0, 1, 50), published_barrier()
    for index, (rule, rows) in enumerate(groups.items()):
        b = np.array(list(rows))
        published = [row.question.printed.value or 0.0 for row in rows.values()]
        law = [diluted(published[0], x, float(one)) for one in overheads]
        axes.plot(overheads, law, linewidth=1.2, label=f"{rule}, law from b = 0 with x = {x:.2f}", **line_style(index))
        axes.plot(b, published, "o", color=COLOURS[index], label=f"{rule}, published")
        ours = [row.ours for row in rows.values()]
        middle = np.array([one.mean for one in ours])
        half = np.array([0.0 if one.high is None else one.high - one.mean for one in ours])
        aside = b + (index - 0.5) * _ASIDE
        axes.errorbar(aside, middle, half, fmt="s", markerfacecolor="none", color=COLOURS[index], capsize=3)
        axes.plot([], [], "s", markerfacecolor="none", color=COLOURS[index], label=f"{rule}, ours")
    axes.set_xlabel("b, overhead that balance does not touch")
    axes.set_ylabel("throughput over JSQ by count (%)")
    axes.axhline(0.0, color="#57606a", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8)


def _gains(outcome: ReproductionOutcome, rule: str) -> dict[float, Row]:
    """Return the rows of a rule whose loads did not depend on the law, by their overhead."""
    found = {}
    for row in outcome.of("dilution"):
        asked = row.question
        start, _, overhead = asked.quantity.partition(f"throughput gain, {rule} over JSQ, b = ")
        if start == "" and overhead and asked.arrivals == f"Poisson by steps, load {LOAD:g}":
            found[float(overhead)] = row
    return found


REPORT = StudyReport(
    tables=reproduction_tables,
    csv={"reproduction": reproduction_csv},
    figures=lambda outcome: {"dilution": dilution_figure(outcome)},
    draw=draw_dilution,
    written="table",
)
