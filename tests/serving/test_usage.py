"""Tokens that an engine joins into one event are counted, and what the router asks for that no client sees."""

from __future__ import annotations

import asyncio
import json
import logging
import re

import pytest
from serving.engines import Engine, fleet, run, stream
from serving.fleet import ask, on_router

from lbopt.serving.router.events import EventCounter


async def raw(session, base, path, **more):
    async with session.post(base + path, json=more | {"stream": True}) as answer:
        return await answer.read()


@pytest.mark.parametrize("tool", [False, True])
def test_joined_tokens_are_counted_and_clients_see_the_engines_bytes(tool):
    """Events of four tokens: all are counted while the stream runs, and the bytes are those without the router."""
    chat = {"messages": [{"role": "user", "content": 'a ,"usage":{"x":1} b'}], "max_tokens": 50, "ignore_eos": True}
    chat |= {"tools": [{"function": {"name": "f"}}], "tool_choice": "required"} if tool else {"logprobs": True}

    async def use(router, engines, session, base):
        found = []
        for path, body in (("/v1/completions", ask(50)), ("/v1/chat/completions", chat)):
            for more in ({}, {"stream_options": {"include_usage": True}}, {"stream_options": None}):
                answers = [await raw(session, url, path, **body | more) for url in (engines.urls[0], base)]
                found.append([re.sub(rb"w0-\d+", b"w0", answer) for answer in answers])
        task = asyncio.create_task(raw(session, base, "/v1/completions", **ask(50)))
        await asyncio.sleep(0.3)
        (tracker,) = router.fleet.live.values()
        made = tracker.produced
        await task
        return found, made, router.metrics.tokens

    found, made, tokens = on_router(use, workers=1, chunk_tokens=4)
    for direct, routed in found:
        assert [strip(event) for event in direct.split(b"\n\n")] == [strip(event) for event in routed.split(b"\n\n")]
    assert 24 <= made <= 30, "and not one an event"
    assert tokens >= 5 * 50


def strip(event):
    """An event without what differs from request to request."""
    if not event.startswith(b"data: {"):
        return event
    return json.loads(event[6:]) | {"id": "", "created": 0}


def test_an_engine_that_joins_tokens_is_named(caplog):
    """It was not asked: its last event tells of more than was counted, once."""

    class Joining(Engine):
        def _event(self, number, chat, ask):
            return super()._event(number, chat, ask) if number % 2 == 0 else b": joined\n\n"

    async def check():
        async with fleet([Joining(tokens=6)], ask_usage=False) as (router, client, base):
            for _ in range(2):
                await stream(client, base, stream_options={"include_usage": True})
            assert router.metrics.tokens == 12

    with caplog.at_level(logging.WARNING):
        run(check())
    assert [record.message.partition(" ")[2] for record in caplog.records if "joins" in record.message][:1]
    assert sum("3 of 6 were counted only" in record.message for record in caplog.records) == 1


def test_the_fingerprint_stands_where_it_does_without_usage():
    """vLLM has it in the last event of an answer, or in that of usage where usage is asked for."""
    usage = b',"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1,"prompt_tokens_details":{"cached":2}}'
    last = b'data: {"id":"x","choices":[{"index":0,"text":"a","finish_reason":"length"}]%b}\n\n'
    told = b'data: {"id":"x","choices":[]%b,"system_fingerprint":"vllm-1"}\n\n' % usage
    done = b"data: [DONE]\n\n"
    counter = EventCounter(without_usage=True)
    marked = last % b',"system_fingerprint":"vllm-1"'
    assert counter.take(last % usage + told + done) == marked + done
    assert (counter.tokens, counter.prompt_tokens) == (1, 3)
    counter = EventCounter(without_usage=True)
    assert [counter.take(piece) for piece in (last % usage, told, done)] == [b"", marked, done]
    counter = EventCounter(without_usage=True)
    assert (counter.take(last % usage), counter.take(done)) == (b"", last % b"" + done)
    counter = EventCounter(without_usage=True)
    assert (counter.take(last % usage), counter.take_rest(), counter.tokens) == (b"", last % b"", 1)


def test_usage_as_vllm_writes_it_is_read_as_a_parser_reads_it():
    event = b'data: {"id":"x","choices":[{"index":0,"text":"%b"}],"usage":%b}\n\n'
    for text, prompt, made in ((b"a", 3, 1), (b'\\",\\"usage\\":{', 3, 5), (b"", 3, 5), (b"b", 2**24 + 1, 7)):
        usage = b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}' % (prompt, prompt + made, made)
        data = event % (text, usage)
        fast, slow = EventCounter(without_usage=True), EventCounter([])
        assert fast.take(data) == event.replace(b',"usage":%b', b"") % text
        slow.take(data)
        assert (fast.tokens, fast.prompt_tokens) == (slow.tokens, slow.prompt_tokens)
