"""Engines that fail, and what clients see of it: no byte twice, no hung client, nothing lost that could be retried."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random

import aiohttp
import pytest
from aiohttp import web
from serving.engines import Engine, becomes, fleet, is_empty, run, stream

from lbopt.serving.router.endpoint import Breaker, delay


@pytest.mark.parametrize("fault", ["reset", 503, 502, 429])
def test_a_fault_before_the_first_byte_is_retried(fault):
    """The client sees one whole answer."""

    async def check():
        engine = Engine(tokens=3)
        async with fleet([engine], failures=50) as (router, client, base):
            engine.faults = [fault, fault]
            status, data = await stream(client, base)
            assert status == 200
            assert data.count(b"t0 ") == data.count(b"t2 ") == 1
            assert router.metrics.retries == 2
            assert len(engine.requests) == 3
            await becomes(lambda: is_empty(router))

    run(check())


@pytest.mark.parametrize("fault", ["reset", 503])
def test_retries_end(fault):
    """After `retries` the client gets the engine's answer, or is told what went wrong."""

    async def check():
        engine = Engine()
        async with fleet([engine], retries=2, failures=50) as (router, client, base):
            engine.faults = [fault] * 10
            status, data = await stream(client, base)
            assert status == (502 if fault == "reset" else 503)
            assert b"error" in data
            assert len(engine.requests) == 3
            await becomes(lambda: is_empty(router))
            assert router.fleet.endings["failed"] == 1

    run(check())


def test_an_engine_that_refuses_does_not_swallow_what_another_could_serve():
    """It holds nothing, so every rule would choose it again: after some refusals in a row it counts as down."""

    async def check():
        bad, good = Engine(), Engine()
        # No look in between: its health answers, so that on a busy machine it would count as up again too soon.
        async with fleet([bad, good], retries=4, failures=3, poll_seconds=30.0) as (router, client, base):
            bad.faults = [503] * 1000
            for _ in range(10):
                status, _ = await stream(client, base)
                assert status == 200
            assert len(good.requests) == 10
            await becomes(lambda: is_empty(router))

    run(check())


@pytest.mark.parametrize("fault", ["reset-after:2", "cut"])
def test_a_fault_after_the_first_byte_is_told_and_not_retried(fault):
    """The stream ends with an event that says so, and the engine is asked once."""

    async def check():
        engine = Engine(tokens=6, delay=0.01)
        async with fleet([engine], failures=50) as (router, client, base):
            engine.faults = [fault]
            status, data = await stream(client, base)
            assert status == 200
            assert data.count(b"t0 ") == data.count(b"t1 ") == 1
            assert b"t2 " not in data
            assert b"not whole" in data.split(b"data: ")[-1]
            assert b"[DONE]" not in data
            assert len(engine.requests) == 1
            await becomes(lambda: is_empty(router))

    run(check())


def test_an_error_of_the_request_is_passed_on():
    """400 is the engine's answer to this request, and no other engine is asked; so is 404, where there is no other."""

    async def check():
        engine = Engine()
        async with fleet([engine]) as (router, client, base):
            for code in (400, 404, 422):
                engine.faults = [code]
                status, data = await stream(client, base)
                assert status == code
                assert data == b'{"error": {"message": "no"}}'
            assert len(engine.requests) == 3
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_frozen_engine_goes_down_and_its_requests_go_elsewhere():
    """What it had not begun is answered by the other; what it had begun ends with an error; it comes back."""

    async def check():
        frozen, other = Engine(tokens=4), Engine(tokens=4)
        async with fleet([frozen, other], slots=2, failures=2, poll_timeout=0.1) as (router, client, base):
            frozen.faults = ["freeze", "freeze-after:1"]
            tasks = [asyncio.create_task(stream(client, base)) for _ in range(4)]
            await becomes(lambda: frozen.running == 2)
            frozen.is_healthy = False
            answers = [await task for task in tasks]
            whole = [data for _, data in answers if data.endswith(b"[DONE]\n\n")]
            assert len(whole) == 3
            (broken,) = [data for _, data in answers if data not in whole]
            assert b"not whole" in broken
            assert not router.endpoints[router.fleet.worker("g", frozen.url[7:])].mirror.is_open
            frozen.is_healthy = True
            await becomes(lambda: all(e.mirror.is_open for e in router.endpoints.values()))
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_killed_engine_goes_down_and_is_learned_again():
    """503 while there is none; as soon as it answers again requests are served."""

    async def check():
        engine = Engine()
        async with fleet([engine], failures=2) as (router, client, base):
            port = int(engine.url.rpartition(":")[2])
            await engine.stop()
            await becomes(lambda: not router.has_worker())
            status, _ = await stream(client, base)
            assert status == 503
            async with client.get(base + "/ready") as answer:
                assert answer.status == 503
            await engine.start(port)
            await becomes(router.has_worker)
            assert (await stream(client, base))[0] == 200

    run(check())


