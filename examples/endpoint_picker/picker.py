"""An endpoint picker for a Gateway API inference gateway that asks `lbopt serve` where each request goes.

    pip install -r requirements.txt
    export LBOPT_ROUTE_TOKEN=...     # the router's and the picker's
    lbopt serve --fleet fleet.toml --policy auto --port 8000     # a fleet whose group says advised = true
    python picker.py --router http://127.0.0.1:8000 --port 9002

The gateway (Envoy with its external processor) streams each request to this process, which asks `POST /route` and names
the endpoint in the header and in the metadata `x-gateway-destination-endpoint`. It sees the answer pass, counts its
tokens, and reports them and the end to the router. Bodies pass unchanged.

Protocol: endpoint picker protocol 1.0 of the Gateway API inference extension (its proposal 004), on Envoy's
`envoy.service.ext_proc.v3`. The gateway sends bodies as FULL_DUPLEX_STREAMED, as that protocol wants it, or BUFFERED,
with which a stream reaches its client in one piece at its end. `envoy.yaml` beside this file is a whole configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp
import grpc
from envoy_data_plane.envoy.config.core.v3 import (
    HeaderValue,
    HeaderValueOption,
    HeaderValueOptionHeaderAppendAction,
)
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import ProcessingModeBodySendMode as Mode
from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    BodyResponse,
    CommonResponse,
    HeaderMutation,
    HeadersResponse,
    ImmediateResponse,
    ProcessingRequest,
    ProcessingResponse,
    StreamedBodyResponse,
    TrailersResponse,
)
from envoy_data_plane.envoy.type.v3 import HttpStatus
from envoy_data_plane.google.protobuf import Struct, Value
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lbopt.exceptions import InputError
from lbopt.serving.router.ask import error_of, read_answer, read_ask
from lbopt.serving.router.events import EventCounter, code_of
from lbopt.serving.router.forward import is_of_request
from lbopt.serving.router.operators import GENERATING
from lbopt.serving.scrape import usage_of

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
DESTINATION = "x-gateway-destination-endpoint"
SUBSET = DESTINATION + "-subset"
PERIOD = 0.1  # seconds between two reports of one request
LARGEST_PIECE = 60_000  # bytes of one streamed piece of a body
LARGEST_READ = 2**20  # bytes of an answer that is no stream, of which usage is read

_log = logging.getLogger("picker")


class NoPlaceError(Exception):
    """The request gets no endpoint; `status` is what its client sees."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Place:
    """A request that the router has placed, and what is to be reported of it."""

    def __init__(self, session, base, answer, endpoint, sequences):
        self._session, self._url = session, f"{base}/route/{answer['id']}"
        self.endpoint, self.rank, self.sequences = endpoint, answer["rank"], sequences
        self._tokens, self._prompt, self._ending = 0, None, None
        self._news, self._ended = asyncio.Event(), asyncio.Event()
        if answer["id"] is not None:  # else it takes no place, and nothing is to be reported
            self._task = asyncio.get_running_loop().create_task(self._run())

    def note(self, tokens, prompt=None):
        """Take in tokens that were made."""
        self._tokens += tokens
        self._prompt = prompt or self._prompt
        self._news.set()

    def end(self, ending):
        """Take in how the request ended; the first word counts."""
        self._ending = self._ending or ending
        self._news.set()
        self._ended.set()

    async def _run(self):
        while True:
            await self._news.wait()
            self._news.clear()
            report = {"tokens": self._tokens}
            report |= {"prompt_tokens": self._prompt} if self._prompt else {}
            report |= {"ending": self._ending} if self._ending else {}
            self._tokens, self._prompt = 0, None
            try:
                async with self._session.post(self._url, json=report) as answer:
                    await answer.read()
                    if answer.status == 404:
                        return  # the router has ended it, or was started anew
            except aiohttp.ClientError as error:
                _log.warning("the router did not take a report: %s", error)
            if "ending" in report:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), PERIOD)


class Advice:
    """Asks the router."""

    def __init__(self, session, base):
        self._session, self._base = session, base

    async def place(self, path, body, subset):
        """Return the place of a request; `subset` holds the endpoints that it may go to, None = any.

        What generates nothing goes to an endpoint of its model at once, and takes no place.
        """
        asked, sequences = {"place": False}, 1
        if body or path in GENERATING:
            try:
                ask = read_ask(body, chat=path != "/v1/completions")
            except InputError as error:
                raise NoPlaceError(400, str(error)) from None
            if path in GENERATING:
                asked = {"prompt_tokens" if ask.exact else "prompt_bytes": max(1, ask.units)}
                asked |= {"n": ask.choices, "prompts": ask.prompts}
                sequences = ask.choices * ask.prompts
            if ask.model is not None:
                asked["model"] = ask.model
        try:
            async with self._session.post(self._base + "/route", json=asked) as answer:
                told = await answer.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NoPlaceError(503, f"the router does not answer: {type(error).__name__}") from None
        if answer.status != 200:
            status = answer.status if answer.status in (400, 401, 404, 429) else 503
            raise NoPlaceError(status, told["error"]["message"])
        endpoint = await _address(told["url"])
        place = Place(self._session, self._base, told, endpoint, sequences)
        if subset is not None and endpoint not in subset:
            place.end("cancelled")
            raise NoPlaceError(503, f"the router chose {endpoint}, which the gateway does not offer for this request")
        return place

    async def is_ready(self):
        """Return whether the router takes requests."""
        try:
            async with self._session.get(self._base + "/ready") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False


