"""The pure engine: it takes the steps of the simulator, and its ledger of slots and blocks never leaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime, make_step_time
from lbopt.instances import open_trace
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.serving.mock.group import ABORT, LENGTH, RECOMPUTED, BarrierGroup, GroupSetting, Sequence
from lbopt.simulator import SimulationSetting, TraceTimes, simulate
from lbopt.simulator.detail import make_detail

AFFINE = AffineStepTime(0.01, 1e-6)


def replay(trace, run, group, arrival):
    """Send every request to the worker of `run` at its time, and step until all have ended."""
    clock, known, loads, seconds = 0.0, 0, [], []
    elsewhere = group.setting.prefill == 0
    sequences = [
        Sequence(s, o, computed=s if elsewhere else 0)
        for s, o in zip(trace.prompt.tolist(), trace.output.tolist(), strict=True)
    ]
    ends = np.zeros(len(trace))
    index = {id(one): i for i, one in enumerate(sequences)}
    while True:
        while known < len(trace) and arrival[known] <= clock:
            group.submit(sequences[known], int(run.requests["worker"][known]))
            known += 1
        step = group.begin_step(clock)
        if step is None:
            if known == len(trace):
                return np.array(loads), np.array(seconds), ends
            clock = max(clock, arrival[known])
            continue
        clock += step.seconds
        loads.append(step.loads)
        seconds.append(step.seconds)
        for one in group.end_step():
            if one.ended:
                ends[index[id(one)]] = clock


@pytest.mark.parametrize("law", ["affine", "mean-term", "roofline:device=h800,model=deepseek-v3,tp=2"])
def test_loads_seconds_and_ends_are_those_of_the_simulator(law):
    """The same trace with the same placements: equal to the last digit, step by step."""
    trace = open_trace("azure-like", count=400, seed=3)
    step_time = make_step_time(law)
    setting = SimulationSetting(Fleet(4, 16), arrivals=TraceTimes(load=0.9), step_time=step_time)
    run = simulate(trace, make_policy("jsq"), setting, keep_loads=True)
    group = BarrierGroup(GroupSetting(num_workers=4, slots=16, form=step_time.form(4, 16)))
    loads, seconds, ends = replay(trace, run, group, run.requests["reveal_clock"])
    assert np.array_equal(loads, run.steps["barrier_loads"])
    assert np.array_equal(seconds, run.steps["seconds"])
    assert np.array_equal(ends, run.requests["finish_clock"])
    assert group.imbalance == (4 * loads.max(axis=1) - loads.sum(axis=1)).sum()


@pytest.mark.parametrize(
    ("detail", "options"),
    [
        ("preempt=recompute", {"preempt": "recompute"}),
        ("preempt=recompute,block=64,watermark=0.05", {"preempt": "recompute", "block": 64, "watermark": 0.05}),
        ("prefill=512,prefill_cost=20us", {"prefill": 512, "prefill_cost": 2e-5}),
        (
            "preempt=recompute,prefill=256,prefill_cost=20us",
            {"preempt": "recompute", "prefill": 256, "prefill_cost": 2e-5},
        ),
    ],
)
def test_memory_and_prompts_are_those_of_the_simulators_detail(detail, options):
    """Pre-emption and prompts in chunks, by the definition of the page *detail*: loads are equal.

    Compiled code may fuse a multiplication and an addition, so seconds differ in their last bits.
    """
    trace = open_trace("azure-like", count=300, seed=5)
    setting = SimulationSetting(
        Fleet(3, 16, 14_000), arrivals=TraceTimes(load=0.9), step_time=AFFINE, detail=make_detail(detail)
    )
    run = simulate(trace, make_policy("jsq"), setting, keep_loads=True)
    group = BarrierGroup(GroupSetting(num_workers=3, slots=16, form=AFFINE.form(3, 16), kv_tokens=14_000, **options))
    loads, seconds, ends = replay(trace, run, group, run.requests["reveal_clock"])
    assert np.array_equal(loads, run.steps["barrier_loads"])
    np.testing.assert_array_max_ulp(seconds, run.steps["seconds"], maxulp=4)
    np.testing.assert_allclose(ends, run.requests["finish_clock"], rtol=1e-14)
    if "preempt" in options:
        assert sum(worker.preemptions for worker in group.workers) == run.happened.preemptions > 0


def test_the_last_request_ends_recomputed_where_prefill_is_elsewhere():
    """Two requests grow into the last block; the younger one ends with the tokens that it had made."""
    setting = GroupSetting(
        num_workers=1, slots=4, form=AFFINE.form(1, 4), kv_tokens=64, block=16, watermark=0.0, preempt="stop"
    )
    group = BarrierGroup(setting)
    old, young = Sequence(30, 20, computed=30), Sequence(30, 20, computed=30)
    group.submit(old, 0)
    group.submit(young, 0)
    ended = {}
    for step in range(1, 30):
        if group.begin_step(0.0) is None:
            break
        for one in group.end_step():
            if one.ended:
                ended[id(one)] = (step, one.ended, one.made)
    assert ended == {id(young): (3, RECOMPUTED, 3), id(old): (20, LENGTH, 20)}
    assert group.workers[0].blocks == 0


def test_a_slow_worker_makes_the_step_of_all_longer():
    group = BarrierGroup(GroupSetting(num_workers=2, slots=1, form=AFFINE.form(2, 1)))
    group.workers[1].slow = 3.0
    group.submit(Sequence(1000, 5, computed=1000), 0)
    group.submit(Sequence(500, 5, computed=500), 1)
    assert group.begin_step(0.0).seconds == 0.01 + 500e-6 * 3


def test_a_request_waits_until_its_cache_has_arrived():
    group = BarrierGroup(GroupSetting(num_workers=1, slots=1, form=AFFINE.form(1, 1)))
    group.submit(Sequence(10, 1, computed=10, ready=2.5), 0)
    assert group.begin_step(1.0) is None
    assert group.next_ready() == 2.5
    assert group.begin_step(2.5).loads == (10,)


def test_what_can_never_fit_is_refused():
    setting = GroupSetting(num_workers=1, slots=1, form=AFFINE.form(1, 1), kv_tokens=160, preempt="recompute")
    with pytest.raises(InputError, match="11 blocks; a worker has 10"):
        BarrierGroup(setting).submit(Sequence(100, 61), 0)
    with pytest.raises(InputError, match="give the KV capacity"):
        GroupSetting(num_workers=1, slots=1, form=AFFINE.form(1, 1), preempt="stop")


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("submit"), st.integers(0, 2), st.integers(1, 60), st.integers(1, 40)),
            st.tuples(st.just("cancel"), st.integers(0, 30)),
            st.tuples(st.just("empty"), st.integers(0, 2)),
            st.tuples(st.just("step")),
        ),
        max_size=120,
    ),
    st.sampled_from(["recompute", "stop"]),
    st.sampled_from([0, 8]),
)
def test_slots_and_blocks_are_exact_after_every_event(events, preempt, prefill):
    """Whatever happens, the ledger equals a count, limits hold, and in the end everything has ended and is free."""
    setting = GroupSetting(
        num_workers=3,
        slots=3,
        form=AFFINE.form(3, 3),
        kv_tokens=128,
        block=8,
        preempt=preempt,
        prefill=prefill,
    )
    group, sent = BarrierGroup(setting), []

    def count():
        for worker in group.workers:
            assert len(worker.running) <= 3
            assert worker.blocks == sum(setting.blocks_of(one.size) for one in worker.running) <= 16
            assert all(one.running and not one.ended for one in worker.running)
            assert not any(one.running or one.ended for one in worker.queue)

    for event in events:
        if event[0] == "submit":
            sent.append(Sequence(event[2], event[3], computed=0 if prefill else event[2]))
            group.submit(sent[-1], event[1])
        elif event[0] == "cancel" and event[1] < len(sent):
            group.cancel(sent[event[1]])
        elif event[0] == "empty":
            group.empty(event[1])
        elif event[0] == "step" and group.begin_step(0.0) is not None:
            group.end_step()
        count()
    for _ in range(10_000):
        if group.begin_step(0.0) is None:
            break
        group.end_step()
        count()
    assert all(one.ended in (LENGTH, RECOMPUTED, ABORT) for one in sent)
    assert all(one.made == one.output for one in sent if one.ended == LENGTH)
    assert [worker.blocks for worker in group.workers] == [0, 0, 0]
