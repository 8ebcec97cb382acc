"""BR-H: the compiled rounds, projections and subset choices beside the naive ones, and what theory says of them."""

import random
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.rules import many, random_observation
from naive import imbalance

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import records
from lbopt.kernels.routing import balance_route as rounds
from lbopt.kernels.routing import horizon as windowed
from lbopt.kernels.routing import projection
from lbopt.kernels.routing.horizon import TERM, peak, score
from lbopt.kernels.routing.state import parameters_of
from lbopt.policies import ActiveRequests, make_policy
from lbopt.policies.br_h import weights
from lbopt.policies.decide import decide
from lbopt.policies.projection import expected_loads
from lbopt.predictors.predictor import buckets_by_key, one_bucket

twin = import_module("naive.br_h")  # the name in the package is that of the function


def random_round(rng):
    """A scheduling round: few and many columns, ties and none, closed workers, any options."""
    G, H, n = rng.choice([1, 2, 3, 4, 6]), rng.choice([0, 1, 3, 8, 20]), rng.choice([0, 1, 2, 4, 7, 12])
    top = rng.choice([0, 1, 3, 20, 1000, 10**6])
    few = [rng.randint(0, top) for _ in range(3)]
    size = rng.choice([lambda: rng.randint(0, top), lambda: rng.choice(few)])
    resident = rng.choice([1, 4]) * top
    flat = rng.random() < 0.3
    projected = []
    for _ in range(G):
        row = [rng.randint(0, resident) if rng.random() < 0.8 else rng.choice(few) for _ in range(H + 1)]
        projected.append([row[0]] * (H + 1) if flat else row)
    slots = rng.choice([0, 1, 2, 4])
    return {
        "projected": projected,
        "free": [rng.randint(0, slots) for _ in range(G)],
        "sizes": [size() for _ in range(n)],
        "waited": sorted((rng.randint(0, 8) for _ in range(n)), reverse=True),
        "stage_switch": rng.choice([0, 1, 2, 5, 7, 99]),
        "window_size": rng.randint(1, 5),
        "window_order": rng.choice(["size", "arrival"]),
        "key": rng.choice(["lexicographic", "product"]),
        "age_bound": rng.choice([None, None, 0, 1, 3, 6]),
    }


def random_weights(rng, horizon):
    alpha, beta = rng.choice([1.0, 1.0, 0.7]), rng.choice([0.0, 0.5, 1.0, 2.0, 3.0, 8.0, 48.0])
    gamma = rng.choice([1.0, 0.9, 0.86, 0.5, 0.01])
    return weights(horizon, alpha, beta, gamma, 27)


def told(*values):
    """What a router is told, int64: it can be read only, and kernels are compiled for that."""
    arrays = [np.array(value, dtype=np.int64) for value in values]
    for array in arrays:
        array.setflags(write=False)
    return arrays


def terms_of(rewards, penalties, margins):
    """What a step is worth on a worker, as kernels take it."""
    terms = records(len(rewards), TERM)
    terms.reward, terms.penalty, terms.margin = rewards, penalties, margins
    return terms


def score_of(terms, delta):
    """F of a batch of so many tokens that counts as constant."""
    return int(score(terms, np.array([[delta]]), 0))


def best_subset(method, terms, window, most):
    """The best subset of requests of these sizes that count as constant, and its F."""
    places, added = np.arange(window.size), np.empty((1, 1), dtype=np.int64)
    return windowed.best_subset(method, most, terms, window, window[:, None], places, window.size, added)


