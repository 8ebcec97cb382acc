"""The naive rules by hand: objective, BR-0, and every other rule."""

import random
from itertools import combinations

import pytest
from naive import (
    POOLED_RULES,
    auto,
    best_single,
    best_subset,
    bind,
    br_0,
    br_0_trace,
    brute_force,
    fcfs,
    imbalance,
    jsq,
    jsq_load,
    max_min,
    objective,
    place,
    power_of_two,
    random_rule,
    round_robin,
    score,
    spread,
    vllm,
)
from naive.variants import VARIANTS

# ---------------------------------------------------------------------------------------------------------------------
# objective


def test_imbalance_and_spread_of_example_e1() -> None:
    loads = [100, 90, 70, 60]
    assert imbalance(loads) == 80
    assert imbalance(loads) == 4 * max(loads) - sum(loads)
    assert spread(loads) == 40


def test_objective_sums_the_window_columns() -> None:
    base = [[10, 0], [4, 4]]
    work = [[3, 5], [7, 0]]
    # loads (10, 7) and (0, 9), the second request waits
    assert objective(base, [1, 1], work, [1, -1]) == 3 + 9
    # loads (10, 4) and (0, 4)
    assert objective(base, [1, 1], work, [-1, -1]) == 6 + 4
    with pytest.raises(ValueError, match="free slots"):
        objective(base, [1, 1], work, [0, 0])


def test_brute_force_by_hand() -> None:
    # One slot each, so both are admitted: 10 + 1 and 4 + 6 differ by 1, 10 + 6 and 4 + 1 by 11.
    assert brute_force([[10], [4]], [1, 1], [[6], [1]]) == (1, [[1, 0]])
    # One of two equal requests is admitted, on the lighter worker; nobody can tell them apart.
    assert brute_force([[5], [0]], [0, 1], [[5], [5]]) == (0, [[-1, 1], [1, -1]])
    # Here 5 would be best, but 3 has to be admitted.
    assert brute_force([[5], [0]], [0, 1], [[5], [3]]) == (0, [[1, -1]])
    assert brute_force([[5], [0]], [0, 1], [[5], [3]], [False, True]) == (2, [[-1, 1]])
    with pytest.raises(ValueError, match="no feasible"):
        brute_force([[5], [0]], [0, 1], [[5], [3]], [True, True])


# ---------------------------------------------------------------------------------------------------------------------
# BR-0


def test_example_e1_score() -> None:
    loads = [100, 90, 70, 60]
    for total, value in ((25, 25), (40, 40), (45, 25), (60, -20)):
        assert score(total, 40, 4) == value
        assert imbalance([100, 90, 70, 60 + total]) == imbalance(loads) - value


@pytest.mark.parametrize("window_order", ["s_desc", "arrival"])
def test_example_e2_full_round(window_order: str) -> None:
    loads = [1000, 760, 500]
    sizes = [300, 120, 110, 90, 60, 210]
    a, b, c, d, e, f = range(6)
    trace = br_0_trace(loads, [1, 2, 3], sizes, [0] * 6, 5, 4, window_order)
    assert [(stage, worker, sorted(batch), value) for stage, worker, batch, value in trace] == [
        ("one", 2, [a], 300),
        ("two", 1, [b, c], 230),
        ("two", 2, [f], 180),
        ("two", 0, [e], -90),
        ("two", 2, [d], -30),
    ]
    placement = br_0(loads, [1, 2, 3], sizes, [0] * 6, 5, 4, window_order)
    assert placement == [2, 1, 1, 2, 0, 2]
    final = list(loads)
    for size, worker in zip(sizes, placement, strict=True):
        final[worker] += size
    assert final == [1060, 990, 1100]
    assert (imbalance(loads), imbalance(final), spread(final)) == (740, 150, 110)
    assert sum(value for _, _, _, value in trace) == 590


def test_example_e5_subsets() -> None:
    sizes = [50, 120, 200, 310]
    reachable = {count: {sum(subset) for subset in combinations(sizes, count)} for count in range(1, 4)}
    assert reachable[1] == {50, 120, 200, 310}
    assert reachable[2] == {170, 250, 320, 360, 430, 510}
    assert reachable[3] == {370, 480, 560, 630}

    for margin, capacity, members, value in (
        (300, 1, {310}, 230),
        (300, 2, {50, 200}, 250),
        (300, 3, {50, 200}, 250),
        (365, 1, {310}, 310),
        (365, 2, {50, 310}, 360),
        (365, 4, {50, 310}, 360),
    ):
        positions = best_subset(sizes, capacity, margin, 8)
        assert {sizes[position] for position in positions} == members
        assert score(sum(members), margin, 8) == value


def test_subset_ties() -> None:
    # F(10) = F(13) = 10 at margin 12, G = 3 (slope -2): the larger total wins.
    assert score(10, 12, 3) == 10
    assert score(13, 12, 3) == 10
    assert best_subset([10, 13], 1, 12, 3) == (1,)
    assert best_single([0, 1, 2], [10, 13, 13], 12, 3) == 1
    # Same total: fewer requests, then the first in window positions.
    assert best_subset([6, 4, 10], 3, 10, 3) == (2,)
    assert best_subset([6, 5, 4, 6, 4], 2, 10, 3) == (0, 2)


