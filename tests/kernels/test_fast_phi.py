"""Expected overflow cost: worked examples to the digit, and the laws that it obeys."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.fast_phi_states import observation_of, random_options, random_state
from kernels.rules import many
from naive.fast_phi import FastPhiOptions, FastPhiState, fast_phi, fast_phi_costs
from scipy.signal import fftconvolve

from lbopt.kernels.forecast.state import Samples
from lbopt.kernels.routing.fast_phi import projection, quadrature, route
from lbopt.kernels.routing.fast_phi.state import Board, Entries, How, Law
from lbopt.policies import make_policy

NO_SLOTS = np.empty(0, dtype=np.int64)
EMPTY = np.empty(0)
X2 = FastPhiState(2, [2, 4, 4, 6], [(0, 10, 0, []), (0, 5, 2, []), (1, 8, 1, []), (1, 3, 3, [])], [(4, [])])


def costs(load, nodes, coefficient, size, *, drift=0.0, by_mean=False, growth=1):
    """The costs of every worker from loads (K, G)."""
    load = np.ascontiguousarray(load, dtype=np.float64)
    G = load.shape[1]
    coefficient = np.asarray(coefficient, dtype=np.float64)
    board = Board(
        np.asarray(nodes, dtype=np.int64), load, load.max(axis=1), *np.zeros((2, G), dtype=np.int64), cost=np.empty(G)
    )
    route.overflow_costs(board, Law(coefficient, coefficient), How(drift, by_mean, growth, True), size)
    return board.cost


def curve_of(outputs, steps=None):
    outputs = np.sort(np.asarray(outputs, dtype=np.int64))
    curve = np.empty(int(outputs[-1]) if steps is None else steps)
    assert projection.survival_curve(outputs, np.array([0, outputs.size]), 0, curve)
    return curve


def exact(state, size, spec="nodes=all"):
    state = FastPhiState(state.num_workers, state.everybody, state.running, [(size, [])])
    return make_policy(f"fast-phi:{spec}").costs(observation_of(state))


@pytest.fixture
def x2_loads():
    policy = make_policy("fast-phi:nodes=all")
    policy.costs(observation_of(X2))
    return policy.fleet.board.load


def test_x2_loads_and_costs_to_the_digit(x2_loads):
    assert curve_of(X2.everybody).tolist() == [1, 1, 0.75, 0.75, 0.25, 0.25]
    assert np.round(x2_loads[:, 0], 4).tolist() == [17, 19, 12, 13.0833, 3.5, 3.75]
    assert np.round(x2_loads[:, 1], 4).tolist() == [15, 9.8333, 10.9167, 3, 3.25, 0]
    margin = x2_loads.max(axis=1) - x2_loads[:, 1]
    assert np.round(margin, 4).tolist() == [2, 9.1667, 1.0833, 10.0833, 0.25, 3.75]
    h, S = np.arange(6), curve_of(X2.everybody)
    assert (S * (1 + h - margin).clip(0)).tolist() == pytest.approx([0, 0, 1.4375, 0, 1.1875, 0.5625], abs=1e-12)
    assert exact(X2, 1).tolist() == pytest.approx([11, 3.1875], rel=1e-14)
    assert exact(X2, 4).tolist() == pytest.approx([23, 8.9375], rel=1e-14)


def test_x2_idle_identity():
    """Change of expected idle tokens = G times the cost, minus what the request itself brings."""
    S, h = curve_of(X2.everybody), np.arange(6)
    for size, idle in ((4, [23, -5.125]), (1, [11, -4.625])):
        assert (2 * exact(X2, size) - (S * (size + h)).sum()).tolist() == pytest.approx(idle, rel=1e-14)


def test_x2_three_nodes(x2_loads):
    nodes, S = np.array([0, 2, 5]), curve_of(X2.everybody)
    at_nodes = x2_loads[nodes]
    weights = np.empty(3)
    quadrature.product_weights(S, nodes, weights)
    assert np.round(weights, 4).tolist() == [1.5, 1.8333, 0.6667]
    assert weights.sum() == pytest.approx(4, rel=1e-14)  # E[O]
    assert np.round(costs(at_nodes, nodes, weights, 4), 4).tolist() == [23, 15.5139]
    quadrature.trapezoid_weights(nodes, False, weights)
    assert weights.tolist() == [1, 2.5, 1.5]
    assert costs(at_nodes, nodes, weights * S[nodes], 4).tolist() == pytest.approx([18.625, 13.1875], rel=1e-14)
    quadrature.trapezoid_weights(nodes, True, weights)
    assert weights.tolist() == [1.5, 2.5, 2]
    assert costs(at_nodes, nodes, weights * S[nodes], 4).tolist() == pytest.approx([21.75, 14.84375], rel=1e-14)


def test_x2_drift_terms(x2_loads):
    S, h = curve_of(X2.everybody), np.arange(6)
    drift = costs(x2_loads, h, S, 4, drift=1.0) - costs(x2_loads, h, S, 4)
    assert np.round(drift, 4).tolist() == [60.2917, -60.2917]


def test_expected_idle_against_brute_force():
    """Every combination of who lives how long, one step after the other, where loads are known (one sample each)."""
    rng = random.Random(2)
    for _ in range(many(200, 40)):
        G = rng.randint(1, 4)
        running = [(rng.randrange(G), rng.randint(0, 20), age := rng.randint(0, 5), [age + rng.randint(1, 9)])
                   for _ in range(rng.randint(0, 6))]  # fmt: skip
        outputs, size = [rng.randint(1, 12) for _ in range(rng.randint(1, 5))], rng.randint(0, 20)
        policy = make_policy("fast-phi:nodes=all")
        found = policy.costs(observation_of(FastPhiState(G, [], running, [(size, outputs)])))

        def idle(extra, output, running=running, G=G, size=size):
            total = 0
            for h in range(30):
                loads = [0] * G
                for g, prompt, age, (end,) in running:
                    loads[g] += prompt + age + h if end > age + h else 0
                if extra is not None and h < output:
                    loads[extra] += size + h
                total += G * max(loads) - sum(loads)
            return total

        brings = sum(sum(size + h for h in range(o)) for o in outputs) / len(outputs)
        for g in range(G):
            change = sum(idle(g, o) - idle(None, o) for o in outputs) / len(outputs)
            assert G * found[g] - brings == pytest.approx(change, abs=1e-9)


def test_every_step_is_the_sum_itself_and_a_plain_trapezoid_lacks_half_its_ends():
    rng = random.Random(3)
    for _ in range(many(300, 60)):
        state = random_state(rng, "survival")
        size = state.waiting[0][0]
        policy = make_policy("fast-phi:nodes=all,rule=" + rng.choice(["published", "product"]))
        found = policy.costs(observation_of(state))
        T = max(state.everybody)
        assert policy.fleet.nodes.tolist() == list(range(T))
        S = [sum(o > h for o in state.everybody) / len(state.everybody) for h in range(T)]
        _, seen = fast_phi(state, FastPhiOptions(nodes=0))
        assert found == pytest.approx(seen[0], rel=1e-12, abs=1e-12)
        load, nodes = policy.fleet.board.load, np.arange(T)
        if T == 1:
            continue
        weights = np.empty(T)
        quadrature.trapezoid_weights(nodes, True, weights)
        assert weights.tolist() == [1] * T
        quadrature.trapezoid_weights(nodes, False, weights)
        ends = [S[h] * (size + h - (load[h].max() - load[h])).clip(0) for h in (0, T - 1)]
        plain = costs(load, nodes, weights * S, size)
        assert plain == pytest.approx(found - (ends[0] + ends[1]) / 2, rel=1e-12, abs=1e-9)


def test_geometric_survival_is_the_penalty_of_br_h():
    """Without growth, cut at one H: beta times the cost is alpha D s - F, so least cost is largest F."""
    rng = random.Random(4)
    for _ in range(many(500, 100)):
        gamma, H, beta, alpha = rng.choice([0.5, 0.9, 1]), rng.choice([0, 3, 20, 80]), rng.choice([1, 8, 48]), 1
        state = random_state(rng, "survival")
        size = state.waiting[0][0]
        spec = f"fast-phi:nodes=all,weights=geometric,gamma={gamma},growth=no,longest={H}"
        found = make_policy(spec).costs(observation_of(state))
        loads = [0] * state.num_workers
        for g, prompt, age, _ in state.running:
            loads[g] += prompt + age
        for g, prompt, _ in state.queued:
            loads[g] += prompt
        D = sum(gamma**h for h in range(H + 1))
        F = []
        for g in range(state.num_workers):
            margins = [gamma**h * (max(loads) - loads[g]) for h in range(H + 1)]
            F.append(alpha * D * size - beta * sum(gamma**h * max(0, size - m) for h, m in enumerate(margins)))
        assert beta * found == pytest.approx(alpha * D * size - np.array(F), rel=1e-12, abs=1e-8)
        assert F[int(np.argmin(found))] == pytest.approx(max(F), rel=1e-12, abs=1e-8)


def test_geometric_survival_forgets_ages():
    state = FastPhiState(2, [9, 30], [(0, 10, 0, []), (0, 2, 8, []), (1, 0, 40, [])], [(3, [])])
    policy = make_policy("fast-phi:nodes=all,weights=geometric,gamma=0.5,longest=12")
    policy.costs(observation_of(state))
    h = np.arange(13)
    assert policy.fleet.board.load[:, 0] == pytest.approx(0.5**h * (20 + 2 * h), rel=1e-14)
    assert policy.fleet.board.load[:, 1] == pytest.approx(0.5**h * (40 + h), rel=1e-14)


def test_outputs_all_alike_are_a_hard_cut():
    state = FastPhiState(2, [6] * 3, [(0, 10, 2, []), (1, 9, 5, [])], [(4, [])])
    policy = make_policy("fast-phi:nodes=all")
    found = policy.costs(observation_of(state))
    assert policy.fleet.board.load[:, 0].tolist() == [12, 13, 14, 15, 0, 0]
    assert policy.fleet.board.load[:, 1].tolist() == [14, 0, 0, 0, 0, 0]
    margin = policy.fleet.board.load.max(axis=1, keepdims=True) - policy.fleet.board.load
    assert found.tolist() == [sum(max(0, 4 + h - margin[h, g]) for h in range(6)) for g in range(2)]


def test_beyond_all_samples_a_request_stays_or_leaves():
    state = FastPhiState(1, [3, 5], [(0, 10, 7, [])], [(4, [])])
    for beyond, loads in (("stays", [17, 18, 19, 20, 21]), ("leaves", [17, 0, 0, 0, 0])):
        policy = make_policy(f"fast-phi:nodes=all,beyond={beyond}")
        policy.costs(observation_of(state))
        assert policy.fleet.board.load[:, 0].tolist() == loads


LOADS = st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=2, max_size=6)


@pytest.mark.more
@settings(deadline=None, max_examples=many(100, 20))
@given(LOADS, st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(0, 10**6), st.integers(1, 1000))
def test_cost_rises_with_the_size_and_bends_upwards(loads, outputs, size, more):
    load = np.array(loads).T
    nodes = np.array([0, 4, 20])
    c = curve_of(outputs, 61)[nodes]
    low, middle, high = (costs(load, nodes, c, size + d) for d in (0, more, 2 * more))
    slack = 1e-9 * (1 + high)
    assert (middle >= low - slack).all()
    assert (middle - low <= high - middle + slack).all()


@settings(deadline=None, max_examples=many(100, 20))
@given(LOADS, st.integers(0, 10**6), st.integers(0, 2), st.floats(0, 1))
def test_cost_falls_with_the_margin_and_is_largest_on_the_heaviest(loads, size, k, share):
    load = np.array(loads).T
    nodes, c = np.array([0, 4, 20]), np.array([1, 0.5, 0.25])
    before = costs(load, nodes, c, size)
    assert (before <= (c * (size + nodes)).sum() * (1 + 1e-12) + 1e-6).all()
    g = int(np.argmin(load[k]))
    if load[k, g] < load[k].max():  # lighter at one node, with the envelope as it was
        lighter = load.copy()
        lighter[k, g] *= share
        assert costs(lighter, nodes, c, size)[g] <= before[g] + 1e-6
    heaviest = load.copy()
    heaviest[:, 0] = load.max(axis=1)
    assert costs(heaviest, nodes, c, size)[0] == pytest.approx((c * (size + nodes)).sum(), rel=1e-9, abs=1e-6)


def test_margins_are_those_of_an_envelope():
    rng = random.Random(5)
    for _ in range(many(200, 40)):
        state = random_state(rng)
        policy = make_policy("fast-phi:" + random_options(rng)[0])
        observation = observation_of(state)
        policy.costs(observation)
        fleet = policy.fleet
        assert np.array_equal(fleet.board.load[0], observation.loads + observation.queued_tokens)
        assert np.array_equal(fleet.board.peak, fleet.board.load.max(axis=1))
        assert (np.diff(fleet.nodes) > 0).all() and fleet.nodes[0] == 0


def random_projection(rng, G=3, A=60, T=300):
    outputs = np.sort(rng.integers(1, T + 1, 200))
    age = rng.integers(0, int(outputs[-1]), A)
    return outputs, rng.integers(0, G, A), rng.integers(0, 500, A) + age, age


def projected(outputs, worker, size, age, nodes, G):
    counts = np.empty(int(outputs[-1]))
    projection.count_beyond(outputs, 0, outputs.size, counts)
    load = np.empty((nodes.size, G))
    ones, bucket = np.ones_like(worker), np.zeros_like(worker)
    starts = np.array([0, outputs.size])
    samples = Samples(outputs, starts, np.empty(0, dtype=np.int64))
    projection.project(samples, counts, EMPTY, nodes, 1, True, Entries(worker, size, ones, age, bucket), load)
    return load


def test_projection_by_fft_and_by_the_step_agree():
    """The loads of all steps are two cross-correlations over ages; any set of nodes has the same loads."""
    rng = np.random.default_rng(6)
    for _ in range(many(20, 3)):
        outputs, worker, size, age = random_projection(rng)
        T, G = int(outputs[-1]), 3
        every = projected(outputs, worker, size, age, np.arange(T), G)
        S = curve_of(outputs)
        for g in range(G):
            here = worker == g
            A, B = np.zeros(T), np.zeros(T)
            np.add.at(A, age[here], size[here] / S[age[here]])
            np.add.at(B, age[here], 1 / S[age[here]])
            by_fft = fftconvolve(S, A[::-1])[T - 1 :] + np.arange(T) * fftconvolve(S, B[::-1])[T - 1 :]
            assert every[:, g] == pytest.approx(by_fft, rel=1e-9, abs=1e-9 * every.max())
        nodes = np.unique(rng.integers(0, T, 7))
        nodes[0] = 0
        assert projected(outputs, worker, size, age, nodes, G) == pytest.approx(every[nodes], rel=1e-12)


def test_placing_changes_the_projection_as_a_rebuild_would():
    rng = random.Random(7)
    for _ in range(many(500, 100)):
        state = random_state(rng, rng.choice(["survival", "memorised"]))
        state.queued = []
        spec = "fast-phi:" + random_options(rng)[0]
        policy = make_policy(spec)
        observation = observation_of(state)
        workers = policy.decide(observation)
        placed = [(int(g), size, 0, own) for g, (size, own) in zip(workers, state.waiting, strict=True)]
        after = FastPhiState(state.num_workers, state.everybody, state.running + placed, state.waiting)
        fresh = make_policy(spec)
        fresh.costs(observation_of(after))
        assert policy.fleet.board.load == pytest.approx(fresh.fleet.board.load, rel=1e-12, abs=1e-9)
        assert policy.fleet.board.peak == pytest.approx(fresh.fleet.board.peak, rel=1e-12, abs=1e-9)
        assert policy.fleet.board.tokens.tolist() == fresh.fleet.board.tokens.tolist()
        assert policy.fleet.board.requests.tolist() == fresh.fleet.board.requests.tolist()


def test_product_weights_sum_to_the_mean_output_and_keep_their_bound():
    rng = np.random.default_rng(8)
    for _ in range(many(60, 10)):
        outputs = np.sort(np.rint(rng.lognormal(4, 1.1, 80)).clip(1, 900).astype(np.int64))
        S = curve_of(outputs)
        phi = np.abs(np.cumsum(np.cumsum(rng.normal(size=S.size))))
        for K in (2, 5, 12):
            nodes = np.zeros(K, dtype=np.int64)
            nodes = nodes[: quadrature.root_nodes(S, nodes)]
            assert nodes[-1] == S.size - 1
            weights = np.empty(nodes.size)
            quadrature.product_weights(S, nodes, weights)
            assert weights.sum() == pytest.approx(outputs.mean(), rel=1e-12)
            bends = np.abs(np.diff(phi, 2))
            bound = sum((b - a) / 4 * bends[a : b - 1].sum() * S[a + 1 : b].sum() for a, b in pairwise(nodes.tolist()))
            assert abs((weights * phi[nodes]).sum() - (S * phi).sum()) <= bound * (1 + 1e-9)


def test_the_error_falls_with_the_square_of_the_nodes():
    h = np.arange(4000)
    S = np.exp(-h / 500)
    phi = 2000 + h - 3000 * np.exp(-h / 300)
    errors = []
    for K in (20, 40, 80, 160):
        nodes = np.zeros(K, dtype=np.int64)
        nodes = nodes[: quadrature.root_nodes(S, nodes)]
        weights = np.empty(nodes.size)
        quadrature.product_weights(S, nodes, weights)
        errors.append(abs((weights * phi[nodes]).sum() - (S * phi).sum()))
    slope = np.polyfit(np.log([20, 40, 80, 160]), np.log(errors), 1)[0]
    assert -2.15 < slope < -1.85


def test_monte_carlo_agrees():
    """With loads frozen, the mean overflow over sampled outputs is the cost."""
    rng = np.random.default_rng(9)
    outputs = np.sort(np.rint(rng.lognormal(4, 0.8, 500)).clip(1, 600).astype(np.int64))
    T = int(outputs[-1])
    load = np.cumsum(rng.normal(0, 30, (T, 3)), axis=0) + 1000
    expected = costs(load, np.arange(T), curve_of(outputs), 50)
    over = np.cumsum((50 + np.arange(T)[:, None] - (load.max(axis=1, keepdims=True) - load)).clip(0), axis=0)
    drawn = over[rng.choice(outputs, 40_000) - 1]
    error = drawn.std(axis=0) / math.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - expected) < 4 * error).all()
    assert over[outputs - 1].mean(axis=0) == pytest.approx(expected, rel=1e-12)


def test_renumbering_the_workers_renumbers_the_costs():
    rng = random.Random(10)
    for _ in range(many(300, 60)):
        state = random_state(rng)
        spec = "fast-phi:" + random_options(rng)[0]
        new = rng.sample(range(state.num_workers), state.num_workers)
        moved = FastPhiState(
            state.num_workers,
            state.everybody,
            [(new[g], *rest) for g, *rest in state.running],
            state.waiting,
            [(new[g], *rest) for g, *rest in state.queued],
        )
        before, after = (make_policy(spec).costs(observation_of(s)) for s in (state, moved))
        assert after[new] == pytest.approx(before, rel=1e-12, abs=1e-9)


def test_ties_go_to_the_lightest_or_to_the_lowest_number():
    cost, tokens = np.array([2.0, 1.0, 1.0, 1.0]), np.array([0, 9, 7, 7])
    assert route.cheapest(cost, tokens, NO_SLOTS, True) == 2
    assert route.cheapest(cost, tokens, NO_SLOTS, False) == 1
    assert route.cheapest(cost, tokens, np.array([1, 0, 0, 1]), False) == 3
    assert route.cheapest(cost, tokens, np.array([0, 0, 0, 0]), True) == -1


def test_the_naive_costs_are_the_kernels():
    rng = np.random.default_rng(11)
    for by_mean in (False, True):
        load = rng.uniform(0, 100, (4, 3))
        nodes, c = [0, 2, 5, 9], rng.uniform(0, 2, 4)
        options = FastPhiOptions(drift=0.3, drift_by_mean=by_mean)
        naive = fast_phi_costs(load.T.tolist(), nodes, c.tolist(), 20, options)
        assert costs(load, nodes, c, 20, drift=0.3, by_mean=by_mean) == pytest.approx(naive, rel=1e-12)
