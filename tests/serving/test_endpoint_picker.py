"""The endpoint picker of examples/endpoint_picker, asked by a gRPC client as Envoy asks it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from unittest.mock import patch

import pytest
from serving.engines import ROUTE_TOKEN, Engine, becomes, fleet, is_empty, run

NEEDED = "examples/endpoint_picker/requirements.txt is not installed"
grpc = pytest.importorskip("grpc", reason=NEEDED)
pytest.importorskip("grpc_health", reason=NEEDED)
ext_proc = pytest.importorskip("envoy_data_plane.envoy.service.ext_proc.v3", reason=NEEDED)
modes = pytest.importorskip("envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3", reason=NEEDED)

from envoy_data_plane.envoy.config.core.v3 import HeaderMap, HeaderValue, Metadata  # noqa: E402
from envoy_data_plane.google.protobuf import ListValue, Struct, Value  # noqa: E402
from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402

Mode = modes.ProcessingModeBodySendMode
PLACE = Path(__file__).resolve().parents[2] / "examples" / "endpoint_picker" / "picker.py"
BODY = json.dumps({"model": "m", "prompt": "word " * 40, "stream": True}).encode()


def picker_module():
    spec = importlib.util.spec_from_file_location("picker", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def headers(pairs, end=False):
    found = [HeaderValue(key=name, raw_value=value.encode()) for name, value in pairs.items()]
    return ext_proc.HttpHeaders(headers=HeaderMap(headers=found), end_of_stream=end)


def begin(mode, subset=None, path="/v1/completions"):
    metadata = None
    if subset is not None:
        values = ListValue(values=[Value(string_value=one) for one in subset])
        inner = Struct(fields={"x-gateway-destination-endpoint-subset": Value(list_value=values)})
        metadata = Metadata(filter_metadata={"envoy.lb.subset_hint": inner})
    return ext_proc.ProcessingRequest(
        request_headers=headers({":path": path, ":method": "POST"}),
        metadata_context=metadata,
        protocol_config=ext_proc.ProtocolConfiguration(request_body_mode=mode, response_body_mode=mode),
    )


def body(data, end):
    return ext_proc.ProcessingRequest(request_body=ext_proc.HttpBody(body=data, end_of_stream=end))


def event(text):
    return b'data: {"choices":[{"index":0,"text":"%s"}]}\n\n' % text.encode()


def destination(common, metadata):
    """The endpoint as the header and the metadata name it: they must agree."""
    (found,) = [
        one.header.raw_value.decode()
        for one in common.header_mutation.set_headers
        if one.header.key == "x-gateway-destination-endpoint"
    ]
    inner = metadata.fields["envoy.lb"].struct_value.fields["x-gateway-destination-endpoint"].string_value
    assert found == inner
    return found


class Gateway:
    """A gateway's side of the protocol."""

    def __init__(self, channel):
        self._call = channel.stream_stream(
            "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
            request_serializer=bytes,
            response_deserializer=ext_proc.ProcessingResponse.parse,
        )

    async def open(self, *messages):
        call = self._call()
        for message in messages:
            await call.write(message)
        return call


def with_picker(check, **options):
    async def main():
        engines = [Engine(), Engine()]
        async with fleet(engines, advised=True, **options) as (router, _, base):
            with patch.dict("os.environ", LBOPT_ROUTE_TOKEN=ROUTE_TOKEN):
                server, port, session = await picker_module().start(base, 0)
            try:
                async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                    await check(Gateway(channel), router, [engine.url[7:] for engine in engines], channel)
            finally:
                await server.stop(0)
                await session.close()

    run(main())


def test_a_streamed_request_is_placed_counted_and_ended():
    """Full duplex: the headers are answered when the body is whole, the body comes back, and tokens are reported."""

    async def check(gateway, router, urls, _channel):
        call = await gateway.open(begin(Mode.FULL_DUPLEX_STREAMED), body(BODY[:30], False), body(BODY[30:], True))
        first = await call.read()
        endpoint = destination(first.request_headers.response, first.dynamic_metadata)
        assert endpoint in urls
        second = (await call.read()).request_body.response.body_mutation.streamed_response
        assert (second.body, second.end_of_stream) == (BODY, True)
        worker = next(w for w in router.fleet.groups["g"].workers if w.name == endpoint)
        assert worker.bound == 1
        held = worker.load
        await call.write(
            ext_proc.ProcessingRequest(
                response_headers=headers({":status": "200", "content-type": "text/event-stream"})
            )
        )
        assert (await call.read()).response_headers is not None
        data = event("a") + event("b")
        for piece in (data[:20], data[20:]):
            await call.write(ext_proc.ProcessingRequest(response_body=ext_proc.HttpBody(body=piece)))
            back = (await call.read()).response_body.response.body_mutation.streamed_response
            assert (back.body, back.end_of_stream) == (piece, False)
        await becomes(lambda: worker.load == held + 2)
        last = b'data: {"choices":[],"usage":{"prompt_tokens":40,"completion_tokens":3}}\n\ndata: [DONE]\n\n'
        await call.write(ext_proc.ProcessingRequest(response_body=ext_proc.HttpBody(body=last, end_of_stream=True)))
        assert (await call.read()).response_body.response.body_mutation.streamed_response.end_of_stream
        await call.done_writing()
        await becomes(lambda: is_empty(router))
        assert router.fleet.endings == {"finished": 1}

    with_picker(check)


