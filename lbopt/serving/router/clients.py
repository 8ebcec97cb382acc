"""Clients: how many connections they may have, how long one may keep the router waiting, and the bytes that they hold.

A request and its answer take two open files, so clients get half of those that the process may have, less a reserve.
One that comes beyond them is *spare*: it is told so, but `/health`, `/ready` and `/metrics` answer it all the same. Of
too many spare ones the oldest is dropped.

A client decides how much it sends and when it reads, so without a bound in all the memory is the clients'. Bytes of
bodies and of whole answers are counted as they come, whatever a header announces, and are free again when the request
has ended or needs them no more.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from aiohttp import web

from lbopt.serving.http_wire import is_crumbled
from lbopt.serving.process import repeat
from lbopt.serving.router.ask import refuse

_MOST_SHOWN = 200
#: Connections at most where the operator does not say how many, for the sake of memory.
_MOST = 2**14
#: Spare connections at most, and open files beside connections: of records, libraries, listening sockets.
_MOST_SPARE = 32
_OTHER_FILES = 32
#: What spare connections are for.
_OPEN_TO_ALL = ("/health", "/ready", "/metrics")
#: Connections that are looked at in one go.
_AT_ONCE = 1024
#: Bytes that a client has to take of what is left of an answer within the time that it may leave it unread.
_PROGRESS = 2**16


class Connections:
    """All connections of clients.

    Parameters
    ----------
    most
        Connections at most, spare ones aside.
    head_seconds
        In which the head of a request has to come, once the connection or its first byte is there.
    unread_seconds
        For which the rest of an answer may be left unread, once its handler has ended.
    """

    def __init__(self, most: int, head_seconds: float, unread_seconds: float) -> None:
        self.most = most
        self.head_seconds = head_seconds
        self.unread_seconds = unread_seconds
        self.open: dict[ClientConnection, None] = {}
        self.spare: dict[ClientConnection, None] = {}

    def add(self, connection: ClientConnection) -> None:
        """Take in a connection."""
        if len(self.open) < self.most:
            self.open[connection] = None
            return
        self.spare[connection] = None
        if len(self.spare) > _MOST_SPARE:
            next(iter(self.spare)).drop()

    def discard(self, connection: ClientConnection) -> None:
        """Let go of a connection."""
        self.open.pop(connection, None)
        self.spare.pop(connection, None)

    async def watch(self) -> None:
        """Look, again and again."""
        await repeat(self.look, min(1.0, self.head_seconds / 4, self.unread_seconds / 4), "connections")

    async def look(self) -> None:
        """Drop those that keep the router waiting; others' turns come in between."""
        now = asyncio.get_running_loop().time()
        for number, connection in enumerate([*self.open, *self.spare]):
            if connection.is_overdue(now):
                connection.drop()
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)


def most_connections(files: int) -> int:
    """Return how many connections clients may have where the process may have so many open files."""
    return min(_MOST, max(1, (files - _MOST_SPARE - _OTHER_FILES) // 2))


class ClientConnection(web.RequestHandler):
    """aiohttp's connection, within limits, and with errors as OpenAI's API tells of them.

    A client that closes its sending side counts as gone, as one that closes the connection does: a server that only
    reads cannot tell the two apart, and would keep a slot for clients that have gone.

    Parameters
    ----------
    connections
        All of them.
    manager, more
        As aiohttp has it.
    """

    __slots__ = ("_connections", "_head_since", "_is_busy", "_is_chunked", "_pipe", "_unread", "_unread_since")

    def __init__(self, connections: Connections, manager: web.Server, **more: Any) -> None:
        super().__init__(manager, **more)
        self._connections = connections
        self._pipe: asyncio.Transport | None = None
        self._is_busy = False
        self._is_chunked = False
        self._head_since = 0.0  # 0 = no head is awaited
        self._unread = 0
        self._unread_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; the head of a request has to come."""
        super().connection_made(transport)
        self._pipe = transport  # type: ignore[assignment]  # aiohttp forgets its own when it closes
        self._head_since = self._loop.time()
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Take in bytes; the first of a further request begin a head. A body in crumbs ends the connection."""
        if not (self._is_busy or self._head_since):
            self._head_since = self._loop.time()
        if is_crumbled(data) and (self._is_chunked or b"chunked" in data[: self.max_field_size].lower()):
            self.drop()
            return
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._connections.discard(self)
        self._pipe = None
        super().connection_lost(exc)

    @property
    def is_spare(self) -> bool:
        """Whether it is one too many."""
        return self in self._connections.spare

    def begin(self, request: web.Request) -> web.Response | None:
        """Note that a head has come; returns the refusal of a request on a connection that is one too many."""
        self._is_busy, self._head_since, self._unread = True, 0.0, 0
        self._is_chunked = "Transfer-Encoding" in request.headers
        if not self.is_spare or request.path in _OPEN_TO_ALL:
            return None
        return refuse(503, "the router has as many connections as it may", retry_after=2)

    def end(self) -> None:
        """Note that a request has been dealt with; what is left of its answer is on its way."""
        self._is_busy = False

    def is_overdue(self, now: float) -> bool:
        """Return whether the client has let the router wait too long, for a head or with the rest of an answer."""
        if self._is_busy or self._pipe is None:
            return False
        if self._head_since and now - self._head_since > self._connections.head_seconds:
            return True
        unread = self._pipe.get_write_buffer_size()
        if not unread or not self._unread or unread <= self._unread - _PROGRESS:
            self._unread, self._unread_since = unread, now
            return False
        return now - self._unread_since > self._connections.unread_seconds

    def drop(self) -> None:
        """Close at once."""
        self._connections.discard(self)
        if self._pipe is not None:
            self._pipe.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that cannot be read, after which the connection closes."""
        super().handle_error(request, status, exc, message)  # logs; raises where an answer has begun
        if status >= 500:
            answer = refuse(status, "the router failed to answer the request")
        else:
            answer = refuse(status, f"the request is not valid HTTP: {_first_line(message)}")
        answer.force_close()
        return answer


def _first_line(message: str | None) -> str:
    """Return what a parser says in its first line; the others quote the request."""
    lines = (message or "").strip().splitlines()
    line = "".join(sign for sign in lines[0] if sign.isprintable()) if lines else ""
    return line.rstrip(":")[:_MOST_SHOWN] or "it cannot be read"


#: A request that holds no more than this may use all of the budget; larger ones leave an eighth of it to those.
_SMALL = 2**16


class OverBudgetError(Exception):
    """The bytes have no room."""


class Budget:
    """Bytes of the whole process.

    Parameters
    ----------
    most
        Bytes at most.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0

    def share(self) -> Share:
        """Return the share of one request, which it gives back when it is left: `with budget.share() as share`."""
        return Share(self)


class Share:
    """What one request holds."""

    __slots__ = ("_budget", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def take(self, size: int) -> None:
        """Hold some bytes more.

        Raises
        ------
        OverBudgetError
            Where there is no room for them.
        """
        budget = self._budget
        room = budget.most if self.held + size <= _SMALL else budget.most - budget.most // 8
        if budget.held + size > room:
            raise OverBudgetError
        budget.held += size
        self.held += size

    def give(self, size: int) -> None:
        """Hold some bytes less."""
        self._budget.held -= size
        self.held -= size

    def add(self, other: Share) -> None:
        """Hold what another share held."""
        self.held += other.held
        other.held = 0

    def __enter__(self) -> Share:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give(self.held)
