"""Tables and rows of a locality study, from answers made by hand."""

from __future__ import annotations

import math

import pytest
from studies.locality_answers import answer_of, made_up

from lbopt.report.locality_report import (
    law_rows,
    locality_tables,
    question_rows,
    run_rows,
    signature_rows,
)
from lbopt.report.locality_sweeps import over_rates
from lbopt.studies.locality import ITEMS, WORKLOADS, LocalityConfig, LocalityOutcome, PlannedRun, questions
from lbopt.studies.locality.questions import change
from lbopt.studies.printed import NO_ANSWER, VERDICTS
from lbopt.table import Table

SWEEPS = [
    "width of the band, 16 workers, 60 requests/s",
    "routers by rate (requests/s), 16 decoders",
    "eldr by number of decode workers, mean over rates",
    "clusters of equal size and plain K-means, 16 decoders, 60 requests/s",
]


def by_title(tables: list[Table], start: str) -> Table:
    (found,) = (table for table in tables if table.title.startswith(start))
    return found


def test_all_tables_of_a_whole_study() -> None:
    tables = locality_tables(made_up(*ITEMS))
    titles = [table.title for table in tables]
    assert titles[:8] == [f"{workload}: {sweep}" for workload in ("task", "language") for sweep in SWEEPS]
    assert titles[8] == "Signatures"
    assert [title.endswith(": printed and ours") for title in titles[9:]] == [True] * 9 + [False, False]
    assert titles[-2:] == ["Verdicts", "Verdicts by step time"]
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.headers)}, table.title
        assert "nan" not in " ".join(" ".join(row) for row in table.rows)
    assert sum(len(table.rows) for table in tables[9:-2]) == len(questions())
    assert "over 3 worlds" in tables[0].caption


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_shows_its_own_tables(item: str) -> None:
    tables = locality_tables(made_up(item, workloads=("language",), rates=(30.0,)))
    few = {"barrier": 1, "constants": 1, "cache": 0, "first-token": 2, "models": 2, "large": 2}
    assert len(tables) == few.get(item, 3)
    if not tables:
        return  # of the cache, nothing is printed on language
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.headers)}, table.title
    assert len(locality_tables(made_up("pool", workloads=("task",)))) == 1  # of which nothing is printed
    if item in ("band", "barrier"):
        assert tables[0].headers[1] == ("decoders: P50" if item == "band" else "barrier: P50")
        assert ("Busiest / mean with the barrier" in tables[0].caption) is (item == "barrier")
    assert ("Busiest / mean: of the requests of a decoder" in tables[0].caption) is (
        item in ("band", "routers", "clusters")
    )


def test_a_change_is_paired_and_shown_with_its_interval() -> None:
    outcome = made_up("band", workloads=("task",))
    table = locality_tables(outcome)[0]
    runs = [PlannedRun("decoders", 16, 60.0, name) for name in ("round-robin", "jsq")]
    first, second = ([answer["runs"][run.key]["p50"] for answer in outcome.answers["task"]] for run in runs)
    changes = [100 * (b / a - 1) for a, b in zip(first, second, strict=True)]
    mean = sum(changes) / 3
    half = 4.30265 * math.sqrt(sum((one - mean) ** 2 for one in changes) / 2 / 3)  # Student, two degrees of freedom
    assert table.rows[0][:2] == ("round-robin", f"{1e3 * sum(first) / 3:.2f} ms")
    assert table.rows[1][:2] == ("jsq", f"{mean:+.1f} ± {half:.1f}".replace("-", "−"))


def test_the_mean_over_rates_is_taken_in_each_world() -> None:
    outcome = made_up("routers", rates=(20.0, 60.0))
    found = over_rates(outcome, "task", 16, "eldr", "p99")
    runs = [PlannedRun("decoders", 16, rate, "eldr") for rate in (20.0, 60.0)]
    values = [change(answer, run, "p99") for answer in outcome.answers["task"] for run in runs]
    assert found is not None
    assert found.mean == pytest.approx(sum(value for value in values if value is not None) / 6)
    assert over_rates(outcome, "task", 8, "eldr", "p99") is None  # runs of the pool


def test_one_world_has_no_interval_and_says_so() -> None:
    tables = locality_tables(made_up(worlds={"task": 1}, workloads=("task",)))
    for table in tables[:-1]:
        assert "One world: no interval." in table.caption
        assert "±" not in " ".join(" ".join(row) for row in table.rows)
    counts = by_title(tables, "Verdicts").rows[-1]
    assert counts[2] == str(sum(map(int, counts[1:5]))), "all undecided"


def test_worlds_that_ended_are_counted() -> None:
    """Ctrl-C: two worlds of one workload and one of the other; and nothing at all of it."""
    tables = locality_tables(made_up("band", worlds={"task": 2, "language": 1}))
    assert "over 1 to 2 worlds" in tables[0].caption
    tables = locality_tables(made_up("band", worlds={"task": 2}))
    assert not [table for table in tables if "language" in table.title]
    assert all(row[0].startswith("task: ") for row in by_title(tables, "Width of the band").rows)
    assert locality_tables(made_up("band", worlds={})) == []


def test_calibrated_statements_are_marked_and_not_counted() -> None:
    tables = locality_tables(made_up("signatures"))
    rows = by_title(tables, "Signatures and batches").rows
    marked = [row for row in rows if row[-1].endswith("(calibrated)")]
    asked = [one for one in questions() if one.item == "signatures"]
    assert len(marked) == sum(one.printed.calibrated for one in asked)
    counts = by_title(tables, "Verdicts")
    for row in counts.rows:
        assert sum(map(int, row[1:])) == len(asked)
        assert row[-1] == str(len(marked))


