"""The naive BR-H against the worked examples of balance_route.md, its closed forms, and the naive BR-0."""

import random
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import br_0, br_0_trace, br_h, br_h_trace, horizon_score, imbalance, peak, project, weights

SHIFT = 40
TOKENS = st.integers(0, 60)

# E3: g0 (500,4),(300,2); g1 (400,4),(250,4); g2 (600,1),(100,4); H = 4
E3_ACTIVES = [[(500, 4), (300, 2)], [(400, 4), (250, 4)], [(600, 1), (100, 4)]]
E3_LOADS = [[800, 802, 502, 503, 504], [650, 652, 654, 656, 658], [700, 101, 102, 103, 104]]
E3_MARGINS = [[0, 0, 152, 153, 154], [150, 150, 0, 0, 0], [100, 701, 552, 553, 554]]


def scaled_score(delta: int, margins: list[int], alpha: float, beta: float, gamma: float) -> float:
    """F of a constant batch in tokens again."""
    rewards, penalties = weights(len(margins) - 1, alpha, beta, gamma, SHIFT)
    return horizon_score([delta] * len(margins), margins, rewards, penalties) / 2**SHIFT


def peak_of(margins: list[int], alpha: float, beta: float, gamma: float) -> int | None:
    return peak(margins, *weights(len(margins) - 1, alpha, beta, gamma, SHIFT))


def one_worker(
    margins: list[int], slots: int, sizes: list[int], rewards: list[int], penalties: list[int], **changed: Any
) -> tuple[int, list[int], int]:
    """The first act of stage 2 on a worker with these margins, the only one with free slots."""
    top = max(margins) + 1000
    options: dict[str, Any] = {"stage_switch": 99, "window_size": 8, "window_order": "arrival", "key": "lexicographic"}
    acts = br_h_trace(
        [[top] * len(margins), [top - margin for margin in margins]],
        [0, slots],
        sizes,
        [0] * len(sizes),
        rewards=rewards,
        penalties=penalties,
        age_bound=None,
        **(options | changed),
    )
    return acts[0]


# ---------------------------------------------------------------------------------------------------------------------
# worked examples


def test_e3_projection() -> None:
    assert [project(actives, 4, 1) for actives in E3_ACTIVES] == E3_LOADS


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        (50, (-80.245, -124.510, 204.755)),
        (150, (-240.735, -373.530, 464.265)),
        (260, (-1122.3628, -1274.452, 584.726)),
        (400, (-2268.991, -2421.080, 738.040)),
    ],
)
def test_e3_scores(delta: int, expected: tuple[float, ...]) -> None:
    for margins, value in zip(E3_MARGINS, expected, strict=True):
        assert scaled_score(delta, margins, 1, 3, 0.9) == pytest.approx(value, abs=5e-4)  # the sheet has three decimals


@pytest.mark.parametrize(
    ("beta", "expected"), [(3, (0, 0, 552)), (1.5, (153, 150, 554)), (1, (154, 150, 701)), (8, (0, 0, 100))]
)
def test_e3_peaks(beta: float, expected: tuple[int, ...]) -> None:
    assert tuple(peak_of(margins, 1, beta, 0.9) for margins in E3_MARGINS) == expected


@pytest.mark.parametrize(("horizon", "chosen"), [(0, 1), (4, 2)])
def test_e3_looking_ahead_changes_the_worker(horizon: int, chosen: int) -> None:
    """At 150 tokens the present alone prefers worker 1, the window worker 2."""
    rewards, penalties = weights(horizon, 1, 3, 0.9, SHIFT)
    placed = br_h(
        [row[: horizon + 1] for row in E3_LOADS],
        [1, 1, 1],
        [150],
        [7],
        rewards=rewards,
        penalties=penalties,
        stage_switch=0,
        window_size=4,
        window_order="size",
        key="lexicographic",
        age_bound=7,  # an overdue request goes where its single score is largest
    )
    assert placed == [chosen]


@pytest.mark.parametrize(("horizon", "chosen"), [(0, 1), (4, 2)])
def test_e3_key_of_stage_two_is_the_least_margin(horizon: int, chosen: int) -> None:
    rewards, penalties = weights(horizon, 1, 3, 0.9, SHIFT)
    acts = br_h_trace(
        [row[: horizon + 1] for row in E3_LOADS],
        [1, 1, 1],
        [50],
        [0],
        rewards=rewards,
        penalties=penalties,
        stage_switch=3,
        window_size=4,
        window_order="size",
        key="lexicographic",
        age_bound=None,
    )
    assert [act[:2] for act in acts] == [(chosen, [0])]


