"""Real clients: the `openai` package against the router, tools and logprobs passed through untouched; and curl."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import threading

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run


@pytest.fixture(scope="module")
def openai():
    """The package, imported only where its tests run."""
    return pytest.importorskip("openai")


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


class Speaking(Engine):
    """Answers chats with a tool call, logprobs and fields that no client knows."""

    def _event(self, number, chat, ask):
        delta = {"role": "assistant", "content": ""} if number == 0 else {"content": f"w{number} "}
        if number == 2:
            call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
            delta = {"tool_calls": [call]}
        logprobs = {"content": [{"token": "w", "logprob": -0.25, "bytes": [119], "top_logprobs": []}]}
        last = "tool_calls" if number == self.tokens - 1 else None
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": last, "beyond": {"x": 1}}
        event = {"id": "i", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(event).encode() + b"\n\n"


def test_the_async_client_streams_tools_and_logprobs(openai):
    """What the client sees is what the engine sent."""

    async def check():
        engine = Speaking(tokens=4)
        async with fleet([engine], ask_usage=False) as (router, _, base):
            client = openai.AsyncOpenAI(base_url=base + "/v1", api_key="sk-anything", max_retries=0)
            chunks = [
                chunk
                async for chunk in await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "hi"}],
                    stream=True,
                    tools=TOOLS,
                    logprobs=True,
                    extra_body={"x_vendor": {"kept": True}},
                )
            ]
            assert [c.choices[0].delta.content for c in chunks] == ["", "w1 ", None, "w3 "]
            assert chunks[2].choices[0].delta.tool_calls[0].function.arguments == '{"a":1}'
            assert chunks[1].choices[0].logprobs.content[0].logprob == -0.25
            assert chunks[1].choices[0].beyond == {"x": 1}
            assert chunks[3].choices[0].finish_reason == "tool_calls"
            sent = json.loads(engine.requests[0][2])
            assert sent["tools"] == TOOLS
            assert sent["x_vendor"] == {"kept": True}
            await becomes(lambda: is_empty(router))
            assert router.metrics.tokens == 3, "the first event has no token"
            assert [model.id async for model in client.models.list()] == ["m"]
            await client.close()

    run(check())


def test_the_async_client_cancels(openai):
    """A stream that is closed frees its slot, and the engine is told."""

    async def check():
        engine = Engine(tokens=10_000, delay=0.005)
        async with fleet([engine]) as (router, _, base):
            client = openai.AsyncOpenAI(base_url=base + "/v1", api_key="sk", max_retries=0)
            answer = await client.completions.create(model="m", prompt="x", stream=True)
            async for _ in answer:
                break
            await answer.close()
            await becomes(lambda: is_empty(router))
            await becomes(lambda: engine.disconnects == 1)
            await client.close()

    run(check())


def test_errors_are_those_that_the_client_knows(openai):
    """404, 429 with a time to come back, and a stream that breaks."""

    async def check():
        engine = Engine(tokens=6, delay=0.01)
        async with fleet([engine], slots=1, max_waiting=1, failures=9) as (router, _, base):
            client = openai.AsyncOpenAI(base_url=base + "/v1", api_key="sk", max_retries=0)
            with pytest.raises(openai.NotFoundError, match="does not exist"):
                await client.completions.create(model="none", prompt="x")
            ask = [asyncio.create_task(client.completions.create(model="m", prompt="x")) for _ in range(4)]
            done = await asyncio.gather(*ask, return_exceptions=True)
            refused = [answer for answer in done if isinstance(answer, openai.RateLimitError)]
            assert len(refused) == 2
            assert int(refused[0].response.headers["Retry-After"]) >= 1
            engine.faults = ["cut"]
            with pytest.raises(openai.APIError, match="not whole"):
                async for _ in await client.completions.create(model="m", prompt="x", stream=True):
                    pass
            await becomes(lambda: is_empty(router))
            await client.close()

    run(check())


def test_the_sync_client_and_curl(openai):
    """From threads and from another process."""

    async def check():
        engine = Engine(tokens=3)
        async with fleet([engine], slots=4) as (router, _, base):

            def ask():
                with openai.OpenAI(base_url=base + "/v1", api_key="sk", max_retries=0) as client:
                    whole = client.completions.create(model="m", prompt="x")
                    parts = [c.choices[0].text for c in client.completions.create(model="m", prompt="x", stream=True)]
                    return whole.usage.completion_tokens, "".join(parts)

            assert await asyncio.to_thread(ask) == (3, "t0 t1 t2 ")
            if shutil.which("curl"):
                body = json.dumps({"model": "m", "prompt": "x", "stream": True})
                command = ["curl", "-sN", "-m", "10", base + "/v1/completions", "-d", body]
                seen = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=15, check=True)
                assert seen.stdout.endswith(b"data: [DONE]\n\n")
            await becomes(lambda: is_empty(router))

    run(check())
    assert threading.active_count() < 50
