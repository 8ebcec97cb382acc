"""Every printed statement beside ours, baseline by baseline, and how many of them hold against which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lbopt import numbers
from lbopt.report.claims import claim_columns, count_table
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.printed import VERDICTS_SAID
from lbopt.studies.staggered import IMMEDIATE, Averaged, Judged, Question, StaggeredOutcome
from lbopt.studies.staggered.questions import place_of
from lbopt.table import Table, records

#: The column of statements that are of a rule alone.
ALONE = "itself"


def question_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a subject, and the count of verdicts by baseline; nothing where nothing printed was asked."""
    # stable: a place stays in order
    answers = sorted(outcome.asked(), key=lambda one: outcome.config.items.index(one.question.item))
    subjects = dict.fromkeys(_subject(one.question) for one in answers)
    tables = [_subject_table(name, [one for one in answers if _subject(one.question) == name]) for name in subjects]
    return [*tables, _count_table(answers)] if tables else []


def _subject(asked: Question) -> str:
    return ", ".join(filter(None, (asked.item, place_of(asked))))


def _subject_table(subject: str, answers: Sequence[Judged]) -> Table:
    columns = _baselines(answers)
    cells = {(_statement(one.question), one.question.rule, _against(one)): _cell(one) for one in answers}
    rows: list[tuple[str, ...]] = []
    for statement in dict.fromkeys(statement for statement, _, _ in cells):
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


def _against(one: Judged) -> str:
    return one.question.against or ALONE


def _baselines(answers: Sequence[Judged]) -> list[str]:
    """Return the baselines in their order, what needs none last."""
    named = dict.fromkeys(map(_against, answers))
    known = [*IMMEDIATE, *(name for name in named if name not in (*IMMEDIATE, ALONE)), ALONE]
    return [name for name in known if name in named]


def _alone(columns: Sequence[str]) -> str:
    return f"{ALONE.capitalize()}: of the rule, against no baseline. " if ALONE in columns else ""


def _statement(asked: Question) -> str:
    place = place_of(asked)
    quantity = asked.quantity.removeprefix(f"{place}: ") if place else asked.quantity
    unit = f" {asked.printed.unit}" if asked.printed.unit and asked.printed.text[-1:].isdigit() else ""
    return f"{quantity} ({asked.printed.text}{unit})"


def _cell(one: Judged) -> str:
    asked, ours = one.question, one.ours
    if ours is None:
        return one.verdict
    if not asked.printed.unit:
        return f"{numbers.three(ours.mean)} {one.verdict}"
    mean, signed = MeanOverSeeds(ours.mean, None, None), bool(asked.rule and asked.against)
    return f"{numbers.with_interval(mean, numbers.fixed(1), signed=signed)} {one.verdict}"


def _count_table(answers: Sequence[Judged]) -> Table:
    """Return how many statements got which verdict, by baseline."""
    groups = {name: [one.verdict for one in answers if _against(one) == name] for name in _baselines(answers)}
    caption = f"{VERDICTS_SAID} Undecided also where there is one seed. The source does not name its baseline."
    return count_table(caption, "baseline", groups | {"all": [one.verdict for one in answers]}, "all")


_CLAIMS = claim_columns(("item", "quantity", "unit", "rule", "against"), "seeds")


def question_rows(outcome: StaggeredOutcome) -> list[dict[str, Any]]:
    """Return a row a printed statement."""
    return records(_CLAIMS, outcome, outcome.asked())


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
