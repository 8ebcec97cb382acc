"""fast-phi as a policy: against its twin, beside the rules that it contains, along runs, and when misused."""

import random
from dataclasses import replace

import numpy as np
import pytest
from kernels.fast_phi_states import observation_of, random_options, random_state
from kernels.rules import many
from naive.fast_phi import FastPhiOptions, FastPhiState, fast_phi

from lbopt.exceptions import InputError
from lbopt.instances import generate
from lbopt.model import Fleet, StepProblem, Trace
from lbopt.policies import DecidingPolicy, Observation, foresight_of, make_policy
from lbopt.policies.decide import decide
from lbopt.policies.fast_phi import FastPhi
from lbopt.policies.projected_fleet import Quadrature
from lbopt.predictors import Forecast
from lbopt.simulator import SimulationSetting, TraceTimes, simulate


@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))])
def test_it_decides_as_its_twin(block):
    """10,000 states, any value of every option; where the best two costs are one but for rounding, either will do."""
    rng = random.Random(f"fast-phi {block}")
    close = 0
    for _ in range(many(2500, 150)):
        state = random_state(rng)
        spec, options = random_options(rng)
        admission = "immediate" if state.free is None else "pooled"
        policy = make_policy(f"fast-phi:{spec},admission={admission}")
        observation = observation_of(state)
        expected, costs = fast_phi(state, options)
        assert policy.costs(observation) == pytest.approx(costs[0], rel=1e-12, abs=1e-9)
        found = policy.decide(observation).tolist()
        if found != expected:
            i = next(i for i in range(len(found)) if found[i] != expected[i])
            seen = costs[i]
            assert min(found[i], expected[i]) >= 0, (spec, state)
            assert abs(seen[found[i]] - seen[expected[i]]) <= 1e-12 * max(map(abs, seen)), (spec, state)
            close += 1
    assert close < many(2500, 150) / 100


def loads_only(rng, immediate):
    """A state with ties, closed workers and, at will, queues."""
    state = random_state(rng, "survival", 300)
    state.queued = state.queued if immediate else []
    state.free = None if immediate else [rng.randint(0, 2) for _ in range(state.num_workers)]
    return state


@pytest.mark.some(1)
@pytest.mark.parametrize("admission", ["pooled", "immediate"])
@pytest.mark.parametrize("rule", ["published", "product"])
def test_one_node_with_ties_by_load_is_jsq_load_in_any_state(rule, admission):
    rng = random.Random(f"{rule} {admission}")
    policy = make_policy(f"fast-phi:nodes=1,rule={rule},admission={admission}")
    for _ in range(many(2500, 200)):
        observation = observation_of(loads_only(rng, admission == "immediate"))
        found = policy.decide(observation).tolist()
        if admission == "pooled":
            assert found == decide(make_policy("jsq-load"), observation).tolist()
            continue
        loads = (observation.loads + observation.queued_tokens).tolist()
        for size, worker in zip(observation.sizes.tolist(), found, strict=True):
            assert worker == loads.index(min(loads))
            loads[worker] += size


def test_one_node_with_ties_by_load_is_br_0_for_a_single_request():
    """F = s - G (s - m)+ is largest where (s - m)+ is least; of its ties the lightest worker."""
    rng = random.Random(12)
    policy = make_policy("fast-phi:nodes=1,admission=pooled")
    by_index = make_policy("fast-phi:nodes=1,admission=pooled,ties=index")
    for _ in range(many(2500, 200)):
        state = loads_only(rng, False)
        state.waiting = state.waiting[:1]
        observation = observation_of(state)
        G, loads, (size,) = state.num_workers, observation.loads.tolist(), observation.sizes.tolist()
        free = [g for g in range(G) if state.free[g] > 0]
        F = {g: size - G * max(0, size - (max(loads) - loads[g])) for g in free}
        assert policy.decide(observation).tolist() == [min(free, key=lambda g: (-F[g], loads[g], g)) if free else -1]
        assert by_index.decide(observation).tolist() == [min(free, key=lambda g: (-F[g], g)) if free else -1]


SETTING = SimulationSetting(Fleet(8, 24), arrivals=TraceTimes(0.7))


def arriving(count, seed):
    lengths = generate("burstgpt-like", count, seed)
    arrival = np.random.default_rng(seed).exponential(size=count).cumsum()
    return Trace(prompt=lengths.prompt, output=lengths.output, arrival=arrival)


