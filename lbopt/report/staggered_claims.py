"""Every printed statement beside ours, baseline by baseline, and how many of them hold against which."""

from __future__ import annotations

from collections.abc import Sequence

from lbopt.report import numbers
from lbopt.report.staggered_words import percent, share
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import IMMEDIATE, PLACES, Claim, Judged, StaggeredOutcome, claims
from lbopt.studies.verdict import ALIKE, VERDICTS
from lbopt.table import Table

NO_ANSWER = "no answer"
#: The column of statements that are of a rule alone.
ALONE = "itself"
Answer = tuple[Claim, Judged[Claim] | None]


def answered(outcome: StaggeredOutcome) -> list[Answer]:
    """Return all claims on the items that ran and the places that were asked; None with those that no seed answers."""
    known = {_name(judged.claim): judged for judged in outcome.judged()}
    return [
        (claim, known.get(_name(claim)))
        for claim in claims()
        if outcome.rows.get(claim.item) and _place(claim) in ("", *outcome.config.places)
    ]


def verdict_said(judged: Judged[Claim] | None) -> str:
    """Return the verdict, or that there is none."""
    return NO_ANSWER if judged is None else judged.verdict


def claim_tables(outcome: StaggeredOutcome) -> list[Table]:
    """Return a table a subject, and the count of verdicts by baseline; nothing where nothing printed was asked."""
    answers = answered(outcome)
    answers.sort(key=lambda answer: outcome.config.items.index(answer[0].item))  # stable: claims of a place stay so
    subjects = dict.fromkeys(_subject(claim) for claim, _ in answers)
    tables = [_subject_table(name, [one for one in answers if _subject(one[0]) == name]) for name in subjects]
    return [*tables, _count_table(answers)] if tables else []


def _name(claim: Claim) -> tuple[str, ...]:
    return claim.item, claim.quantity, claim.printed, claim.rule, claim.against


def _place(claim: Claim) -> str:
    """Return the place that the statement is of, which its quantity begins with."""
    begin, colon, _ = claim.quantity.partition(": ")
    return begin if colon and begin in PLACES else ""


def _subject(claim: Claim) -> str:
    return ", ".join(filter(None, (claim.item, _place(claim))))


def _subject_table(subject: str, answers: Sequence[Answer]) -> Table:
    columns = _baselines(answers)
    cells = {(_statement(claim), claim.rule, claim.against or ALONE): _cell(claim, judged) for claim, judged in answers}
    rows: list[tuple[str, ...]] = []
    for statement in dict.fromkeys(_statement(claim) for claim, _ in answers):
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
    named = dict.fromkeys(claim.against or ALONE for claim, _ in answers)
    known = [*IMMEDIATE, *(name for name in named if name not in (*IMMEDIATE, ALONE)), ALONE]
    return [name for name in known if name in named]


def _alone(columns: Sequence[str]) -> str:
    return f"{ALONE.capitalize()}: of the rule, against no baseline. " if ALONE in columns else ""


def _statement(claim: Claim) -> str:
    place = _place(claim)
    quantity = claim.quantity.removeprefix(f"{place}: ") if place else claim.quantity
    unit = f" {claim.unit}" if claim.unit and claim.printed[-1:].isdigit() else ""
    return f"{quantity} ({claim.printed}{unit})"


def _cell(claim: Claim, judged: Judged[Claim] | None) -> str:
    if judged is None:
        return NO_ANSWER
    mean = judged.ours.mean
    if not claim.unit:
        return f"{numbers.three(mean)} {judged.verdict}"
    shown = numbers.with_interval(MeanOverSeeds(mean, None, None), percent, signed=bool(claim.rule and claim.against))
    return f"{shown} {judged.verdict}"


def _count_table(answers: Sequence[Answer]) -> Table:
    """Return how many statements got which verdict, by baseline."""
    columns, rows = (*VERDICTS, NO_ANSWER), []
    for baseline in _baselines(answers):
        said = [verdict_said(judged) for claim, judged in answers if (claim.against or ALONE) == baseline]
        rows.append((baseline, *(str(said.count(one)) for one in columns), str(len(said))))
    said = [verdict_said(judged) for _, judged in answers]
    rows.append(("all", *(str(said.count(one)) for one in columns), str(len(said))))
    return Table(
        "Verdicts by baseline",
        "Agrees: our mean is in the printed range; where an end is 0 or the only one, all of its interval. "
        f"A single number stands for ±{share(ALIKE)} of it. Undecided: the interval reaches into the range, or there "
        "is one seed. Weaker, stronger: it lies on the printed side of nothing, short of the range or beyond it (of a "
        "level: below or above it). Differs: none of these. The source does not name its baseline.",
        ("baseline", *columns, "all"),
        rows,
    )