def test_e4_piecewise_slopes() -> None:
    margins = [80, 40, 100]
    values = [scaled_score(delta, margins, 1, 3, 0.5) for delta in (0, 10, 40, 60, 80, 100, 150)]
    assert values == [0, 17.5, 70, 75, 80, 25, -150]
    assert peak_of(margins, 1, 3, 0.5) == 80
    rewards, penalties = weights(2, 1, 3, 0.5, 2)
    assert (sum(rewards), penalties) == (7, [12, 6, 3])
    assert one_worker(margins, 1, [10, 40, 60, 80, 100], rewards, penalties) == (1, [3], 4 * 80)


@pytest.mark.parametrize(
    ("margin", "slots", "batch", "value"),
    [
        (300, 1, [3], 230),
        (300, 2, [0, 2], 250),
        (300, 3, [0, 2], 250),
        (365, 1, [3], 310),
        (365, 2, [0, 3], 360),
        (365, 3, [0, 3], 360),
    ],
)
def test_e5_best_subset(margin: int, slots: int, batch: list[int], value: int) -> None:
    assert one_worker([margin], slots, [50, 120, 200, 310], [1], [8]) == (1, batch, value)


def test_e5_reachable_sums() -> None:
    sizes = (50, 120, 200, 310)
    sums = [{sum(batch) for batch in combinations(sizes, count)} for count in (1, 2, 3)]
    assert sums == [{50, 120, 200, 310}, {170, 250, 320, 360, 430, 510}, {370, 480, 560, 630}]


def test_e6_the_least_margin_is_the_wrong_place_to_look() -> None:
    margins, sizes = [100, 40, 100, 100], [30, 50, 70, 90]
    values = [scaled_score(size, margins, 1, 2, 0.9) for size in sizes]
    assert values == pytest.approx([103.17, 153.95, 186.73, 219.51], abs=5e-3)
    assert one_worker(margins, 1, sizes, *weights(3, 1, 2, 0.9, SHIFT))[1] == [3]
    assert one_worker(margins, 1, sizes, *weights(3, 1, 8, 0.9, SHIFT))[1] == [0]
    assert peak_of(margins, 1, 2, 0.9) == 100
    assert peak_of(margins, 1, 8, 0.9) == 40


# ---------------------------------------------------------------------------------------------------------------------
# weights, projection, peak


def test_weights() -> None:
    assert weights(2, 1, 3, 0.5, 2) == ([4, 2, 1], [12, 6, 3])
    assert weights(2, 1, 8, 0, 3) == ([8, 0, 0], [64, 0, 0])  # 0**0 = 1: the present alone
    rewards, _ = weights(80, 1, 48, 0.9, SHIFT)
    assert sum(rewards) / 2**SHIFT == pytest.approx(9.99803, abs=1e-5)


def test_projection_options() -> None:
    actives: list[tuple[int, float]] = [(10, 2.5), (7, 3), (4, 1)]
    assert project(actives, 3, 0) == [21, 17, 17, 7]
    assert project(actives, 3, 0, boundary="literal") == [21, 17, 17, 0]
    assert project(actives, 3, 1) == [21, 19, 21, 10]
    assert project(actives, 3, 0, "fractional") == [21, 17, 12, 7]
    assert project(actives, 3, 0, "fractional", "literal") == [21, 17, 12, 0]
    assert project(actives, 3, 1, "fractional") == [21, 11 + 8, 6 + 9, 10]
    assert project([(3, 1.5), (3, 1.5)], 2, 0, "fractional") == [6, 2, 0]  # each is rounded down by itself
    assert project([], 2, 1) == [0, 0, 0]
    assert project([(5, 1)], 0, 1) == [5]
    for wrong in ({"cut": "halved"}, {"boundary": "dead"}):
        with pytest.raises(ValueError, match="unknown"):
            project([], 1, 1, **wrong)


@given(
    actives=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), max_size=5),
    horizon=st.integers(0, 8),
    growth=st.integers(0, 1),
    boundary=st.sampled_from(["alive", "literal"]),
)
def test_both_cuts_agree_on_whole_steps(
    actives: list[tuple[int, float]], horizon: int, growth: int, boundary: str
) -> None:
    cut = project(actives, horizon, growth, "cut", boundary)
    assert cut == project(actives, horizon, growth, "fractional", boundary)
    assert cut[0] == sum(load for load, _ in actives)


