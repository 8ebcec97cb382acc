"""Connections to engines: answers of every framing, torn anywhere, damaged, and clients that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving.engines import Engine, becomes, fleet, is_empty, run

from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.http_wire import BadAnswer, CutShort, Wire

BODY = b"data: one\n\ndata: two\n\n" + bytes(range(256))


def chunked(body, sizes=(5, 1, 300)):
    """A body in chunks, with an extension and a trailer."""
    parts, at, n = [], 0, 0
    while at < len(body):
        part = body[at : at + sizes[n % len(sizes)]]
        parts.append(b"%x;ext=1\r\n" % len(part) + part + b"\r\n")
        at, n = at + len(part), n + 1
    return b"".join(parts) + b"0\r\nX-Trailer: 1\r\n\r\n"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Odd:  \xc3\xa9 \r\n"
ANSWERS = {
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY),
    "length": HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "until the end": HEAD + b"\r\n" + BODY,
    "after 100": b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "none": b"HTTP/1.1 204 No Content\r\n\r\n",
}


class Socket:
    """Stands for a transport."""

    def __init__(self):
        self.sent, self.closed, self.paused = b"", False, 0

    def write(self, data):
        self.sent += data

    def is_closing(self):
        return self.closed

    def abort(self):
        self.closed = True

    def pause_reading(self):
        self.paused += 1

    def resume_reading(self):
        self.paused -= 1


async def exchange(data, cuts, *, pour, end):
    """Feed an answer in pieces, and return head, body and wire."""
    wire, socket = Wire([]), Socket()
    wire.connection_made(socket)
    asked = asyncio.ensure_future(wire.ask(b"request"))
    await asyncio.sleep(0)
    body, at = [], 0

    def sink(data, frame):
        assert frame in (b"", b"%x\r\n%b\r\n" % (len(data), data))
        body.append(data)

    for cut in [*cuts, len(data)]:
        if at < len(data):
            wire.data_received(data[at : at + cut])
            at += cut
            await asyncio.sleep(0)
            if asked.done() and pour and not body:
                body.append(b"")
                wire.pour(sink)
    if end:
        wire.connection_lost(None)
    head = await asked
    if pour:
        if not body:
            wire.pour(sink)
        await wire.wait()
    else:
        while piece := await wire.piece():
            body.append(piece)
    return head, b"".join(body), wire


@pytest.mark.parametrize("size", [1, 15, 16, 4096])
def test_a_piece_that_is_one_chunk_comes_with_its_frame(size):
    """So it need not be framed anew; one that is more, less or framed in another way comes without."""
    whole = b"%x\r\n%b\r\n" % (size, b"a" * size)
    bad = [
        whole + whole,
        whole[:-1],
        whole[:-2] + b"xx",
        b"0\r\n\r\n",
        b"+1\r\na\r\n",
        b"1_0\r\n" + b"a" * 16 + b"\r\n",
    ]

    async def check(data):
        wire, found = Wire([]), []
        wire.connection_made(Socket())
        asked = asyncio.ensure_future(wire.ask(b"request"))
        await asyncio.sleep(0)
        wire.data_received(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        await asked
        wire.pour(lambda part, frame: found.append((part, frame)))
        wire.data_received(data)
        return found

    assert run(check(whole)) == [(b"a" * size, whole)]
    for data in bad:
        assert all(frame == b"" for _, frame in run(check(data)))


@pytest.mark.parametrize("name", ANSWERS)
@given(cuts=st.lists(st.integers(1, 60), max_size=40), pour=st.booleans())
@settings(max_examples=40)
def test_an_answer_is_read_however_it_is_cut(name, cuts, pour):
    """Status, headers and every byte; a connection is kept where the body has an end of its own."""
    ends = name == "until the end"

    async def check():
        return await exchange(ANSWERS[name], cuts, pour=pour, end=ends)

    head, body, wire = run(check())
    assert head.status == (204 if name == "none" else 200)
    assert body == (b"" if name == "none" else BODY)
    if name == "length":
        assert head.get("x-odd") == "\u00e9"
    assert wire.may_be_kept is (not ends)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
        *(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\n" + b"a" * 97 + b"\r\n0\r\n\r\n"
            for size in (b"0x61", b"0X61", b"+61", b"6_1", b" 61", b"\xd9\xa61", b"061h", b"")
        ),
        HEAD + b"X-Torn: a\nb\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X-Torn: a\x00b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X Torn: a\r\nContent-Length: 0\r\n\r\n",
        HEAD + b" folded\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + HEAD + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 2\xc2\xb20 OK\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: " + b"x" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
        b"x" * 70_000,
        HEAD + b"Content-Length: 10\r\n\r\nshort",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"",
    ],
)
def test_what_is_no_whole_answer_is_an_error(data):
    """And the connection is closed; whether it comes in pieces or at once."""

    async def check():
        for cuts in ([7, 1], []):
            with pytest.raises((BadAnswer, CutShort)):
                await exchange(data, cuts, pour=False, end=True)

    run(check())


def test_damaged_answers_end():
    """Three thousand of them: a body, or an error; never a hang, and no other exception."""

    async def check():
        rng = random.Random(2)
        for _ in range(3000):
            data = bytearray(rng.choice([*ANSWERS.values()]))
            for _ in range(rng.choice((1, 3))):
                at = rng.randrange(len(data))
                data[at : at + rng.randrange(4)] = bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
            with contextlib.suppress(ConnectionError):
                await exchange(bytes(data), [rng.randrange(1, 90) for _ in range(9)], pour=rng.random() < 0.5, end=True)

    run(check())


def test_a_request_cannot_be_smuggled_in_a_header():
    """Line ends in headers or paths are refused."""
    assert request_head("http://h:1/base", "/v1/x?a=%0d", {"A": "\u00e9"}, 2) == (
        b"POST /base/v1/x?a=%0d HTTP/1.1\r\nHost: h:1\r\nA: \xc3\xa9\r\nContent-Length: 2\r\n\r\n"
    )
    for path, headers in (("/x\r\nA: 1", {}), ("/x", {"A": "1\r\nB: 2"}), ("/x", {"A\n": "1"}), ("/x", {"A": "\0"})):
        with pytest.raises(ValueError, match="end of a line"):
            request_head("http://h:1", path, headers, 0)


def test_connections_are_kept_and_an_old_one_that_was_closed_is_replaced():
    """Two requests on one connection; after the engine has closed it, a third on a fresh one, without a fault."""

    async def check():
        engine = Engine(tokens=1)
        async with fleet([engine], failures=1, retries=0) as (router, client, base):
            opened = []
            original = Wires.open

            async def noted(self, url, *, fresh=False):
                wire = await original(self, url, fresh=fresh)
                opened.append((wire, wire.is_reused))
                return wire

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Wires, "open", noted)
                for _ in range(2):
                    async with client.post(base + "/v1/completions", json={"model": "m", "prompt": "x"}) as answer:
                        assert answer.status == 200
                engine.faults = ["reset"]
                async with client.post(base + "/v1/completions", json={"model": "m", "prompt": "x"}) as answer:
                    assert answer.status == 200
            assert [reused for _, reused in opened] == [False, True, True, False]
            assert opened[0][0] is opened[1][0]
            await becomes(lambda: is_empty(router))

    run(check())


def without_chunks(answer):
    """The body of an answer in chunks."""
    rest, parts = answer.partition(b"\r\n\r\n")[2], []
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line, 16)
        parts.append(rest[:size])
        assert rest[size : size + 2] == b"\r\n"
        rest = rest[size + 2 :]
    return b"".join(parts)


async def settled(router):
    """The tokens that the router has read when it reads no more."""
    seen = -1
    while seen != (seen := sum(t.produced for t in router.fleet.live.values())) or not seen:
        await asyncio.sleep(0.25)
    return seen


@pytest.mark.more
def test_a_client_that_reads_slowly_slows_the_engine_and_gets_every_byte():
    """The router does not pile up what the client has not taken."""

    async def check():
        engine = Engine(tokens=60_000)
        async with fleet([engine], slow_client_seconds=10) as (router, _, base):
            host, port = base[7:].split(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
            body = json.dumps({"model": "m", "prompt": "x", "stream": True}).encode()
            writer.write(b"POST /v1/completions HTTP/1.0\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            got = await reader.readexactly(1000)
            assert await settled(router) < 60_000, "the engine is read on"
            got += await reader.read()
            assert got.count(b"data: ") == 60_001
            writer.close()
            reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert await settled(router) < 60_000, "the engine is read on"
            got = b""
            while not got.endswith(b"\r\n0\r\n\r\n"):
                got += await reader.read(2**16)
            assert without_chunks(got).count(b"data: ") == 60_001
            await becomes(lambda: is_empty(router))
            writer.close()

    run(check())
