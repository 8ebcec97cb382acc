"""What the load generator makes of the bytes that servers send: times of pieces, kept connections, kinds of errors.

How the bytes of HTTP are read is tested in `test_wire.py`.
"""

from __future__ import annotations

import asyncio
from unittest.mock import create_autospec

import pytest

from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.http_wire import BadAnswer, Wire
from lbopt.serving.load.client import BAD_ANSWER, RESET, TRUNCATED, Exchange, Outcome, Response
from tools.virtual_clock import run_virtual

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def answered(*pieces, then="keep"):
    """The outcome of a request whose answer a server sends in these pieces; then it keeps, ends or resets."""

    async def main():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await asyncio.sleep(0.001)
            if then == "end":
                writer.close()
            elif then == "reset":
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        exchange, outcome = Exchange("/x", {"A": "b"}, 0.0, 5.0), Outcome(0, f"http://{host}:{port}/base", 0.0)
        await exchange.run(outcome, b"")
        exchange.reader.finish()
        exchange.wires.close()
        return outcome

    return run_virtual(main())


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", [b"Content-Length: %d", b"Transfer-Encoding: chunked\r\n\r\n%x"])
def test_a_large_answer_in_small_pieces_is_looked_at_once_and_has_an_end(kind, monkeypatch):
    """Two MiB in pieces of 64 bytes: with each of them all that came before was copied."""
    head = HEAD + kind % 2**21 + (b"\r\n\r\n" if b"Length" in kind else b"\r\n")
    body = b"data: " + b"x" * (2**21 - 6)
    pieces = [head, *(body[at : at + 64] for at in range(0, 2**21, 64))]

    async def received(*data):
        wire, response = Wire([]), Response()
        transport = create_autospec(asyncio.Transport, instance=True)
        transport.is_closing.return_value = False
        wire.connection_made(transport)
        exchange = asyncio.ensure_future(response.fill(wire, b""))
        await asyncio.sleep(0)
        for piece in data:
            wire.data_received(piece)
        await exchange
        return response.body

    assert asyncio.run(received(*pieces, *([] if b"Length" in kind else [b"\r\n0\r\n\r\n"]))) == body
    monkeypatch.setattr("lbopt.serving.load.client._LARGEST_ANSWER", 2**20)
    with pytest.raises(BadAnswer):
        asyncio.run(received(*pieces))


def test_pieces_have_the_times_at_which_they_came():
    """So has the one that comes together with the head."""

    async def main():
        async def serve(reader, writer):
            seen.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 0\n\n\r\n")
            for number in (1, 2):
                await asyncio.sleep(0.001)
                writer.write(b"9\r\ndata: %d\n\n\r\n" % number)
            writer.write(b"0\r\n\r\n")

        seen, response, wires = [], Response(), Wires(2.0)
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/base"
        await response.fill(await wires.open(url), request_head(url, "/x", {"A": "b"}, 0, "GET"))
        return response.pieces, seen

    pieces, seen = run_virtual(main())
    assert pieces == [(0.0, b"data: 0\n\n"), (0.001, b"data: 1\n\n"), (0.002, b"data: 2\n\n")]
    assert seen == [b"GET /base/x HTTP/1.1\r\nHost: 127.0.0.1:20000\r\nA: b\r\nContent-Length: 0\r\n\r\n"]


def test_a_connection_is_used_again_unless_the_server_says_no_or_it_was_idle_for_long():
    async def main(answer):
        accepted = []

        async def serve(reader, writer):
            accepted.append(writer)
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        exchange = Exchange("/", {}, 0.0, 100.0)
        for number, pause in enumerate((0.5, 1.9, 2.1, 0.0)):
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            await exchange.run(Outcome(number, url, 0.0), b"")
            await asyncio.sleep(pause)
        exchange.wires.close()
        return len(accepted)

    assert run_virtual(main(b"HTTP/1.1 204 No Content\r\n\r\n")) == 2
    assert run_virtual(main(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na")) == 4


@pytest.mark.parametrize(
    ("pieces", "then", "error"),
    [
        ((), "end", RESET),
        ((b"HTTP/1.1 200",), "end", RESET),
        ((HEAD + b"Content-Length: 9\r\n\r\nabc",), "end", TRUNCATED),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",), "end", TRUNCATED),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",), "end", TRUNCATED),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",), "reset", RESET),
        ((HEAD + b"\r\nabc",), "reset", RESET),
        ((b"SSH-2.0-OpenSSH\r\n\r\n",), "keep", BAD_ANSWER),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",), "keep", BAD_ANSWER),
        ((b"a" * 70_000,), "keep", BAD_ANSWER),
    ],
)
def test_a_response_that_breaks_off_or_is_none_is_an_error(pieces, then, error):
    assert answered(*pieces, then=then).error == error
