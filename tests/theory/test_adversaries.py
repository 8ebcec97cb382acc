"""The adversarial traces by counting on paper, and the claims that are run on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from theory.waiting_checks import measured, verdict_of

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.theory.chains.adversaries import burst, level_rule, shortest_queue, strict
from lbopt.theory.claims import online
from lbopt.theory.finding import Verdict
from lbopt.theory.ledger import CLAIMS

NAMES = [claim.name for claim in online._OF_COUNTING]


@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_quick_verdict(name: str) -> None:
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick) == CLAIMS[name].expected


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_full_verdict(name: str) -> None:
    assert verdict_of(CLAIMS[name], CLAIMS[name].full) == CLAIMS[name].expected


def test_the_burst_written_out() -> None:
    layout = burst(3, 2, 50, 4)
    assert layout.trace.prompt.tolist() == [50, 1, 1, 50, 1, 1]
    assert layout.trace.output.tolist() == [5, 1, 1, 5, 1, 1]


@pytest.mark.parametrize("ties", ["lowest", "highest"])
def test_the_strict_trace_written_out(ties: str) -> None:
    """Step 0 ends with one request elsewhere; a heavy one then finds its worker empty, and outlasts the others."""
    layout = strict(2, 1, 10, 3, ties)
    assert layout.trace.prompt.tolist() == [1, 1, 1, 11, 1, 1]
    assert layout.trace.output.tolist() == [1, 2, 1, 2 + 3, 1, 2]
    assert (layout.at_once, layout.slots, layout.alone_from, layout.not_strict) == (3, 6, 3, 0)


@given(st.integers(2, 6), st.integers(1, 8), st.sampled_from(["lowest", "highest"]))
def test_the_strict_trace_replayed_on_lists(G: int, n: int, ties: str) -> None:
    """Requests as (worker, last step) pairs: every heavy one finds strictly the fewest, always on the same worker."""
    layout = strict(G, n, 1000, 5, ties)
    order = list(range(G)) if ties == "lowest" else list(range(G))[::-1]
    present: list[tuple[int, int]] = []
    homes = set()
    for number, (prompt, output) in enumerate(
        zip(layout.trace.prompt.tolist(), layout.trace.output.tolist(), strict=True)
    ):
        step = number // (G + 1)
        counts = {g: sum(worker == g and until > step for worker, until in present) for g in order}
        chosen = min(order, key=lambda g: counts[g])
        if prompt > 1:
            assert sorted(counts.values())[1] > counts[chosen]
            assert prompt == 1000 + step
            homes.add(chosen)
        present.append((chosen, step + output))
        assert counts[chosen] < layout.slots
    assert len(homes) == 1
    assert layout.not_strict == 0


@pytest.mark.parametrize("G", [2, 4])
@pytest.mark.parametrize("lasting", range(1, 9))
def test_short_requests_must_last_until_all_heavy_ones_have_come(lasting: int, G: int) -> None:
    """A step less than n + 1, and one heavy request meets a tie: to outlive the next step only is not enough."""
    assert strict(G, 6, 1000, 5, "lowest", lasting).not_strict == max(0, 7 - lasting)


def test_round_robin_on_two_workers_by_hand() -> None:
    """Three heavy requests of 10 tokens on worker 0; the level rule holds two there and one on the other."""
    layout = burst(2, 3, 10, 3)
    setting = SimulationSetting(fleet=Fleet(2, 3), arrivals=ClosedLoop(6), step_time=AffineStepTime(1.0, 0.5))
    run = simulate(layout.trace, make_policy("round-robin"), setting)
    assert run.steps["barrier_max"].tolist() == [30, 33, 36, 39]
    assert run.steps["seconds"].tolist() == [16.0, 17.5, 19.0, 20.5]
    level = simulate(layout.trace, level_rule(2, 10), setting)
    assert level.steps["barrier_max"].tolist()[1:] == [22, 24, 26]


@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_the_level_rule_in_its_place_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "shortest_queue", lambda ties, seed: level_rule(8, 100_000))
    monkeypatch.setattr(online, "make_policy", lambda spec: level_rule(8, 100_000))
    assert verdict_of(CLAIMS[name], [{}]) == Verdict.REFUTED


@pytest.mark.jit
@pytest.mark.parametrize("name", ["jsq-adversary", "round-robin-adversary"])
def test_a_balanced_rule_that_is_not_balanced_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "level_rule", lambda G, s_H: make_policy("round-robin"))
    assert verdict_of(CLAIMS[name], [{}]) == Verdict.REFUTED


@pytest.mark.jit
def test_a_trace_without_enough_heavy_requests_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "burst", lambda G, n, s_H, steps: burst(G, n - 1, s_H, steps))
    assert verdict_of(CLAIMS["round-robin-adversary"], [{}]) == Verdict.REFUTED


@pytest.mark.jit
def test_ties_in_a_fixed_order_hold_where_random_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online, "shortest_queue", lambda ties, seed: shortest_queue("lowest", seed))
    assert verdict_of(CLAIMS["jsq-adversary-random-ties"], [{}]) == Verdict.HOLDS


@pytest.mark.jit
def test_ratios_grow_to_the_number_of_workers() -> None:
    claim = CLAIMS["round-robin-adversary"]
    ratios = [
        next(
            f.measured
            for f in measured(claim, [{"G": 8, "n": n, "sync": 1.0}], 0)
            if f.quantity == "ratio of step times"
        )
        for n in (8, 64, 512)
    ]
    assert np.all(np.diff(ratios) > 0)
    assert ratios[-1] == pytest.approx(8, rel=0.02)


REFUSED = [
    ("jsq-adversary", {"G": 1}, "G is 1"),
    ("jsq-adversary", {"n": 0}, "n is 0"),
    ("jsq-adversary", {"G": 1000, "n": 1000}, "G n is 1000000"),
    ("jsq-adversary", {"s_H": 1}, "s_H is 1"),
    ("jsq-adversary", {"steps": 0}, "steps is 0"),
    ("jsq-adversary", {"sync": -1.0}, "sync is -1.0"),
    ("jsq-adversary", {"sync": float("nan")}, "sync is nan"),
    ("jsq-adversary", {"ties": "random"}, "ties is 'random'"),
    ("jsq-adversary-random-ties", {"G": 1}, "G is 1"),
    ("round-robin-adversary", {"G": 1}, "G is 1"),
]


@pytest.mark.parametrize(("name", "regime", "says"), REFUSED)
def test_a_regime_outside_is_refused_in_one_sentence(name: str, regime: Mapping[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"{name} assumes .*{says}"):
        CLAIMS[name].measure(**regime, seed=0)
