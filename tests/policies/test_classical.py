"""Rules of BF-IO's appendix: each decides as its definition, written down a second time, and keeps to the slots."""

import math

import numpy as np
import pytest

from lbopt import simulate
from lbopt.exceptions import InputError
from lbopt.policies import make_policy
from lbopt.policies.observation import Observation

RULES = ("min-min", "power-of-d:d=2", "throttled:threshold=3", "honey-bee", "olb-lbmm:every=2", "carton", "ant-colony")


def observation(rng, step, workers=None):
    G, n = workers or int(rng.integers(1, 6)), int(rng.integers(0, 9))
    return Observation(
        step=step,
        clock=0.0,
        loads=rng.integers(0, 50, G),
        free_slots=rng.integers(0, 4, G),
        running=rng.integers(0, 5, G),
        queued=np.zeros(G),
        queued_tokens=np.zeros(G),
        sizes=rng.integers(1, 40, n),
        waited=np.zeros(n),
        requests=rng.permutation(100)[:n],
    )


def greedy(seen, order, least):
    """Place requests in this order, each where `least` is least among workers with a free slot; the lowest on ties."""
    load, count, free = seen.loads.tolist(), seen.running.tolist(), seen.free_slots.tolist()
    chosen = [-1] * seen.sizes.size
    for i in order:
        g = min((g for g in range(len(free)) if free[g]), key=lambda g: (least(load, count, i)[g], g))
        chosen[i] = g
        load[g], count[g], free[g] = load[g] + int(seen.sizes[i]), count[g] + 1, free[g] - 1
    return chosen


def by_size(seen):
    return sorted(range(seen.num_admissible), key=lambda i: (seen.sizes[i], i))


def drawn_ones(seen, i, free, d):
    rng = np.random.default_rng([0, seen.step, int(seen.requests[i])])
    return set(rng.choice(free, min(d, len(free)), replace=False).tolist())


def power_of_d(seen, d):
    load, count, free = seen.loads.tolist(), seen.running.tolist(), seen.free_slots.tolist()
    chosen = [-1] * seen.sizes.size
    for i in range(seen.num_admissible):
        drawn = drawn_ones(seen, i, [g for g in range(len(free)) if free[g]], d)
        g = min(drawn, key=lambda g: (count[g], g))
        chosen[i], load[g], count[g], free[g] = g, load[g] + seen.sizes[i], count[g] + 1, free[g] - 1
    return chosen


def throttled(seen, threshold):
    count, free, chosen = seen.running.tolist(), seen.free_slots.tolist(), [-1] * seen.sizes.size
    for i in range(seen.num_admissible):
        takes = [g for g in range(len(free)) if free[g] and count[g] < threshold]
        if not takes:
            return chosen
        chosen[i], count[takes[0]], free[takes[0]] = takes[0], count[takes[0]] + 1, free[takes[0]] - 1
    return chosen


def honey_bee(seen):
    load, free, chosen = seen.loads.tolist(), seen.free_slots.tolist(), [-1] * seen.sizes.size
    for i in range(seen.num_admissible):
        mean = max(1.0, sum(load) / len(load))
        left = np.random.default_rng([0, seen.step, int(seen.requests[i])]).random()
        workers = [g for g in range(len(free)) if free[g]]
        weights = [math.exp(-4.0 * load[g] / mean) for g in workers]
        g = workers[-1]
        for worker, weight in zip(workers, weights, strict=True):
            left -= weight / sum(weights)
            if left < 0:
                g = worker
                break
        chosen[i], load[g], free[g] = g, load[g] + int(seen.sizes[i]), free[g] - 1
    return chosen


TWINS = {
    "min-min": lambda seen: greedy(seen, by_size(seen), lambda load, count, i: load),
    "power-of-d:d=2": lambda seen: power_of_d(seen, 2),
    "power-of-d": lambda seen: power_of_d(seen, 3),
    "throttled:threshold=3": lambda seen: throttled(seen, 3),
    "throttled": lambda seen: throttled(seen, 10**9),
    "honey-bee": honey_bee,
    "olb-lbmm:every=2": lambda seen: (
        greedy(seen, range(seen.num_admissible), lambda load, count, i: count)
        if seen.step % 2
        else greedy(seen, by_size(seen), lambda load, count, i: load)
    ),
}


@pytest.mark.parametrize("rule", TWINS)
def test_as_defined(rule):
    rng = np.random.default_rng(1)
    policy = make_policy(rule)
    for step in range(300):
        seen = observation(rng, step)
        assert policy.decide(seen).tolist() == TWINS[rule](seen), step


def test_credit_of_carton_is_what_was_shared_out_less_what_was_placed():
    policy, smooth, credit = make_policy("carton:smoothing=0.5"), None, 0.0
    for step in range(100):
        seen = observation(np.random.default_rng([3, step]), step, workers=3)
        smooth = seen.loads / 1.0 if smooth is None else smooth + 0.5 * (seen.loads - smooth)
        part = 1.0 / (1.0 + smooth)
        credit = credit + seen.sizes[: seen.num_admissible].sum() * part / part.sum()
        free = seen.free_slots.copy()
        for i, g in enumerate(policy.decide(seen).tolist()):
            if g >= 0:
                assert credit[g] == pytest.approx(credit[free > 0].max())
                credit[g] -= seen.sizes[i]
                free[g] -= 1


def test_ants_find_what_is_best_for_two_workers():
    """Of all placements of six requests on two workers theirs has the least largest load."""
    rng = np.random.default_rng(4)
    reached = 0
    for step in range(20):
        sizes = rng.integers(1, 40, 6)
        seen = Observation(step, 0.0, [0, 0], [3, 3], [0, 0], [0, 0], [0, 0], sizes, [0] * 6, range(6))
        chosen = make_policy("ant-colony:ants=20,rounds=10").decide(seen)
        found = max(int(sizes[chosen == g].sum()) for g in (0, 1))
        best = min(
            max(
                sum(s for k, s in enumerate(sizes) if bits >> k & 1),
                sum(s for k, s in enumerate(sizes) if not bits >> k & 1),
            )
            for bits in range(64)
            if bits.bit_count() == 3
        )
        assert found >= best
        reached += found == best
    assert reached >= 18


def test_a_run_serves_everybody():
    for rule in RULES:
        run = simulate("burstgpt-like", rule, requests=100, workers=3, slots=5, seed=1)
        worker, start, end = (run.requests[name] for name in ("worker", "start_step", "finish_step"))
        assert (end >= start).all(), rule
        assert set(worker.tolist()) <= {0, 1, 2}, rule
        assert max(((start <= k) & (k < end) & (worker == 0)).sum() for k in start.tolist()) <= 5, rule
        assert run.policy == rule


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("power-of-d:d=0", "policy 'power-of-d': d is 0; expected 1 to"),
        ("honey-bee:bias=-1", "bias is -1"),
        ("carton:smoothing=2", "smoothing is 2"),
        ("ant-colony:fading=1.5", "fading is 1.5"),
        ("throttled:threshold=0", "threshold is 0"),
        ("olb-lbmm:every=0", "every is 0"),
        ("min-min:scope=all", "policy 'min-min': scope is 'all'; expected oldest or pool"),
    ],
)
def test_refused_in_one_sentence(rule, said):
    with pytest.raises(InputError, match=said):
        make_policy(rule)
