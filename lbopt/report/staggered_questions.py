"""Every printed statement beside ours, baseline by baseline, and how many of them hold against which."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt import numbers
from lbopt.report.staggered_words import percent
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import IMMEDIATE, PLACES, Judged, Question, StaggeredOutcome, questions
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
    shown = numbers.with_interval(MeanOverSeeds(mean, None, None), percent, signed=bool(asked.rule and asked.against))
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
