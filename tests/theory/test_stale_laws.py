"""The laws of old sight and early binding against sums written out, closed forms, and cases that are clear by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from lbopt.exceptions import InputError
from lbopt.theory.chains.open_fleet import OpenFleet, Requests
from lbopt.theory.laws import stale, stale_choice
from lbopt.theory.laws.normal_maximum import lone_maximum
from lbopt.theory.laws.slot_law import PromptLaw, slot_law
from lbopt.theory.laws.stale import Lives

PROMPTS = PromptLaw.uniform(7)


def written_out(p: float, age: int, arrivals: float) -> tuple[float, float]:
    """Variance and third cumulant of what is unseen, request by request and outcome by outcome."""
    variance = third = 0.0
    for a in range(2000):
        there = (1 - p) ** a
        seen = (1 - p) ** max(a - age, 0)
        c = there / seen
        for s in PROMPTS.lengths:
            held = s + a
            for present, chance in ((1, c), (0, 1 - c)):
                off = held * present - held * c
                variance += arrivals * seen / 7 * chance * off**2
                third += arrivals * seen / 7 * chance * off**3
    return variance, third


@pytest.mark.parametrize("age", [0, 1, 3, 12])
def test_unseen_is_the_sum_over_requests(age: int) -> None:
    found = Lives.geometric(0.2, PROMPTS).unseen(1.5, age)
    variance, third = written_out(0.2, age, 1.5)
    assert found.variance == pytest.approx(variance, rel=1e-9)
    assert found.third == pytest.approx(third, rel=1e-7, abs=1e-9)


def test_observed_lives_are_counted() -> None:
    prompt, output = np.array([5, 9, 2]), np.array([1, 3, 2])
    lives = Lives.observed(prompt, output)
    assert lives.alive.tolist() == pytest.approx([1, 2 / 3, 1 / 3])
    for power in (1, 2, 3):
        by_age = [np.mean((prompt[output > a] + a) ** power) for a in range(3)]
        assert lives.moments[power - 1].tolist() == pytest.approx(by_age)
    assert lives.mean == pytest.approx(2)


def test_lives_of_one_length_hide_nothing() -> None:
    """Who knows when each request ends needs no report."""
    lives = Lives.observed(np.array([3, 8]), np.array([4, 4]))
    fleet = stale.ReportedFleet(8, lives, 10.0, 5)
    assert fleet.floor() == fleet.alike() == 0


def over_mean(middle: np.ndarray, deviation: np.ndarray) -> float:
    """Mean of the largest of independent normals less the mean of their middles."""
    at = np.linspace(-9, 9, 4001)
    below = np.prod(stats.norm.cdf((at - middle[:, None]) / deviation[:, None]), axis=0)
    return float(9 - np.trapezoid(below, at) - middle.mean())


@pytest.mark.parametrize("G", [2, 3, 5])
def test_no_split_of_the_variance_leaves_less_than_one_worker_with_all(G: int) -> None:
    """Whatever the middles and the split; with all on one worker, kept so low that it is the fullest one time in G."""
    height = lone_maximum(G)
    draw = np.random.default_rng(G)
    for concentration in (0.1, 0.3, 1.0, 10.0):
        for _ in range(40):
            deviation = np.sqrt(draw.dirichlet(np.full(G, concentration))) + 1e-3
            middle = draw.normal(0, 0.5, G)
            assert over_mean(middle, deviation) >= height * math.hypot(*deviation) - 1e-4
    one = np.full(G, 1e-3)
    one[0] = 1.0
    low = np.zeros(G)
    low[0] = stats.norm.ppf(1 / G)
    assert over_mean(low, one) == pytest.approx(height, abs=0.002 * G)
    assert stale.Unseen(1.0, 4.0, 0.0).least(G) == pytest.approx(G * math.sqrt(G) * 2 * height)


def test_two_workers_leave_the_same_however_they_are_split() -> None:
    unseen = stale.Unseen(1.0, 9.0, 5.0)
    assert unseen.least(2) == pytest.approx(unseen.imbalance(2))


def test_a_random_split_is_the_stationary_load() -> None:
    """Poisson numbers: N requests on average, each of the slot's law, so the variance is N E[Y^2]."""
    p, arrivals = 0.1, 3.0
    slot = slot_law(PROMPTS, p)
    squares = slot.variance + slot.mean**2
    assert Lives.geometric(p, PROMPTS).random(arrivals).variance == pytest.approx(arrivals / p * squares, rel=1e-9)


