"""count-then-load, level-then-load and barrier-time against plain enumeration, decision by decision."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import BackendUnavailableError, InputError
from lbopt.instances.families import generate
from lbopt.model import Fleet, StepProblem
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.policies.policy import STANDINGS
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.solvers import registry

#: What each of them minimises, of the counts and the loads of the workers afterwards.
MEASURES = {
    "count-then-load": lambda counts, loads: (max(counts), max(loads)),
    "level-then-load": lambda counts, loads: (sorted(counts, reverse=True), max(loads)),
    "barrier-time": lambda counts, loads: max(112_000 * b + 26 * k for b, k in zip(counts, loads, strict=True)),
    "barrier-time:alpha=7,beta=2": lambda counts, loads: max(7 * b + 2 * k for b, k in zip(counts, loads, strict=True)),
}


@st.composite
def observations(draw):
    G, n = draw(st.integers(1, 3)), draw(st.integers(0, 6))
    largest = draw(st.sampled_from([4, 40, 4000]))

    def numbers(most, size):
        return draw(st.lists(st.integers(0, most), min_size=size, max_size=size))

    waited = sorted(numbers(9, n), reverse=True)
    return Observation(
        3, 0.0, numbers(2 * largest, G), numbers(2, G), numbers(4, G), [0] * G, [0] * G, numbers(largest, n), waited,
        range(n),
    )  # fmt: skip


def outcomes(seen):
    """Yield (counts, loads) of each way to start the oldest that find a slot, counted from the definition."""
    free = seen.free_slots.tolist()
    for workers in product(range(len(free)), repeat=min(sum(free), seen.sizes.size)):
        if all(workers.count(g) <= free[g] for g in range(len(free))):
            yield after(seen, workers)


def after(seen, workers):
    counts, loads = seen.running.tolist(), seen.loads.tolist()
    for tokens, g in zip(seen.sizes.tolist(), workers, strict=False):
        counts[g] += 1
        loads[g] += tokens
    return counts, loads


@pytest.mark.parametrize("spec", MEASURES)
@given(seen=observations())
@settings(max_examples=60, deadline=None)
def test_every_decision_is_the_best_for_the_oldest(spec, seen):
    policy = make_policy(spec)
    workers = decide(policy, seen).tolist()
    started = min(int(seen.free_slots.sum()), seen.sizes.size)
    assert [worker >= 0 for worker in workers] == [True] * started + [False] * (len(workers) - started)
    assert all(workers.count(g) <= free for g, free in enumerate(seen.free_slots.tolist()))
    if started:
        counts, loads = after(seen, workers[:started])
        assert MEASURES[spec](counts, loads) == min(MEASURES[spec](*one) for one in outcomes(seen))
        assert policy.ledger.imbalance == policy.ledger.bound
        if "barrier" not in spec:
            assert policy.ledger.imbalance == [len(loads) * max(loads) - sum(loads)]
    assert len(policy.ledger) == (started > 0)


@given(seen=observations())
@settings(max_examples=40, deadline=None)
def test_with_every_slot_taken_the_three_are_one(seen):
    """Workers of one number of slots that are all filled: counts are given, and equal."""
    full = Observation(
        3, 0.0, seen.loads, seen.free_slots, 5 - seen.free_slots, seen.queued, seen.queued_tokens,
        np.resize(np.append(seen.sizes, 1), seen.free_slots.sum()), np.zeros(seen.free_slots.sum(), dtype=np.int64),
        range(int(seen.free_slots.sum())),
    )  # fmt: skip
    largest = {max(after(full, decide(make_policy(spec), full).tolist())[1]) for spec in MEASURES}
    assert len(largest) == 1


@pytest.mark.parametrize("spec", MEASURES)
def test_a_run_counts_its_decisions(spec):
    trace = generate("burstgpt-like", 80, 5)
    setting = SimulationSetting(fleet=Fleet(3, 4), arrivals=ClosedLoop(reveal_target=6))
    run = simulate(trace, make_policy(f"{spec.partition(':')[0]}:time_limit=none"), setting, seed=1)
    assert set(run.tally) <= set(STANDINGS[:2])
    assert sum(run.tally.values()) > 20
    assert (run.requests["start_step"] >= 0).all()


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("barrier-time:alpha=-1", "policy 'barrier-time': alpha is -1; expected 0 to less than"),
        ("barrier-time:beta=2147483648", "beta is 2147483648; expected 0 to less than"),
        ("count-then-load:time_limit=0", "time_limit is 0"),
        ("level-then-load:alpha=3", "policy 'level-then-load' has no option 'alpha'; it takes time_limit"),
    ],
)
def test_options_that_cannot_be(spec, says):
    with pytest.raises(InputError, match=says):
        make_policy(spec)


def test_names_tell_the_options():
    for spec in (
        "count-then-load:time_limit=none",
        "level-then-load:time_limit=2.0",
        "barrier-time:time_limit=0.1,alpha=0,beta=1",
    ):
        assert make_policy(spec).name == spec


def test_without_cp_sat_two_are_left(monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailableError, match="solver 'cp-sat' needs the package ortools, which is absent"):
        make_policy("level-then-load")
    seen = Observation.of_problem(StepProblem.now([5, 0], [1, 2], [3, 3]), running=[1, 1])
    assert sorted(decide(make_policy("count-then-load"), seen).tolist()) == [0, 1]
    assert decide(make_policy("barrier-time:alpha=0"), seen).tolist() == [1, 1]