@given(
    steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), min_size=1, max_size=6),
    reward=st.integers(1, 20),
)
def test_peak_is_the_first_of_the_best_totals(steps: list[tuple[int, int]], reward: int) -> None:
    margins, penalties = [m for m, _ in steps], [p for _, p in steps]
    rewards = [reward] + [0] * (len(margins) - 1)
    values = [horizon_score([delta] * len(margins), margins, rewards, penalties) for delta in range(max(margins) + 3)]
    top = peak(margins, rewards, penalties)
    if top is None:
        assert all(later > earlier for earlier, later in pairwise(values))
    else:
        assert top == values.index(max(values))


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=7),
    steps=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), min_size=1, max_size=5),
    reward=st.integers(1, 10),
    slots=st.integers(1, 7),
)
def test_two_probes_around_the_peak_find_the_best_subset(
    sizes: list[int], steps: list[tuple[int, int]], reward: int, slots: int
) -> None:
    """Section 3.2: the best reachable sum is the last one up to the peak or the first one from it on."""
    margins, penalties = [m for m, _ in steps], [p for _, p in steps]
    rewards = [reward] + [0] * (len(margins) - 1)
    sums = sorted({sum(batch) for count in range(1, slots + 1) for batch in combinations(sizes, count)})
    top = peak(margins, rewards, penalties)
    probes = [sums[-1]]
    if top is not None:
        probes = [total for total in sums if total <= top][-1:] + [total for total in sums if total >= top][:1]
    best = max(horizon_score([total] * len(margins), margins, rewards, penalties) for total in probes)
    _, _, value = one_worker(margins, slots, sizes, rewards, penalties)
    assert value == best


# ---------------------------------------------------------------------------------------------------------------------
# whole rounds


def random_round(rng: random.Random, horizon: int) -> dict[str, Any]:
    """A small state with many ties, and options."""
    num_workers, waiting = rng.randint(1, 5), rng.randint(0, 9)
    top = rng.choice([3, 12, 60])
    return {
        "projected": [[rng.randint(0, 2 * top) for _ in range(horizon + 1)] for _ in range(num_workers)],
        "free": [rng.randint(0, 4) for _ in range(num_workers)],
        "sizes": [rng.randint(1, top) for _ in range(waiting)],
        "waited": sorted((rng.randint(0, 12) for _ in range(waiting)), reverse=True),
        "stage_switch": rng.randint(0, 12),
        "window_size": rng.randint(1, 6),
        "window_order": rng.choice(["size", "arrival"]),
        "key": rng.choice(["lexicographic", "product"]),
        "age_bound": rng.choice([None, None, 0, 6, 11]),
    }


def idle(projected: list[list[int]], rewards: list[int]) -> int:
    """The imbalance of every step of the window, weighed."""
    return sum(reward * imbalance([row[h] for row in projected]) for h, reward in enumerate(rewards))


def test_without_a_window_it_is_br_0() -> None:
    rng = random.Random(1)
    for _ in range(1500):
        state = random_round(rng, 0)
        projected, num_workers = state.pop("projected"), len(state["free"])
        acts = br_h_trace(projected, **state, rewards=[1], penalties=[num_workers])
        assert br_h(projected, **state, rewards=[1], penalties=[num_workers]) == br_0(
            [row[0] for row in projected],
            state["free"],
            state["sizes"],
            state["waited"],
            state["stage_switch"],
            state["window_size"],
            {"size": "s_desc", "arrival": "arrival"}[state["window_order"]],
            state["key"],
            state["age_bound"],
        )
        expected = br_0_trace(
            [row[0] for row in projected],
            state["free"],
            state["sizes"],
            state["waited"],
            state["stage_switch"],
            state["window_size"],
            {"size": "s_desc", "arrival": "arrival"}[state["window_order"]],
            state["key"],
            state["age_bound"],
        )
        assert acts == [entry[1:] for entry in expected]


