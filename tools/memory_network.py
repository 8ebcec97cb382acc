"""Connections inside of one event loop: what is written at one end is read at the other, and nothing else is involved.

A virtual clock must not advance while bytes are on their way. The kernel does not say when that is so, a network of its
own does: a write puts the bytes into the inbox of the other end and plans their delivery as the next callback of the
loop. Bytes that are written before that are delivered together, as a socket would do.

Addresses are (host, port). Port 0 becomes the next number from `FIRST_PORT` on, so that
two runs have the same ports. There is no name resolution, no TLS and no delay.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

FIRST_PORT = 20_000

#: Bytes in an inbox above which the writer is asked to pause, and below which it may go on.
_HIGH, _LOW = 65_536, 16_384

Address = tuple[str, int]
Watch = Callable[[float, Address, bool, bytes], None]

#: All names of this machine are one address.
_LOCAL = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::1": "127.0.0.1", "::": "127.0.0.1"}


def local(host: str | None) -> str:
    """Return the numeric address under which `host` listens in the network."""
    return _LOCAL.get(host or "", host or "127.0.0.1")


class MemoryNetwork:
    """The listeners of one loop, and the connections between its protocols.

    Parameters
    ----------
    loop
        The event loop that delivers the bytes.

    Attributes
    ----------
    watch
        Called with (time, address of the listener, whether the client wrote, bytes) for every delivery; None = not.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watch: Watch | None = None
        self._listeners: dict[Address, MemoryListener] = {}
        self._next_port = FIRST_PORT
        self._next_client = FIRST_PORT + 20_000

    def listen(self, factory: Callable[[], asyncio.Protocol], address: Address) -> MemoryListener:
        """Begin to listen at `address`; port 0 is given a number.

        Raises
        ------
        OSError
            If the address is taken.
        """
        if address[1] == 0:
            while (address[0], self._next_port) in self._listeners:
                self._next_port += 1
            address = (address[0], self._next_port)
            self._next_port += 1
        if address in self._listeners:
            raise OSError(errno.EADDRINUSE, f"address {address} is in use")
        listener = MemoryListener(self, factory, address)
        self._listeners[address] = listener
        return listener

    def forget(self, address: Address) -> None:
        """Listen no more at `address`."""
        self._listeners.pop(address, None)

    def require(self, address: Address) -> MemoryListener:
        """Return who listens at `address`, or refuse the connection as a kernel would."""
        listener = self._listeners.get(address)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nothing listens at {address}")
        return listener

    def connect(
        self, factory: Callable[[], asyncio.Protocol], address: Address
    ) -> tuple[MemoryTransport, asyncio.Protocol]:
        """Connect a new protocol of `factory` with one of the listener at `address`; return the client's side."""
        listener = self.require(address)
        name = (address[0], self._next_client)
        self._next_client += 1
        client, server = factory(), listener.factory()
        at_client = MemoryTransport(self, client, address, True, (name, address))
        at_server = MemoryTransport(self, server, address, False, (address, name))
        at_client.other, at_server.other = at_server, at_client
        server.connection_made(at_server)
        client.connection_made(at_client)
        return at_client, client


class _Name:
    """What is asked of a listening socket: its address."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        """Return the address."""
        return self._address


class MemoryListener(asyncio.AbstractServer):
    """Who accepts connections at one address.

    Parameters
    ----------
    network
        Where it listens.
    factory
        Makes the protocol of each connection.
    address
        Where others find it.
    """

    def __init__(self, network: MemoryNetwork, factory: Callable[[], asyncio.Protocol], address: Address) -> None:
        self.network = network
        self.factory = factory
        self.address = address
        self._open = True

    @property
    def sockets(self) -> tuple[_Name, ...]:
        """What stands for the listening sockets; none once it is closed."""
        return (_Name(self.address),) if self._open else ()

    def close(self) -> None:
        """Accept no more connections; those that exist go on."""
        if self._open:
            self._open = False
            self.network.forget(self.address)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the network."""
        return self.network.loop

    def is_serving(self) -> bool:
        """Return whether connections are accepted."""
        return self._open

    async def start_serving(self) -> None:
        """Do nothing: it serves from the start."""

    async def serve_forever(self) -> None:
        """Wait until cancelled."""
        await self.network.loop.create_future()

    async def wait_closed(self) -> None:
        """Return at once: closing takes no time."""


