"""The law of the lead of two workers: its solver against a walk that is drawn, and what the claim can tell apart."""

from __future__ import annotations

import numpy as np
import pytest
from theory.waiting_checks import verdict_of

from lbopt.exceptions import InputError
from lbopt.theory.claims import spacing
from lbopt.theory.finding import Verdict
from lbopt.theory.laws.leader_walk import LeadLaw, lead_law, levelled_imbalance
from lbopt.theory.ledger import CLAIMS

CLAIM = CLAIMS["leader-drift"]


def drawn_walk(B: int, p: float, s_max: int, walks: int, steps: int, seed: int) -> tuple[float, float, float]:
    """Draw many walks of the lead, the prompts from those that were admitted: mean lead, P(level), mean prompt."""
    rng = np.random.default_rng(seed)
    lead = np.zeros(walks)
    prompts = np.where(rng.random(20_000) < 0.5, 1.0, float(s_max))
    found = []
    for k in range(steps):
        ends = rng.binomial(B, p, (2, walks))
        taken = np.zeros((2, walks))
        for g in (0, 1):
            who = np.repeat(np.arange(walks), ends[g])
            sizes = prompts[rng.integers(prompts.size, size=who.size)] + rng.geometric(p, who.size)
            np.add.at(taken[g], who, sizes)
        # loads before admission, up to a constant: the leader's mean is B (1/p + mean prompt), the other's is less
        before = (1 - p) * lead - taken[0] + taken[1]
        low = np.stack((before + ends[0], ends[1].astype(float)))
        high = np.stack((before + s_max * ends[0], s_max * ends[1].astype(float)))
        peak = low.max(axis=0)
        load = np.minimum(high, peak)
        added = load - np.stack((before, np.zeros(walks)))
        some = ends > 0
        mean = added[some] / ends[some]
        if k > steps // 4:
            found.append((np.abs(load[0] - load[1]).mean(), (load[0] == load[1]).mean(), added.sum() / ends.sum()))
        # who is level in between gets prompts that differ; which ones hardly matters, so all get their mean
        fresh = np.repeat(mean, ends[some])
        if fresh.size:
            prompts[rng.integers(prompts.size, size=min(fresh.size, 200))] = rng.choice(fresh, min(fresh.size, 200))
        lead = np.abs(load[0] - load[1])
    means = np.array(found).mean(axis=0)
    return float(means[0]), float(means[1]), float(means[2])


@pytest.mark.parametrize(("B", "p", "s_max"), [(64, 0.02, 40), (256, 0.02, 20)])
def test_the_solver_agrees_with_a_drawn_walk(B: int, p: float, s_max: int) -> None:
    law = lead_law(B, p, s_max)
    mean, level, prompt = drawn_walk(B, p, s_max, 2_000, 400, 1)
    assert law.mean == pytest.approx(mean, rel=0.02)
    assert law.level == pytest.approx(level, abs=0.01)
    assert law.prompt == pytest.approx(prompt, rel=0.01)


@pytest.mark.more
def test_the_leading_term_is_what_small_steps_leave() -> None:
    """With prompts of a tenth of the output and little time to forget."""
    p, s_max = 1e-3, 101
    natural = (2 - p) / (p * (s_max - 1)) ** 2
    ratio = [lead_law(round(times * natural), p, s_max).mean / levelled_imbalance(2, p, s_max) for times in (10, 30)]
    assert ratio[0] < ratio[1] < 1
    assert ratio[1] == pytest.approx(1 - 2 / 30, abs=0.03)  # forgetting takes 2 b / B away


@pytest.mark.more
@pytest.mark.jit
@pytest.mark.parametrize("times", [1.0, 0.9, 1.1])
def test_a_tenth_less_or_more_is_caught_at_the_quick_level(times: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*fleet: float) -> LeadLaw:
        law = lead_law(*fleet)
        return LeadLaw(times * law.mean, law.level, law.prompt)

    monkeypatch.setattr(spacing, "lead_law", planted)
    expected = Verdict.HOLDS if times == 1 else Verdict.REFUTED
    assert verdict_of(CLAIM, CLAIM.quick, 3) is expected


@pytest.mark.some(4)
@pytest.mark.jit
@pytest.mark.parametrize(
    ("regime", "outside"),
    [
        ({}, ""),
        ({"p": 0.03, "s_max": 10}, "p = 0.03 is above 0.02"),
        ({"s_max": 600}, "b = 1.4 is below 5"),
        ({"B": 3000, "batches": 20}, "B = 3000 is above 2794"),
        ({"G": 4, "p": 0.001, "s_max": 450, "B": 64, "batches": 20}, "B = 64 is below 5 times"),
        ({"G": 3, "B": 260, "batches": 20}, "b = 5.6 is not 9.5 to 50"),
        ({"G": 3, "p": 0.0015, "s_max": 300, "B": 700, "batches": 20}, "B = 700 is above 6624 / 10"),
    ],
)
def test_where_it_says_nothing(regime: dict[str, float], outside: str) -> None:
    found = CLAIM.measure(**regime, seed=1)
    assert {one.outside == "" for one in found} == {outside == ""}
    assert all(one.outside.startswith(outside) for one in found)


def test_what_it_refuses() -> None:
    with pytest.raises(InputError, match=r"b is 1.99e\+04 and p B is 20"):
        lead_law(2_000, 0.01, 2)
    with pytest.raises(InputError, match="batches is 3"):
        CLAIM.measure(batches=3, seed=0)
