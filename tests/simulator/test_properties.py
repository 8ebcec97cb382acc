"""What must hold of every run, whatever the policy: conservation, causality, capacity."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels.rules import IMMEDIATE, POOLED, many, random_br_0
from simulator.traces import random_case

from lbopt.simulator import ClosedLoop


@settings(max_examples=many(150, 25), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_conservation_and_causality(seed):
    rng = random.Random(seed)
    case = random_case(rng)
    spec, _, _ = rng.choice([*POOLED, *IMMEDIATE, *[random_br_0(rng)] * 5])
    run = case.run(spec)
    prompt, output, request, step = case.trace.prompt, case.trace.output, run.requests, run.steps
    G, B, N, K = case.setting.fleet.num_workers, case.setting.fleet.slots_per_worker, len(case.trace), run.num_steps

    # each request runs once, for `output` steps, after it became known
    assert ((request["worker"] >= 0) & (request["worker"] < G)).all()
    assert (request["finish_step"] == request["start_step"] + output).all()
    assert (request["start_step"] >= request["reveal_step"]).all()
    assert (request["start_clock"] >= request["reveal_clock"]).all()
    assert (request["first_token_clock"] > request["start_clock"]).all()
    assert (request["finish_clock"] >= request["first_token_clock"]).all()
    assert (np.diff(request["reveal_step"]) >= 0).all()
    if not isinstance(case.setting.arrivals, ClosedLoop):
        assert (request["reveal_clock"] == case.trace.arrival).all()

    # loads from the definition: prompt + tokens generated, on the steps start + 1 .. start + output
    row = np.arange(K)[:, None]
    running = (request["start_step"] <= row) & (row < request["finish_step"])
    size = np.where(running, prompt + row - request["start_step"], 0)
    on = request["worker"][:, None] == np.arange(G)
    assert np.array_equal(size @ on, step["barrier_loads"])
    assert (running @ on.astype(int)).max() <= B
    left = running & (row + 1 < request["finish_step"])
    assert np.array_equal(np.where(left, size + 1, 0) @ on, step["post_loads"])

    # totals
    assert request["finish_step"].max() == K
    assert step["completed"].sum() == step["admitted"].sum() == N
    assert step["active"].sum() == output.sum()
    assert step["barrier_sum"].sum() == (prompt * output + output * (output - 1) // 2).sum()
    assert (step["active"] > 0).all()

    # time
    assert (np.diff(step["clock"], prepend=0.0) > 0).all()
    law = case.setting.form
    assert np.array_equal(step["seconds"], law.fixed + law.per_token * step["barrier_max"])

    # what is measured
    imbalance = G * step["read_max"] - step["read_sum"]
    spread = step["read_max"] - step["read_min"]
    assert (spread <= imbalance).all()
    assert (imbalance <= (G - 1) * spread).all()
    power = case.setting.power
    # A worker draws between idle and peak power; the heaviest, unless nothing is left, peak power.
    assert (step["watts"] <= G * power.peak_watts + 1e-9).all()
    assert (step["watts"] >= G * power.idle_watts - 1e-9).all()
    metrics = run.metrics()
    assert 0 <= metrics.idle_share <= 1
    assert 0 < metrics.occupancy <= 1
    assert 0 <= metrics.real_choice_share <= 1
    assert 0 <= metrics.over_capacity_share <= 1


@settings(max_examples=many(60, 15), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_pooled_rules_waste_no_slot(seed):
    """Compiled pooled rules admit min(waiting, free slots): nobody waits beside a free slot."""
    rng = random.Random(seed)
    run = random_case(rng).run(rng.choice([*POOLED, random_br_0(rng)])[0])
    assert np.array_equal(run.steps["admitted"], np.minimum(run.steps["waiting"], run.steps["free_slots"]))


@settings(max_examples=many(60, 15), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_immediate_admission_is_first_come_first_served_at_every_worker(seed):
    rng = random.Random(seed)
    run = random_case(rng).run(rng.choice(IMMEDIATE)[0])
    for worker in range(run.setting.fleet.num_workers):
        starts = run.requests["start_step"][run.requests["worker"] == worker]
        assert (np.diff(starts) >= 0).all()


@pytest.mark.parametrize("spec", ["fcfs", "jsq-load", "br-0", "vllm"])
def test_a_single_slot_serves_one_request_after_the_other(spec):
    rng = random.Random(15)
    for _ in range(5):
        case = random_case(rng)
        if case.setting.fleet.num_slots == 1 and isinstance(case.setting.arrivals, ClosedLoop):
            run = case.run(spec)
            assert run.num_steps == case.trace.output.sum()
