"""bf-io against plain enumeration, decision by decision."""

import random

import naive
import numpy as np
import pytest
from kernels.rules import many
from simulator.traces import random_case

from lbopt.exceptions import InputError
from lbopt.instances.families import generate
from lbopt.model import Fleet, StepProblem, objective
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.policies.policy import STANDINGS
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate
from lbopt.simulator.simulate import Look
from lbopt.solvers import solve


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


def steady_run(spec, **options):
    """A small closed loop with more waiting than free slots."""
    policy = make_policy(spec)
    setting = SimulationSetting(Fleet(4, 8), ClosedLoop(24))
    return policy, simulate(generate("burstgpt-like", 400, 11), policy, setting, **options)


@pytest.mark.parametrize("tie", ["oldest", *(pytest.param(tie, marks=pytest.mark.jit) for tie in ("newest", "random"))])
def test_every_decision_of_a_run_is_recorded_and_is_what_solve_says(tie):
    seen = []
    policy, run = steady_run(f"bf-io:tie={tie},time_limit=none")
    simulate(run.trace, make_policy(policy.name), run.setting, look=Look(np.arange(run.num_steps), seen.append))
    solved = run.solved
    assert solved["step"].tolist() == [observation.step for observation in seen]
    assert (solved["bound"] <= solved["imbalance"]).all()
    left_open = solved["standing"] == STANDINGS.index("open")
    assert (left_open == (solved["bound"] < solved["imbalance"])).all()
    table = run.decision_table()
    assert table.columns.tolist() == list(solved)
    assert table["standing"].tolist() == [STANDINGS[number] for number in solved["standing"]]
    assert table["bound"].tolist() == solved["bound"].tolist()
    assert set(run.tally) <= {"proved", "searched", "open"} and run.tally.get("open", 0) == left_open.sum()
    assert sum(run.tally.values()) == left_open.size
    assert run.open_gaps.sum() == (solved["imbalance"] - solved["bound"]).sum()
    for i in range(20, len(seen), 17):
        now = StepProblem.now(seen[i].loads, seen[i].free_slots, seen[i].sizes)
        starts = run.requests["start_step"][seen[i].requests] == seen[i].step
        assert objective(now, np.where(starts, run.requests["worker"][seen[i].requests], -1)) == solved["imbalance"][i]
        if not left_open[i]:
            assert solve(now).objective == solved["imbalance"][i]


@pytest.mark.more
@pytest.mark.jit
def test_runs_are_repeatable_and_the_tie_order_is_part_of_them():
    runs = [steady_run(f"bf-io:time_limit=none,effort=20000,{more}")[1] for more in ("", "", "tie=newest", "seed=3")]
    for name in runs[0].requests:
        assert np.array_equal(runs[0].requests[name], runs[1].requests[name])
        assert np.array_equal(runs[0].requests[name], runs[3].requests[name])  # only "random" draws
    assert not np.array_equal(runs[0].requests["start_step"], runs[2].requests["start_step"])
    shuffled = [steady_run(f"bf-io:time_limit=none,tie=random,seed={seed}")[1] for seed in (1, 1, 2)]
    starts = [run.requests["start_step"].tolist() for run in shuffled]
    assert starts[0] == starts[1] != starts[2]


def test_the_overdue_are_started_first_the_oldest_before_others():
    bound, seen = 40, []
    policy, run = steady_run(f"bf-io:age_bound={bound},time_limit=none")
    simulate(run.trace, make_policy(policy.name), run.setting, look=Look(np.arange(run.num_steps), seen.append))
    forced = 0
    for observation in seen:
        late = observation.requests[observation.waited >= bound]
        room = min(late.size, observation.num_admissible)
        assert (run.requests["start_step"][late[:room]] == observation.step).all()
        forced += room
    assert forced > 20


@pytest.mark.jit
def test_a_second_run_of_the_same_policy_counts_its_own_decisions():
    policy, first = steady_run("bf-io:effort=20000,time_limit=none")
    second = simulate(first.trace, policy, first.setting)
    assert second.tally == first.tally
    assert second.solved["step"].tolist() == first.solved["step"].tolist()
    assert sum(policy.tally.values()) == 2 * sum(first.tally.values())


def test_progress_is_told_at_every_decision():
    told = []
    _, run = steady_run("bf-io:effort=20000,time_limit=none", progress=lambda ended, total: told.append((ended, total)))
    assert len(told) >= run.decisions
    assert told == sorted(told)
    assert told[-1] == (400, 400)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("tie=eldest", "policy 'bf-io': tie order is 'eldest'; expected oldest, newest or random"),
        ("seed=-1", "policy 'bf-io': seed is -1; expected 0 to"),
        ("effort=0", "policy 'bf-io': effort is 0; expected 1 to"),
        ("effort=9,solver=highs", "policy 'bf-io': tie and effort are for solver=exact, not for highs; leave them out"),
    ],
)
def test_wrong_options_are_named(options, sentence):
    with pytest.raises(InputError, match=sentence):
        make_policy(f"bf-io:{options}")


def test_a_name_holds_all_options_and_gives_the_same_policy():
    policy = make_policy("bf-io:tie=random,seed=4,effort=100,time_limit=none,age_bound=9")
    assert make_policy(policy.name) == policy
    assert make_policy("bf-io").name == "bf-io"
