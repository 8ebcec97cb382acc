"""HTTP/1.1 as far as a load generator needs it, with as little work as possible while tokens come in.

All streams of a barrier group get their tokens at the same moment: 576 of them on 8 workers of 72 slots. What a client
does for each of them until the last one is read delays the next request by that much. aiohttp's client wakes a task for
every piece, some 29 µs with the parsing of events; here a piece is noted with its time, some 8 µs, and parsed when
nothing else is to do (`lbopt.serving.load.client`).

A response has a length, comes in chunks (RFC 9112, section 7.1), or ends with the connection. Connections are kept
for `IDLE` seconds and then not used again, since servers close idle ones: a request that meets this moment looks like
an error.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from lbopt.exceptions import InputError

#: s for which an idle connection may be used again.
IDLE = 2.0

_LONGEST_HEAD = 65_536
#: Bytes of one answer, in pieces and chunks of any size.
_LARGEST_ANSWER = 2**27


class BrokenResponseError(Exception):
    """A connection ended before its response did; `reset` says whether it was reset or closed before any byte."""

    def __init__(self, reset: bool) -> None:
        super().__init__("reset" if reset else "truncated")
        self.reset = reset


class MalformedResponseError(Exception):
    """What came is not an HTTP response."""


class Origin(NamedTuple):
    """Where requests go: host, port, whether by TLS, and what paths begin with."""

    host: str
    port: int
    tls: bool
    prefix: str

    @classmethod
    def of(cls, url: str) -> Origin:
        """Read a URL.

        Raises
        ------
        InputError
            If it has no host, or a port that is none.
        """
        try:
            parts = urlsplit(url)
            tls = parts.scheme == "https"
            port = parts.port or (443 if tls else 80)
        except ValueError:
            raise InputError(f"'{url[:80]}' is no URL; expected one such as http://127.0.0.1:8000") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"'{url[:80]}' is no URL; expected one that begins with http:// or https:// and a host")
        return cls(parts.hostname, port, tls, parts.path.rstrip("/"))


class Response:
    """A response while it comes in.

    Attributes
    ----------
    status
        0 until it is known.
    headers
        By their names in small letters.
    pieces
        Parts of the body with the times at which they came, s of the loop's clock.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.pieces: list[tuple[float, bytes]] = []

    @property
    def body(self) -> bytes:
        """All of the body that has come."""
        return b"".join(piece for _, piece in self.pieces)


