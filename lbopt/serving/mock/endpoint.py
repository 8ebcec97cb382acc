"""One endpoint of the mock: its HTTP doors and its metrics.

`/metrics` of one endpoint, with vLLM's names: gauges and counters read from the engine, times kept in histograms.

Every rank of an endpoint is one value of the label `engine`. A gauge is what the engine holds when it is asked; real
engines report what they held after their last step, which is the same here.

The HTTP side that decode and prefill endpoints share: server, faults, `/health`, `/metrics`, `/v1/models`, ...

An endpoint stands for a process. What happens to the process happens to all its ranks: a crash loses the requests of
all, and while it is frozen nothing of it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lbopt import __version__
from lbopt.serving.families import counter, gauge
from lbopt.serving.mock.answers import DONE, Answer
from lbopt.serving.mock.driver import Driver, Ticket
from lbopt.serving.mock.protocol import Ask, BadRequestError, ids_of, read_ask, text_of_messages
from lbopt.serving.mock.setting import Fault, MockSetting

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


_GAUGES = {
    "running": ("vllm:num_requests_running", "Number of requests in model execution batches."),
    "waiting": ("vllm:num_requests_waiting", "Number of requests waiting to be processed."),
    "kv_usage": ("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage."),
}
_COUNTERS = {
    "preemptions": ("vllm:num_preemptions", "Cumulative number of preemptions."),
    "prompt_tokens": ("vllm:prompt_tokens", "Number of prefill tokens processed."),
    "made_tokens": ("vllm:generation_tokens", "Number of generation tokens processed."),
}


class RankFigures(NamedTuple):
    """What one rank reports: requests running and waiting, share of its KV cache in use, and what it has counted."""

    running: int
    waiting: int
    kv_usage: float
    preemptions: int
    prompt_tokens: int
    made_tokens: int


class _Engines(Collector):
    """The gauges and counters, read when they are asked for."""

    def __init__(self, metrics: EndpointMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Yield every family with a sample a rank."""
        of = self._metrics
        figures = [((of.model, str(rank)), one) for rank, one in enumerate(of.figures())]
        for tell, families in ((gauge, _GAUGES), (counter, _COUNTERS)):
            for field, (name, text) in families.items():
                values = {names: float(getattr(one, field)) for names, one in figures}
                yield tell(name, text, values, "model_name", "engine")
        ended = {(of.model, str(rank), why): float(count) for (rank, why), count in sorted(of.ended.items())}
        text = "Count of successfully processed requests."
        yield counter("vllm:request_success", text, ended, "model_name", "engine", "finished_reason")
        yield InfoMetricFamily("vllm:cache_config", "Information of the LLMEngine CacheConfig", value=of.cache_config)


class EndpointMetrics:
    """The metrics of one endpoint.

    Parameters
    ----------
    model
        Its name, a label of everything.
    figures
        Gives what every rank reports now.
    cache_config
        What `vllm:cache_config_info` says, by name.
    """

    def __init__(self, model: str, figures: Callable[[], Iterable[RankFigures]], cache_config: dict[str, str]) -> None:
        self.model = model
        self.figures = figures
        self.cache_config = cache_config
        self.ended: Counter[tuple[int, str]] = Counter()
        self._registry = CollectorRegistry()
        self._registry.register(_Engines(self))
        self._first, self._gap, self._whole = (
            Histogram(name, text, ["model_name", "engine"], buckets=_SECONDS, registry=self._registry)
            for name, text in (
                ("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds."),
                ("vllm:request_time_per_output_token_seconds", "Histogram of time per output token in seconds."),
                ("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds."),
            )
        )

    def note(self, rank: int, reason: str, first: float | None, whole: float, made: int) -> None:
        """Count a request that has ended.

        Parameters
        ----------
        rank
            Where it ran.
        first, whole
            s from its coming in to its first token, None where it made none, and to its end.
        made
            Tokens that it made.
        """
        self.ended[rank, reason] += 1
        labels = (self.model, str(rank))
        self._whole.labels(*labels).observe(whole)
        if first is not None:
            self._first.labels(*labels).observe(first)
            if made > 1:
                self._gap.labels(*labels).observe((whole - first) / (made - 1))

    def text(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self._registry)


_LARGEST_BODY = 64 * 2**20
#: What vLLM says once its engine has died.
DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_ON_STREAM = "text/event-stream; charset=utf-8"


