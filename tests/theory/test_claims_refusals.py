"""Parameters outside a claim's hypotheses are refused in one sentence that names claim, assumption and value.

Where the numbers themselves are the trouble (a law or a chain that nobody can hold), the sentence names what it would
take. Nothing here may begin to compute: each refusal is immediate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from lbopt.exceptions import InputError
from lbopt.theory.ledger import CLAIMS

FLEETS = (
    "theorem-1",
    "theorem-2",
    "theorem-3",
    "fcfs-exact",
    "fcfs-sharp",
    "fcfs-sharp-rate",
    "fcfs-order",
    "fcfs-drift",
)
GEOMETRIC = (*FLEETS[1:], "slot-law", "berry-esseen", "berry-esseen-rate", "lemma-8")
MINE = tuple(dict.fromkeys((*FLEETS, *GEOMETRIC)))


def spoken(name: str) -> str:
    """Claims that share a measure speak under the name of the first."""
    return "fcfs-exact" if name == "fcfs-drift" else name


def refusal(name: str, regime: Mapping[str, Any]) -> str:
    with pytest.raises(InputError) as refused:
        CLAIMS[name].measure(**regime, seed=0)
    said = str(refused.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("name", FLEETS)
@pytest.mark.parametrize(("G", "says"), [(1, "at least G = 2"), (0, "at least"), (-4, "at least"), (10**30, "at most")])
def test_workers(name: str, G: int, says: str) -> None:
    said = refusal(name, {"G": G})
    assert said.startswith(f"{spoken(name)} assumes {says}")
    assert said.endswith(f"G is {G}")


@pytest.mark.parametrize("name", [*FLEETS, "berry-esseen"])
@pytest.mark.parametrize("B", [0, -1, 10**30])
def test_slots(name: str, B: int) -> None:
    slots = "least" if name == "fcfs-order" else "B"
    said = refusal(name, {slots: B})
    assert said.startswith(f"{spoken(name)} assumes")
    assert said.endswith(f"{slots} is {B}")


@pytest.mark.parametrize("name", GEOMETRIC)
@pytest.mark.parametrize("p", [0.0, 1.0, -0.2, 1.5, math.nan, math.inf])
def test_end_probabilities(name: str, p: float) -> None:
    said = refusal(name, {"p": p})
    assert said == f"{spoken(name)} assumes outputs of law Geo(p) with 0 < p < 1; p is {p}"


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("s_max", [1, 0, -7, 10**9, 10**400])
def test_prompts(name: str, s_max: int) -> None:
    said = refusal(name, {"s_max": s_max})
    assert said.startswith(f"{spoken(name)} assumes prompts")
    assert said.endswith(f"s_max is {s_max}")


@pytest.mark.parametrize(
    ("name", "regime", "says"),
    [
        ("theorem-1", {"rounds": 1}, "theorem-1 assumes 2 to 100,000 rounds; rounds is 1"),
        ("theorem-2", {"batches": 19}, "theorem-2 assumes at least 20 batches; batches is 19"),
        ("theorem-2", {"pool": "some"}, "theorem-2 assumes a replete pool of 'all' sizes or of 'two'; pool is 'some'"),
        ("theorem-3", {"growth": "-1"}, "growth is '-1'; expected fractions from 0"),
        ("theorem-3", {"growth": "10000"}, "growth is '10000'; expected fractions from 0"),
        ("fcfs-exact", {"accuracy": 0.0}, "fcfs-exact assumes an accuracy from 0.0001 to 0.1; accuracy is 0.0"),
        ("fcfs-exact", {"accuracy": math.nan}, "fcfs-exact assumes an accuracy from 0.0001 to 0.1; accuracy is nan"),
        ("fcfs-order", {"accuracy": 0.5}, "fcfs-order assumes an accuracy from 0.0001 to 0.1; accuracy is 0.5"),
        ("fcfs-order", {"quadruplings": 0}, "fcfs-order assumes 1 to 4 quadruplings of B; quadruplings is 0"),
        ("berry-esseen-rate", {"most": 8}, "berry-esseen-rate assumes 64 to 1,000,000,000 slots at most; most is 8"),
        ("slot-law", {"samples": 10}, "slot-law assumes enough samples for a test of fit"),
        ("slot-law", {"p": 1e-12}, "slot-law assumes ages that can be counted, so p of at least 1e-05; p is 1e-12"),
        ("lemma-8", {"steps": -1}, "lemma-8 assumes 0 to 2,000 steps; steps is -1"),
        ("lemma-8", {"steps": 10**9}, "lemma-8 assumes 0 to 2,000 steps; steps is 1000000000"),
        ("fcfs-drift", {"growth": "fast"}, "growth is 'fast'; expected tokens a step"),
        ("fcfs-exact", {"growth": ""}, "growth is ''; expected"),
        ("lemma-8", {"growth": "-1"}, "growth is '-1'; expected fractions from 0"),
    ],
)
def test_other_parameters(name: str, regime: dict[str, Any], says: str) -> None:
    assert refusal(name, regime).startswith(says)


@pytest.mark.parametrize(
    ("name", "regime", "says"),
    [
        ("fcfs-exact", {"p": 1e-12}, "law of a slot spreads over"),
        ("fcfs-sharp", {"p": 1e-9}, "law of a slot spreads over"),
        ("berry-esseen", {"p": 1e-9}, "law of a slot spreads over"),
        ("fcfs-drift", {"growth": "1/997+1/991+1/983"}, "law of a slot spreads over"),
        ("lemma-8", {"growth": "1/997+1/991+1/983"}, "law of a slot spreads over"),
        ("fcfs-exact", {"G": 10**9, "B": 10**6}, "take fewer workers or slots"),
        ("slot-law", {"samples": 10**30}, "take fewer samples"),
        ("theorem-1", {"G": 10**9}, "take fewer workers or slots"),
        ("theorem-2", {"G": 10**9}, "take fewer workers or slots"),
        ("theorem-2", {"p": 1e-12}, "take fewer batches or a larger p"),
        ("theorem-3", {"batches": 10**12}, "take fewer batches or a larger p"),
    ],
)
def test_what_nobody_can_hold(name: str, regime: dict[str, Any], says: str) -> None:
    assert says in refusal(name, regime)


@pytest.mark.parametrize(
    ("name", "regime"),
    [
        ("lemma-2-steps", {"steps": 10**13}),
        ("lemma-2-event", {"steps": 10**13}),
        ("lemma-3", {"steps": 10**13}),
        ("lemma-4", {"batches": 10**12}),
        ("leader-drift", {"batches": 10**10}),
    ],
)
def test_a_chain_whose_record_nobody_can_hold_is_refused(name: str, regime: dict[str, int]) -> None:
    assert "steps needs" in refusal(name, regime)


@pytest.mark.parametrize("name", ["lemma-2", "lemma-2-sharp", "lemma-2-two", "lemma-2-definition-1", "lemma-2-printed"])
def test_loads_beyond_whole_numbers_of_the_machine_are_refused(name: str) -> None:
    assert refusal(name, {"spread": 10**19}).endswith("spread is 10000000000000000000")