def run(spec, trace=None, setting=SETTING):
    trace = trace or arriving(1500, 5)
    policy = make_policy(spec) if isinstance(spec, str) else spec
    return simulate(trace, policy, setting, training=generate("burstgpt-like", 400, 6))


@pytest.mark.jit
def test_index_ties_pile_up_on_the_first_worker_and_load_ties_mend_it():
    """Every worker with room for the whole request costs nothing, so the lowest number among them is the rule."""
    shares = {}
    for ties in ("index", "load"):
        done = run(f"fast-phi:nodes=1,ties={ties}")
        shares[ties] = np.bincount(done.requests["worker"], minlength=8) / len(done.trace)
    assert shares["index"][0] > 0.35 and shares["index"].max() == shares["index"][0]
    assert shares["load"].max() < 0.25
    same = run("jsq-load:admission=immediate")
    assert np.array_equal(run("fast-phi:nodes=1").requests["worker"], same.requests["worker"])


def test_a_long_request_goes_where_there_will_be_room():
    """The second scenario of the source: 500k tokens of which 400k leave within 50 steps, beside 400k that stay."""
    running = [(0, 100_000, 0, [47 + i]) for i in range(4)] + [(0, 100_000, 0, [5000])]
    running += [(1, 100_000, 0, [5000]) for _ in range(4)]
    for output, expected in ((3000, 0), (30, 1)):
        observation = observation_of(FastPhiState(2, [], running, [(1000, [output])]))
        assert make_policy("fast-phi:nodes=all,predictor=oracle").decide(observation).tolist() == [expected]
        assert make_policy("fast-phi:nodes=1,predictor=oracle").decide(observation).tolist() == [1]
        for myopic in ("jsq-load", "br-0"):
            assert decide(make_policy(myopic), observation).tolist() == [1]


class Compared:
    """Decides by `kept`, whose costs must be those of a policy that projects anew for every request."""

    def __init__(self, spec, kept):
        self.spec, self.kept, self.name = spec, kept, "compared"
        self.admission, self.foresight = kept.admission, kept.foresight

    def decide(self, observation):
        costs = self.kept.costs(observation)
        assert costs == pytest.approx(make_policy(self.spec).costs(observation), rel=1e-11, abs=1e-7)
        return self.kept.decide(observation)


@pytest.mark.some(3)
@pytest.mark.jit
@pytest.mark.parametrize("options", ["", "nodes=8,rule=product", "nodes=all,longest=60", "drift=1,drift_scale=mean"])
@pytest.mark.parametrize("load", [0.7, 1.5])
def test_a_kept_projection_is_the_one_made_anew(options, load):
    spec = f"fast-phi:{options}".rstrip(":")
    trace = arriving(300, 7)
    setting = SimulationSetting(Fleet(4, 16), arrivals=TraceTimes(load))
    kept = make_policy(spec)
    rebuilt = []
    original = kept.fleet._rebuild
    kept.fleet._rebuild = lambda *given: (rebuilt.append(1), original(*given))
    done = run(Compared(spec, kept), trace, setting)
    assert len(rebuilt) <= len(np.unique(done.requests["reveal_step"])) < len(trace)
    again = run(kept, trace, setting)  # the same object, a second run
    assert np.array_equal(done.requests["worker"], again.requests["worker"])


def test_a_projection_is_kept_only_while_the_fleet_is_what_its_placements_made_it():
    state = FastPhiState(2, [4, 9, 30], [(0, 20, 6, []), (0, 5, 1, []), (1, 9, 3, [])], [(4, [])])
    first = observation_of(state)
    samples = first.forecast.samples
    other = [  # placed elsewhere, a request gone as well, the same tokens at other ages, a step later
        ([*state.running, (0, 4, 0, [])], 0),
        ([*state.running[1:], (1, 4, 0, [])], 0),
        ([(0, 25, 1, []), (0, 5, 1, []), (1, 9, 3, []), (1, 4, 0, [])], 0),
        ([*state.running, (1, 4, 0, [])], 1),
    ]
    kept = ([*state.running, (1, 4, 0, [])], 0)
    for running, step in (kept, *other):
        policy, rebuilt = make_policy("fast-phi"), []
        assert policy.decide(first).tolist() == [1]
        original = policy.fleet._rebuild
        policy.fleet._rebuild = lambda *seen, original=original, rebuilt=rebuilt: (rebuilt.append(1), original(*seen))
        second = observation_of(FastPhiState(2, state.everybody, running, [(8, [])]), samples, step)
        assert policy.costs(second) == pytest.approx(make_policy("fast-phi").costs(second), rel=1e-12)
        assert len(rebuilt) == ((running, step) != kept)