class Endpoint(ABC):
    """One process that speaks OpenAI's interface.

    Parameters
    ----------
    name
        What it is called, in ids and in tables.
    setting
        Of the fleet.
    drivers
        Of its engines; a freeze stops them.
    """

    metrics: EndpointMetrics

    def __init__(self, name: str, setting: MockSetting, drivers: list[Driver]) -> None:
        self.name = name
        self.setting = setting
        self.drivers = drivers
        self.port = 0
        self.alive = False
        self.busy = False
        self.dead = False
        self.lost_metrics = ""
        self.faults_on_streams: deque[Fault] = deque()
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._count = 0
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None

    @abstractmethod
    def begin(self, ask: Ask, request: web.Request, name: str) -> Ticket:
        """Put a request into an engine, or raise `BadRequestError`."""

    @abstractmethod
    def end(self, ticket: Ticket) -> None:
        """Let go of a request that has ended or whose client has gone."""

    @abstractmethod
    def transfer_of(self, ticket: Ticket, answer: Answer) -> dict[str, Any] | None:
        """Return the `kv_transfer_params` of an answer; None where there are none."""

    @abstractmethod
    def empty(self) -> Iterator[Ticket]:
        """Lose everything that the engines hold."""

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{self.setting.host}:{self.port}"

    async def start(self, port: int) -> None:
        """Listen at `port`; 0 lets the system choose, and a later start takes the same one."""
        app = web.Application(client_max_size=_LARGEST_BODY, middlewares=[self._after_a_freeze])
        app.add_routes(
            [
                web.post("/v1/completions", self._complete),
                web.post("/v1/chat/completions", self._complete),
                web.post("/tokenize", self._tokenize),
                web.get("/v1/models", self._models),
                web.get("/health", self._health),
                web.get("/version", self._version),
                web.get("/metrics", self._metrics),
            ]
        )
        app.on_response_prepare.append(_same_headers)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        self.port = port
        await self._listen()

    async def stop(self) -> None:
        """Close all connections and listen no more."""
        self.alive = False
        if self._runner is not None:
            await self._runner.cleanup()

    async def crash(self) -> None:
        """Die as by kill -9."""
        self.alive = False
        for ticket in list(self.empty()):
            ticket.lose()
        if self._site is not None:
            await self._site.stop()
            self._site = None
        for connection in list(self._connections()):
            if connection.transport is not None:
                reset(connection.transport)

    async def recover(self) -> None:
        """Come back after a crash, empty, at the same address."""
        if not self.alive:
            await self._listen()

    def die(self, dead: bool = True) -> None:
        """Lose the engine behind the HTTP server, which lives on and says so, as vLLM's does; or have it back."""
        self.dead = dead
        for ticket in list(self.empty()):
            ticket.lose()

    def freeze(self) -> None:
        """Stand still."""
        self._thawed.clear()
        for driver in self.drivers:
            driver.freeze()

    def thaw(self) -> None:
        """Go on after a freeze."""
        self._thawed.set()
        for driver in self.drivers:
            driver.thaw()

    async def _listen(self) -> None:
        assert self._runner is not None
        self._site = web.TCPSite(self._runner, self.setting.host, self.port)
        await self._site.start()
        self.port = self._runner.addresses[0][1]
        self.alive = True

    def _connections(self) -> Iterator[Any]:
        if self._runner is not None and self._runner.server is not None:
            yield from self._runner.server.connections

    @web.middleware
    async def _after_a_freeze(self, request: web.Request, handler: Any) -> web.StreamResponse:
        await self._thawed.wait()
        return await handler(request)  # type: ignore[no-any-return]

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        chat = request.path.endswith("/chat/completions")
        if self.busy:
            return _error(503, "the engine takes no requests at present", {"Retry-After": "1"})
        if self.dead:
            return _error(500, DEAD)
        loop = asyncio.get_running_loop()
        self._count += 1
        name = request.headers.get("X-Request-Id") or f"{self.name}-{self._count}"
        try:
            ask = read_ask(await request.read(), chat, self.setting.model_name, self.setting.max_model_len)
            answer = Answer(ask, f"{'chatcmpl' if chat else 'cmpl'}-{name}", int(loop.time()))
            ticket = self.begin(ask, request, answer.name)
        except BadRequestError as error:
            return _error(400, str(error))
        begun, first = loop.time(), [0.0]
        fault = self.faults_on_streams.popleft() if self.faults_on_streams else None
        try:
            if fault is not None and (fault.after == 0 or not ask.stream):
                return await self._break(request, fault, None)
            if ask.stream:
                return await self._stream(request, answer, ticket, fault, first)
            while not ticket.sequence.ended and not ticket.lost:
                await ticket.news()
                first[0] = first[0] or loop.time()
            if ticket.lost:
                return _error(500, DEAD) if self.dead else _gone(request)
            transfer = self.transfer_of(ticket, answer)
            body = answer.body(ticket.sequence.made, ticket.sequence.ended, transfer)
            return web.Response(body=body, content_type="application/json")
        except ConnectionError:
            return _gone(request)
        finally:
            self.end(ticket)
            one = ticket.sequence
            first_seconds = first[0] - begun if first[0] else None
            self.metrics.note(ticket.rank, one.ended, first_seconds, loop.time() - begun, one.made)

    async def _stream(
        self, request: web.Request, answer: Answer, ticket: Ticket, fault: Fault | None, first: list[float]
    ) -> web.StreamResponse:
        """Send events until the answer ends, or its fault comes."""
        response = web.StreamResponse(headers={"Content-Type": _ON_STREAM, "X-Request-Id": answer.name})
        await response.prepare(request)
        pieces = _Pieces(response, self.setting.wire)
        events = 0
        if answer.opening:
            await pieces.send(answer.opening)
        while True:
            begin, end = await ticket.news()
            await self._thawed.wait()
            if ticket.lost and self.dead:
                await response.write(b"data: " + json.dumps(_said(500, DEAD)).encode() + b"\n\n" + DONE)
                return response
            if ticket.lost:
                return _gone(request)
            first[0] = first[0] or asyncio.get_running_loop().time()
            ended = ticket.sequence.ended
            await pieces.send(answer.tokens(begin, end, ended), last=False)
            events += 1
            if fault is not None and events >= fault.after and not ended:
                await pieces.flush()
                return await self._break(request, fault, response)
            if ended:
                await pieces.send(answer.closing(end, self.transfer_of(ticket, answer)), last=True)
                await response.write_eof()
                return response

    async def _break(
        self, request: web.Request, fault: Fault, response: web.StreamResponse | None
    ) -> web.StreamResponse:
        """Let a stream end as its fault says."""
        if fault.kind == "reset" or (response is None and fault.kind != "stall"):
            if request.transport is not None:
                reset(request.transport)
            return _gone(request)
        if fault.kind == "truncate" and response is not None:
            await response.write_eof()
            return response
        if fault.kind == "half-close" and request.transport is not None:
            request.transport.write_eof()
        await asyncio.get_running_loop().create_future()  # until the client goes
        raise AssertionError("the future is never done")

    async def _tokenize(self, request: web.Request) -> web.Response:
        try:
            given = json.loads(await request.read())
            text = text_of_messages(given["messages"]) if "messages" in given else given["prompt"]
            tokens = ids_of(text)
        except (ValueError, TypeError, AttributeError, LookupError, BadRequestError):
            return _error(400, "the body is neither a prompt nor messages")
        return web.json_response(
            {"count": len(tokens), "max_model_len": self.setting.max_model_len, "tokens": tokens, "token_strs": None}
        )

    async def _models(self, _request: web.Request) -> web.Response:
        model = {"id": self.setting.model_name, "object": "model", "created": 0, "owned_by": "lbopt"}
        model |= {"root": self.setting.model_name, "parent": None, "max_model_len": self.setting.max_model_len}
        return web.json_response({"object": "list", "data": [model]})

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(status=503 if self.dead else 200)

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": f"lbopt-mock {__version__}"})

    async def _metrics(self, _request: web.Request) -> web.Response:
        if self.lost_metrics == "hang":
            await asyncio.get_running_loop().create_future()
        if self.lost_metrics == "error":
            return _error(500, "metrics are lost")
        if self.lost_metrics == "garbage":
            return web.Response(text="vllm:num_requests_running{engine= NaN\n<html>")
        return web.Response(
            body=self.metrics.text(), headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"}
        )


