"""Every printed statement beside ours, baseline by baseline, and how many of them hold against which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lbopt import numbers
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import IMMEDIATE, PLACES, Averaged, Judged, Question, StaggeredOutcome, questions
from lbopt.studies.verdict import VERDICTS, VERDICTS_SAID
from lbopt.table import Table

NO_ANSWER = "no answer"
#: The column of statements that are of a rule alone.
ALONE = "itself"
Answer = tuple[Question, Judged[Question] | None]


def answered(outcome: StaggeredOutcome) -> list[Answer]:
    """Return all questions on the chosen items and places; None with those that no seed answers."""
    known = {_name(judged.question): judged for judged in outcome.judged()}
    return [
        (asked, known.get(_name(asked)))
        for asked in questions(outcome.config.sending)
        if outcome.rows.get(asked.item) and _place(asked) in ("", *outcome.config.places)
    ]


def verdict_said(judged: Judged[Question] | None) -> str:
    """Return the verdict, or that there is none."""
    return NO_ANSWER if judged is None else judged.verdict


def question_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a subject, and the count of verdicts by baseline; nothing where nothing printed was asked."""
    answers = answered(outcome)
    answers.sort(key=lambda answer: outcome.config.items.index(answer[0].item))  # stable: a place stays in order
    subjects = dict.fromkeys(_subject(asked) for asked, _ in answers)
    tables = [_subject_table(name, [one for one in answers if _subject(one[0]) == name]) for name in subjects]
    return [*tables, _count_table(answers)] if tables else []


def _name(asked: Question) -> tuple[str, ...]:
    return asked.item, asked.quantity, asked.printed.text, asked.rule, asked.against


def _place(asked: Question) -> str:
    """Return the place that the statement is of, which its quantity begins with."""
    begin, colon, _ = asked.quantity.partition(": ")
    return begin if colon and begin in PLACES else ""


def _subject(asked: Question) -> str:
    return ", ".join(filter(None, (asked.item, _place(asked))))


def _subject_table(subject: str, answers: Sequence[Answer]) -> Table:
    columns = _baselines(answers)
    cells = {(_statement(asked), asked.rule, asked.against or ALONE): _cell(asked, judged) for asked, judged in answers}
    rows: list[tuple[str, ...]] = []
    for statement in dict.fromkeys(_statement(asked) for asked, _ in answers):
        rules = list(dict.fromkeys(rule for said, rule, _ in cells if said == statement))
        if rules != [""]:
            rows.append((statement, *("" for _ in columns)))
        of_rules = [tuple(cells.get((statement, rule, column), "") for column in columns) for rule in rules]
        if len(rules) > 1 and len(set(of_rules)) == 1:
            rows.append(("    every rule", *of_rules[0]))
            continue
        for rule, of_rule in zip(rules, of_rules, strict=True):
            label = f"    {rule}" if rule else f"{statement}, baseline"
            rows.append((label, *of_rule))
    return Table(
        f"{subject}: printed and ours",
        f"A statement with what is printed of it, then our mean and the verdict by rule and baseline. {_alone(columns)}"
        "Intervals are in claims.csv.",
        ("statement (printed), rule", *columns),
        rows,
    )


def _baselines(answers: Sequence[Answer]) -> list[str]:
    """Return the baselines in their order, what needs none last."""
    named = dict.fromkeys(asked.against or ALONE for asked, _ in answers)
    known = [*IMMEDIATE, *(name for name in named if name not in (*IMMEDIATE, ALONE)), ALONE]
    return [name for name in known if name in named]


def _alone(columns: Sequence[str]) -> str:
    return f"{ALONE.capitalize()}: of the rule, against no baseline. " if ALONE in columns else ""


def _statement(asked: Question) -> str:
    place = _place(asked)
    quantity = asked.quantity.removeprefix(f"{place}: ") if place else asked.quantity
    unit = f" {asked.printed.unit}" if asked.printed.unit and asked.printed.text[-1:].isdigit() else ""
    return f"{quantity} ({asked.printed.text}{unit})"


def _cell(asked: Question, judged: Judged[Question] | None) -> str:
    if judged is None:
        return NO_ANSWER
    mean = judged.ours.mean
    if not asked.printed.unit:
        return f"{numbers.three(mean)} {judged.verdict}"
    shown = numbers.with_interval(
        MeanOverSeeds(mean, None, None), numbers.fixed(1), signed=bool(asked.rule and asked.against)
    )
    return f"{shown} {judged.verdict}"


def _count_table(answers: Sequence[Answer]) -> Table:
    """Return how many statements got which verdict, by baseline."""
    columns, rows = (*VERDICTS, NO_ANSWER), []
    for baseline in _baselines(answers):
        said = [verdict_said(judged) for asked, judged in answers if (asked.against or ALONE) == baseline]
        rows.append((baseline, *(str(said.count(one)) for one in columns), str(len(said))))
    said = [verdict_said(judged) for _, judged in answers]
    rows.append(("all", *(str(said.count(one)) for one in columns), str(len(said))))
    return Table(
        "Verdicts by baseline",
        f"{VERDICTS_SAID} Undecided also where there is one seed. The source does not name its baseline.",
        ("baseline", *columns, "all"),
        rows,
    )


