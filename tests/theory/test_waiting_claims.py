"""The waiting claims come to their verdicts, and would come to others if they were wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from theory.waiting_checks import measured, verdict_of

from lbopt.exceptions import InputError
from lbopt.theory.chains import waiting_runs
from lbopt.theory.claims import waiting as gates
from lbopt.theory.claims import waiting_published
from lbopt.theory.finding import Verdict
from lbopt.theory.laws import waiting
from lbopt.theory.ledger import CLAIMS

MODULES = (gates, waiting_published)
NAMES = [claim.name for module in MODULES for claim in module.CLAIMS]


@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_quick_verdict(name: str) -> None:
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick, seed=2) == CLAIMS[name].expected


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_full_verdict(name: str) -> None:
    assert verdict_of(CLAIMS[name], CLAIMS[name].full, seed=3) == CLAIMS[name].expected


#: Claim, where its law is looked up, and the law's name there: a tenth too much must be seen.
LAWS = [
    ("waiting-single-server", gates, "single_server_wait"),
    ("waiting-many-servers", gates, "many_servers_wait"),
    ("waiting-immediate", gates, "busy_share"),
    ("waiting-immediate", gates, "immediate_wait"),
    ("waiting-immediate", gates, "immediate_variance"),
    ("waiting-immediate", gates, "back_to_back_wait"),
    ("waiting-immediate", gates, "uniform_variance"),
    ("waiting-bounded-passes", gates, "bounded_wait"),
    ("waiting-round-robin", gates, "round_robin_wait"),
    ("waiting-lattice", gates, "tick_wait"),
    ("waiting-lattice", gates, "uniform_variance"),
    ("waiting-frozen-pool", gates, "frozen_pool_wait"),
    ("waiting-frozen-pool", gates, "frozen_pool_variance"),
    ("waiting-spacing", gates, "spacing_wait"),
    ("waiting-spacing", gates, "spacing_variance"),
    ("waiting-published", waiting_published, "back_to_back_wait"),
    ("waiting-published", waiting_published, "tick_wait"),
    ("waiting-tick-light-load", waiting_published, "break_even_load"),
    ("waiting-tick-light-load", waiting_published, "immediate_wait"),
]


@pytest.mark.some(8)
@pytest.mark.jit
@pytest.mark.parametrize(("name", "module", "law"), LAWS)
def test_a_wrong_constant_is_caught(name: str, module: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right: Callable[..., float] = getattr(module, law)
    monkeypatch.setattr(module, law, lambda *given: 1.1 * right(*given))
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick) == Verdict.REFUTED


@pytest.mark.jit
def test_a_wrong_reference_value_is_caught() -> None:
    claim = CLAIMS["waiting-reference-values"]
    wrong = [{**row, "printed": 1.1 * row["printed"]} for row in claim.quick[:4]]
    assert verdict_of(claim, wrong) == Verdict.REFUTED


#: Claims about one interface, and the other that would be caught in its place.
SWAPS = [
    ("waiting-lattice", "tick", "frozen-pool"),
    ("waiting-frozen-pool", "frozen-pool", "tick"),
    ("waiting-spacing", "spacing", "tick"),
    ("waiting-unspaced-pool", "pool", "frozen-pool"),
    ("waiting-saturated-pool", "pool", "spacing"),
    ("waiting-pool-light-load", "pool", "spacing"),
    ("waiting-pool-light-load", "idle-bypass", "spacing"),
    ("waiting-published", "random-back-to-back", "tick"),
]


@pytest.mark.some(3)
@pytest.mark.jit
@pytest.mark.parametrize(("name", "interface", "other"), SWAPS)
def test_another_interface_is_caught(name: str, interface: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = waiting_runs.Traffic.waits

    def swapped(self: waiting_runs.Traffic, asked: str, capacity: int = 0) -> Any:
        return right(self, other if asked == interface else asked, capacity)

    monkeypatch.setattr(waiting_runs.Traffic, "waits", swapped)
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick) == Verdict.REFUTED


@pytest.mark.jit
def test_more_than_one_queue_of_their_own_is_caught() -> None:
    """Random split in place of the common queue waits as M/D/1 does, and so more than M/D/N."""
    traffic = waiting_runs.Traffic.poisson(10, 0.8, 200_000, 1)
    assert traffic.waits("random", 1).mean() > 5 * traffic.waits("pool", 1).mean()


@pytest.mark.jit
def test_passes_account_for_the_time_and_the_requests() -> None:
    """Busy share of the formula, and as many requests a pass as come in it and in the idle time before it."""
    traffic = waiting_runs.Traffic.poisson(10, 0.5, 200_000, 1)
    _, passes = traffic.served("random")
    share = passes / (10 * traffic.arrival[-1])
    assert share == pytest.approx(waiting.busy_share(0.5), rel=0.01)
    words = traffic.account("random")
    assert words.startswith("waits at the device; 1.1")
    assert f"empty {1 - share:.1%}" in words
    assert traffic.account("random-back-to-back").startswith("waits at the device")
    assert traffic.account("idle-bypass").startswith("waits at the scheduler")


@pytest.mark.jit
def test_the_unspaced_pool_is_not_as_good_as_the_lattice() -> None:
    assert verdict_of(CLAIMS["waiting-unspaced-pool"], [{"load": 2.0, "close": 0.05}]) == Verdict.REFUTED


#: What is refuted in general holds here: a check that always refutes would be seen.
MILD = [
    ("waiting-round-robin-no-worse", {"load": 0.5}),
    ("waiting-jsq-no-worse", {"load": 0.5}),
    ("waiting-published-any-load", {"load": 12.0}),
    ("waiting-tick-never-worse", {"load": 1.0}),
    ("waiting-published-gain", {"rule": "random"}),
]


@pytest.mark.jit
@pytest.mark.parametrize(("name", "regime"), MILD)
def test_what_is_refuted_elsewhere_holds_here(name: str, regime: Mapping[str, Any]) -> None:
    assert verdict_of(CLAIMS[name], [regime]) == Verdict.HOLDS


#: The sentence that names the claim, the assumption and the value.
REFUSED = [
    ("waiting-single-server", {"load": 1.0}, "a load"),
    ("waiting-immediate", {"N": 0}, "N is 0"),
    ("waiting-immediate", {"load": 0.0}, "load is 0.0"),
    ("waiting-immediate", {"load": float("nan")}, "load is nan"),
    ("waiting-immediate", {"requests": 10}, "requests is 10"),
    ("waiting-many-servers", {"load": 0.99}, "load is 0.99"),
    ("waiting-many-servers", {"load": 0.1}, "they wait"),
    ("waiting-many-servers", {"N": 100}, "N is 100"),
    ("waiting-bounded-passes", {"capacity": 0}, "capacity is 0"),
    ("waiting-bounded-passes", {"capacity": -1}, "capacity is -1"),
    ("waiting-bounded-passes", {"load": 4.0}, "load is 4.0"),
    ("waiting-bounded-passes", {"load": 3.99}, "load is 3.99"),
    ("waiting-round-robin", {"load": 0.05}, "they wait"),
    ("waiting-round-robin", {"N": 300}, "N is 300"),
    ("waiting-round-robin", {"load": 60.0}, "load is 60.0"),
    ("waiting-round-robin-no-worse", {"N": -1}, "N is -1"),
    ("waiting-jsq-no-worse", {"N": 5000}, "N is 5000"),
    ("waiting-lattice", {"load": -1.0}, "load is -1.0"),
    ("waiting-frozen-pool", {"replications": 1}, "replications is 1"),
    ("waiting-spacing", {"N": 0}, "N is 0"),
    ("waiting-unspaced-pool", {"N": 1}, "N is 1"),
    ("waiting-unspaced-pool", {"load": 1.0}, "load is 1.0"),
    ("waiting-unspaced-pool", {"close": 0.0}, "close is 0.0"),
    ("waiting-saturated-pool", {"load": 4.0}, "load is 4.0"),
    ("waiting-saturated-pool", {"capacity": 0}, "capacity 0"),
    ("waiting-pool-light-load", {"load": 2.0}, "load is 2.0"),
    ("waiting-pool-light-load", {"N": 2}, "N is 2"),
    ("waiting-published", {"N": 0}, "N is 0"),
    ("waiting-published-any-load", {"N": 0}, "N is 0"),
    ("waiting-tick-never-worse", {"N": 0}, "N is 0"),
    ("waiting-tick-light-load", {"N": 1}, "N is 1"),
    ("waiting-tick-light-load", {"share": 0.0}, "share is 0.0"),
    ("waiting-published-gain", {"rule": "best"}, "rule is 'best'"),
    ("waiting-published-gain", {"load": 5.0}, "load is 5.0"),
    ("waiting-reference-values", {"interface": "none"}, "interface is 'none'"),
    ("waiting-reference-values", {"part": "middle"}, "part is 'middle'"),
    ("waiting-reference-values", {"replications": 0}, "replications is 0"),
    ("waiting-reference-values", {"digits": -1}, "digits is -1"),
    ("waiting-reference-values", {"printed": float("inf")}, "printed is inf"),
]


@pytest.mark.parametrize(("name", "regime", "says"), REFUSED)
def test_a_regime_outside_is_refused_in_one_sentence(name: str, regime: Mapping[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"{name} assumes .*{says}"):
        CLAIMS[name].measure(**regime, seed=0)


@pytest.mark.jit
@pytest.mark.parametrize("name", ["waiting-immediate", "waiting-unspaced-pool", "waiting-saturated-pool"])
def test_findings_depend_on_the_seed_alone(name: str) -> None:
    claim = CLAIMS[name]
    first, again, other = (measured(claim, claim.quick[:1], seed) for seed in (4, 4, 5))
    assert first == again
    assert first != other or name == "waiting-saturated-pool"


def test_interfaces_meet_the_same_arrivals() -> None:
    one, two = (waiting_runs.Traffic.poisson(4, 2.0, 100, 7) for _ in range(2))
    assert np.array_equal(one.arrival, two.arrival)
    assert not np.array_equal(one.arrival, waiting_runs.Traffic.poisson(4, 2.0, 100, 7, 1).arrival)
    assert one.arrival[-1] == pytest.approx(100 / 8, rel=0.5)


def test_batch_means_of_independent_values_are_the_plain_error() -> None:
    values = np.random.default_rng(0).random(100_000)
    found = waiting_runs.steady(values)
    assert found.mean == pytest.approx(values[10_000:].mean())
    assert found.error == pytest.approx((1 / 12 / 90_000) ** 0.5, rel=0.4)
    assert (found.dof, found.trials) == (49, 90_000)
