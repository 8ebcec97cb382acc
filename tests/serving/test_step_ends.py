"""Decisions at the ends of steps: when a group may decide, and that nobody waits for a step that does not end."""

from __future__ import annotations

import asyncio
import time

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run, stream

from lbopt.exceptions import InputError
from lbopt.serving.router.dispatcher import StepEnds
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.state import FleetState


def test_a_group_decides_once_a_step_and_at_once_where_it_is_idle():
    """Idle: at every look. Busy: once when its step has advanced, or when too long a time has passed."""
    now = 0.0
    state = FleetState()
    group = state.add_group("g", "m")
    worker = state.worker_up("g", "w", 4)
    ends = StepEnds(lambda: now, 5.0)
    assert ends.may_decide(group)
    assert ends.may_decide(group)
    first = state.arrived("m", 10, now)
    state.prefilled(first, now)
    state.dispatched(first, worker, now)
    assert not ends.may_decide(group)
    state.tokens(first, 1, first.attempt)
    assert ends.may_decide(group)
    assert not ends.may_decide(group)
    now = 4.9
    assert not ends.may_decide(group)
    now = 5.0
    assert ends.may_decide(group), "no step has ended for so long"
    assert not ends.may_decide(group)
    now = 10.1
    assert ends.may_decide(group)


def test_who_comes_during_a_step_is_revealed_at_its_end():
    """Waits count from there; one that comes back keeps the step at which it was revealed."""
    state = FleetState()
    group = state.add_group("g", "m")
    worker = state.worker_up("g", "w", 1)
    ends = StepEnds(lambda: 0.0, 5.0)

    def arrive():
        tracker = state.arrived("m", 10, 0.0)
        state.prefilled(tracker, 0.0)
        return tracker

    first = arrive()
    ends.may_decide(group)
    state.dispatched(first, worker, 0.0)
    second = arrive()
    assert second.revealed == [0]
    for step in (1, 2, 3):
        state.tokens(first, 1, first.attempt)
        assert ends.may_decide(group)
        assert second.revealed == [1], step
    third = arrive()
    state.finished(first, 0.0, first.attempt)
    ends.may_decide(group)
    assert (second.revealed, third.revealed) == ([1], [3])
    state.dispatched(second, worker, 0.0)
    state.returned(second)
    ends.may_decide(group)
    assert second.revealed == [1]


def test_requests_of_a_step_are_placed_together():
    """Those that come while tokens are made wait for the end of the step, and one decision places them all."""

    async def check():
        engine = Engine(tokens=6, delay=0.25)
        async with fleet([engine], slots=8, decide="step", step_seconds=5.0) as (router, client, base):
            seen = []
            router.dispatcher._look = lambda sight, *_: seen.append(len(sight.waiting))
            first = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 1)
            await becomes(lambda: router.fleet.groups["g"].step >= 1)
            await asyncio.sleep(0.05)
            others = [asyncio.create_task(stream(client, base)) for _ in range(4)]
            await becomes(lambda: len(router.fleet.pools["m"]) == 4)
            assert engine.running == 1, "the step has not ended"
            await becomes(lambda: engine.running == 5)
            assert seen == [1, 4]
            for answer in await asyncio.gather(first, *others):
                assert answer[1].endswith(b"[DONE]\n\n")
            await becomes(lambda: is_empty(router))

    run(check())


def test_nobody_waits_for_tokens_that_do_not_show():
    """Beside an answer that does not stream, a request waits `step_seconds` and no longer."""

    async def check():
        engine = Engine(tokens=8, delay=0.25)
        async with fleet([engine], slots=2, decide="step", step_seconds=0.2) as (router, client, base):
            silent = asyncio.create_task(client.post(base + "/v1/completions", json={"model": "m", "prompt": "x"}))
            await becomes(lambda: engine.running == 1)
            begun = time.monotonic()
            other = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 2)
            assert time.monotonic() - begun > 0.1
            assert not silent.done(), "it was not waited for"
            assert (await other)[0] == (await silent).status == 200
            await becomes(lambda: is_empty(router))

    run(check())


def test_another_time_to_decide_is_refused():
    with pytest.raises(InputError, match="unknown decide 'later': known: arrival, step"):
        RouterOptions(decide="later")
