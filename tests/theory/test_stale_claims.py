"""The claims on old sight and early binding come to their verdicts, and wrong constants and wrong rules to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from theory.waiting_checks import verdict_of

from lbopt.exceptions import InputError
from lbopt.theory.claims import binding, stale
from lbopt.theory.finding import Finding, Verdict, smallest_plant
from lbopt.theory.ledger import CLAIMS

NAMES = [claim.name for module in (stale, binding) for claim in module.CLAIMS]


@cache
def found(name: str, level: str) -> tuple[Finding, ...]:
    claim = CLAIMS[name]
    regimes = claim.quick[:1] if level == "first" else claim.regimes(level)
    return tuple(one for regime in regimes for one in claim.measure(**regime, seed=5))


def judged(findings: Sequence[Finding]) -> set[Verdict]:
    share = sum(one.is_sampled for one in findings)
    return {one.verdict(share) for one in findings}


@pytest.mark.some(but=("binding-random", "stale-power-of-two"))
@pytest.mark.parametrize("name", NAMES)
def test_the_first_regime_holds(name: str) -> None:
    assert judged(found(name, "first")) == {Verdict.HOLDS}


@pytest.mark.some(9)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [0.7, 1.35])
def test_a_constant_that_is_a_third_off_is_seen_in_one_regime(name: str, factor: float) -> None:
    """A floor that is too low says less, so that is no error of it."""
    findings = found(name, "first")
    if factor < 1 and all(one.relation == ">=" for one in findings):
        pytest.skip("a floor")
    if name == "binding-random":
        pytest.skip("few batches: seen at the full level")
    assert Verdict.REFUTED in judged([replace(one, predicted=factor * one.predicted) for one in findings])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_full_level_holds_and_sees_a_tenth(name: str) -> None:
    findings = found(name, "full")
    assert judged(findings) <= {Verdict.HOLDS, Verdict.OUTSIDE, CLAIMS[name].expected}
    share = sum(one.is_sampled for one in findings)
    sides = {one.relation for one in findings}
    for relation in sides:
        plants = [smallest_plant(one, share) for one in findings if one.relation == relation and not one.outside]
        assert min(plant.smallest for plant in plants if plant and plant.smallest) < 0.1, relation


def test_a_rule_that_knows_more_breaks_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """With reports of every step in place of every tenth, the same rule is below the floor of the old reports."""
    right = stale.imbalance_of

    def sees(fleet, rule, batches, seed):
        return right(replace(fleet, period=1), rule, batches, seed)

    monkeypatch.setattr(stale, "imbalance_of", sees)
    assert verdict_of(CLAIMS["stale-floor-every"], [{}]) == Verdict.REFUTED


@pytest.mark.more
def test_a_rule_that_segregates_sizes_is_below_what_workers_alike_leave() -> None:
    """The floor of any rule holds for it, and with all on one worker the constant is not far off."""
    claim = CLAIMS["stale-floor"]
    regime = claim.quick[-1]
    assert regime["rule"] == "segregated"
    assert verdict_of(CLAIMS["stale-floor-every"], [regime]) == Verdict.REFUTED
    (row,) = claim.measure(**regime, seed=5)
    assert row.verdict() == Verdict.HOLDS
    assert replace(row, predicted=1.6 * row.predicted).verdict() == Verdict.REFUTED


REFUSED = [
    ("stale-floor", {"G": 1}, "at least G = 2"),
    ("stale-floor", {"rule": "best"}, "rule is 'best'"),
    ("stale-floor", {"large": 200}, "large is 200"),
    ("stale-floor", {"period": 0}, "period is 0"),
    ("stale-floor", {"family": "none-like"}, "family is 'none-like'"),
    ("stale-level", {"period": 1}, "period is 1"),
    ("stale-herd", {"arrivals": 0.0}, "arrivals is 0.0"),
    ("stale-power-of-two", {"p": 1.0}, "p is 1.0"),
    ("stale-power-of-two", {"batches": 3}, "batches is 3"),
    ("binding-floor", {"queue": 0}, "queue is 0"),
    ("binding-floor", {"rule": "best"}, "rule is 'best'"),
    ("binding-random", {"load": 1.0}, "load is 1.0"),
    ("binding-random", {"B": 1}, "B is 1"),
    ("stale-pool", {"B": 0}, "B is 0"),
]


@pytest.mark.parametrize(("name", "regime", "says"), REFUSED)
def test_a_regime_outside_is_refused_in_one_sentence(name: str, regime: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=f"{name} assumes .*{says}"):
        CLAIMS[name].measure(**regime, seed=0)
