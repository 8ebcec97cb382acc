"""The load law: against convolution in exact fractions, plain convolution, and fleets small enough to enumerate.

The judge of accuracy is exact: a small slot law in whole numbers is convolved by one power of a big integer, and
E[max] is summed in fractions. What the module promises, 1e-9 of the imbalance up to G = 4096, is held here.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import fft, special

from lbopt.exceptions import InputError
from lbopt.theory.laws.load_law import LoadLaw, _window, load_law
from lbopt.theory.laws.slot_law import PromptLaw, SlotLaw, prompt_slot_law, slot_law

#: The accuracy that `lbopt.theory.laws.load_law` promises, up to 4096 workers and for a million.
PROMISED, PROMISED_FOR_A_MILLION = 1e-9, 3e-7

WEIGHTS = st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any)


def of_weights(weights: list[int]) -> SlotLaw:
    total = sum(weights)
    return SlotLaw(np.array([weight / total for weight in weights]))


def exact_convolution(weights: list[int], B: int) -> list[int]:
    """The B-fold convolution of whole numbers: the digits of a power (Kronecker's substitution)."""
    bits = B * sum(weights).bit_length() + 1
    power = sum(weight << (bits * place) for place, weight in enumerate(weights)) ** B
    digits = []
    while power:
        digits.append(power & ((1 << bits) - 1))
        power >>= bits
    return digits


def exact_imbalance(weights: list[int], B: int, G: int) -> Fraction:
    """G (E[max] - B E[Y]) from E[max] = sum over v of 1 - F(v)^G."""
    loads, total = exact_convolution(weights, B), sum(weights) ** B
    below = list(itertools.accumulate(loads))
    above = sum(total**G - one**G for one in below)
    mean = Fraction(B * sum(place * weight for place, weight in enumerate(weights)), sum(weights))
    return G * (Fraction(above, total**G) - mean)


def plain_convolution(slot: SlotLaw, B: int) -> np.ndarray:
    """By doubling: all terms are positive, so that every entry keeps its digits."""
    found, power = np.ones(1), slot.probabilities
    while B:
        if B & 1:
            found = np.convolve(found, power)
        B >>= 1
        if B:
            power = np.convolve(power, power)
    return found


def plain_imbalance(slot: SlotLaw, B: int, G: int) -> float:
    law = plain_convolution(slot, B)
    below, above = np.cumsum(law), np.minimum(np.append(np.cumsum(law[::-1])[::-1][1:], 0.0), 1.0)
    with np.errstate(divide="ignore"):
        log_below = np.where(above < 0.5, np.log1p(-above), np.log(below))
    at_mean = math.floor(B * slot.mean * slot.unit)
    excess = math.fsum(-np.expm1(G * log_below[at_mean:])) - math.fsum(np.exp(G * log_below[:at_mean]))
    return G * (excess + at_mean - B * slot.mean * slot.unit) / slot.unit


@given(WEIGHTS, st.integers(1, 12))
def test_probabilities_are_those_of_exact_convolution(weights: list[int], B: int) -> None:
    found = load_law(of_weights(weights), B)
    exact, total = exact_convolution(weights, B), sum(weights) ** B
    wanted = np.zeros(len(exact) + 1)
    wanted[: len(exact)] = [float(Fraction(one, total)) for one in exact]
    seen = np.zeros(max(wanted.size, found.lowest + found.probabilities.size))
    seen[found.lowest : found.lowest + found.probabilities.size] = found.probabilities
    assert np.abs(seen[: wanted.size] - wanted).max() < 1e-14
    assert seen[wanted.size :].sum() == 0


@given(WEIGHTS, st.integers(1, 12), st.integers(1, 40))
@settings(max_examples=60)
def test_imbalance_is_the_exact_one(weights: list[int], B: int, G: int) -> None:
    exact = float(exact_imbalance(weights, B, G))
    found = load_law(of_weights(weights), B).expected_imbalance(G)
    assert found == pytest.approx(exact, rel=PROMISED, abs=1e-10 * G)


@pytest.mark.parametrize(("G", "B"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 1)])
def test_imbalance_of_every_fleet_enumerated(G: int, B: int) -> None:
    prompts = {1: Fraction(1, 2), 3: Fraction(1, 3), 4: Fraction(1, 6)}
    exact = Fraction(0)
    for sizes in itertools.product(prompts, repeat=G * B):
        loads = [sum(sizes[g * B : (g + 1) * B]) for g in range(G)]
        exact += math.prod(prompts[size] for size in sizes) * (G * max(loads) - sum(loads))
    law = load_law(prompt_slot_law(PromptLaw((1, 3, 4), (3, 2, 1))), B)
    assert law.expected_imbalance(G) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