def test_br_0_forced_single_and_keys() -> None:
    # No margin anywhere: the smallest of the window is forced, the window being the two largest.
    assert br_0([5, 5], [1, 0], [9, 7, 8], [0, 0, 0], 99, 2) == [-1, -1, 0]
    # In arrival order the window is the first two.
    assert br_0([5, 5], [1, 0], [9, 7, 8], [0, 0, 0], 99, 2, "arrival") == [-1, 0, -1]
    # cap (2, 1), margins (0, 6): lexicographic takes worker 0, the product worker 1.
    first = [entry[1] for entry in br_0_trace([6, 0], [2, 1], [4], [0], 99, 4)]
    assert first == [0]
    first = [entry[1] for entry in br_0_trace([6, 0], [2, 1], [4], [0], 99, 4, "s_desc", "product")]
    assert first == [1]
    # Stage one: most free slots, then the smaller load, then the index.
    assert [entry[1] for entry in br_0_trace([6, 0, 0], [2, 2, 2], [4], [0], 0, 4)] == [1]


def test_br_0_age_bound_places_the_oldest_first() -> None:
    trace = br_0_trace([10, 8, 0], [1, 1, 1], [1, 9, 5, 6], [7, 2, 5, 5], 99, 4, "s_desc", "lexicographic", 5)
    # Margins at the three placings: 10 for size 1, 10 - 8 = 2 for size 5, 13 - 10 = 3 for size 6; G = 3.
    assert trace == [("aged", 2, [0], 1), ("aged", 1, [2], -4), ("aged", 0, [3], -3)]
    assert br_0([10, 8, 0], [1, 1, 1], [1, 9], [7, 2], 99, 4, age_bound=8) == [1, 2]
    assert br_0([10, 8, 0], [1, 1, 1], [1, 9], [7, 2], 99, 4, age_bound=7) == [2, 1]


def test_br_0_scores_telescope() -> None:
    generator = random.Random(1)
    for _ in range(300):
        num_workers = generator.randint(1, 5)
        loads = [generator.randint(0, 60) for _ in range(num_workers)]
        slots = [generator.randint(0, 3) for _ in range(num_workers)]
        sizes = [generator.randint(1, 30) for _ in range(generator.randint(0, 10))]
        waiting = sorted((generator.randint(0, 9) for _ in sizes), reverse=True)
        trace = br_0_trace(
            loads,
            slots,
            sizes,
            waiting,
            generator.randint(0, 6),
            generator.randint(1, 5),
            generator.choice(["s_desc", "arrival"]),
            generator.choice(["lexicographic", "product"]),
            generator.choice([None, 5]),
        )
        final = list(loads)
        for _, worker, batch, _ in trace:
            for request in batch:
                final[worker] += sizes[request]
        assert sum(value for _, _, _, value in trace) == imbalance(loads) - imbalance(final)
        for stage, _, batch, value in trace:
            assert stage == "two" or len(batch) == 1
            assert value > 0 or len(batch) == 1


# ---------------------------------------------------------------------------------------------------------------------
# the other rules, by hand


def test_fifo_rules_by_hand() -> None:
    loads, slots, sizes, waiting = [50, 10, 30], [2, 1, 2], [5, 25, 5, 5, 5, 5], [0] * 6
    assert fcfs(loads, slots, sizes, waiting) == [0, 0, 1, 2, 2, -1]
    assert round_robin(loads, slots, sizes, waiting, 1) == ([1, 2, 0, 2, 0, -1], 1)
    assert round_robin(loads, [0, 0, 0], sizes, waiting, 2) == ([-1] * 6, 2)
    # running 3, 1, 1: worker 1 (full then), worker 2 twice, then worker 0
    assert jsq(loads, slots, sizes, waiting, [3, 1, 1]) == [1, 2, 2, 0, 0, -1]
    assert vllm(loads, slots, sizes, waiting, [3, 1, 1]) == [1, 2, 2, 0, 0, -1]
    # 10 -> worker 1; 30 -> worker 2, 55 then; 50 -> 0, 55 = 55 -> 0, 2
    assert jsq_load(loads, slots, sizes, waiting) == [1, 2, 0, 0, 2, -1]


def test_max_min_by_hand() -> None:
    loads, slots, sizes = [20, 0], [1, 2], [1, 7, 7, 9, 8]
    # oldest: 1, 7, 7; the first 7 to worker 1, the second too (7 < 20), 1 to worker 0
    assert max_min(loads, slots, sizes, [0] * 5, "oldest") == [0, 1, 1, -1, -1]
    # pool: 9, 8 and the first 7
    assert max_min(loads, slots, sizes, [0] * 5, "pool") == [-1, 0, -1, 1, 1]