def question_rows(outcome: StaggeredOutcome) -> list[dict[str, Any]]:
    """Return a row a printed statement; an open end of its range is empty."""
    found = []
    for asked, judged in answered(outcome):
        ours = judged.ours if judged else None
        found.append(
            {
                "item": asked.item,
                "quantity": asked.quantity,
                "unit": asked.printed.unit,
                "rule": asked.rule,
                "against": asked.against,
                "printed": asked.printed.text,
                "printed_low": None if math.isinf(asked.printed.low) else asked.printed.low,
                "printed_high": None if math.isinf(asked.printed.high) else asked.printed.high,
                "ours": ours and ours.mean,
                "low": ours and ours.low,
                "high": ours and ours.high,
                "seeds": len(judged.values) if judged else 0,
                "verdict": verdict_said(judged),
            }
        )
    return found


def item_rows(outcome: StaggeredOutcome, item: str) -> list[dict[str, Any]]:
    """Return the rows of an item: its keys, then of each quantity mean, low, high and the seeds that have it.

    Times are in s, rates in requests/s of an instance where the item says nothing else.
    """
    averaged = outcome.averaged(item)
    keys = dict.fromkeys(key for row in averaged for key in row.keys)
    quantities = dict.fromkeys(of for row in averaged for of in row.values)
    found = []
    for row in averaged:
        cells: dict[str, Any] = {key: row.keys.get(key) for key in keys}
        for of in quantities:
            value = row.values.get(of)
            cells |= {
                f"{of}_mean": value and value.mean,
                f"{of}_low": value and value.low,
                f"{of}_high": value and value.high,
                f"{of}_seeds": row.seeds.get(of, 0),
            }
        found.append(cells)
    return found


#: More rows than this are for the file.
SHOWN = 40
#: What a terminal has room for, in characters, and what stands between columns.
_WIDTH, _BETWEEN = 120, 2


@dataclass(frozen=True, slots=True)
class _Column:
    """A column; the words of its header stand below each other."""

    header: str
    cells: list[str]

    @property
    def width(self) -> int:
        return _BETWEEN + max(map(len, (*self.header.split("\n"), *self.cells)))


def other_tables(outcome: StaggeredOutcome, item: str) -> list[Table]:
    """Return tables for each kind of row, means over seeds; keys that are the same everywhere are in the caption."""
    kinds: dict[tuple[str, ...], list[Averaged]] = {}
    for row in outcome.averaged(item):
        kinds.setdefault(tuple(sorted(row.keys)), []).append(row)
    return [table for rows in kinds.values() for table in _tables(outcome, item, rows)]


def _tables(outcome: StaggeredOutcome, item: str, rows: list[Averaged]) -> list[Table]:
    """Return a table, or as many as it takes to show all quantities in the width of a terminal."""
    names = list(rows[0].keys)
    varied = [key for key in names if len({row.keys[key] for row in rows}) > 1] or names[:1]
    shown = rows[:SHOWN]
    keys = [_column(key, [str(row.keys[key]) for row in shown]) for key in varied]
    quantities = dict.fromkeys(of for row in rows for of in row.values)
    left = [_column(of, [_mean(row, of) for row in shown]) for of in quantities]
    found: list[Table] = []
    while left or not found:
        fit = 1
        while fit < len(left) and sum(one.width for one in (*keys, *left[: fit + 1])) <= _WIDTH:
            fit += 1
        columns, left = [*keys, *left[:fit]], left[fit:]
        found.append(
            Table(
                f"{item.capitalize()}, continued" if found else item.capitalize(),
                "As above." if found else _caption(outcome, item, rows, varied),
                tuple(column.header for column in columns),
                list(zip(*(column.cells for column in columns), strict=True)),
            )
        )
    return found


def _column(name: str, cells: list[str]) -> _Column:
    return _Column(name.replace("_", "\n"), cells)


def _caption(outcome: StaggeredOutcome, item: str, rows: list[Averaged], varied: list[str]) -> str:
    seeds = len(outcome.rows[item])
    said = [f"{'One seed' if seeds == 1 else f'Means over {seeds} seeds'}; intervals are in {item}.csv. Times in s."]
    alike = ", ".join(f"{key} {value}" for key, value in rows[0].keys.items() if key not in varied)
    if alike:
        said.append(f"Everywhere: {alike}.")
    if len(rows) > SHOWN:
        said.append(f"The first {SHOWN} of {len(rows)} rows; {item}.csv has all.")
    return " ".join(said)


def _mean(row: Averaged, quantity: str) -> str:
    value = row.values.get(quantity)
    return numbers.UNKNOWN if value is None else numbers.three(value.mean)
