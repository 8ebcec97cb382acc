"""Adversaries of rules that do not see the future: their own timetables, their bounds, and verdicts that can change."""

from __future__ import annotations

import heapq
from itertools import combinations, pairwise

import numpy as np
import pytest
from theory.waiting_checks import verdict_of

from lbopt.exceptions import InputError
from lbopt.hindsight.timetable import Timetable, first_come
from lbopt.model import Fleet, Trace
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.theory.chains import adversaries as chains
from lbopt.theory.claims import online
from lbopt.theory.finding import Verdict
from lbopt.theory.ledger import CLAIMS

NAMES = [claim.name for claim in online._OF_LENGTHS]
FLEETS = [(2, 1), (2, 3), (3, 2), (4, 2)]


def in_order(order_of):
    """Rules that start requests in an order of their own, each in the first slot that is free; (G, B) -> play."""

    def rule(G, B):
        def play(trace):
            start, worker = np.zeros(len(trace), dtype=np.int64), np.zeros(len(trace), dtype=np.int64)
            free = [(0, slot) for slot in range(G * B)]
            for i in order_of(trace.output):
                start[i], slot = heapq.heappop(free)
                worker[i] = slot % G
                heapq.heappush(free, (int(start[i] + trace.output[i]), slot))
            return start, worker

        return play

    return rule


blind = in_order(lambda output: np.arange(output.size))
sees_long = in_order(lambda output: np.argsort(-output, kind="stable"))
sees_short = in_order(lambda output: np.argsort(output, kind="stable"))


def check_timetable(duel):
    """The adversary's own timetable runs the same requests, at most B on a worker."""
    for start, worker in (duel.rule, duel.other):
        order = np.argsort(start, kind="stable")
        trace = duel.trace
        G, B = duel.num_workers, duel.slots_per_worker
        loads = Timetable(G, B, start[order], trace.prompt[order], trace.output[order]).loads(worker[order])
        assert loads.sum() == sum(chains.work_of(s, o) for s, o in zip(trace.prompt, trace.output, strict=True))


