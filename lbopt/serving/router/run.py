"""The server: sockets, limits of connections, signals, and the order of an end.

It binds to loopback unless told otherwise. On SIGTERM or SIGINT it takes no new request, lets those that run end within
`drain_seconds`, tells the rest why their streams end, and closes. A second signal ends at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from lbopt.exceptions import InputError
from lbopt.serving.router import operators
from lbopt.serving.router.clients import ClientConnection, Connections, most_connections
from lbopt.serving.router.service import Router

_log = logging.getLogger(__name__)

#: Seconds in which a connection has to send the head of a request.
HEAD_SECONDS = 15.0


def application(router: Router) -> web.Application:
    """Return the web application of a router."""
    app = web.Application(middlewares=[operators.sentences], client_max_size=router.options.body_bytes)
    app[operators.ROUTER] = router
    app[operators.READING] = asyncio.Lock()
    app.add_routes(
        [
            *(web.post(path, operators.completions) for path in operators.GENERATING),
            *(web.post(path, operators.passes) for path in operators.PASSING),
            web.get("/version", operators.passes, allow_head=False),
            web.get("/v1/models", operators.models, allow_head=False),
            web.get("/health", operators.health),
            web.get("/ready", operators.ready),
            web.get("/metrics", operators.metrics),
            web.get("/shadow", operators.shadow),
            web.get("/workers", operators.list_workers),
            web.post("/workers", operators.add_worker),
            web.post("/workers/{name:.+}/drain", operators.drain_worker),
            web.delete("/workers/{name:.+}", operators.remove_worker),
            web.post("/locality/reload", operators.reload_locality),
            web.post("/route", operators.route),
            web.post("/route/{id}", operators.report),
        ]
    )
    return app


class _WithoutContent(logging.Filter):
    """Leaves out what aiohttp logs of requests that it cannot read: the bytes may hold prompts and keys."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the kind of an error alone, and nothing of a request that is malformed."""
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None or issubclass(kind, HttpProcessingError | ConnectionError):
            return False
        record.msg, record.args = "a request failed: %s", (kind.__name__,)
        record.exc_info = record.exc_text = None
        return True


_connections = logging.getLogger("lbopt.serving.connections")
_connections.addFilter(_WithoutContent())


class Server:
    """A router that listens.

    Parameters
    ----------
    router
        The router.
    tls
        Certificate and key; None = plain HTTP.
    """

    def __init__(self, router: Router, tls: ssl.SSLContext | None = None) -> None:
        self.router = router
        self.port = 0
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self._app = application(router)

    async def start(self) -> None:
        """Listen, and get ready.

        Raises
        ------
        InputError
            Where the address cannot be had.
        """
        options = self.router.options
        runner = web.AppRunner(self._app, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        self._runner = runner
        loop = asyncio.get_running_loop()
        assert runner.server is not None
        most = options.max_connections or most_connections(open_files())
        connections = Connections(most, HEAD_SECONDS, options.slow_client_seconds)
        make = partial(
            ClientConnection,
            connections,
            runner.server,
            loop=loop,
            access_log=None,
            logger=_connections,
            max_line_size=options.header_bytes,
            max_field_size=options.header_bytes,
            keepalive_timeout=75.0,
            auto_decompress=False,
        )
        try:
            self._server = await loop.create_server(
                make,
                options.host,
                options.port,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HEAD_SECONDS,
                backlog=1024,
                reuse_address=True,
            )
        except OSError as error:
            raise InputError(
                f"cannot listen on {options.host} port {options.port}: {error.strerror or error}; name another --port"
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]
        self._watching = loop.create_task(connections.watch())
        await self.router.start()

    async def stop(self, seconds: float | None = None) -> None:
        """Drain and close."""
        router = self.router
        await router.drain(router.options.drain_seconds if seconds is None else seconds)
        if self._watching is not None:
            self._watching.cancel()
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.shutdown()
            await self._runner.cleanup()
        await router.close()


def open_files() -> int:
    """Let the process have as many open files as it may, and return their number; 1024 where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**20 if soft == resource.RLIM_INFINITY else soft


def tls_of(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return the context of a certificate and its key, None where neither is named."""
    if certificate is None and key is None:
        return None
    if certificate is None:
        raise InputError("--tls-key is given without --tls-cert; name the certificate, too")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"the certificate '{certificate}' cannot be used: {error}") from None
    return context


async def _settle_memory(router: Router) -> None:
    """Let the garbage collector leave alone what was loaded at the start: a look at all of it takes some 50 ms."""
    while not router.has_compiled:
        await asyncio.sleep(0.1)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # requests leave it nothing: at 700 it would look four times a second, 5 ms each


async def serve(
    router: Router, tls: ssl.SSLContext | None = None, told: Callable[[Server], None] | None = None
) -> None:
    """Serve until a signal says to end.

    Parameters
    ----------
    tls
        Certificate and key; None = plain HTTP.
    told
        Called when the server listens.
    """
    server = Server(router, tls)
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    await server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, ended.set)
    if told is not None:
        told(server)
    settling = loop.create_task(_settle_memory(router))
    await ended.wait()
    settling.cancel()
    _log.info("the router ends; %d requests run", len(router.jobs))
    stopping = loop.create_task(server.stop())
    ended.clear()
    again = loop.create_task(ended.wait())
    await asyncio.wait({stopping, again}, return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not stopping.done():
        await server.stop(0.0)


def run(router: Router, tls: ssl.SSLContext | None = None, told: Callable[[Server], None] | None = None) -> None:
    """Serve in this thread, on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(router, tls, told))
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(router, tls, told))
