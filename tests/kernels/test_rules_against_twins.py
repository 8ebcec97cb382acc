"""Every compiled rule, decision for decision, against the slow twin written from its definition."""

import random

import numpy as np
import pytest
from kernels.rules import BY_SIGNAL, POOLED, many, random_auto, random_br_0, random_observation
from naive import bind, br_0_trace, imbalance, place

from lbopt.kernels.arrays import records
from lbopt.kernels.routing import fifo
from lbopt.kernels.routing.horizon import ENUMERATE, TERM, best_subset
from lbopt.kernels.routing.state import Shown, parameters_of, turn_of
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide


def assert_same_decision(spec, name, options, observation, seed, counter):
    uniforms = np.random.default_rng(seed).random((observation.sizes.size, 2)).tolist()
    policy = make_policy(spec)
    expected, _ = place(
        name,
        observation.loads.tolist(),
        observation.free_slots.tolist(),
        observation.sizes.tolist(),
        observation.waited.tolist(),
        observation.running.tolist(),
        uniforms,
        counter,
        options,
    )
    chosen = decide(policy, observation, seed=seed, round_robin_at=counter)
    assert chosen.dtype == np.int64
    assert chosen.tolist() == expected, (spec, observation)


@pytest.mark.some(7)
@pytest.mark.parametrize(("spec", "name", "options"), POOLED)
def test_pooled_rules_decide_as_their_twins(spec, name, options):
    rng = random.Random(f"{spec} 1")
    for seed in range(many(1500, 400)):
        observation = random_observation(rng)
        assert_same_decision(spec, name, options, observation, seed, rng.randrange(observation.loads.size))


@pytest.mark.parametrize("block", range(4))
def test_br_0_decides_as_its_twin(block):
    rng = random.Random(f"br-0 {block}")
    for _ in range(many(1000, 150)):
        assert_same_decision(*random_br_0(rng), random_observation(rng, (2, 2, 3, 4, 6, 9)), 0, 0)


def test_auto_decides_as_its_twin_on_ten_thousand_states():
    rng = random.Random("auto")
    for _ in range(many(10_000, 500)):
        assert_same_decision(*random_auto(rng), random_observation(rng), 0, 0)


