"""bf-io against plain enumeration, decision by decision."""

import random

import naive
import pytest
from kernels.rules import many
from simulator.traces import random_case

from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide


@pytest.mark.parametrize("age_bound", [None, 0, 3])
def test_every_placement_is_optimal(age_bound):
    rng = random.Random(f"bf-io {age_bound}")
    for _ in range(many(40, 20)):
        G, n = rng.randint(1, 3), rng.randint(0, 5)
        loads, free = [rng.randint(0, 20) for _ in range(G)], [rng.randint(0, 2) for _ in range(G)]
        sizes, waited = [rng.randint(0, 12) for _ in range(n)], sorted(rng.randint(0, 6) for _ in range(n))[::-1]
        zeros = [0] * G
        observation = Observation(9, 1.0, loads, free, zeros, zeros, zeros, sizes, waited, range(n))
        chosen = decide(make_policy(f"bf-io:age_bound={str(age_bound).lower()}"), observation).tolist()
        admitted = min(n, sum(free))
        # those that have waited that long are forced, the oldest first, as many as there are slots
        late = [age_bound is not None and wait >= age_bound for wait in waited]
        must = [flag and sum(late[: i + 1]) <= admitted for i, flag in enumerate(late)]
        best, optima = naive.brute_force([[load] for load in loads], free, [[size] for size in sizes], must)
        assert chosen in optima
        assert naive.objective([[load] for load in loads], free, [[size] for size in sizes], chosen) == best


def test_a_run_counts_what_its_decisions_were_worth():
    rng = random.Random(30)
    case = random_case(rng, 12)
    policy = make_policy("bf-io:solver=brute-force")
    while case.setting.fleet.num_slots > 4:
        case = random_case(rng, 12)
    run = case.run(policy)
    assert run.tally == dict(policy.tally)
    assert sum(run.tally.values()) == run.decisions
    assert set(run.tally) <= {"proved"}