class WithQueue:
    """Hands every decision to the twin as well, which remembers who queues where, each with a law of its own."""

    def __init__(self, spec, options, laws):
        self.policy, self.options, self.laws = make_policy(spec), options, laws
        self.name, self.admission, self.foresight = "with queue", "immediate", self.policy.foresight
        self.placed, self.steps, self.queues_seen, self.close = [], [], 0, 0

    def decide(self, observation):
        (size,), (request,), active = observation.sizes.tolist(), observation.requests.tolist(), observation.active
        everybody, own = self.laws
        started = set(active.requests.tolist())
        queued = [
            [(s, i) for s, i, w in self.placed if w == g][-n:] if n else []
            for g, n in enumerate(observation.queued.tolist())
        ]
        assert not started & {i for entries in queued for _, i in entries}
        rows = zip(active.worker, active.prompt, active.generated, active.requests, strict=True)
        state = FastPhiState(
            observation.loads.size,
            everybody,
            [(int(g), int(s), int(a), own(int(i), int(s))) for g, s, a, i in rows],
            [(size, own(request, size))],
            [(g, s, own(i, s)) for g, entries in enumerate(queued) for s, i in entries],
        )
        self.queues_seen += any(queued)
        expected, (costs,) = fast_phi(state, self.options)
        workers = self.policy.decide(observation)
        if workers.tolist() != expected:
            assert costs[workers[0]] == pytest.approx(costs[expected[0]], rel=1e-10)
            self.close += 1
        self.placed.append((size, request, int(workers[0])))
        self.steps.append(observation.step)
        remembered = sum(map(len, self.policy.fleet._bound.values()))
        assert remembered <= observation.queued.sum() + self.steps.count(observation.step)  # and nobody who has started
        return workers


@pytest.mark.jit
@pytest.mark.parametrize("predictor", ["survival", "memorised", "oracle"])
def test_requests_that_queue_count_by_their_own_law(predictor):
    rng = np.random.default_rng(13)
    trace = Trace(prompt=rng.integers(0, 4, 250) * 10, output=rng.integers(1, 30, 250), arrival=np.arange(250) * 1e-9)
    training = Trace(prompt=rng.integers(0, 3, 60) * 10, output=rng.integers(1, 30, 60))
    outputs, known = training.output.tolist(), training.prompt.tolist()
    laws = {
        "survival": (outputs, lambda i, s: []),
        "memorised": (outputs, lambda i, s: [o for o, p in zip(outputs, known, strict=True) if p == s]),
        "oracle": ([], lambda i, s: [int(trace.output[i])]),
    }[predictor]
    policy = WithQueue(f"fast-phi:nodes=4,rule=product,predictor={predictor}", FastPhiOptions(4, "product"), laws)
    simulate(trace, policy, SimulationSetting(Fleet(3, 4)), training=training)
    assert policy.queues_seen > 100 and policy.close < 25


def test_a_queue_that_it_did_not_make_counts_like_everybody():
    state = FastPhiState(2, [], [(0, 5, 1, [9])], [(4, [3])])
    observation = observation_of(state)
    queued = replace(observation, queued=np.array([0, 2]), queued_tokens=np.array([0, 12]))
    policy = make_policy("fast-phi:nodes=all,predictor=oracle")
    policy.costs(queued)
    assert policy.fleet.board.load[:, 1].tolist() == [12, 14, 16] + [6 + h / 1 for h in range(3, 9)]


def test_an_empty_decision_and_closed_workers():
    policy = make_policy("fast-phi:admission=pooled")
    state = FastPhiState(2, [3, 9], [(0, 5, 1, [])], [], free=[1, 0])
    assert policy.decide(observation_of(state)).tolist() == []
    state.waiting = [(4, []), (2, []), (1, [])]
    assert policy.decide(observation_of(state)).tolist() == [0, -1, -1]


