"""What a live rule in Python is shown of memory, and that `bf-io` heeds it; compiled rules are shown none."""

import pytest

from lbopt.policies import make_policy
from lbopt.serving.rule import LiveRule, warm_rule
from lbopt.serving.state import FleetState
from lbopt.serving.state.group import chosen


def fleet_with(prompts, workers=2, slots=4):
    """Requests that run, each on the worker of its number modulo `workers`."""
    fleet = FleetState()
    group = fleet.add_group("g", "m")
    mirrors = [fleet.worker_up("g", str(w), slots) for w in range(workers)]
    for number, prompt in enumerate(prompts):
        tracker = fleet.arrived("m", prompt, 0.0)
        fleet.prefilled(tracker, 0.0)
        assert fleet.dispatched(tracker, mirrors[number % workers], 0.0)
    return fleet, group, mirrors


def waiting(fleet, *prompts):
    for prompt in prompts:
        fleet.prefilled(fleet.arrived("m", prompt, 0.0), 0.0)


def rule_of(spec, capacity):
    return LiveRule(make_policy(spec), num_workers=2, slots=4, kv_capacity=capacity)


def test_memory_is_counted_at_most():
    """Prompts of 100 and 20 fill at most (120 + 2 * 15) // 16 = 9 blocks; of 200 blocks two stay free."""
    fleet, group, _ = fleet_with([100, 40, 20])
    waiting(fleet, 5)
    memory = rule_of("bf-io", 3200).see(group, list(group.pool), 0.0).observation.memory
    assert memory.capacity.tolist() == [200, 200]
    assert memory.committed.tolist() == [9, 3]
    assert (memory.kept_free, memory.block, memory.draft) == (2, 16, 0)
    assert memory.free.tolist() == [191, 197]


@pytest.mark.parametrize(("spec", "capacity"), [("bf-io", None), ("max-min", 3200)])
def test_none_is_shown_where_nobody_knows_or_asks(spec, capacity):
    fleet, group, _ = fleet_with([100])
    waiting(fleet, 5)
    observation = rule_of(spec, capacity).see(group, list(group.pool), 0.0).observation
    assert observation.memory is None
    assert observation.slow is None
    assert observation.is_open is None


def test_memory_decides_where_loads_would_not():
    """Of 14 blocks 5 requests of a token may fill 5, and need as many to grow: 4 are left, and 64 tokens need 5.

    The other worker runs 60 tokens: at most 4 blocks, one to grow, 9 are left.
    """
    fleet, group, (light, _) = fleet_with([1, 60], slots=8)
    for _ in range(4):
        tracker = fleet.arrived("m", 1, 0.0)
        fleet.prefilled(tracker, 0.0)
        assert fleet.dispatched(tracker, light, 0.0)
    waiting(fleet, 64)
    rule = rule_of("bf-io", 14 * 16)
    sight = rule.see(group, list(group.pool), 0.0)
    assert sight.observation.memory.committed.tolist() == [5, 4]
    assert rule.decide(sight).tolist() == [1]
    assert rule_of("bf-io:conditions=no", 14 * 16).decide(sight).tolist() == [0]


def test_a_worker_that_drains_is_closed():
    fleet, group, (light, _) = fleet_with([10, 200])
    waiting(fleet, 30)
    rule = rule_of("bf-io", None)
    assert rule.decide(rule.see(group, list(group.pool), 0.0)).tolist() == [0]
    fleet.draining(light)
    sight = rule.see(group, list(group.pool), 0.0)
    assert sight.observation.is_open.tolist() == [False, True]
    assert [sent.worker.name for sent in chosen(sight, rule.decide(sight))] == ["1"]


def test_warming_leaves_the_turn_and_asks_about_scarce_memory():
    rule = rule_of("bf-io", 2**20)
    warm_rule(rule, num_workers=3, slots=2)
    assert len(rule.policy.ledger) == 2
    assert rule.turn == 0
