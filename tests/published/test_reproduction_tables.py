"""Tables, file and picture of the reproductions, from values that are made up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from published.reproduction_answers import FIGURES

from lbopt.studies.printed import VERDICTS
from tools.studies.reproduction import ITEMS, ReproductionConfig, ReproductionOutcome, Row
from tools.studies.reproduction.report import (
    dilution_figure,
    groups_of,
    reasons_of,
    reproduction_csv,
    reproduction_tables,
)
from tools.studies.reproduction.study import QUESTIONS


def made_up(seeds: int = 3) -> ReproductionOutcome:
    """Values around the print, on it, and far from it, in turn."""
    config = ReproductionConfig(requests=600, seeds=seeds)
    rng = np.random.default_rng(2)
    rows = []
    for index, question in enumerate(one for item in ITEMS for one in QUESTIONS[item](config)):
        value = question.printed.value
        assert value is not None
        middle = value * (1.0, 1.25, 0.4, 3.0, -1.0)[index % 5]
        count = 1 if question.exact or not question.cells else seeds
        rows.append(
            Row(
                question,
                tuple((middle * (1 + 0.02 * rng.standard_normal(count))).tolist()),
                (FIGURES,) * len(question.cells),
            )
        )
    return ReproductionOutcome(config, rows=rows)


def test_rows_are_in_a_table_of_their_fleet_and_counted() -> None:
    outcome = made_up()
    *tables, counts = reproduction_tables(outcome)
    assert len(tables) == sum(len(groups_of(outcome.of(item))) for item in ITEMS)
    assert sum(len(table.rows) for table in tables) == len(outcome.rows)
    for table in (*tables, counts):
        assert {len(row) for row in table.rows} == {len(table.headers)}, table.title
    assert counts.headers == ("item", *VERDICTS)
    found = [row.verdict for row in outcome.rows]
    assert set(found) == set(VERDICTS)
    for place, verdict in enumerate(VERDICTS, start=1):
        assert sum(int(row[place]) for row in counts.rows) == found.count(verdict)


def test_a_row_that_does_not_agree_has_a_reason() -> None:
    for row in made_up().rows:
        assert (row.why == "") == (row.verdict == "agrees")
        assert (row.why == "our interval holds an end of what counts as the same") == (row.verdict == "undecided")


def test_every_reason_has_a_letter_where_there_are_more_than_the_alphabet_has() -> None:
    rows = [
        Row(replace(row.question, why=lambda row: f"{row.values[0]:g}"), (float(place),) * 3, row.means)
        for place, row in enumerate(made_up().of("scaling") * 4)
    ]
    differ = {row.why for row in rows} - {""}
    assert len(differ) > 26
    letters = reasons_of(rows)
    assert set(letters) == differ
    assert len(set(letters.values())) == len(differ)
    assert {"a", "z", "aa"} <= set(letters.values())


def test_one_seed_is_undecided_unless_it_is_exact() -> None:
    for row in made_up(seeds=1).rows:
        assert (row.verdict == "undecided") is not row.question.exact
        assert (row.why == "one seed has no spread; give more --seeds") is not row.question.exact


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_file_has_the_print_ours_and_the_criterion(seeds: int) -> None:
    outcome = made_up(seeds)
    rows = reproduction_csv(outcome)
    for line, row in zip(rows, outcome.rows, strict=True):
        printed = row.question.printed
        assert (line["published"], line["unit"], line["source"]) == (printed.value, printed.unit, printed.source)
        assert line["criterion"].startswith(printed.tolerance)
        assert line["criterion"].endswith(", single runs") is printed.single_run
        if line["one_run_low"] is not None:
            assert line["one_run_low"] < line["low"] < line["ours"] < line["high"] < line["one_run_high"]
            wide, narrow = line["one_run_high"] - line["one_run_low"], line["high"] - line["low"]
            assert wide == pytest.approx(narrow * math.sqrt(line["seeds"] + 1))
        assert (line["low"] is None) is (line["seeds"] == 1)


def test_the_picture_of_the_dilution_is_there_where_it_was_run() -> None:
    outcome = made_up()
    assert dilution_figure(outcome) is not None
    outcome.rows = outcome.of("energy")
    assert dilution_figure(outcome) is None
