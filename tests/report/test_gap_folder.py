"""The output folder of a gap study: tables, frozen states, pictures, page, provenance."""

import csv
import dataclasses
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from studies.small_study import NAMES, seeds_outcome, small_config, small_outcome

from lbopt import CertificateError, Result, verify
from lbopt.exceptions import InputError
from lbopt.report import gap_report
from lbopt.report.difference import folder_difference
from lbopt.report.gap_page import gap_pictures, lead, left_out, render_gap_page
from lbopt.report.gap_tables import gap_csv, gap_tables, long_run_tables
from lbopt.report.provenance import provenance
from lbopt.report.study_report import read_config, write_study_folder
from lbopt.solvers import solve
from lbopt.studies.gap import GapOutcome, SolvedState, run_gap
from lbopt.studies.gap.decisions import summarise
from lbopt.studies.gap.long_runs import compare
from lbopt.studies.gap.states import read_states
from lbopt.studies.registry import find_study

FILES = {
    "gap.csv",
    "long_runs.csv",
    "differences.csv",
    "steps.jsonl",
    "report.html",
    "run.json",
    "gap_distribution.png",
    "gap_distribution.svg",
    "imbalance_course.png",
    "imbalance_course.svg",
    "waiting_trade.png",
    "waiting_trade.svg",
}
VOID = {"meta", "img", "br", "link", "hr", "input"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "gap folder"
    write_study_folder("gap", small_outcome(), place, "lbopt gap --out 'gap folder'")
    return place


@pytest.fixture(scope="module")
def run(folder):
    return json.loads((folder / "run.json").read_text())


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


# ---------------------------------------------------------------- contents


def test_the_folder_is_complete(folder):
    """Every file that the manual names is there, and nothing else."""
    assert {p.name for p in folder.iterdir()} == FILES


def test_gap_csv_is_the_summary(folder):
    """One row per policy, every number as the study has it, to the last digit."""
    found = rows(folder / "gap.csv")
    assert [row["policy"] for row in found] == list(NAMES)
    for row in found:
        expected = dataclasses.asdict(summarise(small_outcome().solved, row["policy"]))
        assert row == {name: str(value) for name, value in expected.items()}


def test_gap_csv_has_a_block_per_behaviour(tmp_path):
    """With two behaviours there are rows over all states and rows for each."""
    write_study_folder("gap", seeds_outcome(), tmp_path / "out", "x")
    found = rows(tmp_path / "out" / "gap.csv")
    assert [(r["behaviour"], r["policy"]) for r in found] == [
        (b, p) for b in ("all", "fcfs", "br-0") for p in ("fcfs", "random", "br-0")
    ]
    assert {r["states"] for r in found[3:]} == {"3"}


def test_long_runs_csv(folder):
    """One row per policy and seed with every metric; intervals are two columns; bf-io's tally is counted."""
    found = rows(folder / "long_runs.csv")
    assert [(r["policy"], r["seed"]) for r in found] == [(name, "1") for name in NAMES]
    for row, known in zip(found, small_outcome().long_runs, strict=True):
        metrics = known.metrics.to_dict()
        assert int(row["steps"]) == known.steps
        assert float(row["imbalance_tokens"]) == metrics["imbalance_tokens"]
        assert float(row["tpot_p99_seconds"]) == metrics["tpot_p99_seconds"]
        low, high = metrics["idle_share_interval"]
        assert (float(row["idle_share_interval_low"]), float(row["idle_share_interval_high"])) == (low, high)
    exact = next(r for r in found if r["policy"] == "bf-io")
    assert int(exact["decisions_proved"]) > 100
    assert found[0]["decisions_proved"] == ""


def test_differences_csv(tmp_path):
    """One row per policy and metric, equal to the paired comparison."""
    write_study_folder("gap", seeds_outcome(), tmp_path / "out", "x")
    found = rows(tmp_path / "out" / "differences.csv")
    expected = compare(seeds_outcome().long_runs, "fcfs")
    assert [(r["policy"], r["metric"]) for r in found] == [(c.policy, c.metric) for c in expected]
    for row, known in zip(found, expected, strict=True):
        assert float(row["mean"]) == known.value.mean
        assert float(row["difference"]) == known.difference.mean
        assert float(row["difference_low"]) == known.difference.low


def test_one_seed_has_empty_intervals(folder):
    """Without a second seed the interval columns are empty rather than zero."""
    assert {r["difference_low"] for r in rows(folder / "differences.csv")} == {""}


def test_steps_are_states_results_and_decisions(folder):
    """Each line is a state that reads back, a result that verifies, and a value per policy."""
    states = read_states(folder / "steps.jsonl")
    lines = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert len(lines) == len(small_outcome().solved)
    for line, state, solved in zip(lines, states, small_outcome().solved, strict=True):
        assert state.problem == solved.state.problem
        result = Result.from_dict(line["result"])
        assert verify(state.problem, result).feasible
        with pytest.raises(CertificateError):
            verify(state.problem, dataclasses.replace(result, objective=result.objective - 1))
        assert line["standing"] == solved.standing
        assert line["decisions"] == {name: d.objective for name, d in solved.decisions.items()}


def test_run_json_tells_how_it_came_about(folder, run):
    """Command, versions, configuration, trace and marks are there, and the configuration reads back."""
    assert run["format"] == "lbopt-gap"
    assert run["files"] == sorted(FILES - {"run.json"})
    assert run["command"] == "lbopt gap --out 'gap folder'"
    assert {"lbopt", "python", "numpy", "highspy"} <= set(run["versions"])
    assert run["interrupted"] is False
    assert run["trace"]["requests"] == 300
    assert run["trace"]["digest"] == small_config().scenario.requests.draw_for(1).digest
    assert read_config(folder, "gap")[0] == small_config()


def test_run_json_holds_the_digest_of_every_other_file(folder, run):
    """The SHA-256 of each file but run.json itself is that of its bytes."""
    assert set(run["sha256"]) == FILES - {"run.json"}
    for name, digest in run["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_json_is_json(folder):
    """Neither run.json nor steps.jsonl holds NaN or Infinity, which are no JSON."""

    def refuse(word):
        raise AssertionError(word)

    json.loads((folder / "run.json").read_text(), parse_constant=refuse)
    for line in (folder / "steps.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=refuse)


# ---------------------------------------------------------------- the page


class Page(HTMLParser):
    """Collects what a page refers to, and checks that its elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.sources, self.tags, self.text = [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        last = self.open.pop()
        assert last == tag, f"</{tag}> closes <{last}>"

    def handle_data(self, data):
        self.text += data


def test_the_page_is_valid_and_needs_nothing_else(folder):
    """Every element is closed; every picture is inside; no address of any machine is mentioned."""
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert page.sources
    assert all(source.startswith("#") for source in page.sources)
    assert "http://" not in text
    assert "https://" not in text
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert "img" not in page.tags
    assert page.tags.count("svg") == page.tags.count("figure") == 3
    assert page.tags.count("html") == page.tags.count("body") == page.tags.count("title") == 1


def test_the_page_names_every_policy_and_the_answer(folder):
    """Each policy has its line, the answer stands on top, and the command is there to be repeated."""
    page = Page((folder / "report.html").read_text())
    for name in NAMES:
        assert name in page.text
    assert lead(small_outcome()) in page.text
    assert "lbopt gap --out 'gap folder'" in page.text
    assert "5 step problems" in lead(small_outcome())
    assert "bf-io, 0 tokens above the optimum" in lead(small_outcome())


def test_the_page_escapes_what_users_write():
    """Names from outside cannot become markup of the page."""
    evil = "<script>alert(1)</script>"
    outcome = dataclasses.replace(small_outcome(), trace=small_outcome().trace | {"name": evil}, notes=[evil])
    page = Page(render_gap_page(outcome, [], provenance(evil), evil))
    assert "script" not in page.tags
    assert evil in page.text


def test_the_page_says_that_it_was_interrupted():
    """An interrupted study says so in the page."""
    outcome = dataclasses.replace(small_outcome(), interrupted=True)
    assert "Interrupted." in Page(render_gap_page(outcome, [], provenance("x"), "out")).text
    assert "Interrupted." not in Page(render_gap_page(small_outcome(), [], provenance("x"), "out")).text


@pytest.mark.parametrize("solved", [0, 2])
def test_a_study_that_was_cut_short_has_a_report(tmp_path, solved):
    """With no state, or with states and no long run, the folder is written all the same."""
    outcome = GapOutcome(small_config(), small_outcome().trace, small_outcome().solved[:solved], interrupted=True)
    write_study_folder("gap", outcome, tmp_path / "out", "x")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["interrupted"] is True
    Page((tmp_path / "out" / "report.html").read_text())
    assert len((tmp_path / "out" / "steps.jsonl").read_text().splitlines()) == solved


# ---------------------------------------------------------------- pictures


def test_pictures_are_pictures(folder):
    """Each PNG has a signature, a size in pixels, and more than one colour."""
    from matplotlib import image

    for name in ("gap_distribution.png", "imbalance_course.png", "waiting_trade.png"):
        data = (folder / name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        pixels = image.imread(folder / name)
        assert pixels.shape[0] > 200
        assert pixels.shape[1] > 500
        assert np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0).shape[0] > 3


def test_equal_data_give_equal_bytes(folder):
    """Drawn twice, a picture is the same file."""
    for picture in gap_pictures(small_outcome()):
        assert picture.data == (folder / picture.file).read_bytes()


def test_the_figures_of_a_page_take_its_colours():
    """A figure in the page has no background and no black of its own, and is as wide as its place."""
    for picture in gap_pictures(small_outcome()):
        assert picture.svg.startswith(b"<?xml")
        inline = str(picture.inline)
        assert inline.startswith("<svg")
        assert "viewBox" in inline[:400]
        assert 'width="' not in inline[: inline.index(">")]
        assert "currentColor" in inline
        assert not re.search("#000000|fill: #ffffff|<metadata", inline)


def test_figures_that_show_nothing_are_left_out():
    """Where nobody waits and all gaps are equal, a sentence stands in place of a figure."""
    outcome = small_outcome()
    calm = [
        dataclasses.replace(run, metrics=dataclasses.replace(run.metrics, waiting_max_steps=0))
        for run in outcome.long_runs
    ]
    page = dataclasses.replace(outcome, long_runs=calm)
    assert "waiting_trade.png" not in [picture.file for picture in gap_pictures(page)]
    assert left_out(page) == ["No figure of imbalance against waiting: no request waited in any long run."]
    assert left_out(page)[0] in Page(render_gap_page(page, [], provenance("x"), "out")).text
    assert left_out(outcome) == []


def test_the_lead_of_one_policy_and_of_ties():
    """One policy is neither nearest nor farthest, and policies that tie are named together."""
    outcome = small_outcome()
    name = "fcfs"
    alone = [dataclasses.replace(s, decisions={name: s.decisions[name]}) for s in outcome.solved]
    one = lead(dataclasses.replace(outcome, solved=alone))
    assert "fcfs is " in one
    assert "Nearest" not in one
    tied = [
        dataclasses.replace(s, decisions={name: s.decisions[name], "twin": s.decisions[name]}) for s in outcome.solved
    ]
    both = lead(dataclasses.replace(outcome, solved=tied))
    assert "All 2 policies have the same mean gap" in both
    assert "Nearest" not in both
    third = [
        dataclasses.replace(
            s, decisions={"bf-io": s.decisions["bf-io"], "a": s.decisions[name], "b": s.decisions[name]}
        )
        for s in outcome.solved
    ]
    assert "Farthest are a and b, " in lead(dataclasses.replace(outcome, solved=third))


def test_pictures_of_a_single_worker_are_drawn_without_a_complaint(tmp_path, recwarn):
    """One worker has no imbalance; the logarithmic axes must not choke on zeros."""
    from lbopt import StepProblem

    alone = {"num_workers": 1, "policies": ("fcfs", "random"), "states": 2}
    with pytest.raises(InputError, match=r"no decision .* has a real choice"):  # so its states have to be given
        run_gap(small_config(**alone))
    file = tmp_path / "problems.jsonl"
    problems = [StepProblem.now([load], [2], [3, 9, 4]) for load in (0, 70)]
    file.write_text("".join(json.dumps(problem.to_dict()) + "\n" for problem in problems))
    outcome = run_gap(small_config(problems=str(file), **alone))
    assert [d.objective - s.best for s in outcome.solved for d in s.decisions.values()] == [0, 0, 0, 0]
    assert [run.metrics.imbalance_tokens for run in outcome.long_runs] == [0, 0]
    assert [picture.file for picture in gap_pictures(outcome)] == ["waiting_trade.png"]
    assert [str(w.message) for w in recwarn if "log-scaled" in str(w.message)] == []


# ---------------------------------------------------------------- whole or not at all


def test_a_failure_in_the_middle_keeps_the_old_folder(tmp_path, monkeypatch):
    """Where the page cannot be written, the earlier report stands untouched and nothing half-written lies about."""
    place = tmp_path / "out"
    write_study_folder("gap", small_outcome(), place, "first")
    before = {p.name: p.read_bytes() for p in place.iterdir()}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gap_report, "render_gap_page", full)
    with pytest.raises(InputError, match="No space left"):
        write_study_folder("gap", small_outcome(), place, "second")
    assert {p.name: p.read_bytes() for p in place.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_foreign_folder_is_refused(tmp_path):
    """A folder with somebody else's files is left alone."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"holds 'thesis\.tex', which no earlier run of this kind wrote"):
        write_study_folder("gap", small_outcome(), tmp_path, "x")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


# ---------------------------------------------------------------- differences between folders


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
    lines = rows(path)
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


# ---------------------------------------------------------------- tables


def column(table, header):
    return {row[0]: row[table.headers.index(header)] for row in table.rows}


def test_the_one_step_table_counts_states_and_shows_waits():
    """Each policy stands with its states and the longest wait of its own runs over all seeds."""
    tables = gap_tables(seeds_outcome())
    assert [table.title.rpartition(", ")[2] for table in tables] == [
        "over all states",
        "in states under fcfs",
        "in states under br-0",
    ]
    longest = dict.fromkeys(("fcfs", "random", "br-0"), 0)
    for run in seeds_outcome().long_runs:
        longest[run.policy] = max(longest[run.policy], run.metrics.waiting_max_steps)
    for table, states in zip(tables, ("6", "3", "3"), strict=True):
        assert table.headers[1] == "states"
        assert table.headers[-1] == "longest wait (own runs)"
        assert column(table, "states") == dict.fromkeys(longest, states)
        assert column(table, "longest wait (own runs)") == {name: f"{wait:,}" for name, wait in longest.items()}


def test_without_long_runs_there_is_no_column_of_waits():
    """A study of frozen states alone knows nothing of waiting."""
    outcome = dataclasses.replace(small_outcome(), long_runs=[])
    (table,) = gap_tables(outcome)
    assert "longest wait (own runs)" not in table.headers
    assert all(len(row) == len(table.headers) for row in table.rows)
    assert column(table, "states") == dict.fromkeys(NAMES, "5")


def test_rows_without_states_are_dropped():
    """A policy that decided no state of a group has no row in its table nor in gap.csv, and no wait is invented."""
    outcome = seeds_outcome()
    solved = [SolvedState(s.state, s.result, dict(s.decisions)) for s in outcome.solved]
    for one in solved:
        if one.state.behaviour == "fcfs":
            del one.decisions["random"]
        else:
            one.decisions["br-0 (as run)"] = one.decisions["br-0"]
    outcome = dataclasses.replace(outcome, solved=solved)
    over_all, fcfs, br_0 = gap_tables(outcome)
    assert column(over_all, "states") == {"fcfs": "6", "random": "3", "br-0": "6", "br-0 (as run)": "3"}
    assert column(fcfs, "states") == {"fcfs": "3", "br-0": "3"}
    assert column(br_0, "states") == dict.fromkeys(("fcfs", "random", "br-0", "br-0 (as run)"), "3")
    assert column(br_0, "longest wait (own runs)")["br-0 (as run)"] == "–"
    found = [(r["behaviour"], r["policy"], r["states"]) for r in gap_csv(outcome)]
    assert [behaviour for behaviour, _, _ in found] == ["all"] * 4 + ["fcfs"] * 2 + ["br-0"] * 4
    assert sorted(found) == [
        ("all", "br-0", 6),
        ("all", "br-0 (as run)", 3),
        ("all", "fcfs", 6),
        ("all", "random", 3),
        ("br-0", "br-0", 3),
        ("br-0", "br-0 (as run)", 3),
        ("br-0", "fcfs", 3),
        ("br-0", "random", 3),
        ("fcfs", "br-0", 3),
        ("fcfs", "fcfs", 3),
    ]


def test_what_was_really_done_is_not_the_answer():
    """The sentence on top names a rule, never what somebody did in his own states alone."""
    outcome = small_outcome()
    solved = [SolvedState(s.state, s.result, dict(s.decisions)) for s in outcome.solved]
    for one in solved:
        one.decisions["log (as run)"] = dataclasses.replace(one.decisions["fcfs"], objective=one.best + 10**9)
    text = lead(dataclasses.replace(outcome, solved=solved))
    assert text == lead(outcome)


def test_differences_of_shares_are_points():
    """In the table of differences, shares stand in points; in the table of values, in percent."""
    values, _, differences = long_run_tables(seeds_outcome())
    assert {row[0] for row in differences.rows} == {"random", "br-0"}
    for name, cell in column(values, "idle").items():
        assert re.fullmatch(r"\d+\.\d\d % ± \d+\.\d\d %", cell), name
    known = {c.policy: c.difference for c in compare(seeds_outcome().long_runs, "fcfs") if c.metric == "idle_share"}
    for name, cell in column(differences, "idle").items():
        assert re.fullmatch(r"[+−]?\d+\.\d\d pp ± \d+\.\d\d pp", cell), name
        mean = float(cell.split(" pp")[0].replace("−", "-"))
        assert mean == pytest.approx(100 * known[name].mean, abs=0.005001)


# ---------------------------------------------------------------- reading back


def account(**changes):
    """A run.json with everything that has to be in it, but for the changes."""
    whole = {"format": "lbopt-gap", "version": 1, "configuration": small_config().to_dict(), "interrupted": False}
    return json.dumps(whole | {"trace": {}, "command": "x", "versions": {}} | changes)


def test_a_whole_account_is_read(tmp_path):
    """The account that the cases below break reads back."""
    (tmp_path / "run.json").write_text(account())
    assert read_config(tmp_path, "gap")[0] == small_config()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "not an output folder"),
        ("{", "not valid JSON"),
        ("[]", "was not written by the study gap of lbopt"),
        ('{"format": "lbopt-simulation", "version": 1}', "was not written by the study gap of lbopt"),
        ('{"format": "lbopt-gap", "version": 99}', "has version 99"),
        (account(configuration={"colour": 1}), "not a configuration of a gap study"),
        (account(configuration=None), "not a configuration of a gap study"),
        (account(configuration={}), "not a configuration of a gap study"),
        ('{"format": "lbopt-gap", "version": 1}', "lacks configuration, interrupted, trace, command, versions"),
        (account(trace=None), "trace is None; expected an object"),
        (account(versions=[]), r"versions is \[\]; expected an object"),
        (b"\xff\xfe", "run.json"),
    ],
)
def test_folders_that_cannot_be_read(tmp_path, text, expected):
    """A folder without, or with a broken, run.json is named with the reason."""
    if text is not None:
        (tmp_path / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=expected):
        read_config(tmp_path, "gap")


def test_solving_a_frozen_state_again_gives_its_value(folder):
    """The states in the folder are self-contained: anybody can solve them again."""
    state = read_states(folder / "steps.jsonl")[0]
    assert solve(state.problem, time_limit=20).objective == small_outcome().solved[0].best