def test_the_floor_rises_with_age_and_stands_still() -> None:
    lives = Lives.geometric(0.1, PROMPTS)
    variances = [lives.unseen(2.0, age).variance for age in range(0, 300, 10)]
    assert all(a < b for a, b in itertools.pairwise(variances[:12]))
    assert variances[-1] == pytest.approx(lives.unseen(2.0, 10_000).variance, rel=1e-6)
    assert variances[-1] < lives.random(2.0).variance


def herd_by_hand(G: int, p: float, arrivals: float, period: int) -> float:
    """A herd of mean loads, step by step."""
    loads, counts, read = np.zeros(G), np.zeros(G), []
    mean = float(PROMPTS.mean)
    for k in range(3000):
        loads, counts = (1 - p) * (loads + counts), (1 - p) * counts
        turn = k // period % G
        loads[turn] += G * arrivals * mean
        counts[turn] += G * arrivals
        read.append(G * loads.max() - loads.sum())
    return float(np.mean(read[-G * period * 20 :]))


@pytest.mark.parametrize(("G", "period"), [(2, 1), (3, 4), (8, 2)])
def test_the_herd_is_a_cycle(G: int, period: int) -> None:
    found = stale.ReportedFleet(G, Lives.geometric(0.1, PROMPTS), 2.0, period).herd()
    assert found == pytest.approx(herd_by_hand(G, 0.1, 2.0, period), rel=1e-6)


def test_a_short_cycle_is_an_even_ladder() -> None:
    prompts = PromptLaw.uniform(1000)
    fleet = stale.ReportedFleet(4, Lives.geometric(0.001, prompts), 1.0, 1)
    assert fleet.herd() == pytest.approx(4 * 3 * 500.5 / 2, rel=0.01)


def pal_and_pitman(G: int, p: float, prompts: PromptLaw) -> float:
    """The limit of small steps: gaps (E[S²] + E[X²]) G / (2 E[S] k (G - k)) of ranks, counted k times each."""
    mean, squares = float(prompts.mean), float(prompts.variance + prompts.mean**2)
    ended = squares + 2 * mean / p + (2 - p) / p**2  # X, the tokens of a request that ends
    gaps = [(squares + ended) * G / (2 * mean * k * (G - k)) for k in range(1, G)]
    return sum(k * gap for k, gap in enumerate(gaps, start=1))


@pytest.mark.slow
def test_small_steps_of_power_of_two_come_to_the_limit() -> None:
    """Few arrivals a step, long lives, prompts that outweigh outputs: the diffusion of ranks."""
    prompts = PromptLaw.uniform(4000)
    fleet = OpenFleet(G=16, arrivals=0.2, requests=Requests.geometric(0.002, prompts), period=1)
    found = fleet.run("power-of-two", 60_000, 1).imbalance.mean()
    assert found == pytest.approx(pal_and_pitman(16, 0.002, prompts), rel=0.12)


@pytest.mark.parametrize("wait", [1, 4, 30])
def test_a_bound_slot_has_the_closed_variance(wait: int) -> None:
    p = 0.15
    r = (1 - p) ** wait
    closed = (1 - p) / p**2 * (1 - r**2) + float(PROMPTS.variance) * r * (1 - r)
    assert stale.bound_slot(p, PROMPTS, wait).variance == pytest.approx(closed, rel=1e-9)


def test_a_bound_slot_has_the_third_moment_of_its_outcomes() -> None:
    p, wait = 0.3, 2
    slot = slot_law(PROMPTS, p)
    third = 0.0
    for size, weight in enumerate(slot.probabilities):
        # It lives on, or a fresh one of mean prompt 4 is there, 0 or 1 steps old.
        outcomes = [
            (size + wait, (1 - p) ** wait),
            (4.0, p),
            (5.0, p * (1 - p)),
        ]
        mean = sum(value * chance for value, chance in outcomes)
        third += weight * sum(chance * (value - mean) ** 3 for value, chance in outcomes)
    assert stale.bound_slot(p, PROMPTS, wait).third == pytest.approx(third, rel=1e-6)


