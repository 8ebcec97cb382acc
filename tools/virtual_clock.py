"""An event loop whose time jumps to the next timer as soon as nothing is ready: an hour takes as long as its work.

Discrete-event simulation with asyncio's own interface, so that servers, clients and routers run in it unchanged:

1. Callbacks that are ready run, as in every loop; they take no time.
2. While a thread of `run_in_executor` works, the loop waits for it; that takes no time either.
3. If nothing is ready, those who wait for quiet (`quiet`) are woken, the lowest order first.
4. If none does, time becomes that of the next timer, exactly, and all timers of this time fire in the order in which
   they were set.
5. If there is no timer, nothing can ever happen again, and the loop raises `StandstillError`.

Connections are those of `tools.memory_network`, so no byte is on its way when time advances, and a run depends
on nothing outside: equal programs see equal bytes at equal times. What a program reads from another clock or from the
system (`time.monotonic`, random numbers without a seed) is not covered.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import selectors
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lbopt.exceptions import LbOptError
from lbopt.serving.process import ROUTER_ORDER
from tools.memory_network import Address, MemoryListener, MemoryNetwork, local

Result = TypeVar("Result")


class StandstillError(LbOptError):
    """Nothing is ready, and no timer is set: every task waits for another one."""


class _Selector(selectors.SelectSelector):
    """A selector that never waits for time to pass; it asks the loop what comes next.

    Parameters
    ----------
    idle
        Called when nothing is ready; returns whether to wait for another thread.
    """

    def __init__(self, idle: Callable[[], bool]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; where nothing is, let the loop go on to what comes next."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        return super().select(None) if self._idle() else []


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """The loop. `time` begins at 0.

    Attributes
    ----------
    network
        All connections of the loop.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._waiting_for_quiet: list[tuple[int, int, asyncio.Future[None]]] = []
        self._threads = 0
        self._connected: dict[socket.socket, Address] = {}
        super().__init__(_Selector(self._go_on))
        self.network = MemoryNetwork(self)

    def time(self) -> float:
        """Return the virtual time, s."""
        return self._now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call at a virtual time; timers of equal time fire in the order in which they were set.

        Parameters
        ----------
        when
            s, as `time` tells it.
        """
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Call after `delay` virtual seconds."""
        return self.call_at(self._now + max(delay, 0.0), callback, *args, context=context)

    async def quiet(self, order: int = ROUTER_ORDER) -> None:
        """Wait until nothing is ready at this time: everything that was sent has been read and acted on."""
        future = self.create_future()
        heapq.heappush(self._waiting_for_quiet, (order, next(self._order), future))
        await future

    def call_when_quiet(self, callback: Callable[[], None], order: int = ROUTER_ORDER) -> None:
        """Call when nothing is ready at this time, see `quiet`."""
        future: asyncio.Future[None] = self.create_future()
        future.add_done_callback(lambda _: callback())
        heapq.heappush(self._waiting_for_quiet, (order, next(self._order), future))

    def _go_on(self) -> bool:
        """Make the next thing ready; return whether a thread has to be waited for instead."""
        if self._threads:
            return True
        woken = False
        while self._waiting_for_quiet and not woken:
            order = self._waiting_for_quiet[0][0]
            while self._waiting_for_quiet and self._waiting_for_quiet[0][0] == order:
                future = heapq.heappop(self._waiting_for_quiet)[2]
                if not future.done():
                    future.set_result(None)
                    woken = True
        if not woken:
            self._fire_next_timers()
        return False

    def _fire_next_timers(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise StandstillError(
                f"nothing is left to happen after {self._now:g} s of virtual time: every task waits for another one"
            )
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            self.call_soon(_run, heapq.heappop(timers)[2])

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Run `func` in a thread; virtual time stands still until it ends.

        Parameters
        ----------
        executor
            As in asyncio; None is the loop's own.
        """
        future = super().run_in_executor(executor, func, *args)
        self._threads += 1
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _future: object) -> None:
        self._threads -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads of the loop's own executor."""
        self._threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._threads -= 1

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> list[Any]:
        """Return the address of a name of this machine; others do not exist here."""
        name = local(host.decode() if isinstance(host, bytes) else host)
        if not name.replace(".", "").isdigit():
            raise socket.gaierror(socket.EAI_NONAME, f"the virtual network has no host '{name}'")
        kind = options.get("type") or socket.SOCK_STREAM
        return [(socket.AF_INET, kind, socket.IPPROTO_TCP, "", (name, int(port or 0)))]

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Note where `sock` is to lead; it stays unconnected, and `create_connection` closes it."""
        self._connected[sock] = target = (local(address[0]), address[1])
        self.network.require(target)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        ssl: Any = None,
        **_options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect inside of the virtual network.

        Parameters
        ----------
        host, port
            Where to.
        sock
            A socket that `sock_connect` was given, instead of host and port.
        """
        if ssl:
            raise OSError("the virtual network has no TLS; use http:// addresses")
        if sock is not None:
            address = self._connected.pop(sock)
            sock.close()
        else:
            address = (local(host), int(port or 0))
        return self.network.connect(protocol_factory, address)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: Any = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        **_options: Any,
    ) -> MemoryListener:
        """Listen in the virtual network.

        Parameters
        ----------
        host, port
            Where; port 0 is given a number.
        """
        if ssl:
            raise OSError("the virtual network has no TLS; leave the certificate out")
        first = host if isinstance(host, str) or host is None else next(iter(host), None)
        return self.network.listen(protocol_factory, (local(first), int(port or 0)))


def _run(handle: asyncio.TimerHandle) -> None:
    if not handle.cancelled():
        handle._run()


def run_virtual(main: Coroutine[Any, Any, Result], watch: Any = None) -> Result:
    """Run `main` on a virtual clock of its own and return its result.

    Parameters
    ----------
    main
        What `asyncio.run` would be given.
    watch
        See `MemoryNetwork.watch`.

    Raises
    ------
    StandstillError
        If `main` waits for something that cannot happen.

    Examples
    --------
    >>> import asyncio
    >>> from tools.virtual_clock import run_virtual
    >>> async def wait():
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(wait())
    3600.0
    """
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualClockLoop)
        loop.network.watch = watch
        return runner.run(main)