def test_a_silent_engine_ends_at_the_limit():
    """`idle_seconds` between two chunks, `request_seconds` in all: no client hangs."""

    async def check():
        engine = Engine(tokens=5)
        async with fleet([engine], idle_seconds=0.2, retries=0, failures=100) as (router, client, base):
            engine.faults = ["freeze"]
            status, _ = await stream(client, base)
            assert status == 504
            engine.faults = ["freeze-after:2"]
            status, data = await stream(client, base)
            assert b"not whole" in data
            await becomes(lambda: is_empty(router))
        engine = Engine(tokens=500, delay=0.01)
        async with fleet([engine], request_seconds=0.2) as (router, client, base):
            _, data = await stream(client, base)
            assert b"request_seconds" in data
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_client_that_does_not_read_is_dropped():
    """Its slot comes back after `slow_client_seconds`."""

    async def check():
        engine = Engine(tokens=100_000)
        async with fleet([engine], slow_client_seconds=0.2) as (router, _, base):
            host, port = base[7:].split(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
            body = json.dumps({"model": "m", "prompt": "x" * 10, "stream": True}).encode()
            head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await becomes(lambda: router.metrics.stopped["slow-client"] == 1, 15)
            await becomes(lambda: is_empty(router))
            writer.close()
            del reader

    run(check())


def test_a_drain_lets_streams_end_and_refuses_new_ones():
    """Requests that run end within `drain_seconds`; those that do not are told."""

    async def check():
        engine = Engine(tokens=20, delay=0.01)
        async with fleet([engine], slots=4) as (router, client, base):
            short = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 1)
            drain = asyncio.create_task(router.drain(5.0))
            await asyncio.sleep(0.02)
            status, _ = await stream(client, base)
            assert status == 503
            await drain
            assert (await short)[1].endswith(b"[DONE]\n\n")
        engine = Engine(tokens=1000, delay=0.01)
        async with fleet([engine]) as (router, client, base):
            long = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 1)
            await router.drain(0.1)
            assert b"the router ends" in (await long)[1]
            assert is_empty(router)

    run(check())


def test_a_drain_does_not_wait_for_what_a_gateway_forwards():
    """A request with a place is the gateway's, whatever is reported of it; one that waits for a place is told."""

    async def check():
        async with fleet([Engine()], slots=1, advised=True) as (router, client, base):
            ask = {"model": "m", "prompt_tokens": 5}
            async with client.post(base + "/route", json=ask) as answer:
                assert answer.status == 200
            waiting = asyncio.create_task(client.post(base + "/route", json=ask))
            await becomes(lambda: len(router.unanswered) == 1)
            await router.drain(0.2)
            told = await waiting
            assert told.status == 503
            assert "the router ends" in (await told.json())["error"]["message"]
        async with fleet([Engine()], slots=1, advised=True) as (router, client, base):
            async with client.post(base + "/route", json=ask) as answer:
                assert answer.status == 200
            await router.drain(86_400.0)  # nobody waits for an answer: a day would not end

    run(check())


