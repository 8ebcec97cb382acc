"""What differs between two output folders of a gap study is named."""

import csv
import json
import shutil

import pytest
from studies.small_study import seeds_outcome

from lbopt.report.difference import folder_difference
from lbopt.report.study_report import write_study_folder
from lbopt.studies.registry import find_study


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    place = tmp_path_factory.mktemp("template") / "out"
    write_study_folder("gap", seeds_outcome(), place, "x")
    return place


@pytest.fixture
def two(tmp_path, template):
    for name in ("old", "new"):
        shutil.copytree(template, tmp_path / name)
    return tmp_path / "old", tmp_path / "new"


def plant(path, row, column, value):
    with path.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    lines[row - 1][column] = value
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def test_equal_folders_do_not_differ(two):
    """Two writings of one outcome are the same."""
    write_study_folder("gap", seeds_outcome(), two[1], "again")
    assert folder_difference(find_study("gap"), *two) is None


@pytest.mark.parametrize(
    ("file", "row", "column"),
    [
        ("gap.csv", 1, "states"),
        ("gap.csv", 9, "optimal_share"),
        ("gap.csv", 4, "gap_p95_tokens"),
        ("long_runs.csv", 2, "imbalance_tokens"),
        ("long_runs.csv", 9, "over_capacity_share"),
        ("differences.csv", 1, "mean"),
        ("differences.csv", 40, "difference_high"),
    ],
)
def test_a_planted_change_in_a_table_is_named(two, file, row, column):
    """File, row and column of one changed cell are in the sentence, with both values."""
    old, new = two
    plant(new / file, row, column, "12345.5")
    sentence = folder_difference(find_study("gap"), old, new)
    assert sentence is not None
    for part in (file, f"row {row}", column, "12345.5 now"):
        assert part in sentence


@pytest.mark.parametrize("file", ["gap.csv", "long_runs.csv"])
def test_times_of_the_machine_are_no_difference(two, file):
    """The columns that measure this machine may change."""
    plant(two[1] / file, 2, {"gap.csv": "microseconds_per_decision", "long_runs.csv": "simulation_seconds"}[file], "9")
    assert folder_difference(find_study("gap"), *two) is None


@pytest.mark.parametrize("file", ["gap.csv", "long_runs.csv", "differences.csv"])
def test_a_missing_row_or_file_is_named(two, file):
    """A table with a row less, or none at all, differs."""
    path = two[1] / file
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert file in folder_difference(find_study("gap"), *two)
    path.unlink()
    assert file in folder_difference(find_study("gap"), *two)


def bump(*path):
    def change(record):
        place = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] += 1

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (bump("decisions", "random"), "decisions"),
        (bump("result", "objective"), "objective"),
        (bump("result", "bound"), "bound"),
        (lambda r: r["result"].update(status="feasible"), "status"),
        (bump("problem", "base", 0, 0), "problem"),
        (bump("running", 0), "running"),
        (bump("waited", 0), "waited"),
        (bump("step"), "step"),
        (bump("chosen", 0), "chosen"),
        (lambda r: r.update(chosen=None), "chosen"),
        (lambda r: r["decisions"].update(other=3), "decisions, other: None then, 3 now"),
        (lambda r: r["decisions"].pop("random"), "decisions, random"),
        (lambda r: r.update(behaviour="other"), "behaviour"),
        (lambda r: r.update(standing="open"), "standing"),
        (lambda r: r["result"]["assignment"].reverse(), "assignment"),
    ],
    ids=[
        "decision",
        "objective",
        "bound",
        "status",
        "problem",
        "running",
        "waited",
        "step",
        "chosen",
        "nothing chosen",
        "policy more",
        "policy less",
        "behaviour",
        "standing",
        "assignment",
    ],
)
def test_a_planted_change_in_the_steps_is_named(two, change, named):
    """Every number of steps.jsonl but the seconds counts: the line and the field are in the sentence."""
    path = two[1] / "steps.jsonl"
    lines = path.read_text().splitlines()
    record = json.loads(lines[2])
    change(record)
    lines[2] = json.dumps(record)
    path.write_text("\n".join(lines) + "\n")
    sentence = folder_difference(find_study("gap"), *two)
    assert sentence is not None
    assert "steps.jsonl line 3" in sentence
    assert named in sentence


def test_the_seconds_of_a_solve_are_no_difference(two):
    """Solve times are times of this machine."""
    path = two[1] / "steps.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["result"]["seconds"] += 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert folder_difference(find_study("gap"), *two) is None


@pytest.mark.parametrize("picture", ["gap_distribution.png", "imbalance_course.png", "waiting_trade.png"])
def test_another_picture_is_named(two, picture):
    """One byte of a picture, or a picture that is not there, is a difference."""
    path = two[1] / picture
    path.write_bytes(path.read_bytes() + b"x")
    assert folder_difference(find_study("gap"), *two) == f"{picture}: another picture of the same numbers"
    path.unlink()
    assert folder_difference(find_study("gap"), *two) == f"{picture}: another picture of the same numbers"
    assert folder_difference(find_study("gap"), *two[::-1]) == f"{picture}: another picture of the same numbers"
