"""Connections to engines for requests that pass through: HTTP/1.1, one request at a time, kept for the next one.

A stream of some hundred small chunks costs a general HTTP client more than all else that the router does: a future, a
wake-up of a task and several layers for each chunk. Here the bytes of a body are handed to a function as they come from
the socket (`Wire.pour`), or taken piece by piece (`Wire.piece`). A piece of the network that is exactly one chunk, as
engines send a token, is handed on together with its frame, so that it need not be framed anew. What is asked only now
and then (health, metrics, prefill) goes through aiohttp.

Source of the format: RFC 9112, sections 4, 6 and 7.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

#: Bytes of a head, of a line that says the size of a chunk, and of pieces that nobody has taken yet.
_LARGEST_HEAD = 2**16
_LARGEST_LINE = 4096
#: Bytes from the network at once above which chunks of some bytes each count as an attack: they cost the most to read.
_MANY = 2**13
_MOST_KEPT = 2**18
#: Bytes of a body that go with the head in one write.
_SMALL = 2**16
#: Heads without a body (`100 Continue`) before the answer's own.
_MOST_INTERIM = 16

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class BadAnswer(ConnectionError):
    """What came is no answer of HTTP/1.1, or it ended too early."""


class Head(NamedTuple):
    """Status and headers of an answer."""

    status: int
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        """Return the values of a header, named in lower case, as one; "" where there is none."""
        return ", ".join([value for key, value in self.headers if key.lower() == name])


#: Takes bytes of a body, and the chunk of HTTP that holds just them, b"" where there is none.
Sink = Callable[[bytes, bytes], None]


class Wire(asyncio.Protocol):
    """One connection.

    Parameters
    ----------
    idle
        The unused connections of the same engine, from which this one removes itself when it breaks.
    """

    def __init__(self, idle: list[Wire]) -> None:
        self.is_reused = False
        self.is_done = True  # no answer is awaited
        self.is_paused = False
        self.idle_since = 0.0
        self._idle = idle
        self._transport: asyncio.Transport | None = None
        self._head: asyncio.Future[Head] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._fault: BaseException | None = None
        self._sink: Sink | None = None
        self._data = b""  # of a head or of a line that is not whole
        self._kept: list[bytes] = []
        self._num_kept = 0
        self._reading_head = False
        self._num_interim = 0
        self._chunked = False
        self._left = -1  # bytes of the body, or of the chunk, that are to come; -1 = until the end of the connection
        self._ends = 0  # bytes of the line end behind a chunk
        self._in_trailer = False
        self._keeps = False

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        sink = self._sink
        if sink is not None and self._chunked and not (self._left or self._ends or self._data or self._in_trailer):
            end = data.find(b"\r\n", 0, 10)
            size = len(data) - end - 4
            if size > 0 and data[:end] == b"%x" % size and data[-2:] == b"\r\n":  # one whole chunk, as engines send it
                sink(data[end + 2 : -2], data)
                return
        if self.is_done:
            self.close()  # nobody has asked
            return
        try:
            if self._reading_head:
                self._read_head(data)
            elif self._chunked and is_crumbled(data):
                raise BadAnswer("its chunks are of some bytes each")
            else:
                self._read_body(data)
        except (ValueError, BadAnswer) as error:
            self._break(BadAnswer(f"no answer of HTTP/1.1: {error}"))

    def eof_received(self) -> bool:
        """Close when the engine does."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is awaited."""
        self._keeps = False
        if self in self._idle:
            self._idle.remove(self)
        if not self.is_done:
            if exc is None and not self._reading_head and not self._chunked and self._left < 0:
                self._finish()  # a body without a length ends with the connection
            else:
                self._break(exc or BadAnswer("the connection was closed"))
        self._transport = None

    # -- what an attempt calls

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes, body: bytes = b"") -> Head:
        """Send the head of a request and its body, and return the head of the answer.

        Raises
        ------
        ConnectionError
            Where no answer comes.
        """
        if self._transport is None or self._transport.is_closing():
            raise BadAnswer("the connection was closed")
        self.is_done, self._reading_head, self._fault = False, True, None
        self._data, self._sink, self._keeps = b"", None, False
        self._kept, self._num_kept, self._num_interim = [], 0, 0
        self._head = asyncio.get_running_loop().create_future()
        if len(body) < _SMALL:
            self._transport.write(request + body)
        else:  # which is not copied
            self._transport.write(request)
            self._transport.write(body)
        return await self._head

    async def piece(self) -> bytes:
        """Return the bytes of the body that have come, or wait for some; b"" at its end.

        Raises
        ------
        ConnectionError
            Where it breaks off.
        """
        while not self._kept:
            if self.is_done:
                if self._fault is not None:
                    raise self._fault
                return b""
            await self.wait()
        data = self._kept[0] if len(self._kept) == 1 else b"".join(self._kept)
        self._kept, self._num_kept = [], 0
        self.resume()
        return data

    def pour(self, sink: Sink) -> None:
        """Hand the bytes of the body to a function as they come, those that were kept first."""
        self._sink = sink
        kept, self._kept, self._num_kept = self._kept, [], 0
        if kept:
            sink(b"".join(kept), b"")

    async def wait(self) -> None:
        """Wait until the body ends, or somebody nudges, or in between a piece has come that nobody took.

        Raises
        ------
        ConnectionError
            Where the body breaks off.
        """
        if not self.is_done:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._fault is not None and not self._kept:
            raise self._fault

    def nudge(self) -> None:
        """Wake who waits."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def pause(self) -> None:
        """Read nothing from the engine for now."""
        if self._transport is not None and not self.is_paused and not self._transport.is_closing():
            self.is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self.is_paused:
            self.is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def forget(self) -> None:
        """Let go of the attempt that used the connection."""
        self._sink, self._head, self._kept, self._num_kept = None, None, [], 0

    def close(self) -> None:
        """Close at once; what is not answered stays so."""
        self._keeps = False
        if self._transport is not None:
            self._transport.abort()

    @property
    def may_be_kept(self) -> bool:
        """Whether the answer is whole and the engine keeps the connection."""
        return self.is_done and self._keeps and self._fault is None and self.is_open

    # -- reading

    def _read_head(self, data: bytes) -> None:
        data = self._data + data
        while (end := data.find(b"\r\n\r\n", 0, _LARGEST_HEAD)) >= 0:
            version, status, headers = _head_of(data[:end])
            if status >= 200:
                break
            self._num_interim += 1
            if self._num_interim > _MOST_INTERIM:
                raise BadAnswer("it announces itself without end")
            data = data[end + 4 :]
        else:
            if len(data) >= _LARGEST_HEAD:
                raise BadAnswer("its head has no end")
            self._data = data
            return
        self._data = b""
        head = Head(status, headers)
        self._reading_head = False
        connection = head.get("connection").lower()
        self._keeps = "close" not in connection and (version == "HTTP/1.1" or "keep-alive" in connection)
        self._chunked = head.get("transfer-encoding").lower().rpartition(",")[2].strip() == "chunked"
        self._in_trailer, self._ends = False, 0
        length = head.get("content-length")
        if self._chunked or status in (204, 304):
            self._left = 0
        elif length:
            if not length.isascii() or not length.isdigit():
                raise BadAnswer("its length is no number")
            self._left = int(length)
        else:
            self._left, self._keeps = -1, False
        if self._head is not None and not self._head.done():
            self._head.set_result(head)
        if not self._chunked and self._left == 0:
            self._finish()
        elif len(data) > end + 4:
            self._read_body(data[end + 4 :])

    def _read_body(self, data: bytes) -> None:
        if self._chunked:
            data = self._without_frames(data)
            if data:
                self._hand_on(data)
            if self._in_trailer and self._left < 0:
                self._finish()
            return
        if self._left < 0:
            self._hand_on(data)
            return
        data, beyond = data[: self._left], data[self._left :]
        self._left -= len(data)
        self._hand_on(data)
        if self._left == 0:
            self._keeps = self._keeps and not beyond
            self._finish()

    def _without_frames(self, data: bytes) -> bytes:
        """Return the content of chunks; `_left` is -1 behind the last one and its trailer."""
        if self._data:
            data, self._data = self._data + data, b""
        parts: list[bytes] = []
        at, size = 0, len(data)
        while at < size:
            if self._left > 0:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                if self._left == 0:
                    self._ends = 2
                continue
            if self._ends:
                if data[at] != (13 if self._ends == 2 else 10):
                    raise BadAnswer("a chunk is longer than it says")
                self._ends -= 1
                at += 1
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._data = data[at:]
                if len(self._data) > _LARGEST_LINE:
                    raise BadAnswer("a line between chunks has no end")
                break
            line = data[at:end]
            at = end + 2
            if self._in_trailer:
                if not line:
                    self._left = -1
                    self._keeps = self._keeps and at == size
                    break
                continue
            self._left = _size_of(line.partition(b";")[0].rstrip(b" \t"))
            if self._left < 0:
                raise BadAnswer("the size of a chunk is no number")
            self._in_trailer = self._left == 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _hand_on(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink(data, b"")
            return
        self._kept.append(data)
        self._num_kept += len(data)
        if self._num_kept > _MOST_KEPT:
            self.pause()
        self.nudge()

    def _finish(self) -> None:
        self.is_done = True
        self.nudge()

    def _break(self, fault: BaseException) -> None:
        self.is_done, self._fault = True, fault
        if self._head is not None and not self._head.done():
            self._head.set_exception(fault)
        self.nudge()
        self.close()


class Wires:
    """The connections to all engines.

    Parameters
    ----------
    connect_seconds
        Limit for a connection to be made.
    kept_seconds
        How long an unused one is kept.
    """

    def __init__(self, connect_seconds: float, kept_seconds: float) -> None:
        self._connect_seconds = connect_seconds
        self._kept_seconds = kept_seconds
        self._idle: dict[str, list[Wire]] = {}
        self._tls: ssl.SSLContext | None = None

    async def open(self, url: str, *, fresh: bool = False) -> Wire:
        """Return a connection to an engine: one that is unused, unless a fresh one is wanted.

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
            if wire.is_open and loop.time() - wire.idle_since < self._kept_seconds:
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