def test_auto_starts_all_that_can_start_and_shares_the_slots_out():
    """Nobody waits for a free slot, and no worker takes more than its part of the free slots, rounded up."""
    rng = random.Random("auto and its shares")
    cases = 0
    for _ in range(many(2000, 300)):
        observation = random_observation(rng)
        n, free = observation.sizes.size, observation.free_slots
        if not 0 < n <= free.sum():
            continue
        cases += 1
        chosen = decide(make_policy("auto"), observation)
        taken = np.bincount(chosen, minlength=free.size)
        assert (taken <= free).all()
        assert (taken <= -(-n * free // free.sum())).all()
        lone = np.flatnonzero(free > 0)
        if n == 1:
            assert observation.loads[chosen[0]] == observation.loads[lone].min()
    assert cases > many(300, 30)


def test_auto_starts_what_has_waited_longest_where_waits_count_most():
    """Of ten requests whose waits differ by steps, the oldest go first if a step counts a thousand sizes."""
    rng = random.Random("old ones")
    for _ in range(many(300, 30)):
        G, waited = rng.randint(1, 4), sorted(rng.sample(range(40), 10), reverse=True)
        free = [rng.randint(0, 2) for _ in range(G)]
        sizes = [rng.randint(40, 60) for _ in range(10)]
        seen = Observation(0, 0.0, [0] * G, free, [0] * G, [0] * G, [0] * G, sizes, waited, range(10))
        chosen = decide(make_policy("auto:age_weight=1000"), seen)
        assert np.flatnonzero(chosen >= 0).tolist() == list(range(sum(free)))


def test_br_0_on_a_single_worker_decides_as_its_twin():
    # F = delta - max(0, delta - margin) is flat beyond the margin of a lone worker: there "ties: larger" decides.
    rng = random.Random("br-0 alone")
    for _ in range(many(1000, 300)):
        assert_same_decision(*random_br_0(rng), random_observation(rng, (1,)), 0, 0)


def test_br_0_takes_one_request_at_a_time_where_none_gains():
    """On a lone worker every batch has the score 0. So the window moves on after one request, and the 9 gets in."""
    alone = Observation(0, 0.0, [5], [2], [1], [0], [0], [3, 2, 9], [0, 0, 0], range(3))
    for switch, expected in ((0, [0, -1, 0]), (9, [0, -1, 0])):
        policy = make_policy(f"br-0:stage_switch={switch},window=2,window_order=arrival")
        assert decide(policy, alone).tolist() == expected


@pytest.mark.parametrize(("spec", "name", "options"), BY_SIGNAL)
def test_immediate_rules_bind_as_their_twins(spec, name, options):
    code = make_policy(spec).code
    rng = random.Random(f"{spec} 2")
    for _ in range(many(1500, 400)):
        G = rng.choice([1, 2, 3, 5, 8])
        top = rng.choice([0, 1, 3, 1000])
        load, running, queued, tokens = (np.array([rng.randint(0, top) for _ in range(G)]) for _ in range(4))
        uniforms = np.array([[rng.random(), rng.random()] for _ in range(3)])
        counter = rng.randrange(G)
        i = rng.randrange(3)
        expected = bind(name, running.tolist(), queued.tolist(), (load + tokens).tolist(), tuple(uniforms[i]), counter)
        turn = turn_of(counter)
        shown, none = Shown(load, running, queued, tokens, load[:0]), load[:0]
        worker = fifo.bind(code, i, parameters_of(), shown, none, none, uniforms, turn)
        assert (worker, int(turn.next_worker)) == expected


def test_round_robin_goes_on_where_the_last_decision_stopped():
    # The counter is the one thing that a rule carries from decision to decision; `decide` takes it modulo G.
    observation = Observation(0, 0.0, [0] * 3, [1, 0, 2], [0] * 3, [0] * 3, [0] * 3, [5, 5, 5, 5], [0] * 4, range(4))
    policy = make_policy("round-robin:admission=pooled")
    assert decide(policy, observation, round_robin_at=0).tolist() == [0, 2, 2, -1]
    assert decide(policy, observation, round_robin_at=4).tolist() == [2, 0, 2, -1]


def test_a_decision_leaves_the_observation_as_it_was():
    rng = random.Random(5)
    for spec, _, _ in [*POOLED, random_br_0(rng)]:
        observation = random_observation(rng)
        before = [getattr(observation, name).copy() for name in ("loads", "free_slots", "running", "sizes", "waited")]
        decide(make_policy(spec), observation)
        after = [getattr(observation, name) for name in ("loads", "free_slots", "running", "sizes", "waited")]
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_best_subset_of_a_long_window():
    # Sizes are powers of two, so every total is met by one subset and the margin itself exactly.
    window = 2 ** np.arange(12)
    terms, at, added = records(1, TERM), np.arange(12), np.empty((1, 1), dtype=np.int64)
    terms.reward, terms.penalty, terms.margin = 1, 100, 1000
    assert best_subset(ENUMERATE, 12, terms, window, window[:, None], at, 12, added)[0] == 1000
    two = best_subset(ENUMERATE, 2, terms, window, window[:, None], at, 12, added)[0]
    assert two == 512 + 256  # 1024 would overflow by 24


def test_br_0_scores_telescope_in_what_the_kernel_does():
    """The F-scores of a round add up to the fall of the imbalance that the compiled decision brings about."""
    rng = random.Random(6)
    for _ in range(many(400, 40)):
        spec, _, options = random_br_0(rng)
        observation = random_observation(rng)
        loads = observation.loads.tolist()
        acts = br_0_trace(
            loads, observation.free_slots.tolist(), observation.sizes.tolist(), observation.waited.tolist(), **options
        )
        after = list(loads)
        for size, worker in zip(observation.sizes.tolist(), decide(make_policy(spec), observation), strict=True):
            if worker >= 0:
                after[worker] += size
        assert sum(score for _, _, _, score in acts) == imbalance(loads) - imbalance(after)


@pytest.mark.parametrize("spec", ["jsq-load", "max-min", "max-min:scope=pool", "auto", "br-0"])
def test_renumbering_the_workers_renumbers_the_decision(spec):
    """Without ties a rule by tokens cannot tell a worker by its number."""
    rng = random.Random(7)
    for _ in range(many(300, 30)):
        G, n = rng.randint(1, 7), rng.randint(0, 12)
        loads = np.array([rng.randrange(10**12) for _ in range(G)])
        free = np.array([rng.randint(0, 3) for _ in range(G)])
        sizes = [rng.randrange(10**12) for _ in range(n)]
        if spec == "br-0":
            rule = random_br_0(rng)[0].replace("key=product", "key=lexicographic")
        else:
            rule = spec
        new = np.array(rng.sample(range(G), G))  # old worker g becomes new[g]
        old = np.argsort(new)
        zeros = [0] * G
        decisions = [
            decide(
                make_policy(rule),
                Observation(0, 0.0, loads[order], free[order], zeros, zeros, zeros, sizes, [0] * n, range(n)),
            )
            for order in (np.arange(G), old)
        ]
        assert np.where(decisions[0] >= 0, new[decisions[0]], -1).tolist() == decisions[1].tolist()
