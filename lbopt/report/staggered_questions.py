"""Every printed statement beside ours, baseline by baseline, and how many of them hold against which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lbopt import numbers
from lbopt.report.claims import claim_columns, count_table
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.printed import VERDICTS_SAID
from lbopt.studies.staggered import IMMEDIATE, Judged, Question, StaggeredOutcome
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