class _Pieces:
    """How the events of a stream lie in the pieces that are sent."""

    def __init__(self, response: web.StreamResponse, wire: str) -> None:
        self._response = response
        self._wire = wire
        self._held = b""

    async def send(self, event: bytes, last: bool = False) -> None:
        """Send an event, or hold it for the next one."""
        if self._wire == "joined":
            if self._held or last:
                await self._response.write(self._held + event)
                self._held = b""
            else:
                self._held = event
        elif self._wire == "split":
            middle = len(event) // 2
            await self._response.write(event[:middle])
            await asyncio.sleep(0)
            await self._response.write(event[middle:])
        else:
            await self._response.write(event)

    async def flush(self) -> None:
        """Send what is held."""
        if self._held:
            await self._response.write(self._held)
            self._held = b""


async def _same_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Leave out what differs from run to run."""
    response.headers.pop("Date", None)
    response.headers["Server"] = "lbopt-mock"


def _said(status: int, message: str) -> dict[str, Any]:
    """Return an error as vLLM tells of it."""
    kind = "BadRequestError" if status == 400 else "ServiceUnavailableError" if status == 503 else "InternalServerError"
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(_said(status, message), status=status, headers=headers)


def _gone(request: web.Request) -> web.StreamResponse:
    """Return an answer that does not arrive: the connection is closed."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=499)


def reset(transport: asyncio.BaseTransport) -> None:
    """Close a connection so that the other end sees a reset, and not an end."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(sock.fileno())) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert isinstance(transport, asyncio.WriteTransport)
    transport.abort()