def test_two_hundred_scripted_faults():
    """Whatever the engines do, each request ends, no byte comes twice, and the state is empty at the end."""

    async def check():
        rng = random.Random(5)
        engines = [Engine(tokens=4, delay=0.001) for _ in range(4)]
        kinds = ["reset", 503, 502, 429, "reset-after:1", "reset-after:3", "cut", "freeze", "freeze-after:2", 500, 422]
        seen = {"whole": 0, "told": 0, "refused": 0}
        async with fleet(engines, slots=4, idle_seconds=0.15, retries=4, failures=4, ttl=5) as (router, client, base):
            for engine in engines:
                engine.faults = [rng.choice(kinds) if rng.random() < 0.7 else None for _ in range(72)]
            scripted = sum(f is not None for e in engines for f in e.faults)
            assert scripted > 190

            async def one():
                try:
                    status, data = await stream(client, base)
                except (aiohttp.ClientError, ConnectionError):
                    return
                for n in range(4):
                    assert data.count(b"t%d " % n) <= 1, "a byte came twice"
                if status != 200:
                    seen["refused"] += 1
                elif data.endswith(b"data: [DONE]\n\n"):
                    assert data.count(b"data: ") == 5
                    seen["whole"] += 1
                else:
                    assert b'"error"' in data.split(b"data: ")[-1]
                    seen["told"] += 1

            gate = asyncio.Semaphore(24)

            async def gated():
                async with gate:
                    await one()

            await asyncio.gather(*(gated() for _ in range(260)))
            await becomes(lambda: is_empty(router))
            assert sum(seen.values()) == 260, "a client was left without an answer"
            assert min(seen.values()) > 0

    run(check())


def test_the_breaker_counts_failures_in_a_row_and_hears_streams():
    """An answer or a chunk closes it."""
    breaker = Breaker(2)
    breaker.fail(1.0)
    assert not breaker.is_open(0.0)
    breaker.fail(2.0)
    assert breaker.is_open(0.5)
    assert not breaker.is_open(1.5), "a chunk came after the first failure"
    breaker.succeed()
    assert not breaker.is_open(0.0)
    assert [delay(n, 0.1, 1.0) for n in (1, 2, 3, 9)] == [0.1, 0.2, 0.4, 0.1 * 10]


class Redirecting(Engine):
    """Sends whoever asks for a prompt's tokens, or for its metrics, to another address."""

    elsewhere = ""

    async def _tokenize(self, request):
        return web.Response(status=307, headers={"Location": self.elsewhere + "/tokenize"})

    async def _metrics(self, request):
        return web.Response(status=302, headers={"Location": self.elsewhere + "/metrics"})


def test_prompts_and_looks_do_not_follow_an_engine_elsewhere():
    """A redirect of `/tokenize`, of metrics or of a prefiller is no answer; nobody else gets a prompt or a key."""

    async def check():
        asked = []
        stranger = await asyncio.start_server(lambda _, writer: asked.append(writer), "127.0.0.1", 0)
        elsewhere = f"http://127.0.0.1:{stranger.sockets[0].getsockname()[1]}"
        engine = Redirecting()
        engine.elsewhere = elsewhere
        async with fleet([engine], tokenize=True) as (_, client, base):
            assert (await stream(client, base))[0] == 200
        engine, prefiller = Engine(), Engine()
        prefiller.faults = [307]
        prefiller.answer_headers = {"Location": elsewhere + "/v1/completions"}
        async with fleet([engine], prefillers=[prefiller]) as (_, client, base):
            body = {"model": "m", "prompt": "x"}
            async with client.post(base + "/v1/completions", json=body, allow_redirects=False) as answer:
                assert answer.status == 307
        stranger.close()
        assert asked == []

    run(check())


class Raw:
    """An engine that answers requests with these bytes, and looks at its health with 404."""

    def __init__(self, data):
        self.data, self.url, self.num_asked = data, "", 0
        self._server = None

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self):
        self._server.close()

    async def _serve(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                is_look = head.startswith(b"GET")
                self.num_asked += not is_look
                writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n" if is_look else self.data)
                await writer.drain()
        writer.close()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nX-Torn: a\nb\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX-Torn: a\x01b\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    ],
)
def test_an_answer_that_cannot_be_passed_on_is_none(data):
    """The client is told why, and another engine is asked where there is one."""

    async def check():
        bad = Raw(data)
        async with fleet([bad], retries=1, failures=50) as (router, client, base):
            status, told = await stream(client, base)
            assert (status, bad.num_asked) == (502, 2)
            assert b"BadAnswer" in told
            await becomes(lambda: is_empty(router))
        bad, good = Raw(data), Engine()
        async with fleet([bad, good], failures=2, poll_seconds=30.0) as (_, client, base):
            for _ in range(4):
                assert (await stream(client, base))[0] == 200
            assert bad.num_asked

    run(check())