def test_the_doubt_of_a_queue_by_hand() -> None:
    """Two slots, half of them end: the one that waits starts with 3/4."""
    assert stale.queue_doubt(2, 0.5, 1, 1) == pytest.approx(3 / 16)
    assert stale.queue_doubt(2, 0.5, 1, 0) == 0
    # A step later it has started now (3/4, and lives on with 1/2) or starts then (1/4 times 3/4).
    runs = 3 / 8 + 3 / 16
    assert stale.queue_doubt(2, 0.5, 1, 2) == pytest.approx(runs * (1 - runs))


def test_overflow_is_the_integral() -> None:
    value, _ = integrate.quad(lambda x: (x - 64) * stats.norm.pdf(x, 60, 5), 64, 120)
    assert stale.overflow(60, 25, 64) == pytest.approx(value, rel=1e-8)
    assert stale.overflow(70, 0.0, 64) == 6


def test_short_steps_come_to_erlang() -> None:
    """M/M/B: the mean queue is C rho / (1 - rho)."""
    B, rho, p = 8, 0.8, 0.002
    offered = B * rho
    last = offered**B / math.factorial(B) / (1 - rho)
    delay = last / (sum(offered**k / math.factorial(k) for k in range(B)) + last)
    assert stale.random_waiting(offered * p, p, B) == pytest.approx(delay * rho / (1 - rho), rel=0.01)


def test_a_slot_that_is_seen_at_reports() -> None:
    lives = Lives.geometric(0.2, PROMPTS)
    assert stale.seen_share(lives, 1) == pytest.approx(1)
    assert stale.seen_share(lives, 6) == pytest.approx((1 - 0.8**6) / (0.2 * 6), rel=1e-9)
    assert stale.seen_share(Lives.observed(np.array([1, 1]), np.array([5, 5])), 4) == pytest.approx(5 / 8)


@pytest.mark.slow
@pytest.mark.parametrize("period", [10, 15])
def test_who_overflows_is_who_ends_unseen(period: int) -> None:
    """A fleet that levels numbers by old reports: the law is an estimate, right to a quarter where few wait."""
    requests = Requests.geometric(0.1, PROMPTS)
    fleet = OpenFleet(G=64, arrivals=5.6, requests=requests, period=period, slots=64)
    number, unseen = 56.0, [requests.lives.unseen(5.6, age).requests for age in range(period)]
    law = np.mean([stale.overflow(number, number / 64 + (1 - 1 / 64) * variance, 64) for variance in unseen])
    assert fleet.run("numbers", 12_000, 1).waiting.mean() == pytest.approx(law, rel=0.25)


REFUSED = [
    (lambda: Lives.geometric(0.0, PROMPTS), "the probability of an end is 0.0"),
    (lambda: Lives.geometric(1e-9, PROMPTS), "expected a larger one"),
    (lambda: Lives.observed(np.array([1]), np.array([0])), "outputs from 1"),
    (lambda: Lives.geometric(0.5, PROMPTS).known(-1), "the age of a sight is -1 steps"),
    (lambda: stale.ReportedFleet(2, Lives.geometric(0.5, PROMPTS), 1.0, 0), "the period of reports is 0 steps"),
    (lambda: stale_choice.power_of_two(2, 0.5, PROMPTS, 1.0, 0), "the period of reports is 0 steps"),
    (lambda: stale.bound_slot(0.5, PROMPTS, -1), "bound -1 steps before"),
    (lambda: stale.random_waiting(9.0, 0.1, 64), "expected less than all"),
    (lambda: stale.seen_share(Lives.geometric(0.5, PROMPTS), 0), "the period of reports is 0 steps"),
]


@pytest.mark.parametrize(("asked", "says"), REFUSED)
def test_refused_in_one_sentence(asked, says: str) -> None:
    with pytest.raises(InputError, match=says):
        asked()
