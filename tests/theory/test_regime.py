"""Parameters of a regime: one place gives the signature, the defaults, the meanings and the refusals."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields

import pytest

from lbopt.exceptions import InputError
from lbopt.theory.finding import Finding
from lbopt.theory.ledger import CLAIMS
from lbopt.theory.regime import Batched, BatchedFleet, Fleet, PromptFleet, RepleteFleet, SteppedFleet, measured_in


@dataclass(frozen=True, kw_only=True)
class Own(RepleteFleet):
    """Another default, and a parameter of its own."""

    B: int = 7
    rounds: int = 3


@measured_in("own", Own, without=("pool",))
def measure(at: Own, seed: int) -> list[Finding]:
    """Say what was asked."""
    shown = f"{at}, {at.law.name}{at.raised}, {at.rounds} rounds, seed {seed}"
    return [Finding(regime=shown, quantity="", kind="mean", relation="=", measured=1.0, predicted=1.0)]


def test_the_signature_is_that_of_the_fields() -> None:
    found = inspect.signature(measure).parameters
    assert list(found) == ["G", "B", "p", "s_max", "peak", "rounds", "seed"]
    assert (found["B"].default, found["rounds"].default, found["peak"].default) == (7, 3, "lowest")
    assert found["seed"].default is inspect.Parameter.empty
    assert measure.__doc__ == "Say what was asked."


def test_the_regime_is_what_was_given() -> None:
    assert measure(seed=5)[0].regime == "G=8, B=7, p=0.5, s in {1,4}, 3 rounds, seed 5"
    assert measure(G=2, peak="mean", seed=1)[0].regime == "G=2, B=7, p=0.5, s in {1,4}, mean peak, 3 rounds, seed 1"


@pytest.mark.parametrize("given", [{"pool": "all"}, {"slots": 3}])
def test_a_parameter_that_the_claim_does_not_take_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=f"own takes no parameter {next(iter(given))}"):
        measure(**given, seed=0)


@pytest.mark.parametrize(
    ("regime", "wrong", "says"),
    [
        (Fleet, {"G": 1}, "own assumes at least G = 2 workers; G is 1"),
        (Fleet, {"p": 1.0}, "own assumes outputs of law Geo"),
        (PromptFleet, {"s_max": 1}, "own assumes prompts that vary"),
        (RepleteFleet, {"pool": "some"}, "own assumes a replete pool"),
        (RepleteFleet, {"peak": "top"}, "own assumes one of the peaks lowest, raised, mean; peak is 'top'"),
        (BatchedFleet, {"batches": 19}, "own assumes at least 20 batches; batches is 19"),
        (SteppedFleet, {"steps": 0}, "own assumes at least one step to look at; steps is 0"),
    ],
)
def test_each_extension_refuses_what_it_and_those_below_it_refuse(
    regime: type[Fleet], wrong: dict[str, object], says: str
) -> None:
    regime().require("own")
    for one in {regime, *(other for other in (BatchedFleet, SteppedFleet) if issubclass(other, regime))}:
        with pytest.raises(InputError, match=says):
            one(**wrong).require("own")  # type: ignore[arg-type]


def test_every_field_has_its_meaning() -> None:
    """Whoever adds a parameter says what it is, in the class that has it."""
    for regime in (Fleet, Batched, PromptFleet, RepleteFleet, BatchedFleet, SteppedFleet):
        inherited = {one.name for base in regime.__mro__[1:-1] if base is not object for one in fields(base)}
        for one in fields(regime):
            assert one.name in inherited or f"\n    {one.name}\n" in (regime.__doc__ or ""), (regime, one.name)


def test_claims_without_steps_of_their_own_do_not_offer_them() -> None:
    assert set(CLAIMS["spacing-rate"].parameters()) == {"G", "p", "d", "growth"}
    assert set(CLAIMS["lemma-4-flat"].parameters()) == {"G", "p", "s_max", "pool", "batches", "doublings"}
    assert set(CLAIMS["stale-pool"].parameters()) == {"B", "p", "period", "family", "batches"}
    assert "family" not in CLAIMS["stale-herd"].parameters()


def test_the_fields_of_the_fleet_come_before_the_batches() -> None:
    assert list(CLAIMS["leader-drift"].parameters()) == ["G", "B", "p", "s_max", "batches"]
