"""br-0-bypass, decision for decision: the naive twin, jsq-load, the cap, the published ties."""

import random

import numpy as np
import pytest
from kernels.rules import many, random_bypass, random_observation
from naive import HELD, bind, place

from lbopt.exceptions import InputError
from lbopt.kernels.routing import bypass, codes, fifo
from lbopt.kernels.routing.state import Shown, parameters_of, turn_of
from lbopt.policies import make_policy
from lbopt.policies.decide import decide


def random_workers(rng):
    """Load, running, queued and queued tokens of each worker: ties and none, a single worker, empty ones."""
    G = rng.choice([1, 2, 3, 5, 8])
    top = rng.choice([0, 1, 3, 1000, 10**9])
    load, tokens = (np.array([rng.randint(0, top) for _ in range(G)]) for _ in range(2))
    running, queued = (np.array([rng.randint(0, most) for _ in range(G)]) for most in (4, rng.choice([0, 1, 4])))
    return load, running, queued, tokens, rng.choice([0, 1, rng.randint(0, top), rng.randint(0, 3 * top)])


def bound(spec, slots_per_worker, load, running, queued, tokens, size):
    parameters = parameters_of(**make_policy(spec).parameters)
    return int(
        bypass.bind_bypassing(parameters, slots_per_worker, size, Shown(load, running, queued, tokens, load[:0]))
    )


def test_it_binds_as_its_twin():
    rng = random.Random("bypass")
    held = 0
    for _ in range(many(10_000, 800)):
        load, running, queued, tokens, size = random_workers(rng)
        slots = rng.randint(1, 5)
        spec, name, options = random_bypass(rng)
        state = running.tolist(), queued.tolist(), (load + tokens).tolist()
        expected, _ = bind(name, *state, None, 0, size, slots, options)
        assert bound(spec, slots, load, running, queued, tokens, size) == expected
        held += expected == HELD
    assert held > many(300, 20)


def test_without_a_cap_it_is_jsq_load():
    """For one request F does not fall as the margin grows: the lightest worker attains the largest."""
    rng = random.Random("bypass jsq-load")
    no_draws, turn = np.zeros((0, 2)), turn_of(0)
    for _ in range(many(20_000, 1500)):
        load, running, queued, tokens, size = random_workers(rng)
        chosen = bound("br-0-bypass:overbooking=none,ties=load", 1, load, running, queued, tokens, size)
        shown, none = Shown(load, running, queued, tokens, load[:0]), load[:0]
        assert chosen == fifo.bind(codes.JSQ_LOAD, 0, parameters_of(), shown, none, none, no_draws, turn)


def test_the_pooled_form_decides_as_its_twin_and_as_jsq_load():
    rng = random.Random("bypass pooled")
    for _ in range(many(2000, 300)):
        observation = random_observation(rng)
        spec, name, options = random_bypass(rng)
        observed = (observation.loads, observation.free_slots, observation.sizes, observation.waited)
        lists = [array.tolist() for array in (*observed, observation.running)]
        chosen = decide(make_policy(spec), observation).tolist()
        assert chosen == place(name, *lists, options=options)[0], (spec, observation)
        if options["ties"] == "load":
            assert chosen == decide(make_policy("jsq-load"), observation).tolist()


def test_with_ties_by_number_the_first_worker_with_a_margin_takes_it():
    """The published tie: all workers whose margin fits the request have F = size."""
    load, zeros = np.array([60, 100, 10, 0]), np.zeros(4, dtype=np.int64)
    by_number, by_load = (f"br-0-bypass:ties={ties}" for ties in ("index", "load"))
    for size in (1, 40):
        assert bound(by_number, 9, load, zeros, zeros, zeros, size) == 0
        assert bound(by_load, 9, load, zeros, zeros, zeros, size) == 3
    assert bound(by_number, 9, load, zeros, zeros, zeros, 41) == 2  # beyond the margin of worker 0
    assert bound(by_number, 9, load, zeros, zeros, zeros, 1000) == 3  # beyond all margins the largest one decides


@pytest.mark.parametrize(("overbooking", "worker"), [("0", HELD), ("1", 2), ("2", 1), ("none", 0)])
def test_a_worker_at_the_cap_is_passed_over(overbooking, worker):
    """Worker 0 holds 2 + 6 requests, worker 1 holds 2 + 1, worker 2 two; margins are those of all three."""
    load, running, queued = np.array([5, 20, 30]), np.array([2, 2, 2]), np.array([6, 1, 0])
    tokens = np.array([6, 1, 0])
    spec = f"br-0-bypass:overbooking={overbooking}"
    assert bound(spec, 2, load, running, queued, tokens, 4) == worker


def test_renumbering_the_workers_renumbers_the_binding():
    rng = random.Random(8)
    for _ in range(many(500, 60)):
        G = rng.randint(1, 7)
        load, tokens = (np.array(rng.sample(range(10**9), G)) for _ in range(2))
        running, queued = (np.array([rng.randint(0, 3) for _ in range(G)]) for _ in range(2))
        new = np.array(rng.sample(range(G), G))
        old = np.argsort(new)
        here, there = (
            bound("br-0-bypass:overbooking=1", 3, load[o], running[o], queued[o], tokens[o], 10**8)
            for o in (np.arange(G), old)
        )
        assert (new[here] if here >= 0 else HELD) == there


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("br-0-bypass:overbooking=-1", r"policy 'br-0-bypass': overbooking is -1; expected 0 to \d+ requests, or none"),
        ("br-0-bypass:overbooking=few", r"policy 'br-0-bypass': overbooking is 'few'; expected a number"),
        ("br-0-bypass:ties=lightest", r"policy 'br-0-bypass': ties is 'lightest'; expected load or index"),
        ("br-0-bypass:admission=pooled", r"policy 'br-0-bypass' has no option 'admission'; it takes overbooking, ties"),
    ],
)
def test_a_wrong_option_is_named(spec, message):
    with pytest.raises(InputError, match=message):
        make_policy(spec)