def compiled_round(case, rewards, penalties, subset=windowed.ENUMERATE, profiles=None):
    n = len(case["sizes"])
    parameters = parameters_of(
        stage_switch=case["stage_switch"],
        window_size=case["window_size"],
        window_by_arrival=case["window_order"] == "arrival",
        key_product=case["key"] == "product",
        age_bound=-1 if case["age_bound"] is None else case["age_bound"],
        subset=subset,
    )
    projected = np.array(case["projected"], dtype=np.int64)
    free, choice = np.array(case["free"], dtype=np.int64), np.zeros(n, dtype=np.int64)
    sizes, waited = told(case["sizes"], case["waited"])
    (work,) = told(case["sizes"] if profiles is None else profiles)
    work = work.reshape(n, 1 if profiles is None else penalties.size)
    terms = terms_of(rewards, penalties, penalties)
    rounds.balance_route(parameters, terms, projected, free, waited, sizes, work, choice)
    placed = np.bincount(choice[choice >= 0], minlength=free.size)
    assert (free + placed).tolist() == case["free"]  # a slot is gone for each that is placed, and for nobody else
    if profiles is None:
        given = np.bincount(choice[choice >= 0], weights=sizes[choice >= 0], minlength=free.size)
        assert (projected - given[:, None]).tolist() == case["projected"]
    return choice.tolist()


@pytest.mark.parametrize("block", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 3, 4))])
def test_ten_thousand_rounds_as_the_twin(block):
    rng = random.Random(f"br-h {block}")
    for _ in range(many(2000, 60)):
        case = random_round(rng)
        rewards, penalties = random_weights(rng, len(case["projected"][0]) - 1)
        expected = twin.br_h(**case, rewards=rewards.tolist(), penalties=penalties.tolist())
        assert compiled_round(case, rewards, penalties) == expected, case


def test_rounds_by_profile_as_the_twin():
    rng = random.Random("br-h profile")
    for _ in range(many(1500, 60)):
        case = random_round(rng)
        H = len(case["projected"][0]) - 1
        rewards, penalties = random_weights(rng, H)
        ends = [rng.choice([1, 2, max(1, H), H + 1]) for _ in case["sizes"]]
        profiles = [
            [(size + h) * (h < end) for h in range(H + 1)] for size, end in zip(case["sizes"], ends, strict=True)
        ]
        expected = twin.br_h(**case, rewards=rewards.tolist(), penalties=penalties.tolist(), profile=profiles)
        assert compiled_round(case, rewards, penalties, profiles=profiles) == expected, case


@pytest.mark.parametrize(("reward", "expected"), [(1, [0, 0]), (0, [0, 1])])
def test_a_score_of_one_unit_is_a_gain_and_of_none_is_not(reward, expected):
    """Two requests of one token, margins of 1 and 0: together they score 1 on worker 0, as one of them does."""
    options = {"stage_switch": 99, "window_size": 4, "window_order": "size", "key": "lexicographic", "age_bound": None}
    case = {"projected": [[4], [5]], "free": [2, 2], "sizes": [1, 1], "waited": [0, 0], **options}
    assert twin.br_h(**case, rewards=[reward], penalties=[1]) == expected
    assert compiled_round(case, np.array([reward]), np.array([1])) == expected
    profiles = [[1], [1]]
    assert compiled_round(case, np.array([reward]), np.array([1]), profiles=profiles) == expected


@pytest.mark.parametrize("by_profile", [False, True])
def test_rounds_with_weights_of_a_few_units_as_the_twin(by_profile):
    """Scores of 0 and of 1 are common here: a batch without gain gives way to the best single request."""
    rng = random.Random(f"br-h units {by_profile}")
    for _ in range(many(1000, 150)):
        H, G, n = rng.choice([0, 0, 1, 2]), rng.randint(1, 3), rng.randint(1, 6)
        case = random_round(rng) | {
            "projected": [[rng.randint(0, 6) for _ in range(H + 1)] for _ in range(G)],
            "free": [rng.randint(0, 3) for _ in range(G)],
            "sizes": [rng.randint(0, 5) for _ in range(n)],
            "waited": [0] * n,
            "stage_switch": rng.choice([0, 99]),
            "age_bound": None,
        }
        rewards, penalties = (np.array([rng.randint(0, 2) for _ in range(H + 1)]) for _ in range(2))
        profiles = [[size] * (H + 1) for size in case["sizes"]] if by_profile else None
        options = {"rewards": rewards.tolist(), "penalties": penalties.tolist()}
        expected = twin.br_h(**case, **options, **({"profile": profiles} if by_profile else {}))
        assert compiled_round(case, rewards, penalties, profiles=profiles) == expected, case


