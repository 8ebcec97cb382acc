"""Sampled states against observers who had no part in the sampling."""

import itertools

import numpy as np
import pytest
from naive import simulation as naive
from studies.routers import lightest

from lbopt.exceptions import InputError
from lbopt.instances import open_trace
from lbopt.model import Fleet, StepProblem
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SampledState, SimulationSetting, TraceTimes, sample_states, simulate
from lbopt.simulator.simulate import Look

FLEET = Fleet(3, 4)
CLOSED = SimulationSetting(fleet=FLEET)


def requests(count=300, seed=2):
    return open_trace("burstgpt-like", count=count, seed=seed)


class Observer:
    """A pooled Python policy that remembers what it saw."""

    name, admission = "observer", "pooled"

    def __init__(self):
        self.seen = {}

    def decide(self, observation):
        self.seen[observation.step] = observation
        return lightest(observation)


def fleet_at(run, k):
    """What stands and waits at decision k, recounted from the table of requests alone."""
    table, prompt = run.requests, run.trace.prompt
    runs = (table["start_step"] < k) & (table["finish_step"] > k)
    loads, running = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for i in np.flatnonzero(runs):
        loads[table["worker"][i]] += prompt[i] + k - table["start_step"][i]
        running[table["worker"][i]] += 1
    waits = np.flatnonzero((table["reveal_step"] <= k) & (table["start_step"] >= k))
    return loads, running, prompt[waits], k - table["reveal_step"][waits]


def outcomes(problem):
    """Two different sorted load vectors that feasible placements reach, or one if there are no two."""
    found = set()
    base, work = problem.base[:, 0], problem.work[:, 0]
    places = [g for g in range(problem.num_workers) for _ in range(problem.slots[g])]
    U = problem.num_admitted
    for chosen in itertools.combinations(range(problem.num_requests), U):
        for where in itertools.permutations(places, U):
            loads = base.copy()
            np.add.at(loads, list(where), work[list(chosen)])
            found.add(tuple(sorted(loads.tolist())))
            if len(found) > 1:
                return found
    return found


def test_states_are_what_the_policy_itself_saw():
    """At the sampled steps the state equals the observation that the Python policy was given in the same run."""
    states, _ = sample_states(requests(), make_policy("fcfs"), CLOSED, 1)
    assert len(states) == 1
    policy = Observer()
    states, _ = sample_states(requests(), policy, CLOSED, 12)
    assert len(states) == 12
    for state in states:
        seen = policy.seen[state.step]
        assert state.problem.base[:, 0].tolist() == seen.loads.tolist()
        assert state.problem.slots.tolist() == seen.free_slots.tolist()
        assert state.problem.work[:, 0].tolist() == seen.sizes.tolist()
        assert state.running.tolist() == seen.running.tolist()
        assert state.waited.tolist() == seen.waited.tolist()
        assert state.behaviour == "observer"


def test_fewer_states_than_one_are_refused():
    with pytest.raises(InputError, match="the number of states is 0; expected at least 1"):
        sample_states(requests(20), make_policy("fcfs"), CLOSED, 0)


def test_states_are_what_the_naive_simulation_shows_its_rule():
    """The loop-only twin shows its rule the same loads, slots, sizes and waits at the same steps."""
    trace, shown = requests(), []

    def rule(loads, free, sizes, waited):
        shown.append((list(loads), list(free), list(sizes), list(waited)))
        loads, free, workers = list(loads), list(free), [-1] * len(sizes)
        for i in range(min(len(sizes), sum(free))):
            g = min((g for g in range(len(loads)) if free[g] > 0), key=lambda g: (loads[g], g))
            workers[i] = g
            loads[g] += sizes[i]
            free[g] -= 1
        return workers

    naive.simulate(
        trace.prompt.tolist(),
        trace.output.tolist(),
        3,
        4,
        rule,
        reveal_target=12,
        fixed_seconds=CLOSED.form.fixed,
        seconds_per_token=CLOSED.form.per_token,
    )
    states, _ = sample_states(trace, Observer(), CLOSED, 12)
    for state in states:  # the pool is never empty before the last requests, so call number = step
        loads, free, sizes, waited = shown[state.step]
        assert state.problem.base[:, 0].tolist() == loads
        assert state.problem.slots.tolist() == free
        assert state.problem.work[:, 0].tolist() == sizes
        assert state.waited.tolist() == waited


