"""The claims about slots, loads and FCFS come to their verdicts, and would come to others if they were wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from theory.waiting_checks import measured, verdict_of

from lbopt.theory.claims import fcfs, moments
from lbopt.theory.finding import Verdict
from lbopt.theory.laws.load_law import LoadLaw
from lbopt.theory.laws.slot_law import Growth, PromptLaw, SlotLaw, slot_law_at
from lbopt.theory.ledger import CLAIMS

MODULES = (fcfs, moments)
NAMES = [claim.name for module in MODULES for claim in module.CLAIMS]


@pytest.mark.some(but=("3-fcfs-order", "3-fcfs-sharp"))
@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [2, 3])
def test_quick_verdict(name: str, seed: int) -> None:
    claim = CLAIMS[name]
    found = measured(claim, claim.quick, seed)
    share = max(1, sum(one.is_sampled for one in found))
    assert {one.verdict(share) for one in found} <= {claim.expected, Verdict.OUTSIDE}
    assert verdict_of(claim, claim.quick, seed) is claim.expected


@pytest.mark.more
@pytest.mark.parametrize("name", ["fcfs-sharp", "fcfs-sharp-rate", "berry-esseen", "lemma-8"])
def test_full_verdict_where_nothing_is_sampled(name: str) -> None:
    assert verdict_of(CLAIMS[name], CLAIMS[name].full) is CLAIMS[name].expected


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("name", ["berry-esseen-rate", "slot-law"])
def test_full_verdict(name: str) -> None:
    """The first takes a gigabyte or two for its widest law."""
    assert verdict_of(CLAIMS[name], CLAIMS[name].full, seed=3) is CLAIMS[name].expected


@pytest.mark.more
def test_late_limits_are_late() -> None:
    """What the remark says of nearly symmetric slots."""
    claim = CLAIMS["berry-esseen-rate"]
    early = claim.measure(p=0.05, s_max=1000, seed=0)
    later = claim.measure(p=0.05, s_max=1000, most=2**20, seed=0)
    assert early[1].measured / early[1].predicted == pytest.approx(1.385, abs=0.01)
    assert later[1].measured / later[1].predicted == pytest.approx(1, abs=0.03)


@pytest.mark.jit
def test_findings_depend_on_the_seed_alone() -> None:
    for name in ("fcfs-exact", "slot-law"):
        claim = CLAIMS[name]
        first, again, other = (measured(claim, claim.quick[:1], seed) for seed in (4, 4, 5))
        assert first == again
        assert first != other


def tenth_more(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **options: 1.1 * right(*given, **options)


@pytest.mark.jit
@pytest.mark.parametrize("name", ["fcfs-exact", "fcfs-drift", "fcfs-sharp", "fcfs-sharp-rate"])
def test_a_load_law_a_tenth_too_dear_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadLaw, "expected_imbalance", tenth_more(LoadLaw.expected_imbalance))
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick) is Verdict.REFUTED


@pytest.mark.jit
@pytest.mark.parametrize(
    ("name", "module", "law"),
    [
        ("fcfs-sharp", fcfs, "sharp_imbalance"),
        ("slot-law", fcfs, "snapshot_variance"),
        ("lemma-8", moments, "age_third_moment"),
    ],
)
def test_a_wrong_constant_is_caught(name: str, module: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(module, law)
    monkeypatch.setattr(module, law, lambda *given: 1.1 * right(*given))
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick) is Verdict.REFUTED


def test_a_sharp_form_without_its_skewness_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcfs, "sharp_imbalance", lambda G, B, sigma, skewness: right(G, B, sigma, 0.0))
    for name in ("fcfs-sharp", "fcfs-sharp-rate"):
        assert verdict_of(CLAIMS[name], [{"G": 64, "p": 0.02, "s_max": 100}]) is Verdict.REFUTED, name


right = fcfs.sharp_imbalance


@pytest.mark.parametrize(("p", "s_max"), [(0.2, 8), (0.02, 100)])
@pytest.mark.parametrize("G", [2, 16, 256, 4096])
def test_the_order_claimed_is_the_exact_laws(p: float, s_max: int, G: int) -> None:
    """0.50 +- 0.01 without the skewness term, on the grid of every regime of the full level and without sampling."""
    slot, slots = fcfs.slot_law(PromptLaw.uniform(s_max), p), [16, 64, 256, 1024]
    skew = fcfs.skewness_term(G, slot.variance**0.5, slot.skewness)
    exact = [fcfs.load_law(slot, B).expected_imbalance(G) for B in slots]
    assert 0.49 < fcfs.slope(slots, [one - skew for one in exact]) < 0.51
    assert G == 2 or fcfs.slope(slots, exact) < 0.49


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize("wrong", [-0.05, 0.05])
def test_another_order_in_slots_is_caught(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """B^0.45 and B^0.55 in place of the root, in the exact law and in what was sampled."""
    exact = LoadLaw.expected_imbalance
    monkeypatch.setattr(LoadLaw, "expected_imbalance", lambda law, G: exact(law, G) * law.deviation ** (2 * wrong))
    assert verdict_of(CLAIMS["fcfs-order"], [{"G": 64}]) is Verdict.REFUTED
    monkeypatch.undo()
    fitted = fcfs.fitted_slope
    monkeypatch.setattr(
        fcfs,
        "fitted_slope",
        lambda B, means, errors: fitted(
            B, np.array(means) * np.array(B) ** wrong, np.array(errors) * np.array(B) ** wrong
        ),
    )
    assert verdict_of(CLAIMS["fcfs-order"], [{"G": 64}]) is Verdict.REFUTED


@pytest.mark.jit
def test_skewness_left_in_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcfs, "skewness_term", lambda *given: 0.0)
    assert verdict_of(CLAIMS["fcfs-order"], [{"G": 64}]) is Verdict.REFUTED


@pytest.mark.jit
def test_another_growth_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of growth 1 beside chains that grow otherwise."""
    seen = fcfs.slot_law_seen
    monkeypatch.setattr(fcfs, "slot_law_seen", lambda law, p, latest: seen(law, p, [Fraction(1)]))
    for growth in ("0", "1/2", "3", "0+1+3"):
        assert verdict_of(CLAIMS["fcfs-drift"], [{"growth": growth}]) is Verdict.REFUTED, growth


