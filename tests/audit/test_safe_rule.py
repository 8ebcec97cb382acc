"""`auto` among the rules of an audit: taken where a queue is needed, unless its interval says that it loses."""

import pytest
from audit.as_log import as_log
from audit.engine import run_once
from audit.fleets import FLEETS

from lbopt.studies.audit import AuditConfig, audit_log
from lbopt.studies.audit.config import DEFAULT_RULES
from lbopt.studies.audit.recommendation import _simplest
from lbopt.studies.audit.rules import RuleRun


def ran(rule: str, change: float, half: float = 0.01, admission: str = "pooled") -> RuleRun:
    """A rule that changes the time per token by `change`, give or take `half`."""
    return RuleRun(
        rule=rule,
        admission=admission,
        tpot_mean=1 + change,
        tpot_p95=1.0,
        wait_mean=0.0,
        wait_p99=0.0,
        idle_share=0.0,
        change=change,
        change_interval=(change - half, change + half),
    )


@pytest.mark.parametrize(
    ("runs", "taken"),
    [
        ([ran("br-0", -0.10), ran("auto", -0.093), ran("max-min", -0.05)], "auto"),
        ([ran("br-0", -0.10), ran("auto", -0.089), ran("max-min", -0.05)], "br-0"),  # loses: -9.9 % at best
        ([ran("br-0", -0.10), ran("max-min", -0.098)], "br-0"),
        ([ran("auto", -0.10), ran("jsq", -0.096, admission="immediate")], "jsq"),
        ([ran("auto", -0.10), ran("jsq", -0.094, admission="immediate")], "auto"),
        ([ran("jsq", -0.10, admission="immediate"), ran("auto", -0.099)], "jsq"),
    ],
)
def test_which_rule_is_taken(runs, taken):
    assert _simplest(runs).rule == taken


def test_it_is_judged_by_default():
    assert "auto" in DEFAULT_RULES


@pytest.mark.jit
@pytest.mark.parametrize("name", ["eight-half", "sixteen-tail"])
def test_where_an_audit_recommends_a_queue_it_is_auto_or_auto_loses(name):
    rules = ("round-robin", "jsq-load", "max-min", "br-0", "auto")
    outcome = audit_log(
        as_log(run_once(FLEETS[name], rule="round-robin")), AuditConfig(log="engine", rules=rules, states=0)
    )
    found = {one.rule: one for one in outcome.runs}
    best = outcome.recommendation
    assert best.verdict == "switch"
    assert best.rule == "auto" or found["auto"].change_interval[0] > found[best.rule].change
