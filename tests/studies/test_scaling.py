"""The scaling study: what it refuses before anything runs, what a cell measures, and what is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.report.scaling_report import scaling_figures
from lbopt.studies import running
from lbopt.studies.running import Stored
from lbopt.studies.scaling import ScalingConfig, cell, run_scaling
from lbopt.studies.scaling.cell import REPLETE, FleetTheory, requests_of, steps_of
from lbopt.theory.chains.batch_means import batch_steps, burn_in_steps
from lbopt.theory.laws.load_law import load_law
from lbopt.theory.laws.slot_law import PromptLaw, slot_law

SMALL: dict[str, Any] = {"workers": (2, 3), "slots": (2, 4), "p": 0.4, "s_max": 4, "policies": ("fcfs", "br-0")}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"p": 0.0}, "p is 0.0; expected a probability between 0 and 1"),
        ({"p": 1.0}, "p is 1.0; expected a probability"),
        ({"p": math.nan}, "p is nan; expected a probability"),
        ({"ends": 0.0}, "ends is 0.0; expected more than 0 and fewer than the 2 slots"),
        ({"ends": 2.0}, "ends is 2.0; expected more than 0 and fewer than the 2 slots"),
        ({"ends": math.nan}, "ends is nan"),
        ({"s_max": 1}, "s_max is 1; expected 2 to 1,000,000 tokens: prompts that do not vary"),
        ({"s_max": 10**11}, "s_max is 100000000000; expected 2 to 1,000,000 tokens"),
        ({"workers": (1, 4)}, "workers are 1, 4; expected at least 2 each"),
        ({"workers": ()}, "workers are none; expected at least 2 each"),
        ({"slots": (0,)}, "slots are 0; expected at least 1 each"),
        ({"slots": ()}, "slots are none"),
        ({"pool": 0.0}, "pool is 0.0; expected 1 to 1000 times"),
        ({"pool": math.nan}, "pool is nan; expected 1 to 1000 times"),
        ({"batches": 5}, "batches is 5; expected at least 20, fewer give no error to trust"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
        ({"time_limit": 0.0}, "time_limit is 0.0; expected seconds above 0"),
        ({"time_limit": math.nan}, "time_limit is nan; expected seconds above 0"),
        ({"policies": ()}, "no policy was named"),
        ({"policies": ("jsq",)}, "policy 'jsq' binds requests on arrival.*try admission=pooled"),
        ({"policies": ("fcsf",)}, "unknown policy 'fcsf': did you mean fcfs"),
        ({"policies": ("br-0:q=1",)}, "policy 'br-0' has no option 'q'"),
        ({"policies": ("br-h",)}, "policy 'br-h' looks ahead"),
        ({"policies": ("bf-io:horizon=5",)}, "policy 'bf-io:horizon=5' looks ahead"),
        (
            {"workers": (10**6,), "slots": (10**5,)},
            r"largest cell, G = 1000000, B = 100000 with [\d,]+ requests, needs [\d.]+ GiB.*this machine has .*; "
            "take fewer workers or slots, fewer batches or a larger p",
        ),
        ({"p": 1e-12, "policies": (REPLETE,)}, r"largest cell, G = 3, B = 4, needs [\d.]+ GiB"),
    ],
)
def test_refused_before_anything_runs(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        ScalingConfig(**{**SMALL, **changes})
    assert "\n" not in str(refused.value)


def test_a_law_that_is_too_wide_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lbopt.theory.laws.load_law.LONGEST", 50)
    FleetTheory.of.cache_clear()
    with pytest.raises(InputError, match=r"law of a load with B = \d slots spreads over"):
        ScalingConfig(**SMALL)


def test_a_grid_is_sorted_and_everything_in_it_once() -> None:
    config = ScalingConfig(workers=(4, 2, 4), slots=(8, 2), policies=("fcfs", "br-0", "fcfs"))
    assert list(config.fleets()) == [(2, 2), (2, 8), (4, 2), (4, 8)]
    assert config.policies == ("fcfs", "br-0")
    assert ScalingConfig(**{**SMALL, "ends": 0.5}).end_probability(4) == 0.125


def test_rules_on_a_fleet_meet_the_same_requests() -> None:
    config = ScalingConfig(**SMALL)
    assert config.task(policy="fcfs", G=2, B=4).seed == config.task(policy="br-0", G=2, B=4).seed
    assert len({config.task(policy="fcfs", G=G, B=B).seed for G, B in config.fleets()}) == 4
    assert "pool" not in config.task(policy=REPLETE, G=2, B=4).parameters
    assert config.task(policy="fcfs", G=2, B=4).parameters["pool"] == 3.0


@pytest.mark.parametrize(("G", "B", "p"), [(2, 2, 0.4), (16, 64, 0.1)])
def test_there_are_requests_enough(G: int, B: int, p: float) -> None:
    steps = steps_of(G, B, p, 20)
    assert steps == burn_in_steps(G, B, p) + 20 * batch_steps(p)
    count, waiting = requests_of(G, B, p, steps, 3.0)
    assert waiting >= 3 * p * G * B
    assert count > G * B + steps * p * G * B + waiting


def test_theory_of_a_fleet() -> None:
    found = FleetTheory.of(4, 8, 0.4, 5)
    assert found.fcfs == load_law(slot_law(PromptLaw.uniform(5), 0.4), 8).expected_imbalance(4)
    assert found.levelled == pytest.approx(4 * 3 * 1.6 / (2 * 0.16 * 4))


@pytest.mark.jit
def test_fcfs_costs_what_its_law_says() -> None:
    """The simulator, the chain of the theory and the computed law agree on FCFS."""
    outcome = run_scaling(ScalingConfig(**{**SMALL, "policies": ("fcfs",), "batches": 60, "seed": 2}))
    assert [(one.fleet.G, one.fleet.B) for one in outcome.cells] == [(2, 2), (2, 4), (3, 2), (3, 4)]
    for one in outcome.cells:
        assert abs(one.mean.mean - one.fleet.fcfs) < 4.5 * one.mean.error
        assert one.improvement == pytest.approx(one.fleet.fcfs / one.mean.mean)
        assert one.mean.trials == 60 * batch_steps(0.4)
        assert one.admitted_prompt == pytest.approx(2.5, rel=0.05)  # whoever comes first has no say in sizes
        assert one.closed_share is None


@pytest.mark.jit
def test_a_rule_that_chooses_does_better_and_admits_what_it_waits_for() -> None:
    outcome = run_scaling(ScalingConfig(**{**SMALL, "policies": ("fcfs", "br-0", REPLETE)}))
    for G, B in outcome.config.fleets():
        means = {one.policy: one.mean.mean for one in outcome.cells if (one.fleet.G, one.fleet.B) == (G, B)}
        assert means[REPLETE] < means["br-0"] < means["fcfs"]
    assert all(one.wait_max is None for one in outcome.of(REPLETE))
    fitted = outcome.exponents()
    assert list(fitted) == ["fcfs", "br-0", REPLETE, "fcfs, exact law"]
    assert fitted["fcfs, exact law"].slots_interval is None


@pytest.mark.jit
def test_a_pool_that_runs_dry_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "requests_of", lambda G, B, p, steps, pool: (G * B + 40, 2))
    with pytest.raises(InputError, match=r"a pool of 2 requests ran dry at G = 2, B = 2; take a larger pool than 3.0"):
        run_scaling(ScalingConfig(**SMALL))


@pytest.mark.jit
def test_a_store_resumes_and_collects(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, config = tmp_path / "s.sqlite", ScalingConfig(**SMALL)
    first = run_scaling(config, store=store)
    monkeypatch.setattr(cell, "measure", None)  # whoever computes again fails
    for again in (run_scaling(config, store=store), run_scaling(config, store=store, collect_only=True)):
        assert again.cells == first.cells
        assert again.notes == []
    more = run_scaling(ScalingConfig(**{**SMALL, "slots": (2, 4, 5)}), store=store, collect_only=True)
    assert more.cells == first.cells
    assert "4 of 12 results are not in" in more.notes[0]


@pytest.mark.parametrize(("proved", "says"), [(0, "100 %"), (7, "30 %"), (10, None)])
def test_decisions_that_nobody_proved_are_counted(proved: int, says: str | None, monkeypatch: Any) -> None:
    """Also where not a single one was proved."""
    answer = {
        "batches": np.linspace(1, 2, 20).tolist(),
        "admitted_prompt": 2.0,
        "wait_mean": 1.0,
        "wait_max": 2,
        "tally": {"proved": proved, "open": 10 - proved},
    }

    def stored(tasks: Any, **options: Any) -> Stored:
        answers = {task.key: answer for task in tasks}
        return Stored(answers=answers, failures={}, missing=(), interrupted=False, notes=())

    monkeypatch.setattr(running, "run_stored", stored)
    outcome = run_scaling(ScalingConfig(**{**SMALL, "policies": ("bf-io",)}))
    if says is None:
        assert outcome.notes == []
    else:
        assert outcome.notes == [
            "cells with decisions that the search left open after 0.02 s: 4; the largest share is "
            f"{says}, bf-io at G = 2, B = 2"
        ]
    assert outcome.cells[0].closed_share == proved / 10


@pytest.mark.jit
def test_with_two_sizes_the_improvement_is_that_of_the_exact_laws() -> None:
    """FCFS's law over the least that any rule leaves: it grows with B and with G, and its exponent of B is one half."""
    outcome = run_scaling(
        ScalingConfig(workers=(2, 8), slots=(64, 256), p=0.5, s_max=4, sizes="two", policies=(REPLETE,), batches=40)
    )
    for one in outcome.cells:
        assert abs(one.mean.mean - one.fleet.left) < 4.5 * one.mean.error
        assert one.improvement == pytest.approx(one.fleet.fcfs / one.fleet.left, rel=0.05)
    gain = outcome.exponents()[f"improvement of {REPLETE}"]
    assert gain is not None
    assert gain.slots_interval is not None
    assert gain.workers_interval is not None
    assert gain.slots_interval[0] < 0.5 < gain.slots_interval[1]
    assert gain.workers_interval[0] > 0
    shown = scaling_figures(outcome)
    assert sorted(shown) == ["imbalance", f"improvement-{REPLETE}", f"onset-{REPLETE}"]
    assert ScalingConfig.from_dict(outcome.config.to_dict()) == outcome.config