@pytest.mark.jit
@pytest.mark.parametrize("which", ["age", "prompt", "both"])
def test_other_slots_are_caught(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ages or prompts one too many, or prompts that go with the age."""
    sampled = fcfs._sampled

    def moved(law: PromptLaw, p: float, samples: int, seed: int) -> Any:
        age, came = sampled(law, p, samples, seed)
        if which == "age":
            return np.where(np.arange(samples) % 20 == 0, age + 1, age), came
        if which == "prompt":
            return age, np.where(np.arange(samples) % 20 == 0, law.largest, came)
        order = np.argsort(age[: samples // 20], kind="stable")
        came = came.copy()
        came[: samples // 20][order] = np.sort(came[: samples // 20])
        return age, came

    monkeypatch.setattr(fcfs, "_sampled", moved)
    assert verdict_of(CLAIMS["slot-law"], CLAIMS["slot-law"].quick) is Verdict.REFUTED


@pytest.mark.jit
def test_nearly_certain_ends_leave_one_cell_and_no_test() -> None:
    """Ages are all 0: nothing can be said of their law, and nothing is said against it."""
    claim = CLAIMS["slot-law"]
    found = claim.measure(p=0.999999, samples=1000, seed=1)
    assert found[0].note == "a single cell: no test"
    assert found[0].p_value() == 1
    assert verdict_of(claim, [{"p": 0.999999, "samples": 1000}]) is Verdict.HOLDS


def test_a_lower_bound_on_the_normal_distance_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fair coin misses the normal law by Phi(1) - 1/2 = 0.341 of its third moment: no constant can be lower."""
    claim = CLAIMS["berry-esseen"]
    monkeypatch.setattr(moments, "SHEVTSOVA", 0.34)
    for level in ("quick", "full"):
        assert verdict_of(claim, [one for one in claim.regimes(level) if one["B"] < 64]) is Verdict.REFUTED


@pytest.mark.parametrize("wrong", [0.05, -0.05])
def test_another_rate_is_caught(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    distance = LoadLaw.normal_distance
    monkeypatch.setattr(LoadLaw, "normal_distance", lambda law: distance(law) * law.mean**wrong)
    assert verdict_of(CLAIMS["berry-esseen-rate"], [{}]) is Verdict.REFUTED


def test_esseens_limit_needs_its_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the jump of the lattice the limit would be |gamma_1| / (6 sqrt(2 pi)): too low by far."""
    skewness = SlotLaw.skewness.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(SlotLaw, "skewness", property(lambda law: 1.1 * skewness(law)))
    assert verdict_of(CLAIMS["berry-esseen-rate"], [{}]) is Verdict.REFUTED


def test_growth_that_shrinks_a_spread_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that would spread less than its prompt: a law squeezed towards its mean."""

    def squeezed(*given: Any) -> SlotLaw:
        found = slot_law_at(*given)
        return SlotLaw(found.probabilities, 2 * found.unit)  # sizes halved

    monkeypatch.setattr(moments, "slot_law_at", squeezed)
    assert verdict_of(CLAIMS["lemma-8"], [{"growth": "0"}]) is Verdict.REFUTED
    assert verdict_of(CLAIMS["lemma-8"], [{"growth": "1/2", "steps": 2}]) is Verdict.REFUTED


def test_a_lower_third_moment_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes and a constant growth attain C_3, so a thousandth less is false, and a thousandth more is not sharp."""
    bound = moments.third_moment_bound
    for times, verdict in ((1.0, Verdict.HOLDS), (0.999, Verdict.REFUTED), (1.001, Verdict.REFUTED)):
        monkeypatch.setattr(moments, "third_moment_bound", lambda *given, times=times: times * bound(*given))
        assert verdict_of(CLAIMS["lemma-8"], CLAIMS["lemma-8"].quick) is verdict


@pytest.mark.parametrize("growth", ["0", "1/2", "1", "3", "0+1+3"])
def test_the_third_moment_of_any_prompts_is_below_that_of_two_sizes(growth: str) -> None:
    """Laws that lean to either side: the bound depends on their mean alone."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        law = PromptLaw((1, 2, 5, 9), tuple(int(weight) for weight in rng.integers(1, 50, 4)))
        found = slot_law_at(law, 0.2, Growth.parse(growth), 60).third_absolute_moment
        most = float(Growth.parse(growth).largest)
        assert found <= moments.third_moment_bound(law, 0.2, most) * (1 + 1e-9)


@pytest.mark.parametrize("t", [-3.5, 0.0, 1.0, 2.25, 4.0, 11.5])
def test_the_third_distance_of_an_age_is_its_sum(t: float) -> None:
    ages = np.arange(400)
    summed = float((0.2 * 0.8**ages) @ np.abs(ages - t) ** 3)
    assert moments._third_distance(0.2, t) == pytest.approx(summed, rel=1e-9)