def test_counts_are_those_of_the_rows() -> None:
    tables = locality_tables(made_up())
    shown = [row[-1] for table in tables for row in table.rows if table.title.endswith("printed and ours")]
    total = by_title(tables, "Verdicts").rows[-1]
    assert total[0] == "all"
    assert [int(cell) for cell in total[1 : 1 + len(VERDICTS)]] == [shown.count(verdict) for verdict in VERDICTS]


def test_a_figure_of_two_items_counts_once() -> None:
    """The balanced clusters with a band of 0.1 are the rule of the item band; alone they count."""
    for items, left_out in ((("band", "clusters"), 4), (("clusters",), 0)):
        tables = locality_tables(made_up(*items))
        rows = by_title(tables, "Clusters, band of 0.1").rows
        assert sum(row[-1].endswith("(counted in band)") for row in rows) == left_out
        total = by_title(tables, "Verdicts").rows[-1]
        assert total[-1] == str(left_out)
        assert ("same figure of ours" in by_title(tables, "Clusters, band of 0.1").caption) is (left_out > 0)


def test_a_statement_that_no_world_can_answer_is_there() -> None:
    config = LocalityConfig(items=("signatures",), workloads=("task",))
    outcome = LocalityOutcome(config, {"task": [answer_of(config, seed, batches=(32, 64)) for seed in range(2)]})
    table = by_title(locality_tables(outcome), "Signatures and batches")
    (row,) = (row for row in table.rows if "batch of 128" in row[0])
    assert row[2:] == ("–", NO_ANSWER)
    assert "give more --prompts" in table.caption
    (line,) = (line for line in question_rows(outcome) if "batch of 128" in line["quantity"])
    assert (line["ours"], line["worlds"], line["verdict"]) == (None, 0, NO_ANSWER)
    sweep = locality_tables(outcome)[0]
    assert not [row for row in sweep.rows if "batch of 128" in row[0]]


def test_other_rates_than_published_are_said() -> None:
    said = by_title(locality_tables(made_up("routers", rates=(60.0,))), "Routers on 16").caption
    assert "Rates: 60 requests/s; printed are means over 20, 40, 60, 80, 100." in said
    said = by_title(locality_tables(made_up("routers")), "Routers on 16").caption
    assert "printed are means" not in said


def test_rows_of_questions() -> None:
    outcome = made_up("band", "pool")
    rows = question_rows(outcome)
    assert [row["quantity"] for row in rows] == [judged.question.quantity for judged in outcome.judged()]
    for row, judged in zip(rows, outcome.judged(), strict=True):
        assert (row["ours"], row["low"], row["high"]) == (judged.ours.mean, judged.ours.low, judged.ours.high)
        assert (row["verdict"], row["worlds"], row["calibrated"]) == (judged.verdict, 3, False)
        assert (row["printed_low"] is None) is math.isinf(judged.question.printed.low)
        assert (row["printed_high"] is None) is math.isinf(judged.question.printed.high)


def test_rows_of_runs() -> None:
    outcome = made_up("band", "barrier", workloads=("task",))
    rows = run_rows(outcome)
    assert len(rows) == 5 * len(outcome.config.runs)
    assert len({(row["fleet"], row["policy"], row["quantity"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["worlds"] == 3
        assert (row["change_percent"] is None) is (row["policy"] == "round-robin")
        if row["change_percent"] is not None:
            assert row["change_low"] <= row["change_percent"] <= row["change_high"]


def test_rows_of_signatures() -> None:
    assert signature_rows(made_up("band")) == []
    rows = signature_rows(made_up("signatures"))
    assert {(row["quantity"], row["of"]) for row in rows} >= {("rho", "count-idf"), ("fewer", "128"), ("kept", "")}
    assert all(row["mean"] is not None for row in rows)


def test_constants_have_a_row_a_statement_and_pair() -> None:
    outcome = made_up("constants", "first-token", rates=(60.0,))
    table = by_title(locality_tables(outcome), "Verdicts by step time")
    assert len(table.rows) == len(law_rows(outcome)) == 4 * 7
    assert [row[1] for row in table.rows[:2]] == ["as assumed", "other=1ms,request=10us"]
    runs = run_rows(outcome)
    assert {row["law"] for row in runs} > {"", "other=1ms,request=10us"}
    assert "wait" in {row["quantity"] for row in runs}
    plain = run_rows(made_up("band"))
    assert "law" not in plain[0] and "wait" not in {row["quantity"] for row in plain}, "the columns of version 0.1.0"


def test_step_times_that_are_given_have_a_row_a_statement() -> None:
    name = "other=2ms,request=5us"
    outcome = made_up("band", rates=(60.0,), laws=(name,))
    table = by_title(locality_tables(outcome), "Verdicts by step time")
    assert [row[0] for row in table.rows] == [
        f"{workload}: {of} of eldr against the best balancer" for workload in WORKLOADS for of in ("P50", "P99")
    ]
    assert {row[1] for row in table.rows} == {name}
    rows = law_rows(outcome)
    assert [(row["workload"], row["verdict"]) for row in rows] == [
        (row[0].split(":")[0], row[-1]) for row in table.rows
    ]
    assert {row["worlds"] for row in rows} == {3}
    assert law_rows(made_up("band")) == []


def test_a_wait_is_shown_in_hundredths_of_a_millisecond() -> None:
    table = by_title(locality_tables(made_up("first-token")), "Wait for the first step")
    for row in table.rows:
        assert row[1] == "within the baselines' spread, lower near saturation"
        assert len(row[2].split(" ")[0].rsplit(".", 1)[1]) == 2
