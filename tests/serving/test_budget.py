"""What clients may take of the router: bytes, connections, and time in which they neither send nor read."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from aiohttp import web
from serving.engines import Engine, becomes, fleet, is_empty, run, stream

from lbopt.exceptions import InputError
from lbopt.serving.router import run as running
from lbopt.serving.router.clients import Budget, OverBudgetError, most_connections
from lbopt.serving.router.options import RouterOptions

KIB = 2**10
MIB = 2**20


class Large(Engine):
    """Answers with so many bytes of JSON."""

    def __init__(self, size, **more):
        super().__init__(**more)
        self.size = size

    async def _carry_out(self, request, ask):
        if self.faults and self.faults.pop(0) == "cut":
            answer = web.StreamResponse(headers={"Content-Length": str(self.size)})
            await answer.prepare(request)
            await answer.write(b" " * (self.size // 2))
            request.transport.abort()
            return answer
        await asyncio.sleep(self.delay)
        return web.Response(body=self.text, content_type="application/json")

    @property
    def text(self):
        return b'{"choices":[],"x":"' + bytes(97 + n % 26 for n in range(1000)) * (self.size // 1000) + b'"}'


def asked(size=10, **more):
    return json.dumps({"model": "m", "prompt": "x" * size} | more).encode()


async def connect(base, data=b"", limit=2**16):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]), limit=limit)
    writer.write(data)
    return reader, writer


def head(body, *lines, path=b"/v1/completions"):
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: x", *lines, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def closes(reader, seconds=5.0):
    """What comes until the router closes the connection."""
    data = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(seconds):
            while part := await reader.read(2**16):
                data += part
    return data


def test_a_share_is_given_back_whatever_happens():
    """Large ones leave an eighth to small ones; a share that another has taken over is not given back twice."""
    budget = Budget(8 * MIB)
    with budget.share() as share, budget.share() as small:
        share.take(7 * MIB)
        with pytest.raises(OverBudgetError):
            share.take(1)
        small.take(64 * KIB)
        with pytest.raises(OverBudgetError):
            small.take(1)
        share.give(MIB)
        with budget.share() as third:
            third.take(MIB - 64 * KIB)
            share.add(third)
        assert budget.held == 7 * MIB
    assert budget.held == 0
    with pytest.raises(InputError, match="held_bytes"):
        RouterOptions(body_bytes=MIB, held_bytes=MIB)


def test_bodies_that_wait_have_a_bound():
    """Beyond it 503 with a time to come back, counted as bytes come; small ones get in; all is free at the end."""

    async def check():
        engine = Engine(tokens=1, delay=0.2)
        limits = {"held_bytes": MIB, "body_bytes": 512 * KIB, "body_seconds": 5}
        async with fleet([engine], slots=1, **limits) as (router, client, base):

            async def ask(size):
                async with client.post(base + "/v1/completions", data=asked(size)) as answer:
                    return answer.status, answer.headers.get("Retry-After"), await answer.read()

            slow = [await connect(base, head(b" " * 400 * KIB) + b" " * 350 * KIB) for _ in range(2)]
            await becomes(lambda: router.budget.held == 700 * KIB)
            status, again, told = await ask(300 * KIB)
            assert (status, again) == (503, "2")
            assert b"held_bytes" in told
            assert (await ask(100))[0] == 200
            for _, writer in slow:
                writer.close()
            await becomes(lambda: router.budget.held == 0)
            answers = await asyncio.gather(*(ask(250 * KIB) for _ in range(6)))
            assert sorted(status for status, _, _ in answers) == [200, 200, 200, 503, 503, 503]
            assert (await ask(600 * KIB))[0] == 413
            assert router.metrics.refused["held_bytes"] == 4
            await becomes(lambda: is_empty(router))
            streaming = asyncio.create_task(stream(client, base, prompt="x" * 300 * KIB))
            await becomes(lambda: engine.running == 1 and router.budget.held == 0)
            assert (await streaming)[0] == 200

    run(check())


def test_answers_that_are_collected_have_a_bound():
    """The client is told; what an attempt had before its engine broke off is free again."""

    async def check():
        engine = Large(600 * KIB)
        limits = {"held_bytes": MIB, "body_bytes": 64 * KIB}
        async with fleet([engine], failures=99, **limits) as (router, client, base):
            engine.faults = ["cut", "cut"]
            async with client.post(base + "/v1/completions", data=asked()) as answer:
                assert (answer.status, await answer.read()) == (200, engine.text)
            await becomes(lambda: is_empty(router))
            engine.size = MIB
            async with client.post(base + "/v1/completions", data=asked()) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_client_that_does_not_read_a_whole_answer_is_dropped():
    """After `slow_client_seconds`; one that reads slowly gets every byte."""

    async def check():
        engine = Large(16 * MIB)
        async with fleet([engine], slots=4, slow_client_seconds=0.4) as (router, _, base):
            body = asked()
            _, writer = await connect(base, head(body) + body, limit=KIB)
            reader, other = await connect(base, head(body, b"Connection: close") + body)
            got = []
            while part := await reader.read(MIB):
                got.append(part)
                await asyncio.sleep(0.005)
            assert b"".join(got).partition(b"\r\n\r\n")[2] == engine.text
            await becomes(lambda: router.metrics.stopped["slow-client"] == 1)
            await becomes(lambda: is_empty(router))
            writer.close()
            other.close()

    run(check())


def test_the_rest_of_any_answer_is_not_kept_for_a_client_that_does_not_read():
    """Metrics asked for hundreds of times and never read: the connection is dropped, whoever wrote the answers."""

    async def check():
        async with fleet([Engine()], slow_client_seconds=0.3) as (_, client, base):
            _, writer = await connect(base, limit=KIB)
            writer.transport.pause_reading()
            for _ in range(2000):
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            await becomes(lambda: writer.transport.is_closing() or writer.write(b"G"), 15)
            async with client.get(base + "/health") as answer:
                assert answer.status == 200

    run(check())


def test_a_further_head_on_a_kept_connection_has_the_time_of_the_first():
    """Its first byte starts the clock; a connection that says nothing is kept."""

    async def check(monkeypatch):
        monkeypatch.setattr(running, "HEAD_SECONDS", 0.3)
        async with fleet([Engine()]) as (_, _, base):
            reader, writer = await connect(base)
            for _ in range(2):
                writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await reader.readuntil(b"ok\n")).endswith(b"ok\n")
                await asyncio.sleep(0.6)
            for sign in b"GET /health HTTP/1.1\r\n":
                if not writer.transport.is_closing():
                    writer.write(bytes([sign]))
                await asyncio.sleep(0.03)
            assert await closes(reader) == b""
            writer.close()

    with pytest.MonkeyPatch.context() as monkeypatch:
        run(check(monkeypatch))


def test_beyond_the_most_connections_health_answers_and_others_are_told():
    """A silent crowd of spare connections takes no place from one that asks; where one goes, another may come."""

    async def check():
        body = asked()
        async with fleet([Engine()], max_connections=2) as (router, _, base):
            held = [await connect(base) for _ in range(2)]
            crowd = [await connect(base) for _ in range(60)]
            reader, writer = await connect(base, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await closes(reader)).startswith(b"HTTP/1.1 200")
            writer.close()
            reader, writer = await connect(base, head(body) + body)
            told = await closes(reader)
            assert told.startswith(b"HTTP/1.1 503")
            assert b"Retry-After: 2" in told
            assert b"as many connections" in told
            writer.close()
            for _, writer in (held[0], *crowd):
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
            await asyncio.sleep(0.1)
            reader, writer = await connect(base, head(body, b"Connection: close") + body)
            assert (await closes(reader)).startswith(b"HTTP/1.1 200")
            writer.close()
            held[1][1].close()
            await becomes(lambda: is_empty(router))
        assert [most_connections(files) for files in (64, 256, 1024, 2**20)] == [1, 96, 480, 16_384]

    run(check())


def in_chunks(body, size):
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 64])
def test_a_body_in_crumbs_is_not_read(size):
    """A chunk a byte costs a hundred times what the bytes would; chunks of a token or a line are usual."""

    async def check():
        engine = Engine()
        async with fleet([engine]) as (router, _, base):
            lines = (
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            for pause in (0.0, 0.1):
                reader, writer = await connect(base, lines)
                await asyncio.sleep(pause)
                writer.write(in_chunks(asked(64 * KIB), size))
                answer = await closes(reader)
                assert answer.startswith(b"HTTP/1.1 200") if size > 1 else answer == b""
                writer.close()
            assert len(engine.requests) == (2 if size > 1 else 0)
            await becomes(lambda: is_empty(router))

    run(check())


def test_an_answer_in_crumbs_is_none():
    """An engine that sends a chunk a byte is no engine."""

    class Crumbling(Engine):
        async def _carry_out(self, request, ask):
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            request.transport.write(head + in_chunks(b" " * MIB, 1))
            return web.Response()

    async def check():
        async with fleet([Crumbling()], retries=0) as (router, client, base):
            status, told = await stream(client, base)
            assert status == 502
            assert b"BadAnswer" in told
            await becomes(lambda: is_empty(router))

    run(check())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"HTTP/1.1 400 No\r\nX-Good: c\r\nContent-Length: 2\r\n\r\n{}", 400),
        (b"HTTP/1.1 400 No\r\nX-Odd: a\x01b\r\nX-Good: c\r\nContent-Length: 2\r\n\r\n{}", 502),
        (b"HTTP/1.1 400 No\r\nContent-Length: 2000000\r\n\r\n" + b" " * 2_000_000, 503),
    ],
)
def test_a_prefiller_may_answer_what_it_likes(data, status):
    """A refusal that cannot be sent on is no answer, as of workers; its answers are held within the budget, too."""

    class Odd(Engine):
        async def _carry_out(self, request, ask):
            request.transport.write(data)
            await asyncio.sleep(0.1)
            request.transport.abort()
            return web.Response()

    async def check():
        limits = {"held_bytes": MIB, "body_bytes": KIB}
        async with fleet([Engine()], prefillers=[Odd()], **limits) as (router, client, base):
            async with client.post(base + "/v1/completions", data=asked()) as answer:
                assert answer.status == status
                assert ("X-Good" in answer.headers) is (status == 400)
            await becomes(lambda: is_empty(router))

    run(check())
