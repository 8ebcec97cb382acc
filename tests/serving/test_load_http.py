"""The small HTTP client of the load generator, against bytes that servers send, cut anywhere, and against nonsense."""

from __future__ import annotations

import asyncio
from unittest.mock import create_autospec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbopt.exceptions import InputError
from lbopt.serving.load.events import EventParser
from lbopt.serving.load.http_client import (
    BrokenResponseError,
    Connection,
    Connections,
    MalformedResponseError,
    Origin,
    Response,
    request_of,
)
from lbopt.serving.virtual_clock import run_virtual

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def answered(*pieces, then="keep", requests=1):
    """What the client makes of an answer that a server sends in these pieces; then it keeps, ends or resets."""

    async def main():
        seen = []

        async def serve(reader, writer):
            for _ in range(requests):
                head = await reader.readuntil(b"\r\n\r\n")
                seen.append(head)
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0.001)
            if then == "end":
                writer.close()
            elif then == "reset":
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        origin, connections, found = Origin.of(f"http://{host}:{port}/base/"), Connections(), []
        try:
            for _ in range(requests):
                response = Response()
                connection = await connections.get(origin)
                async with asyncio.timeout(5):
                    await connection.exchange(request_of(origin, "GET", "/x", {"A": "b"}), response)
                connections.put(origin, connection)
                found.append((response, connection, connection.reusable))
                await asyncio.sleep(1)
        finally:
            connections.close()
        return found, seen

    return run_virtual(main())


def chunked(*parts):
    """Parts as chunks, with an extension and a trailer."""
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\nT: u\r\n\r\n"


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    st.lists(st.integers(1, 30), max_size=30),
    st.sampled_from(["chunked", "length", "end"]),
)
def test_a_body_is_whole_however_its_bytes_are_cut(parts, cuts, kind):
    body = b"".join(parts)
    if kind == "chunked":
        wire = HEAD + b"Transfer-Encoding: Chunked\r\n\r\n" + chunked(*parts)
    elif kind == "length":
        wire = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    else:
        wire = HEAD + b"\r\n" + body
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(wire[at : at + cut])
        at += cut
    pieces.append(wire[at:])
    [(response, _, reusable)], _ = answered(*filter(None, pieces), then="end" if kind == "end" else "keep")
    assert (response.status, response.body) == (200, body)
    assert response.headers[b"content-type"] == b"text/event-stream"
    assert reusable == (kind != "end")


@pytest.mark.parametrize("kind", [b"Content-Length: %d", b"Transfer-Encoding: chunked\r\n\r\n%x"])
def test_a_large_answer_in_small_pieces_is_looked_at_once_and_has_an_end(kind, monkeypatch):
    """Two MiB in pieces of 64 bytes: with each of them all that came before was copied."""
    wire = HEAD + kind % 2**21 + (b"\r\n\r\n" if b"Length" in kind else b"\r\n")
    body = b"data: " + b"x" * (2**21 - 6)
    pieces = [wire, *(body[at : at + 64] for at in range(0, 2**21, 64))]

    async def received(*wires):
        connection, response = Connection(asyncio.get_running_loop()), Response()
        connection.connection_made(create_autospec(asyncio.Transport, instance=True))
        exchange = asyncio.ensure_future(connection.exchange(b"", response))
        await asyncio.sleep(0)
        for piece in wires:
            connection.data_received(piece)
        await exchange
        return response.body

    assert asyncio.run(received(*pieces, *([] if b"Length" in kind else [b"\r\n0\r\n\r\n"]))) == body
    parser = EventParser()
    assert [parser.feed(piece) for piece in pieces[1:]] == [[]] * 2**15
    assert parser.feed(b"\n\n") == [body[6:]]
    monkeypatch.setattr("lbopt.serving.load.http_client._LARGEST_ANSWER", 2**20)
    with pytest.raises(MalformedResponseError):
        asyncio.run(received(*pieces))


def test_pieces_have_the_times_at_which_they_came():
    parts = (b"data: 1\n\n", b"data: 2\n\n")
    wire = [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *(b"9\r\n%b\r\n" % part for part in parts), b"0\r\n\r\n"]
    [(response, _, _)], seen = answered(*wire)
    assert response.pieces == [(0.001, parts[0]), (0.002, parts[1])]
    assert seen == [b"GET /base/x HTTP/1.1\r\nHost: 127.0.0.1:20000\r\nA: b\r\nContent-Length: 0\r\n\r\n"]


def test_a_connection_is_used_again_unless_the_server_says_no():
    wire = b"HTTP/1.1 100 Continue\r\n\r\n" * 2000 + b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
    found, _ = answered(wire, requests=3)
    assert len({id(connection) for _, connection, _ in found}) == 1
    [(response, _, reusable)], _ = answered(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na")
    assert (response.body, reusable) == (b"a", False)


def test_a_connection_that_was_idle_for_long_is_not_used_again():
    async def main():
        accepted = []

        async def serve(reader, writer):
            accepted.append(writer)
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        origin, connections = Origin.of(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), Connections()
        for pause in (0.5, 1.9, 2.1, 0.0):
            connection = await connections.get(origin)
            await connection.exchange(request_of(origin, "GET", "/", {}), Response())
            connections.put(origin, connection)
            await asyncio.sleep(pause)
        connections.close()
        return len(accepted)

    assert run_virtual(main()) == 2


@pytest.mark.parametrize(
    ("pieces", "then", "reset"),
    [
        ((), "end", True),
        ((b"HTTP/1.1 200",), "end", True),
        ((HEAD + b"Content-Length: 9\r\n\r\nabc",), "end", False),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",), "end", False),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",), "end", False),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",), "reset", True),
        ((HEAD + b"\r\nabc",), "reset", True),
    ],
)
def test_a_response_that_breaks_off_is_an_error(pieces, then, reset):
    with pytest.raises(BrokenResponseError) as error:
        answered(*pieces, then=then)
    assert error.value.reset == reset


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 twohundred OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n",
        b"a" * 70_000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 200_000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"x" * 200_000,
    ],
    ids=lambda wire: f"{wire[:12]!r} {len(wire)}",
)
def test_nonsense_is_no_response(wire):
    with pytest.raises(MalformedResponseError):
        answered(wire)


def test_urls_and_what_is_none():
    assert Origin.of("http://a:81/v/") == Origin("a", 81, False, "/v")
    assert Origin.of("https://b") == Origin("b", 443, True, "")
    for text in ("http://a:port", "ftp://a", "http://", "http://[::1"):
        with pytest.raises(InputError, match="is no URL"):
            Origin.of(text)
    assert b"Host: [::1]:80\r\n" in request_of(Origin.of("http://[::1]"), "GET", "/", {})