def test_options_reach_the_policy():
    policy = make_policy("fast-phi")
    assert (policy.name, policy.admission, policy.quadrature.nodes) == ("fast-phi", "immediate", 5)
    assert isinstance(policy, DecidingPolicy) and foresight_of(policy).predictor == "survival"
    assert make_policy("fast-phi:nodes=5,longest=none,drift_scale=none,growth=yes") == policy
    assert make_policy("fast-phi:nodes=0") == make_policy("fast-phi:nodes=all") == FastPhi(nodes=0)
    assert make_policy("fast-phi:nodes=0").name == "fast-phi:nodes=all"


@pytest.mark.parametrize(
    "name",
    [
        "fast-phi:nodes=all,longest=mean",
        "fast-phi:nodes=20,rule=product,longest=300",
        "fast-phi:percentile=95,ends=corrected,beyond=leaves,admission=pooled",
        "fast-phi:weights=geometric,gamma=0.99,growth=no",
        "fast-phi:drift=0.1,drift_scale=mean,ties=index,predictor=memorised:bins=8;least=2",
    ],
)
def test_a_name_makes_the_policy_again(name):
    assert make_policy(name).name == name
    assert make_policy(make_policy(name).name) == make_policy(name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("nodes=-1", r"nodes is -1; expected 1 or more, or all"),
        ("nodes=few", r"nodes is 'few'; expected 1 or more, or all"),
        ("nodes=none", r"nodes is 'none'; expected 1 or more, or all"),
        ("gamma=0.5", r"gamma is 0\.5, but weights are survival; add weights=geometric"),
        ("weights=geometric,gamma=0", r"gamma is 0\.0; expected above 0, at most 1"),
        ("weights=geometric,gamma=1.01", r"gamma is 1\.01; expected above 0, at most 1"),
        ("weights=geometric,gamma=none", r"gamma is 'none'; expected a number"),
        ("percentile=0", r"percentile is 0\.0; expected above 0, at most 100"),
        ("percentile=101", r"percentile is 101\.0"),
        ("percentile=nan", r"percentile is nan"),
        ("drift=-1", r"drift is -1\.0; expected 0 to"),
        ("longest=-1", r"longest is -1; expected 0 or more steps, mean, or none"),
        ("longest=long", r"longest is 'long'; expected"),
        ("rule=simpson", r"rule is 'simpson'; expected published or product"),
        ("ends=open", r"ends is 'open'; expected plain or corrected"),
        ("weights=none", r"weights is 'none'; expected survival or geometric"),
        ("ties=random", r"ties is 'random'; expected load or index"),
        ("beyond=ends", r"beyond is 'ends'; expected stays or leaves"),
        ("growth=maybe", r"growth is 'maybe'; expected yes or no"),
        ("growth=none", r"growth is 'none'; expected yes or no"),
        ("drift_scale=max", r"drift_scale is 'max'; expected none or mean"),
        ("admission=late", r"cannot use admission 'late'; expected pooled or immediate"),
        ("predictor=crystal", r"unknown predictor 'crystal'"),
        ("predictor=none", r"unknown predictor 'none'"),
        ("fleet=1", r"has no option 'fleet'"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(InputError, match=message):
        make_policy(f"fast-phi:{options}")


def test_without_running_requests_or_samples_it_says_so():
    policy = make_policy("fast-phi")
    with pytest.raises(InputError, match=r"goes by the age of every running request.*run it in the simulator"):
        decide(policy, Observation.of_problem(StepProblem.now([5, 1], [1, 1], [3])))
    observation = observation_of(FastPhiState(1, [4], [], [(3, [])]))
    blind = replace(observation, forecast=Forecast(1, np.zeros(0), np.zeros(1)))
    with pytest.raises(InputError, match=r"needs a predictor that goes by samples.*survival, memorised or oracle"):
        policy.decide(blind)
    with pytest.raises(InputError, match="without a single sample"):
        policy.decide(observation_of(FastPhiState(1, [], [], [(3, [])])))


def test_too_many_loads_are_refused():
    observation = observation_of(FastPhiState(3, [2**26], [], [(3, [])]))
    with pytest.raises(InputError, match=r"fast-phi' would look at \d+ steps of 3 workers.*nodes=K or longest=STEPS"):
        make_policy("fast-phi:nodes=all").decide(observation)


def test_the_published_quadrature_is_the_default_one():
    assert make_policy("fast-phi").quadrature == Quadrature()