class MemoryTransport(asyncio.Transport):
    """One end of a connection.

    Parameters
    ----------
    network
        The network of the connection.
    protocol
        Whose end it is.
    address
        Of the listener.
    is_client
        Whether this end began the connection.
    names
        Addresses of this end and of the other.
    """

    other: MemoryTransport

    def __init__(
        self,
        network: MemoryNetwork,
        protocol: asyncio.Protocol,
        address: Address,
        is_client: bool,
        names: tuple[Address, Address],
    ) -> None:
        super().__init__({"sockname": names[0], "peername": names[1]})
        self._network = network
        self._protocol = protocol
        self._address = address
        self._is_client = is_client
        self._inbox: list[bytes] = []
        self._inbox_size = 0
        self._planned = False
        self._paused = False
        self._other_paused = False
        self._end_of_input = False
        self._no_more_output = False
        self._closing = False
        self._gone = False

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol of this end."""
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Let another protocol take over this end."""
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def is_reading(self) -> bool:
        """Return whether bytes are handed to the protocol."""
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        """Keep what comes in the inbox."""
        self._paused = True

    def resume_reading(self) -> None:
        """Hand out what lies in the inbox, and what comes."""
        self._paused = False
        self._plan_delivery()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Put bytes into the inbox of the other end."""
        if self._no_more_output or self._closing or not data:
            return
        self.other._take(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Write several pieces as one."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """Return True: either direction can be closed by itself."""
        return True

    def write_eof(self) -> None:
        """Close this end's output; it can still read."""
        if not self._no_more_output:
            self._no_more_output = True
            self.other._take_end()

    def is_closing(self) -> bool:
        """Return whether the end is closed or about to be."""
        return self._closing

    def close(self) -> None:
        """Close once the other end has got everything."""
        if self._closing:
            return
        self._closing = True
        if not self._no_more_output:
            self._no_more_output = True
            self.other._take_end()
        self._network.loop.call_soon(self._lose, None)

    def abort(self) -> None:
        """Drop the connection; the other end sees a reset, and what it has not read is lost."""
        if self._gone:
            return
        self._closing = self._no_more_output = True
        self._network.loop.call_soon(self._lose, None)
        other = self.other
        if not other._gone:
            other._closing = other._no_more_output = True
            other._inbox.clear()
            error = ConnectionResetError(errno.ECONNRESET, "connection reset by the other end")
            self._network.loop.call_soon(other._lose, error)

    def get_write_buffer_size(self) -> int:
        """Return the bytes that the other end has not read."""
        return self.other._inbox_size

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return below and above how many unread bytes a writer may go on, and is asked to pause."""
        return _LOW, _HIGH

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Keep the limits, which are the same for all."""

    def _take(self, data: bytes) -> None:
        """Accept bytes of the other end."""
        if self._gone or self._closing:
            return
        self._inbox.append(data)
        self._inbox_size += len(data)
        if self._inbox_size > _HIGH and not self._other_paused:
            self._other_paused = True
            self.other._protocol.pause_writing()
        self._plan_delivery()

    def _take_end(self) -> None:
        """Accept that the other end writes no more."""
        self._end_of_input = True
        self._plan_delivery()

    def _plan_delivery(self) -> None:
        if not self._planned and not self._paused and (self._inbox or self._end_of_input):
            self._planned = True
            self._network.loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._planned = False
        if self._closing or self._paused:
            return
        if self._inbox:
            data = b"".join(self._inbox)
            self._inbox.clear()
            self._inbox_size = 0
            if self._other_paused:
                self._other_paused = False
                self.other._protocol.resume_writing()
            if self._network.watch is not None:
                self._network.watch(self._network.loop.time(), self._address, not self._is_client, data)
            self._protocol.data_received(data)
            self._plan_delivery()
        elif self._end_of_input:
            self._end_of_input = False
            if not self._protocol.eof_received():
                self.close()

    def _lose(self, error: Exception | None) -> None:
        if not self._gone:
            self._gone = self._closing = True
            self._protocol.connection_lost(error)