def test_a_buffered_request_is_placed_by_its_body():
    """The endpoint is named in the answer to the body; an answer that is no stream is read for its usage."""

    async def check(gateway, router, urls, _channel):
        call = await gateway.open(begin(Mode.BUFFERED))
        assert (await call.read()).request_headers is not None
        await call.write(body(BODY, True))
        named = await call.read()
        assert destination(named.request_body.response, named.dynamic_metadata) in urls
        await call.write(ext_proc.ProcessingRequest(response_headers=headers({":status": "200"})))
        await call.read()
        text = json.dumps({"usage": {"prompt_tokens": 40, "completion_tokens": 9}}).encode()
        await call.write(ext_proc.ProcessingRequest(response_body=ext_proc.HttpBody(body=text, end_of_stream=True)))
        assert (await call.read()).response_body is not None
        await call.done_writing()
        await becomes(lambda: is_empty(router))
        assert router.fleet.endings == {"finished": 1}

    with_picker(check)


def test_a_stream_that_breaks_off_gives_the_place_back():
    async def check(gateway, router, _urls, _channel):
        call = await gateway.open(begin(Mode.FULL_DUPLEX_STREAMED), body(BODY, True))
        await call.read()
        assert not is_empty(router)
        call.cancel()
        await becomes(lambda: is_empty(router))
        assert router.fleet.endings == {"cancelled": 1}

    with_picker(check)


def test_refusals_are_immediate_answers():
    """What is no request: 400; an endpoint that the gateway does not offer: 503; a full queue: 429."""

    async def refused(gateway, *messages):
        call = await gateway.open(*messages)
        answer = (await call.read()).immediate_response
        return answer.status.code, json.loads(answer.body)["error"]["message"]

    async def check(gateway, router, urls, _channel):
        full = Mode.FULL_DUPLEX_STREAMED
        assert (await refused(gateway, begin(full), body(b"{", True)))[0] == 400
        code, said = await refused(gateway, begin(full, subset=["10.9.9.9:80"]), body(BODY, True))
        assert (code, "does not offer" in said) == (503, True)
        assert (await refused(gateway, begin(Mode.STREAMED)))[0] == 500
        await becomes(lambda: is_empty(router))
        fine = await gateway.open(begin(full, subset=urls), body(BODY, True))
        assert (await fine.read()).request_headers is not None
        held = [await gateway.open(begin(full), body(BODY, True)) for _ in range(4)]
        await becomes(lambda: len(router.fleet.live) == 5)
        codes = [await refused(gateway, begin(full), body(BODY, True))]
        assert codes[0][0] == 429
        for call in (fine, *held):
            call.cancel()
        await becomes(lambda: is_empty(router))

    with_picker(check, slots=2, max_waiting=1)


def test_the_health_protocol_tells_whether_the_router_is_ready():
    async def check(_gateway, router, _urls, channel):
        health = health_pb2_grpc.HealthStub(channel)
        kind = health_pb2.HealthCheckResponse

        async def ask(service):
            return (await health.Check(health_pb2.HealthCheckRequest(service=service))).status

        assert await ask("envoy.service.ext_proc.v3.ExternalProcessor") == kind.SERVING
        router.is_draining = True
        assert await ask("readiness") == kind.NOT_SERVING
        assert await ask("liveness") == kind.SERVING

    with_picker(check)


def test_a_large_body_comes_back_in_pieces():
    async def check(gateway, router, _urls, _channel):
        large = json.dumps({"model": "m", "prompt": "x" * 150_000}).encode()
        call = await gateway.open(begin(Mode.FULL_DUPLEX_STREAMED), body(large, True))
        await call.read()
        back, pieces, ended = b"", 0, False
        while not ended:
            piece = (await call.read()).request_body.response.body_mutation.streamed_response
            back, pieces, ended = back + piece.body, pieces + 1, piece.end_of_stream
        assert (back, pieces) == (large, 3)
        call.cancel()
        await becomes(lambda: is_empty(router))

    with_picker(check)


def test_what_generates_nothing_goes_on_at_once_and_takes_no_place():
    """Also where all places are taken; a chat's answer of several sequences is counted by their index."""

    async def check(gateway, router, urls, _channel):
        full = Mode.FULL_DUPLEX_STREAMED
        held = [await gateway.open(begin(full), body(BODY, True)) for _ in range(2)]
        for call in held:
            await call.read()
        for path, data in (("/tokenize", BODY), ("/v1/embeddings", b'{"model":"m","input":"x"}')):
            call = await gateway.open(begin(full, path=path), body(data, True))
            first = await call.read()
            assert destination(first.request_headers.response, first.dynamic_metadata) in urls
            call.cancel()
        message = begin(full, path="/v1/models")
        message.request_headers.end_of_stream = True
        call = await gateway.open(message)
        first = await call.read()
        assert destination(first.request_headers.response, first.dynamic_metadata) in urls
        assert router.fleet.arrivals == 2
        for one in (call, *held):
            one.cancel()
        await becomes(lambda: is_empty(router))

    with_picker(check, slots=1)


def test_requests_wait_in_the_routers_pool():
    """A request without a free slot gets its endpoint when one is free."""

    async def check(gateway, router, _urls, _channel):
        full = Mode.FULL_DUPLEX_STREAMED
        first = [await gateway.open(begin(full), body(BODY, True)) for _ in range(2)]
        for call in first:
            await call.read()
        waiting = await gateway.open(begin(full), body(BODY, True))
        reading = asyncio.create_task(waiting.read())
        await becomes(lambda: len(router.fleet.pools["m"]) == 1)
        assert not reading.done()
        first[0].cancel()
        assert (await reading).request_headers is not None
        for call in (first[1], waiting):
            call.cancel()
        await becomes(lambda: is_empty(router))

    with_picker(check, slots=1)
