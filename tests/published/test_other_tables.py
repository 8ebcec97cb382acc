"""Items without tables of their own show their rows."""

from __future__ import annotations

import pytest
from studies.staggered_answers import SERVED, made_up, outcome_of

from tools.studies.staggered.other_tables import SHOWN, other_tables


def test_rows_are_shown_as_they_are() -> None:
    first, *more = other_tables(made_up("split", places=("short-3k",)), "split")
    assert first.title == "Split"
    assert first.headers[:4] == ("binding", "allocation", "rate", "ttft")
    assert "Everywhere: place short-3k." in first.caption
    assert "Means over 3 seeds" in first.caption
    assert [(table.title, table.headers[:2]) for table in more] == [("Split, continued", ("binding", "allocation"))]
    shown = [header.replace("\n", "_") for table in (first, *more) for header in table.headers[2:]]
    assert shown == ["rate", *SERVED], "every quantity once, in its order"
    assert all([row[:2] for row in table.rows] == [row[:2] for row in first.rows] for table in more)


@pytest.mark.parametrize("long", [1, 30, 200])
def test_tables_of_other_items_are_no_wider_than_a_terminal(long: int) -> None:
    """Where a key alone is wider, each quantity still has its column."""
    values = {f"quantity_{index}": 10.0**index for index in range(12)}
    keys = [{"key": "k" * long + str(at)} for at in range(3)]
    outcome = outcome_of("split", [(dict(one), dict(values)) for one in keys])
    tables = other_tables(outcome, "split")
    assert sum(len(table.headers) - 1 for table in tables) == len(values)
    for table in tables:
        columns = zip(table.headers, *table.rows, strict=True)
        wide = sum(2 + max(len(line) for cell in column for line in cell.split("\n")) for column in columns)
        assert wide <= 120 or len(table.headers) == 2


def test_other_rows_with_other_keys() -> None:
    """A kind of row has a table; a quantity that some seed or row has not is a dash."""
    outcome = outcome_of(
        "split",
        [
            ({"multiple": 2, "fault": "none"}, {"wait": 0.5, "false_alarms": 3.0}),
            ({"window": 50}, {"settles": None}),
            ({"multiple": 5, "fault": "none"}, {"wait": 0.25}),
        ],
        [({"multiple": 2, "fault": "none"}, {"wait": 0.7, "false_alarms": 4.0})],
    )
    first, second = other_tables(outcome, "split")
    assert first.headers == ("multiple", "wait", "false\nalarms")
    assert first.rows == [("2", "0.600", "3.50"), ("5", "0.250", "–")]
    assert "Everywhere: fault none." in first.caption
    assert (second.headers, second.rows) == (("window", "settles"), [("50", "–")])


def test_too_many_other_rows_are_for_the_file() -> None:
    outcome = outcome_of("split", [({"at": at, "kind": "a"}, {"wait": 1.0}) for at in range(SHOWN + 5)])
    (table,) = other_tables(outcome, "split")
    assert len(table.rows) == SHOWN
    assert f"The first {SHOWN} of {SHOWN + 5} rows; split.csv has all." in table.caption
    assert "One seed" in table.caption
