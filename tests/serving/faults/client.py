"""A client that sends one request to a router and says what it got."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.http_wire import BadAnswer
from lbopt.serving.load.client import Response
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
    loop, response = asyncio.get_running_loop(), Response()
    try:
        wire = await Wires(0.0).open(url)
    except OSError:
        return NO_ROUTER
    exchange = asyncio.ensure_future(response.fill(wire, *_request(url, number, tokens)))
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
    except BadAnswer:
        return GARBLED
    except ConnectionError:
        if not response.status:
            return NO_ROUTER
        return verdict(response.status, response.content_type.encode(), response.body, tokens, ended=False)
    finally:
        exchange.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await exchange
        wire.close()
    return verdict(response.status, response.content_type.encode(), response.body, tokens, ended=True)


def _request(url: str, number: int, tokens: int) -> tuple[bytes, bytes]:
    """Head and body."""
    is_chat = number % 2
    words = f"request {number}, tell me something"
    told = {"messages": [{"role": "user", "content": words}]} if is_chat else {"prompt": words}
    body = {"model": "m", **told, "max_tokens": tokens, "stream": number % 4 != 3}
    path = "/v1/chat/completions" if is_chat else "/v1/completions"
    data = json.dumps(body).encode()
    return request_head(url, path, {"Content-Type": "application/json"}, len(data)), data


async def get(url: str, path: str, patience: float = 2.0) -> tuple[int, bytes]:
    """Return status and body of an answer to GET; status 0 where there is none."""
    try:
        request = request_head(url, path, {}, 0, "GET")
        head, body = await Wires(0.0).fetch(url, request, seconds=patience, most=2**27)
    except OSError:
        return 0, b""
    return head.status, body
