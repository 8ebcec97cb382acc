"""bf-io where memory and speed are known: examples by hand, the same answers as exhaustion, nothing sent in vain."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernels.rules import many
from lengths import quick_and_long
from simulator.laws import simulate_checked
from simulator.random_fleets import RandomFleet, random_fleet

from lbopt.exceptions import InfeasibleDecisionError
from lbopt.instances import generate
from lbopt.model import Conditions, Fleet, StepProblem, rank
from lbopt.policies import Memory, Observation, make_policy
from lbopt.policies.bf_io import paces_of, under_what_is_known
from lbopt.policies.decide import decide
from lbopt.policies.policy import STANDINGS
from lbopt.simulator import ClosedLoop, Detail, SimulationSetting, TraceTimes, simulate
from lbopt.solvers import solve
from lbopt.solvers.elementary import greedy_assignment

#: The draws wrap around, of which NumPy warns where they run as plain Python.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


#: The first of the random fleets: plain Python takes the few among which rules differ and one runs out of workers.
FIRST = many(0, 14)


def seen(loads: Any, free: Any, sizes: Any, *, running: Any = None, waited: Any = None, **known: Any) -> Observation:
    """What a router sees; workers that hold tokens run one request unless `running` says otherwise."""
    zeros = np.zeros(len(loads), dtype=np.int64)
    ran = np.array([int(load > 0) for load in loads]) if running is None else running
    ages = np.zeros(len(sizes), dtype=np.int64) if waited is None else waited
    return Observation(9, 1.0, loads, free, ran, zeros, zeros, sizes, ages, np.arange(len(sizes)), **known)


def chosen(spec: str, observation: Observation) -> list[int]:
    return [int(worker) for worker in decide(make_policy(spec), observation)]


def blocks(capacity: list[int], committed: list[int], **more: Any) -> Memory:
    return Memory(block=16, capacity=np.array(capacity), committed=np.array(committed), **more)


# ---------------------------------------------------------------------- by hand


def test_the_slow_worker_gets_less():
    """Worker 1 needs twice as long. 60 + 30 | 30 takes 90 and 60; 60 | 30 + 30 takes 60 and 120."""
    observation = seen([0, 0], [2, 2], [60, 30, 30], slow=np.array([1.0, 2.0]))
    assert chosen("bf-io:conditions=no", observation) in ([0, 1, 1], [1, 0, 0])
    for spec in ("bf-io", "max-min:pace=yes"):
        placed = chosen(spec, observation)
        assert placed[0] == 0
        assert sorted(placed[1:]) == [0, 1]


def test_a_worker_with_full_memory_gets_nothing():
    """Worker 0 has less load and no block left; worker 1 has 9, and 40 and 20 tokens need 4 and 3 with room for 16."""
    observation = seen([16, 90], [2, 2], [40, 20], memory=blocks([10, 10], [10, 1]))
    assert chosen("bf-io:conditions=no", observation) == [0, 0]
    assert chosen("bf-io", observation) == [1, 1]
    tight = seen([16, 90], [2, 2], [40, 20], memory=blocks([10, 10], [10, 4]))  # 10 - 4 - 1 = 5 blocks
    assert sorted(chosen("bf-io", tight)) == [-1, 1]


@pytest.mark.parametrize(("room", "admitted"), [(0, 3), (1, 1), (16, 1), (17, 0), (1000, 0)])
def test_what_runs_and_what_comes_has_room_to_grow(room, admitted):
    """Ten blocks: one stays free, 4 are committed, so 5 are left. Two requests run and three of 16 tokens wait.

    With room for 0 tokens these need one block each. With room for 1 to 16 tokens the running ones keep 2 of the 5
    blocks, and a new one needs 2, so one fits. With room for 17 they keep 4, and 3 do not fit into 1.
    """
    observation = seen([60], [3], [16, 16, 16], running=[2], memory=blocks([10], [4], kept_free=1))
    assert sum(worker == 0 for worker in chosen(f"bf-io:room={room}", observation)) == admitted


def test_an_empty_worker_takes_what_an_engine_lets_in_alone():
    """Of 10 blocks 3 stay free, and the request needs 9: it goes to the worker where nobody is, as in an engine."""
    memory = blocks([10, 10], [1, 0], kept_free=3)
    assert chosen("bf-io", seen([5, 0], [1, 1], [128], memory=memory)) == [1]
    assert chosen("bf-io", seen([5, 5], [1, 1], [128], memory=blocks([10, 10], [1, 1], kept_free=3))) == [-1]


def test_an_overdue_request_that_fits_nowhere_keeps_a_worker():
    """60 tokens need 5 blocks and 4 are left at most: younger ones may fill worker 0 alone, until worker 1 has room."""
    memory = blocks([10, 10], [7, 5])  # each runs one: 2 and 4 blocks are left
    waiting = {"waited": [9, 1, 0], "memory": memory}
    placed = chosen("bf-io:age_bound=5", seen([50, 50], [3, 3], [60, 10, 10], **waiting))
    assert (placed[0], sorted(placed[1:])) == (-1, [-1, 0])
    assert sorted(chosen("bf-io", seen([50, 50], [3, 3], [60, 10, 10], **waiting))) == [-1, 0, 1]
    roomy = blocks([10, 10], [7, 4])
    placed = chosen("bf-io:age_bound=5", seen([50, 50], [3, 3], [60, 10, 10], waited=[9, 1, 0], memory=roomy))
    assert placed[0] == 1


@pytest.mark.parametrize("limits", ["solver=highs,time_limit=0.000001", "effort=1,time_limit=none"])
def test_overdue_requests_start_where_no_greedy_order_has_room_for_them(limits):
    """One after the other by age they all fit; by size, memory or slots one of them finds no room."""
    sizes, capacity = [66, 16, 84, 42, 38, 82, 41], np.array([227, 132, 184])
    seen = Observation(
        step=0,
        clock=0.0,
        free_slots=[1, 20, 3],
        queued=[0] * 3,
        queued_tokens=[0] * 3,
        sizes=sizes,
        waited=[20] * 7,
        requests=range(7),
        loads=[153, 160, 280],
        running=[1] * 3,
        memory=Memory(block=1, capacity=capacity, committed=np.zeros(3, dtype=np.int64)),
    )
    plain = StepProblem.now(seen.loads, seen.free_slots, sizes)
    problem, _ = under_what_is_known(replace(plain, must_admit=np.ones(7, dtype=np.bool_)), seen, room=0)
    with pytest.raises(InfeasibleDecisionError):
        greedy_assignment(problem)
    chosen = decide(make_policy(f"bf-io:room=0,age_bound=5,{limits}"), seen)
    assert (chosen >= 0).all() and (np.bincount(chosen, sizes, 3) <= capacity).all()


def test_a_worker_that_is_closed_gets_nothing():
    observation = seen([0, 50], [2, 2], [10, 10], is_open=np.array([False, True]))
    assert chosen("bf-io", observation) == [1, 1]


def test_paces_are_factors_in_hundredths():
    assert paces_of(None) == (None, 1)
    assert paces_of(np.array([1.3, 1.3])) == (None, 1)
    for slow, pace, unit in (
        ([1.0, 2.0], [1, 2], 1),
        ([1.0, 1.3], [10, 13], 10),
        ([0.5, 2.0], [1, 4], 2),
        ([1e-9, 1e9], [1, 100_000], 100),
    ):
        found, one = paces_of(np.array(slow))
        assert (None if found is None else found.tolist(), one) == (pace, unit)


def test_what_cannot_bind_is_no_condition():
    """Equal speeds and more memory than can be filled: the decision is the plain one, ties included."""
    rng = random.Random(4)
    for _ in range(many(60, 20)):
        loads, free = [rng.randint(0, 40) for _ in range(3)], [rng.randint(0, 3) for _ in range(3)]
        sizes = [rng.randint(1, 30) for _ in range(rng.randint(0, 12))]
        plain = chosen("bf-io:conditions=no", seen(loads, free, sizes))
        memory = blocks([1000] * 3, loads)
        assert chosen("bf-io", seen(loads, free, sizes, memory=memory, slow=np.full(3, 1.7))) == plain
        assert chosen("max-min:pace=yes", seen(loads, free, sizes)) == chosen("max-min", seen(loads, free, sizes))
        pooled = chosen("max-min:scope=pool,pace=yes", seen(loads, free, sizes))
        assert pooled == chosen("max-min:scope=pool", seen(loads, free, sizes))


# ---------------------------------------------------------------------- against exhaustion


@pytest.mark.parametrize("seed", range(many(200, 60)))
def test_decisions_are_those_of_the_conditions(seed):
    rng = np.random.default_rng(seed)
    G, n = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    loads, sizes, free = rng.integers(0, 200, G), rng.integers(1, 120, n), rng.integers(0, 4, G)
    running = rng.integers(0, 4, G)
    running[loads > 0] = np.maximum(running[loads > 0], 1)
    block, kept_free = int(rng.choice([1, 4, 16])), int(rng.integers(0, 2))
    committed = -(-loads // block)
    capacity = np.full(G, int(committed.max()) + kept_free + int(rng.integers(1, 300)) // block + 1)
    memory = Memory(block=block, capacity=capacity, committed=committed, kept_free=kept_free)
    slow = rng.choice([1.0, 1.25, 2.0], G) if rng.random() < 0.6 else np.ones(G)
    room = int(rng.choice([0, block, 3 * block + 1]))
    observation = seen(loads, free, sizes, running=running, memory=memory, slow=slow)
    policy = make_policy(f"bf-io:room={room}")
    placed = policy.decide(observation)

    left = [
        max(0, int(capacity[g]) - kept_free - int(committed[g]) - int(running[g]) * -(-room // block)) for g in range(G)
    ]
    need = [min(-(-(int(size) + room) // block), int(capacity[0]) - kept_free) for size in sizes]
    conditions = Conditions(capacity=left, need=need, pace=np.rint(slow * 4).astype(int))
    problem = StepProblem.now(loads, free, sizes).under(conditions)
    best = solve(problem, "brute-force")
    assert rank(problem, placed, None) == rank(problem, best.assignment, None)
    assert STANDINGS[policy.ledger.standing[0]] in ("proved", "searched") and len(policy.ledger) == 1


# ---------------------------------------------------------------------- in runs


class Watched:
    """bf-io, and in which step it sent which request."""

    def __init__(self, spec: str) -> None:
        self.policy = make_policy(spec)
        self.name, self.admission, self.ledger = self.policy.name, "pooled", self.policy.ledger
        self.sent: dict[int, int] = {}

    def decide(self, observation: Observation) -> np.ndarray:
        placed = self.policy.decide(observation)
        for request in observation.requests[placed >= 0].tolist():
            self.sent.setdefault(request, observation.step)
        return placed


def with_memory(seed: int) -> RandomFleet:
    """A random fleet whose memory can run out and whose router sees the truth; nothing else decides who starts.

    Workers may join, and none leaves: without any the run would end with an error, whatever the rule is.
    """
    fleet = random_fleet(seed, ("max-min",))
    detail = fleet.setting.detail
    plain = replace(detail, preempt="recompute", pause="none", gate="none", transfer=0.0, drain=(), leave=())
    return replace(fleet, setting=replace(fleet.setting, detail=plain, telemetry=None))


@pytest.mark.more
@pytest.mark.parametrize("fleets", quick_and_long(20, many(60, 20)))
def test_nothing_is_sent_that_cannot_start_and_nothing_is_preempted_that_has_room(fleets):
    """With room for all that is left to make nothing is pre-empted at all; sizes and loads alone let that happen."""
    without, with_block = 0, 0
    for seed in range(FIRST, fleets):
        fleet = with_memory(seed)
        longest = int(fleet.trace.output.max()) + fleet.setting.detail.draft
        for spec in (f"bf-io:room={longest}", "bf-io"):
            policy = Watched(f"{spec}{',' if ':' in spec else ':'}effort=20000,time_limit=none")
            run = simulate_checked(fleet.trace, policy, fleet.setting, seed=seed)
            started = run.requests["start_step"]
            assert all(started[request] == step for request, step in policy.sent.items()), f"fleet {seed}"
            if spec != "bf-io":
                assert run.happened.preemptions == 0, f"fleet {seed}"
            else:
                with_block += run.happened.preemptions
        blind = simulate(fleet.trace, make_policy("bf-io:conditions=no"), fleet.setting, seed=seed)
        without += blind.happened.preemptions
    assert without > with_block


@pytest.mark.some(1)
@pytest.mark.parametrize("fleets", quick_and_long(many(36, 20), many(120, 20)))
@pytest.mark.parametrize("spec", ["bf-io", "bf-io:room=200,age_bound=3"])
def test_every_fleet_that_max_min_gets_through_is_got_through(spec, fleets):
    """With old reports, pauses, gates, prompts in pieces, and workers that come and go; else no worker is open."""
    stuck = 0
    for seed in range(FIRST, fleets):
        fleet = random_fleet(seed, ("max-min",))
        rules = ("max-min", f"{spec}{',' if ':' in spec else ':'}effort=5000,time_limit=none")
        ends = []
        for rule in rules:
            try:
                simulate(fleet.trace, make_policy(rule), fleet.setting, seed=seed)
                ends.append("served")
            except InfeasibleDecisionError:
                ends.append("stuck")
        assert ends[0] == ends[1], f"fleet {seed}"
        stuck += ends[0] == "stuck"
    assert 0 < stuck < fleets / 2


@pytest.mark.jit
def test_a_slow_worker_holds_fewer_tokens():
    detail = Detail(slow=((2, 2.0),))
    setting = SimulationSetting(Fleet(4, 12), TraceTimes(0.7), event_order="theory", detail=detail)
    trace = generate("azure-like", 500, 11)
    loads, clocks = {}, {}
    for spec in ("bf-io:conditions=no", "bf-io", "max-min", "max-min:pace=yes"):
        run = simulate(trace, make_policy(spec), setting, keep_loads=True)
        loads[spec] = run.steps["barrier_loads"].mean(axis=0)
        clocks[spec] = run.metrics().tpot_mean_seconds
    for spec, blind in (("bf-io", "bf-io:conditions=no"), ("max-min:pace=yes", "max-min")):
        assert loads[spec][2] < 0.75 * np.delete(loads[spec], 2).mean()
        assert loads[blind][2] > 0.8 * np.delete(loads[blind], 2).mean()
        assert clocks[spec] < clocks[blind]


def test_without_detail_runs_are_what_they_were():
    trace, setting = generate("burstgpt-like", 300, 5), SimulationSetting(Fleet(4, 8, 3000), ClosedLoop(24))
    runs = [simulate(trace, make_policy(spec), setting) for spec in ("bf-io", "bf-io:conditions=no")]
    assert all((runs[0].requests[name] == runs[1].requests[name]).all() for name in ("worker", "start_step"))