@pytest.mark.parametrize(
    "policy", ["fcfs", "br-0", "round-robin", "random", "power-of-two", "jsq-load:admission=immediate"]
)
@pytest.mark.parametrize("arrivals", ["closed", "trace"])
def test_states_follow_from_the_table_of_requests(policy, arrivals):
    """Loads, counts, pool and ages are those of the run's own table; immediate pools are all bound and all new."""
    setting, trace = CLOSED, requests()
    if arrivals == "trace":
        setting = SimulationSetting(fleet=FLEET, arrivals=TraceTimes(0.95))
        trace = open_trace("azure-like", count=300, seed=2)
    states, run = sample_states(trace, make_policy(policy), setting, 10, seed=5)
    assert states
    for state in states:
        loads, running, sizes, waited = fleet_at(run, state.step)
        assert state.problem.base[:, 0].tolist() == loads.tolist()
        assert state.running.tolist() == running.tolist()
        assert state.problem.slots.tolist() == (4 - running).tolist()
        assert state.problem.work[:, 0].tolist() == sizes.tolist()
        assert state.waited.tolist() == waited.tolist()


@pytest.mark.parametrize("policy", ["fcfs", "br-0", "max-min", "round-robin", "random", "power-of-two"])
def test_sampled_states_have_a_real_choice(policy):
    """Two feasible placements of every sampled state end in different loads."""
    states, _ = sample_states(requests(), make_policy(policy), CLOSED, 10)
    assert states
    for state in states:
        assert len(outcomes(state.problem)) == 2, state.step


@pytest.mark.parametrize("policy", ["jsq", "vllm"])
def test_a_saturated_immediate_behaviour_has_states(policy):
    """Queues that refill every slot at once do not mean that a pooled router would have had no choice."""
    states, run = sample_states(requests(), make_policy(policy), CLOSED, 5)
    for k in range(run.window.first, run.window.last):
        _, running, sizes, _ = fleet_at(run, k)
        if 0 < 12 - running.sum() < sizes.size and len(set(sizes.tolist())) > 1:
            break
    else:
        pytest.fail("no step of this run has a choice: the test shows nothing")
    assert len(states) == 5


@pytest.mark.parametrize("policy", ["fcfs", "round-robin"])
def test_states_are_evenly_spread(policy):
    """The chosen steps lie at equal ranks among the candidates between warm-up and cool-down, both ends included."""
    states, run = sample_states(requests(800), make_policy(policy), CLOSED, 20)
    steps = [state.step for state in states]
    assert steps == sorted(set(steps))
    length = run.window.last - run.window.first
    first, last = run.window.first + int(0.1 * length), run.window.last - int(0.05 * length)
    candidates = [k for k in np.flatnonzero(run.steps["real_choice"]).tolist() if first <= k <= last]
    ranks = [candidates.index(step) for step in steps]
    assert (ranks[0], ranks[-1]) == (0, len(candidates) - 1)
    assert set(np.diff(ranks)) <= {len(candidates) // 19 + d for d in (-1, 0, 1)}


def test_looking_changes_nothing():
    """The run with pauses ends as the run without them."""
    plain = simulate(requests(), make_policy("random"), CLOSED, seed=4)
    _, run = sample_states(requests(), make_policy("random"), CLOSED, 5, seed=4)
    looked = simulate(requests(), make_policy("random"), CLOSED, seed=4, look=Look(np.array([3, 90, 700]), str))
    for other in (run, looked):
        assert all(np.array_equal(plain.steps[n], other.steps[n], equal_nan=True) for n in plain.steps)
        assert all(np.array_equal(plain.requests[n], other.requests[n]) for n in plain.requests)


def test_a_run_without_choices_gives_no_state():
    """Requests of one size that never wait leave every placement equal."""
    from lbopt.model import Trace

    trace = Trace(prompt=[5, 5], output=[3, 3])
    states, run = sample_states(trace, make_policy("fcfs"), SimulationSetting(Fleet(1, 4), ClosedLoop(1)), 3)
    assert states == []
    assert run.num_steps > 0


def test_a_state_has_a_count_for_each_worker_and_a_wait_for_each_request():
    problem = StepProblem.now([3, 1], [1, 0], [2, 4, 6])
    data = {"problem": problem.to_dict(), "running": [1, 1], "waited": [0, 0, 2]}
    assert SampledState.from_dict(data, source="it").waited.tolist() == [0, 0, 2]
    for name, wrong in (("running", [1, 1, 1]), ("waited", [0, 0])):
        with pytest.raises(InputError, match=r"it has \d running counts for 2 workers and \d waits for 3 requests"):
            SampledState.from_dict(data | {name: wrong}, source="it")
