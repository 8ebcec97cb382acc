"""The output folder of a gap study: tables, frozen states, pictures, page, provenance."""

import csv
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from studies.small_study import NAMES, seeds_outcome, small_config, small_outcome

from lbopt import CertificateError, Result, verify
from lbopt.exceptions import InputError
from lbopt.report import gap_report
from lbopt.report.folder import provenance
from lbopt.report.gap_report import gap_pictures, lead, left_out, render_gap_page
from lbopt.report.study_report import read_config, write_study_folder
from lbopt.solvers import solve
from lbopt.studies.gap import GapOutcome, run_gap
from lbopt.studies.gap.decisions import read_states, summarise
from lbopt.studies.gap.outcome import compare

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
        expected = vars(summarise(small_outcome().solved, row["policy"]))
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
    assert int(exact["decisions_proved"]) + int(exact["decisions_searched"]) > 100
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
        self.text += data.replace("\u00a0", " ")


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


@pytest.mark.more
def test_equal_data_give_equal_bytes(folder):
    """Drawn twice, a picture is the same file."""
    for picture in gap_pictures(small_outcome()):
        assert picture.data == (folder / picture.file).read_bytes()


@pytest.mark.more
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
    calm = [run.but(metrics=dataclasses.replace(run.metrics, waiting_max_steps=0)) for run in outcome.long_runs]
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


@pytest.mark.more
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


def test_solving_a_frozen_state_again_gives_its_value(folder):
    """The states in the folder are self-contained: anybody can solve them again."""
    state = read_states(folder / "steps.jsonl")[0]
    assert solve(state.problem, time_limit=20).objective == small_outcome().solved[0].best