def test_the_weights_are_those_of_the_twin():
    for horizon, alpha, beta, gamma in ((0, 1, 8, 0.9), (80, 1, 48, 0.9), (20, 0.5, 43, 0.86), (40, 1, 0, 1.0)):
        rewards, penalties = weights(horizon, alpha, beta, gamma, 27)
        shift = int(np.log2(rewards[0] / alpha))
        assert (rewards.tolist(), penalties.tolist()) == twin.weights(horizon, alpha, beta, gamma, shift)
        assert (rewards.sum() + penalties.sum()) * 2**27 < 2**62


def test_the_largest_loads_have_weights_and_larger_ones_are_refused():
    """With rewards and penalties that add up to 2, two units of weight are left for loads below 2^59, one beyond."""
    rewards, penalties = weights(0, 1.0, 1.0, 0.9, 59)
    assert (rewards.tolist(), penalties.tolist()) == ([2], [2])
    with pytest.raises(InputError, match=r"loads of 2\^60 tokens are too large for alpha 1, beta 1 and horizon 0"):
        weights(0, 1.0, 1.0, 0.9, 60)


@pytest.mark.more
def test_three_ways_to_choose_a_subset_agree_on_the_score():
    rng = random.Random("subsets")
    for _ in range(many(4000, 150)):
        H, length = rng.choice([0, 2, 8]), rng.randint(1, 7)
        top = rng.choice([1, 5, 300, 4000])
        margins = np.array([rng.randint(0, 2 * top) for _ in range(H + 1)])
        window = np.array([rng.randint(0, top) for _ in range(length)])
        rewards, penalties = random_weights(rng, H)
        most = rng.randint(1, length)
        scores = []
        for method in (windowed.ENUMERATE, windowed.BIT_SET, windowed.ALL_SUMS):
            mask, found = best_subset(method, terms_of(rewards, penalties, margins), window, most)
            assert 1 <= bin(mask).count("1") <= most
            assert mask < 1 << length
            total = sum(int(window[j]) for j in range(length) if mask >> j & 1)
            scores.append(score_of(terms_of(rewards, penalties, margins), total))
            assert scores[-1] == found
        assert len(set(scores)) == 1, (margins, window, most, scores)


def test_probing_at_the_smallest_margin_would_be_wrong():
    """E6 of the sheet: the weighted quantile is 100, the smallest margin 40, and 90 is the best single request."""
    rewards, penalties = weights(3, 1.0, 2.0, 0.9, 27)
    margins, window = np.array([100, 40, 100, 100]), np.array([90, 70, 50, 30])
    assert peak(terms_of(rewards, penalties, margins)) == 100
    for method in range(3):
        assert best_subset(method, terms_of(rewards, penalties, margins), window, 1)[0] == 1


def test_worked_example_e3():
    """E3 of the sheet: projections, margins, scores at four sizes and the peaks for four prices of overflow."""
    worker = np.array([0, 0, 1, 1, 2, 2])
    remaining = np.array([4.0, 2.0, 4.0, 4.0, 1.0, 4.0])
    size, load, running = told([500, 300, 400, 250, 600, 100], [800, 650, 700], [2, 2, 2])
    projected = np.empty((3, 5), dtype=np.int64)
    leaving = projection.Leaving(worker, size, remaining, remaining == 4)
    projection.project(load, running, leaving, 1, False, False, projected)
    assert projected.tolist() == [[800, 802, 502, 503, 504], [650, 652, 654, 656, 658], [700, 101, 102, 103, 104]]
    envelope = projected.max(axis=0)
    margins = envelope - projected
    rewards, penalties = weights(4, 1.0, 3.0, 0.9, 27)
    unit = rewards[0]
    expected = {
        50: (-80.245, -124.510, 204.755),
        150: (-240.735, -373.530, 464.265),
        260: (-1122.3628, -1274.452, 584.726),
        400: (-2268.991, -2421.080, 738.040),
    }
    for delta, scores in expected.items():
        found = [score_of(terms_of(rewards, penalties, margins[g]), delta) / unit for g in range(3)]
        assert np.allclose(found, scores, atol=1e-4)
    for beta, peaks in ((3.0, (0, 0, 552)), (8.0, (0, 0, 100))):
        rewards, penalties = weights(4, 1.0, beta, 0.9, 27)
        found = tuple(peak(terms_of(rewards, penalties, margins[g])) for g in range(3))
        assert found == peaks
    projection.project(load, running, leaving, 1, False, True, projected)
    assert projected[:, 4].tolist() == [0, 0, 0]  # "alive iff h < c", taken literally


