"""A client that sends one request to a router and says what it got."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from lbopt.serving.load.http_client import (
    BrokenResponseError,
    Connection,
    MalformedResponseError,
    Origin,
    Response,
    request_of,
)
from tests.serving.faults.verdict import CANCELLED, GARBLED, HUNG, NO_ROUTER, verdict

#: Seconds after which a client that goes does so if nothing has come.
_GOES = 0.3


async def ask(url: str, number: int, tokens: int, patience: float, *, goes: bool = False) -> str:
    """Send one request on a connection of its own; return what the client got, out of `verdict.KINDS`.

    `NO_ROUTER` is a connection that is not to be had, or that ends before a byte. Three of four requests stream, and
    every other one is a chat.

    Parameters
    ----------
    url, number
        Of the router, and of the request.
    tokens, patience
        Asked for, and the seconds within which they have to be there.
    goes
        Whether the client closes its connection: half of them at the first byte, half before, at `_GOES` at the latest.
    """
    origin, loop, response = Origin.of(url), asyncio.get_running_loop(), Response()
    try:
        _, connection = await loop.create_connection(lambda: Connection(loop), origin.host, origin.port)
    except OSError:
        return NO_ROUTER
    exchange = asyncio.ensure_future(connection.exchange(_request(origin, number, tokens), response))
    try:
        if goes:
            until = loop.time() + _GOES * (number % 100) / 100
            while loop.time() < until and not exchange.done() and not (response.pieces and number % 2):
                await asyncio.sleep(0.005)
            if not exchange.done():
                return CANCELLED
        async with asyncio.timeout(patience):
            await exchange
    except TimeoutError:
        return HUNG
    except MalformedResponseError:
        return GARBLED
    except BrokenResponseError:
        if not response.status:
            return NO_ROUTER
        return verdict(response.status, _kind(response), response.body, tokens, ended=False)
    finally:
        exchange.cancel()
        with suppress(asyncio.CancelledError, BrokenResponseError, MalformedResponseError):
            await exchange
        connection.transport.abort()
    return verdict(response.status, _kind(response), response.body, tokens, ended=True)


def _kind(response: Response) -> bytes:
    return response.headers.get(b"content-type", b"").lower()


def _request(origin: Origin, number: int, tokens: int) -> bytes:
    is_chat = number % 2
    words = f"request {number}, tell me something"
    told = {"messages": [{"role": "user", "content": words}]} if is_chat else {"prompt": words}
    body = {"model": "m", **told, "max_tokens": tokens, "stream": number % 4 != 3}
    path = "/v1/chat/completions" if is_chat else "/v1/completions"
    return request_of(origin, "POST", path, {"Content-Type": "application/json"}, json.dumps(body).encode())


async def get(url: str, path: str, patience: float = 2.0) -> tuple[int, bytes]:
    """Return status and body of an answer to GET; status 0 where there is none."""
    origin, loop, response = Origin.of(url), asyncio.get_running_loop(), Response()
    try:
        async with asyncio.timeout(patience):
            _, connection = await loop.create_connection(lambda: Connection(loop), origin.host, origin.port)
            try:
                await connection.exchange(request_of(origin, "GET", path, {}), response)
            finally:
                connection.transport.abort()
    except (OSError, TimeoutError, BrokenResponseError, MalformedResponseError):
        return 0, b""
    return response.status, response.body
