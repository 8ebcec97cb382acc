"""`run_check`: choosing claims, seeds of their own, what is missing, and how verdicts are joined."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from lbopt.exceptions import InputError
from lbopt.studies.check import CheckConfig, CheckOutcome, ClaimOutcome, run_check
from lbopt.studies.check.study import Chosen
from lbopt.theory.finding import Finding, Verdict
from lbopt.theory.ledger import CLAIMS

#: Claims that are computed in an instant.
QUICK = ("lemma-8", "berry-esseen-rate:rounds=yes")


def finding(**given: Any) -> Finding:
    usual: dict[str, Any] = {"regime": "r", "quantity": "q", "kind": "mean", "relation": "=", "measured": 1.0}
    return Finding(**{**usual, "predicted": 1.0, "error": 0.1, **given})


def outcome(*findings: Finding, name: str = "fcfs-exact", missing: int = 0) -> ClaimOutcome:
    return ClaimOutcome(Chosen.of(name, "quick"), findings, missing)


def test_a_claim_has_one_verdict_however_often_it_is_named() -> None:
    config = CheckConfig.of(["fcfs-exact:G=4", "lemma-8", "fcfs-exact:G=8", "fcfs-exact:G=4", "fcfs-exact:G=8,B=64"])
    assert [one.claim.name for one in config.chosen] == ["fcfs-exact", "lemma-8"]
    assert config.chosen[0].regimes == ({"G": 4}, {"G": 8}, {"G": 8, "B": 64})
    assert config.chosen[0].specs == ("fcfs-exact:G=4", "fcfs-exact:G=8", "fcfs-exact:G=8,B=64")


def test_a_level_and_a_regime_of_ones_own() -> None:
    config = CheckConfig.of(["lemma-8", "lemma-8:p=0.4", "lemma-8:growth=1/2"])
    (one,) = config.chosen
    assert one.regimes == (*CLAIMS["lemma-8"].quick, {"p": 0.4})  # the last one is of the level already


@pytest.mark.parametrize(
    ("specs", "options", "says"),
    [
        ([], {}, "no claim was named; `lbopt show claims` shows them, and `all` takes them all"),
        (["lemma-8"], {"everything": True}, "all claims were asked for, and 'lemma-8' by name; give one or the other"),
        (["lemma-88"], {}, "unknown claim 'lemma-88': did you mean lemma-8"),
        (["lemma-8:q=1"], {}, "claim 'lemma-8' has no option 'q'; it takes p, s_max, pool, growth, steps"),
        (["lemma-8:p"], {}, "claim 'lemma-8': option p has no value"),
        (["lemma-8:p=often"], {}, "claim 'lemma-8': p is 'often'; expected a number"),
        (["lemma-8:p=nan"], {}, "claim 'lemma-8': p is 'nan'; expected a finite number"),
        (["lemma-8:seed=3"], {}, "has no option 'seed'"),
        (["berry-esseen:rounds=perhaps"], {}, "rounds is 'perhaps'; expected yes or no"),
        (["lemma-8"], {"seed": -1}, "seed is -1; expected 0 or more"),
        (["lemma-8"], {"level": "middling"}, "level is 'middling'; expected one of quick, full"),
    ],
)
def test_refusals(specs: list[str], options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as refused:
        CheckConfig.of(specs, **options)
    assert says in str(refused.value)


def test_all_claims() -> None:
    for level in ("quick", "full"):
        config = CheckConfig.of([], everything=True, level=level)
        assert [one.claim.name for one in config.chosen] == list(CLAIMS)
        assert all(one.regimes for one in config.chosen)


def test_every_regime_has_a_seed_that_no_other_moves() -> None:
    config = CheckConfig.of([], everything=True)
    keys = [task.key for one in config.chosen for task in config.tasks(one)]
    assert len(set(keys)) == len(keys)
    alone = CheckConfig.of(["fcfs-exact"])
    assert alone.tasks(alone.chosen[0]) == next(
        config.tasks(one) for one in config.chosen if one.claim.name == "fcfs-exact"
    )
    other = CheckConfig.of(["fcfs-exact"], seed=1)
    assert {one.seed for one in other.tasks(other.chosen[0])}.isdisjoint(
        one.seed for one in alone.tasks(alone.chosen[0])
    )


def test_findings_come_in_the_order_of_the_regimes() -> None:
    done = run_check(CheckConfig.of(QUICK))
    assert [one.claim.name for one in done.claims] == ["lemma-8", "berry-esseen-rate"]
    expected = [found for regime in CLAIMS["lemma-8"].quick for found in CLAIMS["lemma-8"].measure(**regime, seed=0)]
    assert list(done.claims[0].findings) == expected
    assert all(one.verdict is Verdict.HOLDS and one.as_expected for one in done.claims)
    assert not done.interrupted


def test_a_claims_own_refusal_is_the_checks() -> None:
    with pytest.raises(InputError, match=r"lemma-8 assumes outputs of law Geo\(p\) with 0 < p < 1; p is 2.0"):
        run_check(CheckConfig.of(["lemma-8:p=2"]))


def test_a_claim_that_breaks_is_said_and_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*, p: float = 0.2, seed: int) -> list[Finding]:
        raise ZeroDivisionError("division by zero")

    claim = dataclasses.replace(CLAIMS["lemma-8"], measure=broken, quick=({},), full=({},))
    monkeypatch.setitem(CLAIMS, "lemma-8", claim)
    done = run_check(CheckConfig.of(["lemma-8", "berry-esseen-rate:rounds=yes"]))
    assert [one.verdict for one in done.claims] == [Verdict.UNDECIDED, Verdict.HOLDS]
    assert done.claims[0].missing == 1
    assert "ZeroDivisionError" in done.notes[0]


def test_while_regimes_are_missing_only_a_refutation_is_final() -> None:
    false = finding(kind="exact", violations=1)
    assert outcome(finding()).verdict is Verdict.HOLDS
    assert outcome(finding(), missing=1).verdict is Verdict.UNDECIDED
    assert outcome(finding(), false, missing=1).verdict is Verdict.REFUTED
    assert outcome(missing=3).verdict is Verdict.UNDECIDED
    assert outcome(missing=3).tightest is None


def test_what_lies_outside_differs_from_nothing() -> None:
    outside = outcome(finding(outside="B is small"), name="lemma-1-printed")
    assert outside.verdict is Verdict.OUTSIDE
    assert outside.as_expected
    assert not outcome(finding(predicted=9.0)).as_expected


def test_the_region_is_shared_by_what_chance_moves_inside() -> None:
    found = [
        finding(measured=1.27),
        finding(kind="exact"),
        finding(kind="computed"),
        finding(outside="far"),
        finding(kind="frequency", measured=0.5, predicted=0.5, trials=10),
    ]
    one = outcome(*found)
    assert one.share == 2
    assert outcome(finding(kind="exact")).share == 1
    # 2.7 standard errors: outside the 99 % region of one finding, inside that of the joint one of two
    assert outcome(found[0]).verdict is Verdict.UNDECIDED
    assert one.verdict is Verdict.HOLDS


def test_the_finding_that_decides_is_shown() -> None:
    worse, better = finding(measured=1.25), finding(measured=1.05)
    assert outcome(better, worse).tightest == worse
    false = finding(kind="exact", relation="<=", violations=1, measured=2.0, predicted=0.0)
    assert outcome(better, worse, false).tightest == false
    near = finding(kind="computed", relation="<=", measured=0.99)
    far = finding(kind="computed", relation="<=", measured=0.5)
    assert outcome(far, near).tightest == near


def test_a_store_resumes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, config = tmp_path / "s.sqlite", CheckConfig.of(QUICK)
    first = run_check(config, store=store)

    def never(**given: Any) -> list[Finding]:
        raise AssertionError("computed again")

    monkeypatch.setattr("lbopt.studies.check.measured.measured", never)
    for again in (run_check(config, store=store), run_check(config, store=store, collect_only=True)):
        assert isinstance(again, CheckOutcome)
        assert [one.findings for one in again.claims] == [one.findings for one in first.claims]
        assert not again.notes
    more = run_check(CheckConfig.of([*QUICK, "lemma-1"]), store=store, collect_only=True)
    assert [one.verdict for one in more.claims] == [Verdict.HOLDS, Verdict.HOLDS, Verdict.UNDECIDED]
    assert "results are not in" in more.notes[0]