#: p, longest prompt, B and G; the slot law is rounded to 16 bits, so that the judge is exact.
BIG = [(0.2, 8, 16, 16), (0.5, 4, 64, 2), (0.5, 4, 64, 4096)]


@pytest.mark.parametrize(("p", "s_max", "B", "G"), BIG)
def test_promised_accuracy_against_exact_fractions(p: float, s_max: int, B: int, G: int) -> None:
    weights = [round(one * 2**16) for one in slot_law(PromptLaw.uniform(s_max), p).probabilities]
    weights = np.trim_zeros(weights, "b")
    loads, total = exact_convolution(weights, B), sum(weights) ** B
    excess = sum(1 - _power(Fraction(below, total), G) for below in itertools.accumulate(loads))
    mean = Fraction(B * sum(place * weight for place, weight in enumerate(weights)), sum(weights))
    assert load_law(of_weights(weights), B).expected_imbalance(G) == pytest.approx(
        float(G * (excess - mean)), rel=PROMISED
    )


def _power(share: Fraction, G: int) -> Fraction:
    """share^G to 300 bits."""
    bits, found, base = 300, 1 << 300, (share.numerator << 300) // share.denominator
    while G:
        if G & 1:
            found = (found * base) >> bits
        base, G = (base * base) >> bits, G >> 1
    return Fraction(found, 1 << bits)


@pytest.mark.parametrize(
    ("p", "s_max", "B"), [(0.2, 8, 1), (0.2, 8, 72), (0.5, 2, 256), (0.02, 100, 2), (0.02, 100, 8), (0.05, 1000, 3)]
)
def test_promised_accuracy_against_plain_convolution(p: float, s_max: int, B: int) -> None:
    slot = slot_law(PromptLaw.uniform(s_max), p)
    law = load_law(slot, B)
    for G in (2, 16, 256, 4096, 10**6):
        close = PROMISED if G <= 4096 else PROMISED_FOR_A_MILLION
        assert law.expected_imbalance(G) == pytest.approx(plain_imbalance(slot, B, G), rel=close), G


@pytest.mark.some(2)
@pytest.mark.skipif(np.finfo(np.longdouble).eps > 2e-19, reason="no floats longer than 64 bits here")
@pytest.mark.parametrize(
    ("p", "s_max", "B"), [(0.2, 8, 16), (0.02, 100, 72), (0.02, 100, 4096), (0.2, 8, 65536), (0.001, 10, 1024)]
)
def test_promised_accuracy_against_longer_floats(p: float, s_max: int, B: int) -> None:
    """The same transform with 64 bits of mantissa in place of 53, on a window twice as long."""
    slot = slot_law(PromptLaw.uniform(s_max), p)
    low, high = _window(slot, B)
    length = fft.next_fast_len(2 * (high - low + 1), real=True)
    folded = np.zeros(length, np.longdouble)
    np.add.at(folded, np.arange(slot.probabilities.size) % length, slot.probabilities.astype(np.longdouble))
    power = np.roll(fft.irfft(fft.rfft(folded / folded.sum()) ** B, length), -(low % length))[: high - low + 1]
    above = np.append(np.cumsum(power[::-1])[::-1][1:], 0.0)
    for G in (2, 16, 256, 4096, 10**6):
        reached = np.expm1(G * np.log1p(-np.minimum(above, 1 - np.longdouble(1e-19))))
        mean = B * (np.arange(slot.probabilities.size) @ slot.probabilities.astype(np.longdouble)) / folded.sum()
        exact = G * (low - np.sum(reached) - mean)
        close = PROMISED if G <= 4096 else PROMISED_FOR_A_MILLION
        assert load_law(slot, B).expected_imbalance(G) == pytest.approx(float(exact), rel=close), G


