"""Folder, tables and picture of a gap study of prefill batches."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from studies.small_batches import RULES, outcome

from lbopt.report.batch_gap_report import batch_gap_figure, batch_gap_tables, batches_csv
from lbopt.report.difference import folder_difference
from lbopt.report.study_report import read_config, write_study_folder
from lbopt.studies.batches import BatchesOutcome
from lbopt.studies.registry import find_study

FILES = {"batches.csv", "gap.csv", "batches.jsonl", "gaps.png", "gaps.svg"}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_folder(tmp_path: Path) -> None:
    found = outcome()
    write_study_folder("batches", found, tmp_path / "out", "lbopt study batches")
    config, run = read_config(tmp_path / "out", "batches")
    assert config == found.config
    assert set(run["files"]) == FILES
    assert run["trace"]["requests"] == 400 and run["trace"]["rate_per_second"] > 0
    table = rows(tmp_path / "out" / "gap.csv")
    assert len(table) == 3 * len(RULES)
    assert float(table[-1]["straggler_gap_mean_share"]) == found.rows()[-1].straggler_gap_mean_share
    assert len(rows(tmp_path / "out" / "batches.csv")) == 12 * len(RULES) == len(batches_csv(found))
    lines = [json.loads(line) for line in (tmp_path / "out" / "batches.jsonl").read_text().splitlines()]
    assert [len(line["best_fill"]["unit"]) for line in lines] == [len(line["batch"]["length"]) for line in lines]
    write_study_folder("batches", found, tmp_path / "again", "lbopt study batches")
    assert folder_difference(find_study("batches"), tmp_path / "out", tmp_path / "again") is None


@pytest.mark.some(1)
@pytest.mark.parametrize("file", ["gap.csv", "batches.csv", "batches.jsonl"])
def test_a_number_that_differs_is_named(tmp_path: Path, file: str) -> None:
    for name in ("old", "new"):
        write_study_folder("batches", outcome(), tmp_path / name, "lbopt study batches")
    path = tmp_path / "new" / file
    text = path.read_text()
    path.write_text(
        text.replace('"turn": ', '"turn": 1') if file.endswith("jsonl") else text.replace("least-", "most-")
    )
    assert str(folder_difference(find_study("batches"), tmp_path / "old", tmp_path / "new")).startswith(f"{file} ")


def test_tables() -> None:
    tables = batch_gap_tables(outcome())
    assert [table.title.rpartition(", ")[2] for table in tables] == [
        "over all batches",
        "in batches under pbaa",
        "in batches under least-loaded",
    ]
    for table in tables:
        assert {row[0] for row in table.rows} == set(RULES)
        assert {len(row) for row in table.rows} == {len(table.headers)}
    assert tables[0].caption.startswith("12 batches: both optima of ")
    assert batch_gap_tables(BatchesOutcome(outcome().config, {})) == []


def test_open_batches_are_not_drawn_and_not_averaged(tmp_path: Path) -> None:
    found = outcome()
    judged = [dataclasses.replace(one, placement=dataclasses.replace(one.placement, bound=0)) for one in found.judged]
    nothing = dataclasses.replace(found, judged=judged)
    assert list(batch_gap_figure(nothing).axes[0].lines) == []
    assert {row[1] for table in batch_gap_tables(nothing) for row in table.rows} == {"–"}
    write_study_folder("batches", nothing, tmp_path / "out", "lbopt gap")
    assert {row["straggler_gap_mean_share"] for row in rows(tmp_path / "out" / "gap.csv")} == {""}


def test_a_curve_falls_from_all_batches_to_the_worst() -> None:
    axes = batch_gap_figure(outcome()).axes[0]
    assert len(axes.lines) == 2 * len(RULES)
    for line in axes.lines:
        gaps, shares = line.get_data()
        assert list(gaps[:-1]) == sorted(gaps[:-1], reverse=True)
        assert shares[-1] == 100