@pytest.mark.parametrize(("G", "B"), FLEETS)
def test_one_after_the_other_never_overlaps(G, B):
    duel = chains.one_after_the_other(blind(G, B), G, B, 2, 15, 2)
    check_timetable(duel)
    long = np.sort(duel.rule[0][duel.trace.output == 15])
    assert long.size == 2 * G
    assert (np.diff(long) >= 15).all()
    reached, other = duel.barriers()
    assert reached >= 2 * G * chains.work_of(2, 15)
    short = duel.trace.output.size - 2 * G
    assert other <= 2 * chains.work_of(2, 15) + 2 * B * -(-short // (G * B))


@pytest.mark.parametrize(("G", "B"), FLEETS)
def test_those_on_one_worker_last(G, B):
    duel = chains.on_one_worker(blind(G, B), G, B, 3, 50)
    check_timetable(duel)
    q, grown = min(B, G), chains.work_of(3, 50) - 3
    assert duel.barriers() == (3 * B + q * grown, 3 * B + grown)
    assert np.array_equal(*(start for start, _ in (duel.rule, duel.other)))


@pytest.mark.parametrize(("G", "B"), FLEETS)
def test_those_on_one_worker_last_among_slots_that_are_always_full(G, B):
    """First come, first served in slots: every slot is in use in every step."""
    duel = chains.on_one_worker(blind(G, B), G, B, 3, 50, refill=True)
    check_timetable(duel)
    q = min(B, G)
    assert duel.steps() == (50, 50)
    assert duel.trace.output.sum() == 50 * G * B
    assert duel.barriers() == (150 * B + q * 1225, 150 * B + 1225)


@pytest.mark.parametrize(("G", "B"), FLEETS)
def test_the_last_to_start_is_long(G, B):
    duel = chains.last_is_long(blind(G, B), G, B, 1)
    check_timetable(duel)
    assert duel.steps() == (2 * G * B - 1, G * B)


def round_robin(G, B):
    """Binds in turn; each worker starts what it has in order."""

    def play(trace):
        start, worker = np.zeros(len(trace), dtype=np.int64), np.arange(len(trace)) % G
        for g in range(G):
            own = np.flatnonzero(worker == g)
            start[own] = first_come(Trace(prompt=trace.prompt[own], output=trace.output[own]), 1, B).start
        return start, worker

    return play


@pytest.mark.parametrize(("G", "B"), FLEETS)
@pytest.mark.parametrize("blocks", [1, 2])
def test_what_is_bound_to_one_worker_lasts(G, B, blocks):
    duel = chains.bound_to_one(round_robin(G, B), G, B, 1, 300, blocks)
    check_timetable(duel)
    reached, other = duel.steps()
    assert reached == blocks * (G * B + B - 1) * 300  # q T (G + 1 - 1/B), with q = blocks B
    short = int((duel.trace.output == 1).sum())
    assert other == blocks * B * 300 + -(-short // (G * B))


def test_lengths_that_are_drawn_seldom_overlap():
    overlaps = 0
    for seed in range(60):
        duel = chains.drawn_apart(blind(2, 2), 2, 2, 1, 20, 5, seed)
        start = duel.rule[0][duel.trace.output == 20]
        overlaps += abs(int(start[0] - start[1])) < 20
    assert duel.trace.output.size == chains.requests_apart(2, 2, 20, 5) == 1 + 5 * 2 * 4 * 20
    check_timetable(duel)
    assert 0 < overlaps <= 60 / 5 + 3 * (60 * 0.2 * 0.8) ** 0.5


@pytest.mark.parametrize(("N", "G", "B"), [(9, 2, 1), (14, 2, 3), (11, 3, 1), (12, 4, 2)])
def test_the_mean_of_what_neighbours_add(N, G, B):
    """By counting all sets of G of N requests; each has what it adds by a plain sum over its largest sizes."""

    def added(gap):
        alone = min(5, -(-gap // (G * B - 1)) - 1)
        return sum(sorted(3 + age for age in range(5))[5 - alone :])

    sets = list(combinations(range(N), G))
    mean = np.mean([added(later - one) for drawn in sets for one, later in pairwise(drawn)])
    assert chains.expected_apart(N, G, B, 3, 5) == pytest.approx(mean)


@pytest.mark.parametrize(("G", "B"), [(2, 1), (2, 2), (3, 1)])
def test_no_timetable_is_below_what_neighbours_add(G, B):
    """A rule that fills slots in order, every set of requests that last: the bound holds draw by draw."""
    prompt, lasting, N = 2, 6, 16
    reached = []
    for drawn in combinations(range(N), G):
        output = np.ones(N, dtype=np.int64)
        output[list(drawn)] = lasting
        trace = chains.alike(prompt, output)
        played = blind(G, B)(trace)
        barriers = chains.Duel(G, B, trace, played, played).barriers()[0]
        add = chains.apart_at_least(np.diff(drawn), G, B, prompt, lasting).sum()
        reached.append(barriers - chains.work_of(prompt, lasting) - add)
    assert 0 <= min(reached) <= N * prompt


@pytest.mark.parametrize(("G", "B"), [(2, 1), (2, 3), (3, 2), (4, 2), (2, 6)])
def test_the_mean_of_the_fullest_worker(G, B):
    """By counting all sets of G slots."""
    sets = list(combinations(range(G * B), G))
    fullest = [max(np.bincount([slot // B for slot in chosen])) for chosen in sets]
    assert chains.expected_together(G, B) == pytest.approx(np.mean(fullest))


@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_quick_verdict(name):
    assert verdict_of(CLAIMS[name], CLAIMS[name].quick) == CLAIMS[name].expected == Verdict.HOLDS


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize("name", NAMES)
def test_full_verdict(name):
    assert verdict_of(CLAIMS[name], CLAIMS[name].full) == CLAIMS[name].expected


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("online-barriers", sees_short),
        ("online-placing", sees_long),
        ("online-steps", sees_long),
        ("online-binding", sees_long),
        ("online-randomised", sees_short),
        ("online-randomised-placing", sees_long),
    ],
)
def test_who_sees_the_future_refutes_it(name, sees, monkeypatch):
    """The adversary meets a rule that knows every length, long or short first, one worker after the other."""
    monkeypatch.setattr(online, "playing", lambda rule, G, B, seed: sees(G, B))
    regime = {"lasting": 60, "draws": 5} if name == "online-randomised" else {}
    assert verdict_of(CLAIMS[name], [regime]) == Verdict.REFUTED


def test_a_rule_beyond_the_upper_bound_refutes_it(monkeypatch):
    """One request at a time, whatever waits: more steps than any rule that fills slots."""
    monkeypatch.setattr(online, "playing", lambda rule, G, B, seed: blind(1, 1))
    assert verdict_of(CLAIMS["online-steps"], [{}]) == Verdict.REFUTED


@pytest.mark.parametrize(
    ("name", "regime", "says"),
    [
        ("online-barriers", {"G": 1}, "G is 1"),
        ("online-barriers", {"lasting": 400_000}, "at most 1000000 requests"),
        ("online-placing", {"B": 0}, "B is 0"),
        ("online-placing", {"rule": "jsq", "refill": 1}, "a rule with a pool where slots are refilled; rule is jsq"),
        ("online-binding", {"rule": "auto"}, "a rule that binds on arrival; rule is auto"),
        ("online-binding", {"blocks": 0}, "blocks is 0"),
        ("online-randomised", {"apart": 1}, "apart is 1"),
        ("online-steps", {"rule": "nonsense"}, "nonsense"),
    ],
)
def test_what_a_claim_does_not_speak_of_is_refused(name, regime, says):
    with pytest.raises(InputError, match=says):
        CLAIMS[name].measure(**regime, seed=0)


def run_of(rule, trace, G, B, **options):
    setting = SimulationSetting(fleet=Fleet(G, B), arrivals=ClosedLoop(**options))
    return simulate(trace, make_policy(rule), setting, keep_loads=True)


@pytest.mark.jit
@pytest.mark.parametrize("seed", range(4))
def test_the_lightest_worker_against_the_peak(seed):
    """Theorem 10, for workers that never run out of slots: large requests come one a step and stay for a while."""
    rng = np.random.default_rng(seed)
    G, N = 3, 60
    trace = Trace(prompt=rng.integers(1, 10**6, N), output=rng.integers(1, 12, N))
    run = run_of("jsq-load:admission=immediate", trace, G, N, reveal_target=4)
    B = int(max(np.bincount(run.requests["worker"], minlength=G)))
    # No timetable with these starts has a lower peak, and the proof uses no more of it.
    least_peak = max(int(trace.prompt.max()), int(run.steps["barrier_sum"].max()) / G)
    peak = run.steps["barrier_max"].max()
    assert peak <= (2 - 1 / G) * least_peak + B * 11
    assert peak > least_peak


@pytest.mark.jit
@pytest.mark.parametrize("rule", ["br-0:age_bound=5", "max-min", "fcfs", "auto:age_bound=5"])
def test_a_bound_on_ages_bounds_waits(rule):
    """Theorem 9, of rules with a pool; first come, first served has it with A = 0."""
    rng = np.random.default_rng(5)
    G, B, N = 2, 2, 80
    trace = Trace(prompt=rng.integers(1, 100, N), output=rng.integers(1, 10, N))
    columns = run_of(rule, trace, G, B, reveal_target=12).requests
    start, reveal = columns["start_step"], columns["reveal_step"]
    bound = 5 if "age_bound" in rule else 0
    waits = 0
    for i in range(N):
        before = int((start[:i] >= reveal[i] + bound).sum())
        assert start[i] - reveal[i] <= bound + -(-(before + 1) // (G * B)) * int(trace.output.max())
        waits = max(waits, start[i] - reveal[i])
    assert waits > bound


@pytest.mark.jit
def test_without_a_bound_the_smallest_waits_for_all_others():
    trace = Trace(prompt=np.r_[1, np.full(60, 9)], output=np.full(61, 3))
    start = run_of("max-min:scope=pool", trace, 2, 2, reveal_target=61).requests["start_step"]
    assert start[0] == start.max() > start[1:].min()
    assert run_of("fcfs", trace, 2, 2, reveal_target=61).requests["start_step"][0] == 0