def test_auto_by_hand() -> None:
    # mean size 6, level (20 + 0 + 3 * 6) / 2 = 19. Worker 1 has two slots: gap 19 - 0 - 6 / 2 = 16, the 9 is nearest;
    # then gap 19 - 9 = 10, the 8; worker 0: gap -1, the 1.
    loads, slots, sizes = [20, 0], [1, 2], [1, 7, 5, 9, 8]
    assert auto(loads, slots, sizes, [0] * 5) == [0, -1, -1, 1, 1]
    # a step counts 6 / (1 + 2) = 2 tokens; 10 steps of the 7 count 20: it goes first
    assert auto(loads, slots, sizes, [0, 10, 0, 0, 0], 1.0) == [0, 1, -1, 1, -1]
    # overdue: the 1 and the 7 go to the lightest in order of age; of 5, 9 and 8, mean 22 / 3, worker 1 is full, and the
    # level (20 + 8 + 22 / 3) / 2 = 17.7 lies below worker 0: the 5
    assert auto(loads, slots, sizes, [4, 4, 0, 0, 0], 0.3, 3) == [1, 1, 0, -1, -1]
    # all can start, and each worker takes at most 3 of the 5: 9 and 8 to worker 1, 17; 7 too, which is its share
    assert auto(loads, [3, 3], sizes, [0] * 5) == [0, 1, 0, 1, 1]
    # shares 2 and 4: 9, 8 and 7 to worker 1, then 24 > 20: 5 and 1 to worker 0, 25, but 1 after 5: 25 > 24
    assert auto(loads, [2, 4], sizes, [0] * 5) == [1, 1, 0, 1, 1]


def test_random_rules_by_hand() -> None:
    loads, waiting = [0, 0, 0], [0] * 3
    uniforms = [(0.99, 0.0), (0.5, 0.99), (0.0, 0.0)]
    # eligible 0, 1, 2 -> 2; then 0, 1 -> floor(0.5 * 2) = 1; then 0 -> 0
    assert random_rule(loads, [1, 1, 1], [5, 5, 5], waiting, uniforms) == [2, 1, 0]
    # a = 2, b = 0: running 1 and 4 -> worker 2; a = 1, b = floor(1.98) = 1 -> 2: running 2 and 2 -> worker 1;
    # a = 0, b = 0 -> 1: running 4 and 3 -> worker 1
    assert power_of_two(loads, [2, 2, 2], [5, 5, 5], waiting, uniforms, [4, 2, 1]) == [2, 1, 1]
    # worker 1 is the only one with a slot
    assert power_of_two(loads, [0, 1, 0], [5, 5, 5], waiting, uniforms, [4, 2, 1]) == [1, -1, -1]


def test_bind_by_hand() -> None:
    running, queued, tokens = [2, 3, 1], [0, 0, 1], [90, 40, 50]
    assert bind("round_robin", running, queued, tokens, None, 2) == (2, 0)
    assert bind("random", running, queued, tokens, (0.4, 0.0), 1) == (1, 1)
    assert bind("jsq", running, queued, tokens, None, 0) == (0, 0)  # 2, 3, 2
    assert bind("jsq_load", running, queued, tokens, None, 0) == (1, 0)
    assert bind("vllm", running, queued, tokens, None, 0) == (0, 0)  # 2, 3, 5
    assert bind("power_of_two", running, queued, tokens, (0.4, 0.99), 0) == (2, 0)  # 1 and 2: 3, 2
    assert bind("power_of_two", [7], [2], [5], (0.4, 0.99), 0) == (0, 0)
    assert bind("vllm", [2, 5], [1, 0], tokens, None, 0) == (1, 0)  # 6, 5
    assert bind("jsq", [2, 5], [1, 0], tokens, None, 0) == (0, 0)  # 3, 5
    for name in ("fcfs", "max_min", "br_0"):
        with pytest.raises(ValueError, match="immediate"):
            bind(name, running, queued, tokens, None, 0)


def test_every_pooled_rule_fills_up_and_overfills_nobody() -> None:
    assert {name for name, _ in VARIANTS} == set(POOLED_RULES)
    generator = random.Random(2)
    for _ in range(200):
        num_workers = generator.randint(1, 5)
        loads = [generator.randint(0, 60) for _ in range(num_workers)]
        slots = [generator.randint(0, 3) for _ in range(num_workers)]
        running = [generator.randint(0, 3) for _ in range(num_workers)]
        sizes = [generator.randint(1, 30) for _ in range(generator.randint(0, 10))]
        waiting = sorted((generator.randint(0, 9) for _ in sizes), reverse=True)
        uniforms = [(generator.random(), generator.random()) for _ in sizes]
        for name, options in VARIANTS:
            placement, counter = place(name, loads, slots, sizes, waiting, running, uniforms, 0, options)
            assert len(placement) == len(sizes)
            assert sum(worker >= 0 for worker in placement) == min(len(sizes), sum(slots))
            assert all(placement.count(worker) <= slots[worker] for worker in range(num_workers))
            assert 0 <= counter < num_workers