def test_without_a_window_it_is_br_0_decision_for_decision():
    rng = random.Random("br-h is br-0")
    for _ in range(many(2000, 100)):
        seen = random_observation(rng)
        options = (
            f"stage_switch={rng.choice([0, 1, 3, 7, 99])},window={rng.randint(1, 8)},"
            f"window_order={rng.choice(['size', 'arrival'])},key={rng.choice(['lexicographic', 'product'])},"
            f"age_bound={rng.choice(['none', '0', '2', '5'])}"
        )
        myopic = decide(make_policy(f"br-0:{options}"), seen)
        ahead = decide(make_policy(f"br-h:horizon=0,beta={seen.loads.size},{options}"), seen)
        assert ahead.tolist() == myopic.tolist(), (options, seen)


def test_scores_of_a_round_telescope_without_a_window():
    rng = random.Random("telescope")
    for _ in range(many(500, 60)):
        case = random_round(rng)
        case["projected"] = [row[:1] for row in case["projected"]]
        G = len(case["projected"])
        acts = twin.br_h_trace(**case, rewards=[1], penalties=[G])
        after = [row[0] for row in case["projected"]]
        for size, worker in zip(case["sizes"], compiled_round(case, np.array([1]), np.array([G])), strict=True):
            if worker >= 0:
                after[worker] += size
        before = [row[0] for row in case["projected"]]
        assert sum(score for _, _, score in acts) == imbalance(before) - imbalance(after)


@pytest.mark.parametrize(("fractional", "literal"), [(False, False), (False, True), (True, False), (True, True)])
def test_projections_as_the_twin(fractional, literal):
    rng = random.Random(f"projection {fractional} {literal}")
    for _ in range(many(600, 100)):
        G, H, growth = rng.randint(1, 4), rng.choice([1, 3, 12]), rng.choice([0, 1, 2])
        actives = [
            (
                rng.randrange(G),
                rng.randint(0, 900),
                rng.choice([1.0, rng.uniform(0, H), float(H), float(rng.randint(1, H)), rng.uniform(-2, 0)]),
            )
            for _ in range(rng.randint(0, 9))
        ]
        worker = np.array([a[0] for a in actives], dtype=np.int64)
        remaining = np.array([a[2] for a in actives], dtype=np.float64)
        size, load, running = told(
            [a[1] for a in actives],
            [sum(w for g, w, _ in actives if g == k) for k in range(G)],
            [sum(g == k for g, _, _ in actives) for k in range(G)],
        )
        found = np.empty((G, H + 1), dtype=np.int64)
        outlives = remaining >= H
        leaving = projection.Leaving(worker, size, remaining, outlives)
        projection.project(load, running, leaving, growth, fractional, literal, found)
        for k in range(G):
            expected = twin.project(
                [(w, c) for g, w, c in actives if g == k],
                H,
                growth,
                "fractional" if fractional else "cut",
                "literal" if literal else "alive",
            )
            assert found[k].tolist() == expected, (actives, k)


