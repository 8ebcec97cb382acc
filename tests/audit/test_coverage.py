"""Intervals of an audit hold the truth under much noise, and the rule that wrote a real log is not told from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from audit.as_log import as_log
from audit.coverage import audited, judged, main, noisy_fleets, read_truths
from audit.engine import run

from lbopt.instances.router_log import read_router_log, with_record
from lbopt.studies.audit import AuditConfig, audit_log
from lbopt.studies.audit.groups import part_of
from lbopt.studies.audit.law_from_log import reconstruct

REAL = Path(__file__).parents[1] / "stored" / "records" / "calm-round-robin" / "requests.csv"


def test_half_of_a_step_is_noise_and_the_interval_holds_the_truth():
    """One fleet of the 60: it is recommended to switch, and steps are those that the engine made."""
    fleet = noisy_fleets()["small-chat", 0.5]
    outcome = audited(fleet)
    rows = judged("small-chat", 0.5, fleet.rule, read_truths()["small-chat", 0.5], outcome)
    assert [row.covers for row in rows if row.recommended] == [True]
    assert all(row.covers for row in rows)
    assert outcome.law.noise == pytest.approx(0.5, rel=0.15)


@pytest.mark.more
def test_intervals_of_60_fleets_hold_the_truth():
    """Nine of ten, of rules that are recommended and of all; published on the page of results."""
    rows = main()
    best = [row for row in rows if row.recommended]
    assert len(best) >= 15
    assert sum(row.covers for row in best) >= 0.9 * len(best)
    assert sum(row.covers for row in rows) >= 0.9 * len(rows)


@pytest.mark.more
def test_a_law_without_a_slope_is_withheld_or_told_apart_from_noise():
    """Steps whose time is all noise: the page shows an interval and no verdict is based on the lack of evidence."""
    fleet = replace(noisy_fleets()["small-busy", 0.5], per_token=0.0)
    outcome = audit_log(as_log(run(fleet)), AuditConfig(log="engine", rules=("jsq",), slots=fleet.B, states=0))
    assert not outcome.law.is_identified
    assert outcome.recommendation.verdict != "switch"


@pytest.mark.parametrize("part", ["whole", "without its first tenth"])
def test_the_rule_of_a_real_record_is_not_told_from_its_own_log(part):
    """Two vLLM ranks on a busy machine: round robin on its own log changes nothing, and no rule is recommended."""
    log = with_record(read_router_log(REAL), REAL)
    assert log.rule == "round-robin"
    if part != "whole":
        log = part_of(log, log.start > log.span / 10)
    asked = AuditConfig(log="record", rules=("round-robin", "auto"), slots=8, states=0)
    assert audit_log(log, asked).recommendation.verdict == "withheld"
    outcome = audit_log(log, replace(asked, accept_misfit=True))
    low, high = outcome.runs[1].change_interval
    assert low <= 0 <= high
    assert not outcome.law.is_identified


def test_a_router_s_count_of_steps_tells_a_stall_from_steps():
    """In 41 s the router counted 1,197 steps; without its count a stall of seconds would be 200 more of them."""
    alone = read_router_log(REAL)
    beside = with_record(alone, REAL)
    assert beside.counted is not None and beside.counted[-1, 1] == 1197
    assert reconstruct(beside).steps.sum() < reconstruct(alone).steps.sum() - 150
    assert with_record(alone, REAL.with_name("another.csv")) is alone