class Connection(asyncio.Protocol):
    """One connection; a request at a time.

    Parameters
    ----------
    loop
        Its clock gives the times of pieces.
    """

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: asyncio.Future[None] | None = None
        self._response = Response()
        self._rest = b""
        self._parts: list[bytes] = []  # of a chunk that is not whole
        self._missing = 0  # bytes of that chunk
        self._size = 0  # of the answer so far
        self._left: int | None = None  # of the body; None where it ends with the connection
        self._in_head = self._chunked = self._in_trailer = False
        self.reusable = True
        self.idle_since = 0.0

    async def exchange(self, request: bytes, response: Response) -> None:
        """Send a request and return when the response has ended.

        Raises
        ------
        BrokenResponseError
            If the connection ends before.
        MalformedResponseError
            If something else comes.
        """
        self._response, self._rest, self._in_head = response, b"", True
        self._parts, self._missing, self._size = [], 0, 0
        self._ended = self._loop.create_future()
        self.transport.write(request)
        try:
            await self._ended
        finally:
            if not self._ended.done() or self._ended.cancelled() or self._ended.exception() is not None:
                self.reusable = False
                self.transport.abort()
            self._ended = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Note what has come."""
        if self._ended is None or self._ended.done():
            self.reusable = False  # nobody asked
            return
        try:
            self._size += len(data)
            if self._size > _LARGEST_ANSWER:
                raise ValueError("the answer is too long")
            if self._in_head:
                data = self._read_head(self._rest + data)
                if self._in_head:
                    return
            if self._chunked:
                self._take_chunks(data)
            elif self._left is None:
                self._note(data)
            else:
                self._left -= len(data)
                self._note(data)
                if self._left <= 0:
                    self._end()
        except (ValueError, IndexError):
            self._fail(MalformedResponseError())

    def eof_received(self) -> bool:
        """Let the connection close."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End the response, or say that it is broken."""
        self.reusable = False
        if self._ended is None or self._ended.done():
            return
        if error is None and not self._in_head and self._left is None and not self._chunked:
            self._end()
        else:
            self._fail(BrokenResponseError(reset=error is not None or not self._response.status))

    def _read_head(self, data: bytes) -> bytes:
        """Read status and headers once they are whole; return what follows them."""
        if len(data) > _LONGEST_HEAD and data.find(b"\r\n\r\n", 0, _LONGEST_HEAD) < 0:
            raise ValueError("the head is too long")
        number, rest = 100, data
        while 100 <= number < 200:  # what comes before the answer itself
            head, found, rest = rest.partition(b"\r\n\r\n")
            if not found:
                self._rest = head
                return b""
            first, *lines = head.split(b"\r\n")
            version, status, *_ = first.split(b" ")
            if not version.startswith(b"HTTP/1."):
                raise ValueError("no HTTP")
            number = int(status)
        self._rest = b""
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        self._response.status, self._response.headers = number, headers
        self._in_head = self._in_trailer = False
        self._chunked = b"chunked" in headers.get(b"transfer-encoding", b"").lower()
        length = headers.get(b"content-length")
        self._left = 0 if self._chunked else None if length is None else int(length)
        if headers.get(b"connection", b"").lower() == b"close" or version == b"HTTP/1.0":
            self.reusable = False
        if not self._chunked and (self._left == 0 or number in (204, 304)):
            self._end()
        return rest

    def _take_chunks(self, data: bytes) -> None:
        """Keep the pieces of a chunk until it is whole, so that each byte is looked at once."""
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing <= 0:
            data, self._parts = b"".join(self._parts) if len(self._parts) > 1 else data, []
            self._read_chunks(self._rest + data if self._rest else data)

    def _read_chunks(self, data: bytes) -> None:
        """Note the content of whole chunks; what is not whole waits for the next piece."""
        at = self._missing = 0
        found: list[bytes] = []
        while (line := data.find(b"\r\n", at)) >= 0:
            if self._in_trailer:
                if line == at:
                    self._note(b"".join(found))
                    self._end()
                    return
                at = line + 2
                continue
            size = int(data[at:line].partition(b";")[0], 16)
            if size < 0:
                raise ValueError("a chunk has less than no bytes")
            if size == 0:
                self._in_trailer, at = True, line + 2
                continue
            end = line + 2 + size
            if end + 2 > len(data):
                self._missing = end + 2 - len(data)
                break
            found.append(data[line + 2 : end])
            at = end + 2
        self._rest = data[at:]
        if not self._missing and len(self._rest) > _LONGEST_HEAD:
            raise ValueError("the size of a chunk, or what follows the last, is too long")
        self._note(found[0] if len(found) == 1 else b"".join(found))

    def _note(self, data: bytes) -> None:
        if data:
            self._response.pieces.append((self._loop.time(), data))

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _fail(self, error: Exception) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error)


class Connections:
    """Connections by origin: as many as there are requests at the same time."""

    def __init__(self) -> None:
        self._idle: dict[Origin, list[Connection]] = {}

    async def get(self, origin: Origin) -> Connection:
        """Return a connection that was used a moment ago, or a new one.

        Raises
        ------
        OSError
            If there is no way to connect.
        """
        loop = asyncio.get_running_loop()
        idle = self._idle.setdefault(origin, [])
        while idle:
            found = idle.pop()
            if found.reusable and not found.transport.is_closing() and loop.time() - found.idle_since <= IDLE:
                return found
            found.transport.abort()
        context = ssl.create_default_context() if origin.tls else None
        _, made = await loop.create_connection(lambda: Connection(loop), origin.host, origin.port, ssl=context)
        return made

    def put(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection for the next request, where it can be used again."""
        if connection.reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle[origin].append(connection)
        else:
            connection.transport.abort()

    def close(self) -> None:
        """Close all that are idle."""
        for idle in self._idle.values():
            for connection in idle:
                connection.transport.abort()
        self._idle.clear()


def request_of(origin: Origin, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Return the bytes of a request.

    Parameters
    ----------
    origin
        Where it goes.
    method, path
        Such as POST and /v1/completions.
    headers
        Beside host and length.
    body
        What is sent.
    """
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = [f"{method} {origin.prefix}{path} HTTP/1.1", f"Host: {host}:{origin.port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
