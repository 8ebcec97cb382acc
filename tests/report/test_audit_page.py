"""The page, the JSON and the terminal of an audit: one answer in three places, and no request's id in any of them."""

from __future__ import annotations

import csv
import json
import re

import pytest
from audit.as_log import as_log
from audit.engine import run
from audit.fleets import FLEETS
from cli.terminal import ROOT

import lbopt
from lbopt.report.audit_report import audit_tables, headline
from lbopt.report.study_report import write_study_folder
from lbopt.studies.audit import AuditConfig, audit_log, run_audit

LOG = ROOT / "examples" / "logs" / "fleet.csv"

pytestmark = pytest.mark.jit


@pytest.fixture(scope="module")
def outcome():
    return lbopt.audit(LOG, policies=["jsq", "jsq-load"], price=2.0, gpus=16, states=3, currency="EUR")


def test_no_id_is_shown(outcome, tmp_path):
    """Logs are confidential: not one of the 2,600 ids is in a file that is written."""
    write_study_folder("audit", outcome, tmp_path / "out", "lbopt audit")
    with LOG.open(encoding="utf-8") as stream:
        ids = {row["request_id"] for row in csv.DictReader(stream)}
    for path in (tmp_path / "out").iterdir():
        content = path.read_bytes().decode("utf-8", errors="ignore")
        assert not re.findall(r"req-[0-9a-f]{8}", content), path.name
        assert not any(one in content for one in sorted(ids)[:50])


def test_page_json_and_outcome_say_the_same(outcome, tmp_path):
    write_study_folder("audit", outcome, tmp_path / "out", "lbopt audit")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    data = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert headline(outcome) in page
    assert data["recommendation"]["rule"] == outcome.recommendation.rule == "jsq-load"
    assert data["recommendation"]["change"] == pytest.approx(outcome.recommendation.change)
    assert len(data["rules"]) == 3
    assert "<script" not in page
    assert "http" not in re.sub(r'xmlns[:\w]*="[^"]*"', "", page)


def test_money_is_the_saving_of_the_fleet(outcome):
    """Workers that are not needed · GPUs · price · 730 hours."""
    best = outcome.recommendation
    assert best.workers == 7
    assert best.per_month == pytest.approx(1 / 8 * 16 * 2.0 * 730)
    assert "EUR a month" in str(best)


def test_every_table_is_complete(outcome):
    for table in audit_tables(outcome):
        assert all(len(row) == len(table.headers) for row in table.rows), table.title
        assert not any("nan" in cell for row in table.rows for cell in row), table.title


def test_the_outcome_shows_itself(outcome):
    frame = outcome.to_frame()
    assert list(frame["rule"]) == ["as logged", "jsq", "jsq-load"]
    assert "switch" in repr(outcome)
    assert outcome.plot() is not None


def test_a_replayed_rule_changes_nothing(outcome):
    """The example log is of round robin: run over the same requests with the law of the log, it is the log again."""
    same = lbopt.audit(LOG, policies=["round-robin"], states=0).runs[1]
    assert same.change == pytest.approx(0.0, abs=0.01)
    assert same.change_interval[0] < 0 < same.change_interval[1]


def test_a_page_without_rules_is_written(tmp_path):
    outcome = audit_log(as_log(run(FLEETS["eight-half"], replicas=True)), AuditConfig(log="engine"))
    write_study_folder("audit", outcome, tmp_path / "out", "lbopt audit")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "No recommendation" in page
    assert not (tmp_path / "out" / "rules.csv").exists()


def test_readme_says_what_the_example_says():
    """The answer to the example log, to the digit."""
    best = lbopt.audit(LOG, price=2.5, gpus=8, states=0).recommendation
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    shown = [f"{100 * value:.1f} %".replace("-", "−") for value in (best.change, *best.change_interval)]
    assert f"switch to `{best.rule}`, {shown[0]} time per token ({shown[1]} to {shown[2]}), waits no longer" in readme
    assert f"{best.workers} of 8 workers, worth {best.per_month:,.0f} USD a month" in readme


def test_stopped_between_rules_it_says_so(monkeypatch):
    from lbopt.studies.audit import study as module

    asked = []

    def stops_at_the_second(rule, *given, **named):
        asked.append(rule)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return run_rule(rule, *given, **named)

    run_rule = module.run_rule
    monkeypatch.setattr(module, "run_rule", stops_at_the_second)
    outcome = run_audit(AuditConfig(log=str(LOG), states=0))
    assert outcome.interrupted
    assert "stopped before all rules had been run" in str(outcome.recommendation)


@pytest.mark.parametrize("call", [{"columns": "worker=pod"}, {"policies": []}, {"price": "2"}])
def test_misuse_from_python_is_one_sentence(call):
    with pytest.raises(lbopt.InputError):
        lbopt.audit(LOG, **call)


def test_no_rule_that_needs_a_queue_is_said_to_be_in_an_engine():
    """Engines bind on arrival, but for TensorRT-LLM, whose ranks take from one queue."""
    from lbopt.policies import make_policy
    from lbopt.studies.audit.recommendation import IN_ENGINES

    assert [rule for rule in IN_ENGINES if make_policy(rule).admission == "pooled"] == ["tensorrt-llm"]


def test_ctrl_c_keeps_what_is_done(monkeypatch):
    from lbopt.studies.audit import study as module

    def stopped(*_given, **_named):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "one_step_gaps", stopped)
    outcome = run_audit(AuditConfig(log=str(LOG), rules=("jsq-load",)))
    assert outcome.interrupted
    assert outcome.recommendation.verdict == "switch"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rules": ("br-h:horizon=5",)}, "needs a forecast"),
        ({"columns": ("pod",)}, "expected QUANTITY=NAME"),
        ({"slots": 3}, "ran 27 requests at once"),
        ({"price": -1.0}, "price is -1.0"),
        ({"log": "nothing.csv"}, "nothing.csv"),
        ({"price": "2.5"}, "price is '2.5'; expected a number"),
        ({"gpus": 2.5}, "gpus is 2.5; expected a whole number"),
        ({"accept_misfit": "no"}, "accept_misfit is 'no'; expected true or false"),
        ({"currency": None}, "currency is None"),
    ],
)
def test_wrong_input_is_one_sentence(given, message):
    with pytest.raises(lbopt.InputError, match=message):
        run_audit(AuditConfig(**({"log": str(LOG), "states": 0} | given)))
