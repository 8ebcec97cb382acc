"""Theorems 1 to 3 come to their verdicts, and would come to others if they were wrong."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from theory.waiting_checks import measured, verdict_of

from lbopt.model import StepProblem
from lbopt.theory.claims import theorems
from lbopt.theory.finding import Verdict
from lbopt.theory.laws.gap_bounds import CLEAR, onset
from lbopt.theory.laws.load_law import LoadLaw
from lbopt.theory.laws.slot_law import PromptLaw
from lbopt.theory.ledger import CLAIMS
from lbopt.theory.regime import BatchedFleet

#: Regimes inside the onset in which the exact rule leaves something.
_TWO = {"B": 1024, "pool": "two"}
INSIDE = {"theorem-1": [{"rounds": 40}], "theorem-2": [_TWO], "theorem-3": [{"growth": "1", **_TWO}]}
pytestmark = pytest.mark.jit


@pytest.mark.some(but=("2-theorem-2", "3-theorem-2", "2-theorem-3"))
@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("seed", [2, 3])
def test_quick_verdict(name: str, seed: int) -> None:
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick, seed) is CLAIMS[name].expected


@pytest.mark.parametrize("name", INSIDE)
def test_a_higher_floor_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far the floor lies below what is measured: an improvement so many times as large is not there."""
    usual = [one for one in measured(CLAIMS[name], INSIDE[name], 1) if one.relation == "<="][-1]
    room = usual.predicted / usual.measured
    module = theorems
    floor = module.improvement_floor
    for times, verdict in ((0.7 * room, Verdict.HOLDS), (2 * room, Verdict.REFUTED)):
        monkeypatch.setattr(module, "improvement_floor", lambda *given, times=times: times * floor(*given))
        assert verdict_of(CLAIMS[name], INSIDE[name]) is verdict


@pytest.mark.parametrize("name", ["theorem-2", "theorem-3"])
def test_what_is_left_is_the_law_of_the_spacing_and_not_a_tenth_more(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = theorems.least_left
    for times, verdict in ((1.0, Verdict.HOLDS), (1.1, Verdict.REFUTED), (0.9, Verdict.REFUTED)):

        def planted(*given: Any, times: float = times) -> Any:
            found = usual(*given)
            return type(found)(times * found.mean, found.error)

        monkeypatch.setattr(theorems, "least_left", planted)
        assert verdict_of(CLAIMS[name], [{**one, "batches": 40} for one in INSIDE[name]]) is verdict


def test_fcfs_half_as_dear_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = LoadLaw.expected_imbalance
    monkeypatch.setattr(LoadLaw, "expected_imbalance", lambda law, G: 1.5 * exact(law, G))
    assert verdict_of(CLAIMS["theorem-1"], [{"rounds": 100}]) is Verdict.REFUTED


def test_rounds_are_placed_as_well_as_can_be() -> None:
    """Every placement of every round, tried: the mean of the best, and so the share that is left."""
    G, B, s_max, rounds, seed = 3, 2, 4, 12, 5
    found = CLAIMS["theorem-1"].measure(G=G, B=B, s_max=s_max, rounds=rounds, seed=seed)
    best = []
    for prompts in np.random.default_rng(seed).integers(1, s_max + 1, (rounds, G * B)).tolist():
        spread = []
        for order in set(itertools.permutations(prompts)):
            loads = [sum(order[g * B : (g + 1) * B]) for g in range(G)]
            spread.append(G * max(loads) - sum(loads))
        best.append(min(spread))
    assert found[0].measured == pytest.approx(found[0].predicted, abs=4 * found[0].error)
    assert (found[1].measured, found[1].predicted) == (max(best), (G - 1) * (s_max - 1))
    assert found[2].measured == pytest.approx(np.mean(best) / found[0].predicted)
    assert found[2].error == pytest.approx(np.std(best, ddof=1) / np.sqrt(rounds) / found[0].predicted)


def answering(objective: int, bound: int, *, proved: bool) -> Any:
    def solve(problem: StepProblem, **options: Any) -> Any:
        return SimpleNamespace(objective=objective, bound=bound, proved=proved)

    return solve


def test_a_round_whose_best_placement_is_worse_is_a_refutation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorems, "solve", answering(100, 100, proved=True))
    found = CLAIMS["theorem-1"].measure(rounds=10, seed=1)
    assert found[1].violations == 10
    assert found[1].verdict() is Verdict.REFUTED


def test_an_open_round_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement that nobody proved the best says nothing against a claim about best ones: only its bound is sure."""
    monkeypatch.setattr(theorems, "solve", answering(100, 0, proved=False))
    found = CLAIMS["theorem-1"].measure(rounds=10, seed=1)
    assert [one.undecided for one in found] == [0, 10, 10]
    assert verdict_of(CLAIMS["theorem-1"], [{"rounds": 10}]) is Verdict.UNDECIDED
    monkeypatch.setattr(theorems, "solve", answering(100, 90, proved=False))  # the best itself is at least 90
    assert verdict_of(CLAIMS["theorem-1"], [{"rounds": 10}]) is Verdict.REFUTED

    monkeypatch.setattr(theorems, "solve", answering(10, 0, proved=False))  # and at most 10, which is good enough
    found = CLAIMS["theorem-1"].measure(rounds=10, seed=1)
    assert [one.undecided for one in found] == [0, 0, 0]


@pytest.mark.parametrize("name", ["theorem-2", "theorem-3"])
def test_below_the_onset_nothing_is_said(name: str) -> None:
    law, p = PromptLaw.uniform(4), 0.5
    begins = CLEAR * onset(8, p, law)
    for B, outside in ((int(begins) - 1, True), (int(begins) + 1, False)):
        found, *_ = CLAIMS[name].measure(B=B, p=p, s_max=4, seed=1)
        assert bool(found.outside) == outside
        assert (found.verdict() is Verdict.OUTSIDE) == outside
        assert f"B/B* = {B / onset(8, p, law):.2g}" in found.note


def test_theorem_3_at_growth_one_is_theorem_2() -> None:
    second, *_ = CLAIMS["theorem-2"].measure(B=512, seed=9)
    third, *_ = CLAIMS["theorem-3"].measure(B=512, growth="1", seed=9)
    assert (second.measured, second.predicted, second.error) == (third.measured, third.predicted, third.error)
    assert third.regime == f"{second.regime}, growth 1"


@pytest.mark.parametrize("name", ["theorem-2", "theorem-3"])
def test_both_sides_do_equal_work_where_the_mean_peak_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    regime = {"pool": "two", "peak": "mean"}
    *_, row = CLAIMS[name].measure(**regime, seed=4)
    assert row.quantity.endswith("equal work")
    assert row.predicted == 2.5
    assert row.verdict() is Verdict.HOLDS
    usual = BatchedFleet.chain
    monkeypatch.setattr(BatchedFleet, "chain", lambda at: usual(at, peak="lowest"))
    *_, row = CLAIMS[name].measure(**regime, seed=4)
    assert row.measured < 1.2
    assert row.verdict() is Verdict.REFUTED


@pytest.mark.slow
@pytest.mark.parametrize("times", [0.99, 1.01])
def test_a_hundredth_more_or_less_of_the_law_is_caught_at_the_full_level(
    times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = theorems.least_left

    def planted(*given: Any) -> Any:
        found = usual(*given)
        return type(found)(times * found.mean, found.error)

    monkeypatch.setattr(theorems, "least_left", planted)
    regime = next(one for one in CLAIMS["theorem-3"].full if one["growth"] == "1" and one.get("B") is None)
    assert verdict_of(CLAIMS["theorem-3"], [regime]) is Verdict.REFUTED