def test_weighted_projection_is_the_sum_of_survival_curves():
    rng = np.random.default_rng(5)
    outputs = np.sort(rng.integers(1, 60, 300))
    keys = rng.integers(0, 3, 300)
    for samples, buckets_of in (
        (one_bucket(outputs), lambda n: np.zeros(n, dtype=np.int64)),
        (buckets_by_key(outputs, keys, 4), lambda n: rng.integers(0, 5, n)),  # bucket 4 is empty: falls back to all
    ):
        for _ in range(many(40, 5)):
            A, G, H = int(rng.integers(0, 12)), 3, 25
            worker, size, age = rng.integers(0, G, A), rng.integers(0, 500, A), rng.integers(0, 70, A)
            worker, age = told(worker, age)
            buckets = buckets_of(A)
            active = ActiveRequests(worker=worker, requests=np.arange(A), prompt=size - age, generated=age)
            found = expected_loads(G, H, 1, active, samples, buckets)
            expected = np.zeros((G, H + 1))
            for g, w, a, b in zip(worker, size, age, buckets, strict=True):
                own = outputs if b == 0 else outputs[keys == b - 1]
                if not (own > a).any():
                    own = outputs
                for h in range(H + 1):
                    beyond = (own > a).sum()
                    expected[g, h] += (w + h) * (1.0 if beyond == 0 else (own > a + h).sum() / beyond)
            assert np.abs(found - expected).max(initial=0) <= 0.5 + 1e-6
            assert (found[:, 0] == np.bincount(worker, weights=size, minlength=G)).all()


@settings(deadline=None)  # the first example loads the kernels
@given(
    margins=st.lists(st.integers(0, 300), min_size=1, max_size=9),
    beta=st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]),
    gamma=st.sampled_from([1.0, 0.9, 0.5]),
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=12),
)
def test_the_binary_search_finds_the_best_request(margins, beta, gamma, sizes):
    rewards, penalties = weights(len(margins) - 1, 1.0, beta, gamma, 27)
    ranked = np.array(sorted(sizes, reverse=True))
    terms = terms_of(rewards, penalties, margins)
    found = rounds.best_ranked(terms, ranked[:, None], np.arange(ranked.size), ranked, ranked.size)
    scores = [score_of(terms, size) for size in ranked]
    assert found == scores.index(max(scores))  # the first of the largest: ties to the larger, then the earlier


def test_scaling_all_tokens_changes_no_decision():
    rng = random.Random("scaling")
    for _ in range(many(300, 30)):
        case = random_round(rng)
        rewards, penalties = weights(len(case["projected"][0]) - 1, 1.0, 8.0, 0.9, 34)
        larger = case | {
            "projected": [[7 * x for x in row] for row in case["projected"]],
            "sizes": [7 * s for s in case["sizes"]],
        }
        assert compiled_round(case, rewards, penalties) == compiled_round(larger, rewards, penalties)


def test_worked_example_x1():
    """X1 of the fast-phi sheet, by hand in its source: two workers, four steps of the window, beta 8, gamma 0.9."""
    projected = np.empty((1, 81), dtype=np.int64)
    (load, running, size), remaining = told([5400], [3], [1500, 2200, 1700]), np.array([10.0, 80.0, 5.0])
    leaving = projection.Leaving(np.zeros(3, dtype=np.int64), size, remaining, remaining >= 80)
    projection.project(load, running, leaving, 1, False, False, projected)
    at = [0, 5, 10, 50]
    a, b = projected[0, at], np.array([4000, 3900, 3800, 3500])
    assert a.tolist() == [5400, 3710, 2210, 2250]
    envelope, unit = np.maximum(a, b), 2.0**26
    penalties = np.rint(8 * 0.9 ** np.array(at) * unit).astype(np.int64)
    worker_terms = [terms_of(0 * penalties, penalties, envelope - loads) for loads in (a, b)]
    cost = [-score_of(terms, 500) / unit for terms in worker_terms]
    assert np.allclose(cost, [5464.4152, 3777.2889], atol=1e-3)
    present = [-score_of(terms[:1].copy(), 500) / unit for terms in worker_terms]
    assert present[1] < present[0]  # BR-0 picks B as well
