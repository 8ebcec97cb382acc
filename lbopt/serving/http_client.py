"""A client of HTTP/1.1: connections by origin, each kept for the next request, and what a request begins with."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.http_wire import BadAnswer, Head, Wire


class Wires:
    """The connections to all origins.

    Parameters
    ----------
    kept_seconds
        How long an unused one is kept.
    connect_seconds
        Limit for a connection to be made; None = none.
    """

    def __init__(self, kept_seconds: float, connect_seconds: float | None = None) -> None:
        self._kept_seconds = kept_seconds
        self._connect_seconds = connect_seconds
        self._idle: dict[str, list[Wire]] = {}
        self._tls: ssl.SSLContext | None = None

    async def open(self, url: str, *, fresh: bool = False) -> Wire:
        """Return a connection to where a URL leads: one that is unused, unless a fresh one is wanted.

        Raises
        ------
        OSError
            Where none can be made in time.
        """
        loop = asyncio.get_running_loop()
        parts = urlsplit(url)
        idle = self._idle.setdefault(f"{parts.scheme}://{parts.netloc}", [])
        while idle and not fresh:
            wire = idle.pop()
            if wire.is_open and loop.time() - wire.idle_since <= self._kept_seconds:
                wire.is_reused = True
                return wire
            wire.close()
        is_tls = parts.scheme == "https"
        if is_tls and self._tls is None:
            self._tls = ssl.create_default_context()
        host, port = parts.hostname or "", parts.port or (443 if is_tls else 80)
        tls = self._tls if is_tls else None
        async with asyncio.timeout(self._connect_seconds):
            _, wire = await loop.create_connection(lambda: Wire(idle), host, port, ssl=tls)
        return wire

    async def ask(self, url: str, request: bytes, body: bytes = b"") -> tuple[Wire, Head]:
        """Send a request; where the other side has closed the connection that was kept, on a fresh one.

        Raises
        ------
        OSError
            Where no answer comes.
        """
        wire = await self.open(url)
        try:
            try:
                return wire, await wire.ask(request, body)
            except ConnectionError as fault:
                if not wire.is_reused or isinstance(fault, BadAnswer):
                    raise
            wire = await self.open(url, fresh=True)
            return wire, await wire.ask(request, body)
        except BaseException:
            wire.close()
            raise

    async def fetch(
        self,
        url: str,
        request: bytes,
        body: bytes = b"",
        *,
        seconds: float,
        most: int,
        hold: Callable[[int], None] | None = None,
    ) -> tuple[Head, bytes]:
        """Return head and body of an answer.

        Parameters
        ----------
        url, request, body
            As of `ask`.
        seconds
            Within which it has to come, whole.
        most, hold
            As of `Wire.body`.
        """
        async with asyncio.timeout(seconds):
            wire, head = await self.ask(url, request, body)
            try:
                return head, await wire.body(most, hold)
            finally:
                self.give_back(wire)

    def give_back(self, wire: Wire) -> None:
        """Keep a connection whose answer is whole; close any other."""
        wire.forget()
        if wire.may_be_kept and wire not in wire._idle:
            wire.idle_since = asyncio.get_running_loop().time()
            wire.resume()
            wire._idle.append(wire)
        else:
            wire.close()

    def close(self) -> None:
        """Close all that are unused."""
        for idle in self._idle.values():
            for wire in list(idle):
                wire.close()
            idle.clear()


def request_head(url: str, path: str, headers: Mapping[str, str], size: int, method: str = "POST") -> bytes:
    """Return the head of a request.

    Parameters
    ----------
    url
        Address of the server; a path in it comes before `path`.
    path
        Path and query, as they stand in a request line.
    size
        Bytes of the body.

    Raises
    ------
    ValueError
        Where a header or the path would break the head.
    """
    parts = urlsplit(url)
    lines = [f"{method} {parts.path}{path} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {size}")
    head = "\r\n".join(lines)
    if head.count("\r") != len(lines) - 1 or head.count("\n") != len(lines) - 1 or "\0" in head:
        raise ValueError("a header holds the end of a line")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"


def checked_url(url: Any, what: str) -> str:
    """Return the address of a server without a slash at its end; refuse one that is none, saying `what` has it."""
    parts = None
    if isinstance(url, str) and len(url) <= 2000 and url.isprintable() and " " not in url:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{what} has the address {shown(url)}; expected http://host:port or https://host:port")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(f"{what} has an address with a name, a query or a fragment; expected http://host:port")
    if parts.path.rstrip("/").endswith("/v1"):
        raise InputError(f"{what} has the address {shown(url)}; leave out /v1, which is added")
    return str(url).rstrip("/")
