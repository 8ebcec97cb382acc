"""A connection of a client of HTTP/1.1, for answers that are streams: one request at a time.

A stream of some hundred small chunks costs a general HTTP client more than all else that a router or a load generator
does: a future, a wake-up of a task and several layers for each chunk. Here the bytes of a body are handed to a function
as they come from the socket (a `Sink`), or taken piece by piece (`Wire.piece`). A piece of the network that is exactly
one chunk, as engines send a token, is handed on together with its frame, so that it need not be framed anew.

Source of the format: RFC 9112, sections 4, 6 and 7.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

#: Bytes of a head, of a line that says the size of a chunk, and of pieces that were not taken yet.
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
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;.*)?", re.DOTALL)


class BadAnswer(ConnectionError):
    """What came is no answer of HTTP/1.1."""


class CutShort(ConnectionError):
    """The other side closed the connection before its answer was whole."""


class Head(NamedTuple):
    """Status and headers of an answer."""

    status: int
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        """Return the values of a header, named in lower case, as one; "" where there is none."""
        return ", ".join([value for key, value in self.headers if key.lower() == name])


#: Takes bytes of a body, and the chunk of HTTP that holds just them, b"" where there is none.
Sink = Callable[[bytes, bytes], None]


class _Line(Enum):
    """What the next line of a body in chunks says."""

    SIZE = "size"  #: how many bytes a chunk has
    END = "end"  #: nothing, behind a chunk
    TRAILER = "trailer"  #: a header behind the last chunk, or nothing at the very end


class Wire(asyncio.Protocol):
    """One connection.

    Parameters
    ----------
    idle
        The unused connections of the same origin, from which this one removes itself when it breaks.
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
        self._read: Callable[[Wire, bytes], None] = Wire._read_head  # what the bytes that come next belong to
        self._data = b""  # of a head or of a line that is not whole
        self._kept: list[bytes] = []
        self._num_kept = 0
        self._num_interim = 0
        self._left = 0  # bytes of the body, or of the chunk, that are to come
        self._line = _Line.SIZE
        self._is_at_chunk = False  # the next byte begins a chunk
        self._keeps = False

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        try:
            sink = self._sink
            if self._is_at_chunk and sink is not None:
                end = data.find(b"\r\n", 0, 10)
                size = len(data) - end - 4
                if size > 0 and data[:end] == b"%x" % size and data[-2:] == b"\r\n":  # one whole chunk, as engines send
                    sink(data[end + 2 : -2], data)
                    return
            if self.is_done:
                self.close()  # nothing was asked
            else:
                self._read(self, data)
        except BadAnswer as error:
            self._break(BadAnswer(f"no answer of HTTP/1.1: {error}"))

    def eof_received(self) -> bool:
        """Close when the other side does."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is awaited."""
        self._keeps = False
        if self in self._idle:
            self._idle.remove(self)
        if not self.is_done:
            if exc is None and self._read is Wire._hand_on:
                self._finish()  # a body without a length ends with the connection
            else:
                self._break(exc or CutShort("the connection was closed"))
        self._transport = None

    # -- what a request calls

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes, body: bytes = b"", sink: Sink | None = None) -> Head:
        """Send the head of a request and its body, and return the head of the answer, whose body goes to a sink.

        Raises
        ------
        ConnectionError
            Where no answer comes.
        """
        if self._transport is None or self._transport.is_closing():
            raise CutShort("the connection was closed")
        self.forget()
        self.is_done, self._fault, self._sink = False, None, sink
        self._read, self._data, self._num_interim = Wire._read_head, b"", 0
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

    async def body(self, most: int, hold: Callable[[int], None] | None = None) -> bytes:
        """Return the body, or as much of it as has come when it is longer than `most`; `hold` is told of each size."""
        parts: list[bytes] = []
        size = 0
        while size < most and (part := await self.piece()):
            parts.append(part)
            size += len(part)
            if hold is not None:
                hold(len(part))
        return b"".join(parts)

    def pour(self, sink: Sink) -> None:
        """Hand the bytes of the body to a function as they come, those that were kept first."""
        self._sink = sink
        kept, self._kept, self._num_kept = self._kept, [], 0
        if kept:
            sink(b"".join(kept), b"")

    async def wait(self) -> None:
        """Wait until the body ends, or a nudge, or in between a piece has come for which there is no sink.

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
        """Read nothing for now."""
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
        """Let go of the request that used the connection."""
        self._sink, self._head, self._kept, self._num_kept = None, None, [], 0
        self._is_at_chunk = False

    def close(self) -> None:
        """Close at once; what is not answered stays so."""
        self._keeps = False
        if self._transport is not None:
            self._transport.abort()

    @property
    def may_be_kept(self) -> bool:
        """Whether the answer is whole and the other side keeps the connection."""
        return self.is_done and self._keeps and self._fault is None and self.is_open

    # -- reading

    def _read_head(self, data: bytes) -> None:
        data = self._data + data
        while (end := data.find(b"\r\n\r\n", 0, _LARGEST_HEAD)) >= 0:
            version, head = _head_of(data[:end])
            data = data[end + 4 :]
            if head.status >= 200:
                self._begin_body(version, head)
                if data and not self.is_done:
                    self._read(self, data)
                return
            self._num_interim += 1
            if self._num_interim > _MOST_INTERIM:
                raise BadAnswer("it announces itself without end")
        if len(data) >= _LARGEST_HEAD:
            raise BadAnswer("its head has no end")
        self._data = data

    def _begin_body(self, version: str, head: Head) -> None:
        """Tell who asked, and choose how the body is read."""
        self._data = b""
        connection, length = head.get("connection").lower(), head.get("content-length")
        self._keeps = "close" not in connection and (version == "HTTP/1.1" or "keep-alive" in connection)
        if head.get("transfer-encoding").lower().rpartition(",")[2].strip() == "chunked":
            self._read, self._line, self._left, self._is_at_chunk = Wire._read_chunks, _Line.SIZE, 0, True
        elif length or head.status in (204, 304):
            if length and not re.fullmatch("[0-9]{1,18}", length):
                raise BadAnswer("its length is no number")
            self._read, self._left = Wire._read_sized, 0 if head.status in (204, 304) else int(length)
        else:
            self._read, self._keeps = Wire._hand_on, False
        if self._head is not None and not self._head.done():
            self._head.set_result(head)
        if self._read is Wire._read_sized and self._left == 0:
            self._finish()

    def _read_sized(self, data: bytes) -> None:
        """Take in bytes of a body whose length is known."""
        data, beyond = data[: self._left], data[self._left :]
        self._left -= len(data)
        self._hand_on(data)
        if self._left == 0:
            self._keeps = self._keeps and not beyond
            self._finish()

    def _read_chunks(self, data: bytes) -> None:
        """Take in bytes of a body in chunks, and hand on what stands in them."""
        if is_crumbled(data):
            raise BadAnswer("its chunks are of some bytes each")
        data, self._data = self._data + data, b""
        parts: list[bytes] = []
        at, has_ended = 0, False
        while at < len(data) and not has_ended:
            if self._left:
                parts.append(data[at : at + self._left])
                at += len(parts[-1])
                self._left -= len(parts[-1])
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._data = data[at:]
                if len(self._data) > _LARGEST_LINE:
                    raise BadAnswer("a line between chunks has no end")
                break
            has_ended = self._read_line(data[at:end])
            at = end + 2
        self._is_at_chunk = self._line is _Line.SIZE and not self._data
        if parts:
            self._hand_on(parts[0] if len(parts) == 1 else b"".join(parts))
        if has_ended:
            self._keeps = self._keeps and at == len(data)
            self._finish()

    def _read_line(self, line: bytes) -> bool:
        """Read a line between chunks; returns whether it is the last one."""
        if self._line is _Line.TRAILER:
            return not line
        if self._line is _Line.END:
            if line:
                raise BadAnswer("a chunk is longer than it says")
            self._line = _Line.SIZE
            return False
        size = _SIZE.fullmatch(line)
        if size is None:
            raise BadAnswer("the size of a chunk is no number")
        self._left = int(size[1], 16)
        self._line = _Line.END if self._left else _Line.TRAILER
        return False

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
        self.is_done, self._is_at_chunk = True, False
        self.nudge()

    def _break(self, fault: BaseException) -> None:
        self._fault = fault
        if self._head is not None and not self._head.done():
            self._head.set_exception(fault)
        self._finish()
        self.close()


def is_crumbled(data: bytes) -> bool:
    """Return whether bytes of a body in chunks are mostly frames, and more of them than a sender of tokens has."""
    return len(data) > _MANY and 8 * data.count(b"\r\n") > len(data)


def is_fit(name: str, value: str) -> bool:
    """Return whether a header may be sent on."""
    return _NAME.fullmatch(name) is not None and not _CONTROL.search(value)


def _head_of(data: bytes) -> tuple[str, Head]:
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
    return version, Head(int(rest[:3]), headers)
