"""Requests of several sequences, and groups of one worker: what engines hold is what the router counts."""

from __future__ import annotations

import asyncio
import json

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, plan_for, run, stream
from serving.fleet import ask, on_router
from serving.fleet import stream as mock_stream

from lbopt.serving.record.seal import seal
from lbopt.serving.router.ask import read_ask
from lbopt.serving.router.events import EventCounter
from lbopt.serving.scrape import MOST_SEQUENCES, Usage


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({"prompt": "ab"}, (1, 1)),
        ({"prompt": "ab", "n": 8}, (8, 1)),
        ({"prompt": "ab", "n": 2, "best_of": 5}, (5, 1)),
        ({"prompt": "ab", "n": 3, "use_beam_search": True}, (3, 1)),
        ({"prompt": ["a", "b", "c"], "n": 2}, (2, 3)),
        ({"prompt": [1, 2, 3]}, (1, 1)),
        ({"prompt": [[1, 2], [3]], "n": 4}, (4, 2)),
        ({"prompt": "ab", "n": 10**9}, (MOST_SEQUENCES, 1)),
        ({"prompt": "ab", "n": -1}, (1, 1)),
        ({"prompt": ["x" * 40] * 3000}, (1, 3000)),
    ],
)
def test_sequences_of_a_request(fields, counted):
    """Each answer to each prompt is one; what an engine will refuse counts within bounds."""
    read = read_ask(json.dumps(fields).encode(), chat=False)
    assert (read.choices, read.prompts) == counted


class Several(Engine):
    """Makes `n` answers at once, and tells of each by its own usage, as vLLM does."""

    async def _write(self, response, data):
        for event in data.split(b"\n\n")[:-1]:
            if b'"index": 0' not in event:
                await super()._write(response, event + b"\n\n")
                continue
            for index in range(3):
                await super()._write(response, event.replace(b'"index": 0', b'"index": %d' % index) + b"\n\n")


@pytest.mark.parametrize("continuous", [False, True])
def test_sequences_take_slots_and_hold_tokens(continuous):
    """Three answers of one request fill three of four slots, and each holds the prompt: nothing waits in the engine."""

    async def check():
        engines = [Several(tokens=30, delay=0.01, continuous=continuous), Engine(tokens=30, delay=0.01)]
        async with fleet(engines, plan=lambda: plan_for(engines, 4)) as (router, client, base):
            first = asyncio.create_task(stream(client, base, prompt=[1] * 100, n=3))
            await becomes(lambda: any(t.produced > 20 for t in router.fleet.live.values()))
            worker = next(w for w in router.fleet.groups["g"].workers if w.seated)
            tracker = next(iter(worker.running.values()))
            assert (worker.seated, worker.free_slots) == (3, 1)
            assert worker.load == 300 + tracker.generated
            assert worker.group.step <= 2 + tracker.generated // 3
            await first
            await becomes(lambda: is_empty(router))
            assert router.metrics.tokens == (90 if worker.payload.address.url == engines[0].url else 30)
            many = [asyncio.create_task(stream(client, base, prompt=[1] * 9, n=5)) for _ in range(2)]
            many += [asyncio.create_task(stream(client, base, prompt=[1] * 9)) for _ in range(4)]
            await becomes(lambda: all(engine.running for engine in engines))
            assert [w.seated for w in router.fleet.groups["g"].workers] == [5, 5], "more than there are slots alone"
            assert len(router.fleet.pools["m"]) == 4
            assert all(code == 200 for code, _ in [await task for task in many])
            await becomes(lambda: is_empty(router))

    run(check())


def test_the_record_has_a_row_for_each_sequence(tmp_path):
    """Each had a slot, its prompt and its share of the tokens: an audit of the rows sees what the engine held."""

    async def check():
        async with fleet([Several(tokens=4)], slots=4, record=str(tmp_path)) as (router, client, base):
            await stream(client, base, prompt=[1] * 7, n=3)
            await stream(client, base, prompt=[1] * 9)
            await becomes(lambda: is_empty(router))

    run(check())
    assert seal(str(tmp_path), str(tmp_path / "out")).requests == 4
    rows = [line.split(",") for line in (tmp_path / "out" / "requests.csv").read_text().splitlines()[1:]]
    assert [row[0].partition(".")[2] for row in rows] == ["0", "1", "2", ""]
    assert [(row[4], row[5]) for row in rows] == [("7", "4")] * 3 + [("9", "4")]


def test_events_of_several_sequences_are_added_up():
    """Usage of an event is its own sequence's; the last one has the sum; an event without usage is one token."""
    counter = EventCounter(sequences=2)

    def event(index, usage=None):
        choices = [] if index is None else [{"index": index, "text": "a"}]
        told = None if usage is None else dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
        return b"data: " + json.dumps({"choices": choices, "usage": told}).encode() + b"\n\n"

    for index, usage, tokens in ((0, (4, 2), 2), (1, (3, 1), 3), (0, (4, 5), 6), (1, None, 7), (None, (7, 9), 9)):
        counter.take(event(index, usage))
        assert counter.tokens == tokens
    assert Usage(counter.prompt_tokens, counter.tokens) == Usage(7, 9)


@pytest.mark.parametrize("policy", ["auto", "jsq-load", "round-robin"])
def test_a_burst_is_split_over_groups_by_load(policy):
    """Eight requests at once, two groups of one worker with eight slots each: four to each."""

    async def use(router, engines, session, base):
        asked = [asyncio.create_task(mock_stream(session, base, ask(20))) for _ in range(8)]
        await asyncio.sleep(0.05)
        found = [group.workers[0].bound for group in router.fleet.groups.values()]
        assert {end for _, end in [await task for task in asked]} == {"done"}
        return found

    assert on_router(use, groups=True, slots=8, options={"policy": policy}) == [4, 4]