@pytest.mark.parametrize("profiles", [False, True])
def test_scores_of_a_round_sum_to_the_imbalance_saved(profiles: bool) -> None:
    """With penalties of G rewards each F is the fall of the weighed imbalance, so a round telescopes."""
    rng = random.Random(2)
    for _ in range(300):
        horizon = rng.randint(0, 4)
        state = random_round(rng, horizon)
        projected, num_workers = [list(row) for row in state["projected"]], len(state["free"])
        rewards = [rng.randint(0, 9) for _ in range(horizon + 1)]
        profile = [[size * (h < rng.randint(1, 5)) + h for h in range(horizon + 1)] for size in state["sizes"]]
        acts = br_h_trace(
            **state,
            rewards=rewards,
            penalties=[num_workers * reward for reward in rewards],
            profile=profile if profiles else None,
        )
        before = idle(projected, rewards)
        for worker, batch, _ in acts:
            for request in batch:
                for h in range(horizon + 1):
                    projected[worker][h] += profile[request][h] if profiles else state["sizes"][request]
        assert sum(value for _, _, value in acts) == before - idle(projected, rewards)


def test_rounds_are_legal_and_leave_the_input_alone() -> None:
    rng = random.Random(3)
    for _ in range(300):
        horizon = rng.randint(0, 4)
        state = random_round(rng, horizon)
        copy = {name: [*value] if isinstance(value, list) else value for name, value in state.items()}
        rewards, penalties = weights(horizon, 1, rng.choice([0.5, 1, 8, 48]), 0.9, 20)
        placed = br_h(**state, rewards=rewards, penalties=penalties)
        assert state == copy
        assert sum(worker >= 0 for worker in placed) == min(len(state["sizes"]), sum(state["free"]))
        for worker, slots in enumerate(state["free"]):
            assert placed.count(worker) <= slots


def test_flat_profiles_are_the_constant_mode() -> None:
    rng = random.Random(4)
    for _ in range(200):
        horizon = rng.randint(0, 4)
        state = random_round(rng, horizon)
        rewards, penalties = weights(horizon, 1, rng.choice([1, 8]), 0.8, 20)
        flat = [[size] * (horizon + 1) for size in state["sizes"]]
        acts = br_h_trace(**state, rewards=rewards, penalties=penalties)
        assert acts == br_h_trace(**state, rewards=rewards, penalties=penalties, profile=flat)


def test_scaling_all_tokens_changes_no_decision() -> None:
    rng = random.Random(5)
    for _ in range(200):
        horizon = rng.randint(0, 4)
        state = random_round(rng, horizon)
        rewards, penalties = weights(horizon, 1, 8, 0.9, 20)
        larger = state | {
            "projected": [[7 * load for load in row] for row in state["projected"]],
            "sizes": [7 * size for size in state["sizes"]],
        }
        acts = br_h_trace(**state, rewards=rewards, penalties=penalties)
        assert br_h_trace(**larger, rewards=rewards, penalties=penalties) == [
            (worker, batch, 7 * value) for worker, batch, value in acts
        ]


def test_overdue_requests_go_first_and_in_order() -> None:
    rng = random.Random(6)
    for _ in range(200):
        horizon = rng.randint(0, 3)
        state = random_round(rng, horizon) | {"age_bound": 6}
        rewards, penalties = weights(horizon, 1, 8, 0.9, 20)
        acts = br_h_trace(**state, rewards=rewards, penalties=penalties)
        overdue = [i for i, waited in enumerate(state["waited"]) if waited >= 6]
        first = overdue[: sum(state["free"])]
        assert [batch for _, batch, _ in acts[: len(first)]] == [[request] for request in first]


def test_ties_among_subsets() -> None:
    """Larger total, then fewer requests, then the lower window positions; without a positive F a single request.

    With a reward of 1 and a penalty of 1 every total from the margin on scores the same.
    """
    assert one_worker([10], 3, [5, 5, 5, 10], [1], [1]) == (1, [0, 1, 3], 10)
    assert one_worker([10], 1, [10, 12, 12], [1], [1]) == (1, [1], 10)
    assert one_worker([10], 2, [6, 4, 6, 4, 10], [1], [9]) == (1, [4], 10)
    assert one_worker([10], 2, [6, 4, 6, 4], [1], [9]) == (1, [0, 1], 10)
    assert one_worker([0], 3, [4, 2, 2], [1], [9])[1] == [1]
    assert one_worker([5], 3, [4, 2, 2], [0], [0])[1] == [0]


def test_unknown_options_are_refused() -> None:
    for wrong in ({"window_order": "name"}, {"key": "sum"}):
        with pytest.raises(ValueError, match="unknown"):
            one_worker([5], 1, [3], [1], [2], **wrong)
