"""The law of the spacing: by enumeration, by the residues of a chain step by step, and its plants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from naive import theory_lemmas as naive

from lbopt.exceptions import InputError
from lbopt.theory.chains.batch_means import slot_streams
from lbopt.theory.chains.fcfs_chain import least_imbalance, residues_of_steps
from lbopt.theory.chains.replete import Replete
from lbopt.theory.claims.pools import sizes_law
from lbopt.theory.claims.spacing import CLAIMS, measure_floor, measure_law, measure_rate
from lbopt.theory.finding import Verdict, gravest, smallest_plant
from lbopt.theory.laws.slot_law import LLM, Growth, PromptLaw
from lbopt.theory.laws.spacing import (
    characters,
    kappa,
    least_left,
    residue_law,
    shared_out,
    slowest_character,
    spacing_floor,
)

jit = pytest.mark.jit


def kappa_by_enumeration(G, d):
    """The mean over all residues of the least sum of distances below one of them."""
    total = 0
    for residues in itertools.product(range(d), repeat=G):
        total += min(sum((peak - one) % d for one in residues) for peak in residues)
    return Fraction(total, d**G)


@pytest.mark.parametrize(("G", "d"), [(1, 3), (2, 1), (2, 5), (3, 4), (4, 3), (5, 2), (6, 3), (3, 7)])
def test_the_constant_is_that_of_enumeration(G, d):
    found = kappa(G, d)
    assert found.error == 0
    assert found.mean == pytest.approx(float(kappa_by_enumeration(G, d)), abs=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4, 7, 12])
def test_the_closed_forms(d):
    assert kappa(2, d).mean == pytest.approx((d * d // 4) / d)
    halves = sum(math.comb(d, n) * min(n, d - n) for n in range(d + 1)) / 2**d
    assert kappa(d, 2).mean == pytest.approx(halves)


def test_the_constants_that_the_manual_names():
    assert kappa(8, 3).mean == pytest.approx(5.541838, abs=1e-6)
    assert kappa(16, 7).mean == pytest.approx(36.560866, abs=1e-6)


@pytest.mark.parametrize(("G", "d"), [(1, 1), (3, 2), (4, 5)])
def test_every_way_to_share_workers_out(G, d):
    rows = shared_out(G, d).tolist()
    assert sorted(rows) == sorted(list(one) for one in itertools.product(range(G + 1), repeat=d) if sum(one) == G)


@pytest.mark.parametrize("growth", ["1", "2", "0", "0+1+3"])
def test_characters_are_means_over_the_age(growth):
    p, d = 0.3, 6
    cycle = Growth.parse(growth)
    grown = [int(part) for part in cycle.latest(1)]
    total = np.zeros(d, complex)
    seen = 0
    for age in range(400):
        total += p * (1 - p) ** age * np.exp(2j * np.pi * np.arange(d) * seen / d)
        seen += grown[age % len(grown)]
    assert characters(p, d, grown) == pytest.approx(total)


def test_the_law_of_a_residue_is_that_of_convolution():
    p, d, B = 0.6, 5, 7
    one = np.zeros(d)
    for age in range(300):
        one[age % d] += p * (1 - p) ** age
    law = np.zeros(d)
    law[0] = 1.0
    for _ in range(B):
        law = np.array([sum(law[(x - y) % d] * one[y] for y in range(d)) for x in range(d)])
    assert residue_law(B, p, d) == pytest.approx(law)


def test_a_common_divisor_of_growth_and_distance():
    assert least_left(3, 2000, 0.5, 4, Growth.parse("2")).mean == pytest.approx(2 * kappa(3, 2).mean)
    assert least_left(3, 2000, 0.5, 6, Growth.parse("4")).mean == pytest.approx(2 * kappa(3, 3).mean)
    assert least_left(3, 2000, 0.5, 4, Growth.parse("0")).mean == pytest.approx(0.0, abs=1e-9)
    assert least_left(3, 2000, 0.5, 3, Growth.parse("1/2")).mean == pytest.approx(kappa(3, 6).mean / 2)
    assert slowest_character(0.5, 4, (4,)) == 0.0


def test_a_sampled_mean_is_near_the_listed_one(monkeypatch):
    exact = spacing_floor(5, np.array([0.5, 0.3, 0.2]))
    monkeypatch.setattr("lbopt.theory.laws.spacing.MOST_LISTED", 1)
    found = spacing_floor(5, np.array([0.5, 0.3, 0.2]), 3)
    assert 0 < found.error < 0.002
    assert abs(found.mean - exact.mean) < 5 * found.error


def test_the_ages_are_those_of_loops():
    G, B, p, d, growth, steps, seed = 2, 3, 0.4, 5, (1, 2), 40, 9
    streams, log_keep = slot_streams(seed, G, B), math.log1p(-p)
    grown, left, drawn = ([[start] * B for _ in range(G)] for start in (0, 1, 0))
    rows = []
    for k in range(steps):
        for g, b in itertools.product(range(G), range(B)):
            grown[g][b] += growth[k % 2]
            left[g][b] -= 1
            if left[g][b] == 0:
                grown[g][b] = 0
                left[g][b] = naive.lifetime(naive.word(int(streams[g, b]), 2 * drawn[g][b]), log_keep)
                drawn[g][b] += 1
        rows.append([sum(worker) % d for worker in grown])
    assert residues_of_steps(Replete(G, B, p, PromptLaw.uniform(2), growth), d, steps - 5, seed, 5).tolist() == rows[5:]


@jit
@pytest.mark.parametrize(
    ("v", "d", "rungs", "growth"), [(1, 3, 1, (1,)), (2, 5, 3, (1,)), (1, 4, 1, (2,)), (3, 4, 1, (0, 1, 3))]
)
def test_far_above_the_onset_every_step_leaves_what_its_residues_leave(v, d, rungs, growth):
    law = PromptLaw(tuple(range(v, v + rungs * d + 1, d)), (1,) * (rungs + 1))
    G, B, p, steps, seed = 3, 2048, 0.7, 60, 4
    of = Replete(G, B, p, law, growth)
    imbalance = of.run(steps, seed).steps.imbalance
    assert imbalance.tolist() == least_imbalance(residues_of_steps(of, d, steps, seed), d).tolist()
    assert imbalance.max() > 0


@pytest.mark.some(but=("leader-drift", "spacing-law"))
@jit
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_the_quick_verdict_is_the_expected_one(claim):
    findings = [finding for regime in claim.quick for finding in claim.measure(seed=1, **regime)]
    share = sum(finding.is_sampled for finding in findings)
    assert gravest(finding.verdict(max(1, share)) for finding in findings) == claim.expected


@pytest.mark.more
@jit
def test_an_error_of_two_per_cent_is_refuted():
    (finding,) = measure_law(seed=2, steps=40_000)
    plant = smallest_plant(finding)
    assert finding.verdict() is Verdict.HOLDS
    assert plant is not None
    assert plant.smallest is not None
    assert plant.smallest < 0.02


@jit
def test_below_the_onset_the_floor_holds_and_the_law_does_not_speak():
    (finding,) = measure_law(seed=2, B=64, p=0.05)
    assert finding.verdict() is Verdict.OUTSIDE
    assert finding.measured > 1.5 * finding.predicted
    for row in measure_floor(seed=2, B=64, p=0.05, steps=500):
        assert row.verdict() is Verdict.HOLDS
        assert row.measured <= 0


@pytest.mark.parametrize(
    ("measure", "wrong", "says"),
    [
        (measure_law, {"d": 0}, "spacing-law assumes v, d and rungs of at least 1"),
        (measure_law, {"peak": "high"}, "peak is 'high'"),
        (measure_law, {"steps": 0}, "steps is 0"),
        (measure_floor, {"growth": "1/2"}, "a growth of whole tokens; growth is '1/2'"),
        (measure_floor, {"G": 1000, "B": 10_000}, "at most 1,000,000 slots"),
        (measure_rate, {"growth": "0"}, "residues that are not uniform at once"),
        (measure_rate, {"growth": "0+1"}, "a constant growth of whole tokens"),
        (measure_rate, {"G": 64, "d": 9}, "residues that can be listed"),
    ],
)
def test_what_it_refuses(measure, wrong, says):
    with pytest.raises(InputError, match=says):
        measure(seed=0, **wrong)


@pytest.mark.parametrize("sizes", ["4", "4+4+1", "1+4", "1+x+3", "1+-3+2", "0+3+6"])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(InputError):
        sizes_law("theorem-2-pools", sizes)


def test_an_empty_law_is_refused():
    with pytest.raises(InputError, match="expected a worker and a residue"):
        spacing_floor(0, np.ones(1))
    assert least_left(2, 10, 0.5, 1, LLM).mean == 0.0