def is_crumbled(data: bytes) -> bool:
    """Return whether bytes of a body in chunks are mostly frames, and more of them than a sender of tokens has."""
    return len(data) > _MANY and 8 * data.count(b"\r\n") > len(data)


def is_fit(name: str, value: str) -> bool:
    """Return whether a header may be sent on."""
    return _NAME.fullmatch(name) is not None and not _CONTROL.search(value)


def _head_of(data: bytes) -> tuple[str, int, list[tuple[str, str]]]:
    """Return version, status and headers; what stands in a header must be fit to be sent on.

    Raises
    ------
    BadAnswer
        Where it is none.
    """
    first, *lines = data.decode("utf-8", "surrogateescape").split("\r\n")
    version, _, rest = first.partition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not re.match("[0-9]{3}", rest):
        raise BadAnswer("its first line is none")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        value = value.strip(" \t")
        if not colon or not is_fit(name, value):
            raise BadAnswer("a line of its head is none")
        headers.append((name, value))
    return version, int(rest[:3]), headers


def _size_of(number: bytes) -> int:
    """Return the size that the line of a chunk says; -1 where it says none: hexadecimal digits and nothing else."""
    if not number.isalnum() or len(number) > 8 or number[1:2] in (b"x", b"X"):
        return -1
    try:
        return int(number, 16)
    except ValueError:
        return -1


def request_head(url: str, path: str, headers: dict[str, str], size: int) -> bytes:
    """Return the head of a POST request.

    Parameters
    ----------
    url
        Address of the engine; a path in it comes before `path`.
    path
        Path and query, as they stand in a request line.
    headers
        All but Host and Content-Length.
    size
        Bytes of the body.

    Raises
    ------
    ValueError
        Where a header or the path would break the head.
    """
    parts = urlsplit(url)
    lines = [f"POST {parts.path}{path} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"Content-Length: {size}")
    head = "\r\n".join(lines)
    if head.count("\r") != len(lines) - 1 or head.count("\n") != len(lines) - 1 or "\0" in head:
        raise ValueError("a header holds the end of a line")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"