async def _address(url):
    """Return ip:port of a URL: the protocol takes no names."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError:
        raise NoPlaceError(503, f"the worker's host {parts.hostname} has no address") from None
    host = found[0][4][0]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Exchange:
    """One HTTP request and its answer, message by message."""

    def __init__(self, advice):
        self._advice = advice
        self._request_mode = self._response_mode = Mode.BUFFERED
        self._path, self._body, self._held = "", bytearray(), True
        self._subset = None
        self._place = None
        self._counter, self._answer, self._status = None, bytearray(), 200

    async def answers(self, message):
        """Return what is said to one message of the gateway."""
        if message.request_headers is not None:
            return await self._request_headers(message)
        if message.request_body is not None:
            self._body += message.request_body.body
            full = self._request_mode is Mode.FULL_DUPLEX_STREAMED
            if not message.request_body.end_of_stream and full:
                return []
            return await self._pick(BodyResponse)
        if message.request_trailers is not None:
            picked = await self._pick(BodyResponse) if self._place is None else []
            return [*picked, ProcessingResponse(request_trailers=TrailersResponse())]
        if message.response_headers is not None:
            return self._response_headers(message.response_headers)
        if message.response_body is not None:
            return self._response_body(message.response_body)
        if message.response_trailers is not None:
            self._end()
            return [ProcessingResponse(response_trailers=TrailersResponse())]
        return []

    def close(self):
        """Note that the gateway has closed the stream."""
        if self._place is not None:
            self._place.end("cancelled")

    async def _request_headers(self, message):
        if message.protocol_config is not None:
            self._request_mode = message.protocol_config.request_body_mode
            self._response_mode = message.protocol_config.response_body_mode
        self._path = _header(message.request_headers, ":path").partition("?")[0]
        self._subset = _subset(message.metadata_context)
        if message.request_headers.end_of_stream:
            return await self._pick(HeadersResponse)
        if self._request_mode is Mode.FULL_DUPLEX_STREAMED:
            return []  # answered when the body is here
        if self._request_mode is not Mode.BUFFERED:
            raise NoPlaceError(500, "the picker has to see bodies: set request_body_mode to FULL_DUPLEX_STREAMED")
        return [ProcessingResponse(request_headers=HeadersResponse(response=CommonResponse()))]

    async def _pick(self, kind):
        """Ask the router, and name the endpoint in the answer to the headers or to the buffered body."""
        place = self._place = await self._advice.place(self._path, bytes(self._body), self._subset)
        headers = {DESTINATION: place.endpoint}
        if place.rank is not None:
            headers["x-data-parallel-rank"] = str(place.rank)
        options = [
            HeaderValueOption(
                header=HeaderValue(key=name, raw_value=value.encode()),
                append_action=HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
            )
            for name, value in headers.items()
        ]
        named = CommonResponse(header_mutation=HeaderMutation(set_headers=options), clear_route_cache=True)
        inner = Struct(fields={DESTINATION: Value(string_value=place.endpoint)})
        metadata = Struct(fields={"envoy.lb": Value(struct_value=inner)})
        if kind is HeadersResponse:
            return [ProcessingResponse(request_headers=HeadersResponse(response=named), dynamic_metadata=metadata)]
        if self._request_mode is Mode.BUFFERED:
            return [ProcessingResponse(request_body=BodyResponse(response=named), dynamic_metadata=metadata)]
        first = ProcessingResponse(request_headers=HeadersResponse(response=named), dynamic_metadata=metadata)
        body, self._body = bytes(self._body), bytearray()
        return [first, *(ProcessingResponse(request_body=piece) for piece in _streamed(body, True))]

    def _response_headers(self, headers):
        status = _header(headers, ":status")
        self._status = int(status) if status.isdigit() else 200
        if _header(headers, "content-type").startswith("text/event-stream"):
            self._counter = EventCounter(sequences=1 if self._place is None else self._place.sequences)
        if headers.end_of_stream:
            self._end()
        return [ProcessingResponse(response_headers=HeadersResponse(response=CommonResponse()))]

    def _response_body(self, body):
        if self._place is not None:
            self._count(body.body)
        if body.end_of_stream:
            self._end()
        if self._response_mode is not Mode.FULL_DUPLEX_STREAMED:
            return [ProcessingResponse(response_body=BodyResponse(response=CommonResponse()))]
        return [ProcessingResponse(response_body=piece) for piece in _streamed(body.body, body.end_of_stream)]

    def _count(self, data):
        if self._counter is not None:
            before = self._counter.tokens
            self._counter.take(data)
            if self._counter.tokens > before:
                self._place.note(self._counter.tokens - before, self._counter.prompt_tokens)
        elif len(self._answer) < LARGEST_READ:
            self._answer += data

    def _end(self):
        if self._place is None:
            return
        error = 0 if self._counter is None else self._counter.error
        if self._counter is None:
            with suppress(ValueError, RecursionError):
                told = read_answer(bytes(self._answer))
                usage, error = usage_of(told), code_of(told["error"]) or 500 if told.get("error") else 0
                self._place.note(usage.made or 0, usage.prompt)
        status = self._status if self._status >= 400 else error
        self._place.end("rejected" if is_of_request(status) else "failed" if status else "finished")


def _streamed(data, is_last):
    """Yield the pieces of a body as it is streamed back."""
    pieces = [data[begin : begin + LARGEST_PIECE] for begin in range(0, len(data), LARGEST_PIECE)] or [b""]
    for number, piece in enumerate(pieces, 1):
        part = StreamedBodyResponse(body=piece, end_of_stream=is_last and number == len(pieces))
        yield BodyResponse(response=CommonResponse(body_mutation=BodyMutation(streamed_response=part)))


def _header(headers, name):
    for one in headers.headers.headers if headers.headers is not None else ():
        if one.key == name:
            return one.raw_value.decode("latin-1") or one.value
    return ""


def _subset(metadata):
    """Return the endpoints that the gateway offers for a request; None where it says nothing."""
    hint = {} if metadata is None else metadata.filter_metadata
    fields = hint["envoy.lb.subset_hint"].fields if "envoy.lb.subset_hint" in hint else {}
    if SUBSET not in fields:
        return None
    value = fields[SUBSET]
    if value.list_value is not None:
        return {one.string_value for one in value.list_value.values}
    return set(filter(None, (value.string_value or "").replace(" ", "").split(",")))


class Picker:
    """The external processor."""

    def __init__(self, advice):
        self._advice = advice

    async def process(self, messages, _context):
        """Answer the messages of one HTTP request."""
        exchange = Exchange(self._advice)
        try:
            async for message in messages:
                try:
                    answers = await exchange.answers(message)
                except NoPlaceError as refused:
                    yield _refusal(refused)
                    return
                if message.observability_mode:
                    continue
                for answer in answers:
                    yield answer
        finally:
            exchange.close()


def _refusal(refused):
    kind = HeaderValueOption(
        header=HeaderValue(key="content-type", raw_value=b"application/json"),
        append_action=HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    return ProcessingResponse(
        immediate_response=ImmediateResponse(
            status=HttpStatus(code=refused.status),
            headers=HeaderMutation(set_headers=[kind]),
            body=error_of(refused.status, str(refused)),
        )
    )


class Health(health_pb2_grpc.HealthServicer):
    """gRPC's health protocol: the process lives, and the router takes requests."""

    def __init__(self, advice):
        self._advice = advice

    async def Check(self, request, _context):
        """Answer one question."""
        serving = request.service == "liveness" or await self._advice.is_ready()
        kind = health_pb2.HealthCheckResponse
        return kind(status=kind.SERVING if serving else kind.NOT_SERVING)


async def start(router, port, host="127.0.0.1"):
    """Start the picker; returns its server, its port and the session, which is to be closed after it."""
    key = os.environ.get("LBOPT_ROUTE_TOKEN")
    session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"} if key else {})
    advice = Advice(session, router.rstrip("/"))
    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(
        Picker(advice).process, request_deserializer=ProcessingRequest.parse, response_serializer=bytes
    )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {"Process": handler})])
    health_pb2_grpc.add_HealthServicer_to_server(Health(advice), server)
    bound = server.add_insecure_port(f"{host}:{port}")
    await server.start()
    return server, bound, session


async def main():
    """Serve until the process ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--router", default="http://127.0.0.1:8000", help="address of lbopt serve")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9002)
    arguments = parser.parse_args()
    server, port, session = await start(arguments.router, arguments.port, arguments.host)
    print(f"the picker listens on {arguments.host}:{port} and asks {arguments.router}", flush=True)
    try:
        await server.wait_for_termination()
    finally:
        await session.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