@given(WEIGHTS.filter(lambda weights: sum(w > 0 for w in weights) > 1), st.integers(1, 3000))
def test_invariants(weights: list[int], B: int) -> None:
    slot = of_weights(weights)
    law = load_law(slot, B)
    assert law.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert (law.probabilities >= 0).all()
    assert law.mean == pytest.approx(B * slot.mean)
    assert abs(law.probabilities @ law.loads) < 1e-9 * law.deviation * math.sqrt(B)
    assert math.sqrt(law.probabilities @ law.loads**2) == pytest.approx(law.deviation, rel=1e-6)
    excess = [law.expected_excess(G) for G in (1, 2, 3, 10, 1000, 10**9)]
    assert excess[0] == pytest.approx(0, abs=1e-9 * law.deviation * math.sqrt(B))
    assert all(a < b + 1e-9 * law.deviation for a, b in itertools.pairwise(excess))
    assert law.expected_imbalance(2) >= 0
    assert 0 < law.normal_distance() <= 1


@given(WEIGHTS.filter(lambda weights: sum(w > 0 for w in weights) > 1), st.integers(1, 40))
def test_what_is_outside_the_window_is_below_its_bound(weights: list[int], B: int) -> None:
    """Chernoff: at most 1e-16 of the exact mass on either side."""
    low, high = _window(of_weights(weights), B)
    exact, total = exact_convolution(weights, B), sum(weights) ** B
    assert Fraction(sum(exact[:low]), total) <= Fraction(1.0001e-16)
    assert Fraction(sum(exact[high + 1 :]), total) <= Fraction(1.0001e-16)
    assert low <= high


def test_window_is_narrow() -> None:
    low, high = _window(slot_law(PromptLaw.uniform(8), 0.2), 4096)
    deviation = math.sqrt(4096 * (63 / 12 + 20))
    assert high - low < 20 * deviation


def test_equal_slots_have_no_imbalance() -> None:
    law = load_law(prompt_slot_law(PromptLaw.uniform(1)), 72)
    assert (law.lowest, law.probabilities.tolist()) == (72, [1.0])
    assert law.expected_imbalance(16) == 0


@given(WEIGHTS, st.integers(1, 8))
def test_normal_distance_is_the_largest_of_all(weights: list[int], B: int) -> None:
    slot = of_weights(weights)
    if slot.variance == 0:
        return
    exact, total = exact_convolution(weights, B), sum(weights) ** B
    up_to = np.array([float(Fraction(one, total)) for one in itertools.accumulate(exact)])
    z = (np.arange(up_to.size) - B * slot.mean) / math.sqrt(B * slot.variance)
    gaps = [abs(up_to - special.ndtr(z)), abs(np.append(0, up_to[:-1]) - special.ndtr(z))]
    assert load_law(slot, B).normal_distance() == pytest.approx(np.max(gaps), abs=1e-12)


def test_halves_of_tokens() -> None:
    """A law on halves is the law on whole tokens of everything doubled."""
    halves, doubled = SlotLaw(np.array([0, 0.5, 0.25, 0.25]), 2), SlotLaw(np.array([0, 0.5, 0.25, 0.25]))
    assert load_law(halves, 9).expected_imbalance(5) == pytest.approx(load_law(doubled, 9).expected_imbalance(5) / 2)


def test_refusals() -> None:
    slot = slot_law(PromptLaw.uniform(8), 0.2)
    with pytest.raises(InputError, match="B is 0"):
        load_law(slot, 0)
    with pytest.raises(InputError, match="G is 0"):
        load_law(slot, 1).expected_imbalance(0)
    with pytest.raises(InputError, match=r"B = 1000000000000000 slots spreads over \d+ values.*take fewer slots"):
        load_law(slot, 10**15)
    assert isinstance(load_law(slot, 10**6), LoadLaw)
