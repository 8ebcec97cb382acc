"""What clients see through the router is what the engine says, byte for byte, on all paths that it serves."""

from __future__ import annotations

import json

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run
from serving.fleet import on_router
from serving.test_hostile_engines import Raw, events, status

from lbopt.serving.mock.setting import make_fault
from lbopt.serving.router.ask import read_ask

TOKENIZE = {"prompt": "one two", "model": "m"}


def test_paths_that_generate_nothing_pass_and_take_no_place():
    """Version, tokens, models: an engine's bytes; one that is dead or gone is not asked; HEAD and slashes as there."""

    async def use(router, engines, session, base):
        async def ask(url, method, path, body=None):
            async with session.request(method, url + path, json=body, allow_redirects=False) as answer:
                kind = answer.headers.get("Content-Type"), answer.headers.get("Location")
                return answer.status, kind, await answer.read()

        same = []
        for method, path, body in (
            ("GET", "/version", None),
            ("GET", "/v1/models", None),
            ("POST", "/tokenize", TOKENIZE),
            ("POST", "/tokenize?a=1", TOKENIZE),
            ("POST", "/tokenize", {"model": "m"}),
            ("POST", "/v1/completions", {"prompt": "a", "model": "m", "max_tokens": 0}),
        ):
            direct, routed = [await ask(url, method, path, body) for url in (engines.urls[0], base)]
            if path == "/v1/models":
                assert json.loads(routed[2]) == json.loads(direct[2])
                assert json.loads(routed[2])["data"][0]["max_model_len"] == 131072
            else:
                same.append(direct == routed)
        assert all(same), same
        assert router.fleet.arrivals == 1
        odd = [await ask(base, *one) for one in (("HEAD", "/version"), ("HEAD", "/v1/models"))]
        odd.append(await ask(base, "POST", "/v1/completions/?a=/", {"prompt": "a"}))
        odd.append(await ask(base, "POST", "/v1/completions", {"prompt": "a", "model": "other"}))
        engines.plan(make_fault("crash:worker=0"))
        assert (await ask(base, "POST", "/tokenize", TOKENIZE))[0] == 200
        engines.plan(make_fault("crash:worker=1"))
        while router.has_worker():
            odd.append(await ask(base, "POST", "/tokenize", TOKENIZE))
        odd.append(await ask(base, "POST", "/tokenize", TOKENIZE))
        return odd

    odd = on_router(use)
    assert [code for code, _, _ in odd[:4]] == [405, 405, 307, 404]
    assert odd[2][1][1] == "/v1/completions?a=/"
    assert json.loads(odd[3][2])["error"] == {
        "message": "The model `other` does not exist. Valid aliases: m.",
        "type": "NotFoundError",
        "param": "model",
        "code": 404,
    }
    assert odd[3][1][0] == "application/json"
    assert {code for code, _, _ in odd[4:-1]} == {502}
    assert odd[-1][0] == 503


def test_embeddings_pass_to_an_engine_of_their_model():
    async def check():
        body = b'{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":2}}'
        sick, good = Raw(status(503)), Raw(status(200, "Content-Type: application/json", body=body))
        async with fleet([sick, good]) as (router, client, base):
            for path in ("/v1/embeddings", "/v1/score", "/v1/messages/count_tokens"):
                async with client.post(base + path, json={"model": "m", "input": [[1, 2], [3]]}) as answer:
                    assert (answer.status, await answer.read()) == (200, body)
            async with client.post(base + "/v1/embeddings", json={"model": "x", "input": "a"}) as answer:
                assert answer.status == 404
            for path in ("/sleep", "/collective_rpc", "/v1/load_lora_adapter", "/reset_prefix_cache"):
                async with client.post(base + path, json={"model": "m"}) as answer:
                    assert answer.status == 404, "engines' own doors stay closed"
            assert router.fleet.arrivals == 0

    run(check())


def typed(*told):
    return [b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in told]


DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
MESSAGES = typed(
    {"type": "message_start", "message": {"id": "x", "usage": {"input_tokens": 9, "output_tokens": 0}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    DELTA,
    DELTA,
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 9, "output_tokens": 5}},
    {"type": "message_stop"},
)
RESPONSE = {"id": "r", "status": "completed", "error": None, "output": [], "usage": None}
COUNTS = {"usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}}
RESPONSES = typed(
    {"type": "response.created", "response": RESPONSE},
    {"type": "response.output_text.delta", "delta": "a"},
    {"type": "response.output_text.delta", "delta": "b"},
    {"type": "response.output_text.done", "text": "ab"},
    {"type": "response.completed", "response": RESPONSE | COUNTS},
)
ERROR = typed({"type": "error", "error": {"type": "internal_error", "message": "dead"}})


@pytest.mark.parametrize(
    ("path", "pieces", "whole"),
    [
        ("/v1/messages", MESSAGES, {"type": "message", "content": [], "usage": COUNTS["usage"]}),
        ("/v1/responses", RESPONSES, RESPONSE | COUNTS),
    ],
)
def test_responses_and_messages_take_a_place_and_are_counted(path, pieces, whole):
    """Streams and bodies, byte for byte; their tokens as their own usage has it; an error or a stream cut off fails."""
    body = json.dumps(whole).encode()

    async def check():
        engine = Raw(events(*pieces), status(200, body=body), events(*pieces[:3], *ERROR), events(*pieces[:3]))
        async with fleet([engine], retries=0) as (router, client, base):
            asked = {"model": "m", "input": "x" * 40, "system": [{"type": "text", "text": "y" * 40}]}
            found = []
            for streams in (True, False, True, True):
                async with client.post(base + path, json=asked | {"stream": streams}) as answer:
                    found.append(await answer.read())
            assert found[:2] == [b"".join(pieces), body]
            await becomes(lambda: is_empty(router))
            assert router.fleet.endings == {"finished": 2, "failed": 2}
            assert router.metrics.tokens == 10 + router.metrics.tokens % 10 <= 14
            assert router.estimates["m"].points >= 2

    run(check())


@pytest.mark.parametrize(("text", "streams"), [("yes", True), (1, True), ("True", True), ("off", False), (0, False)])
def test_what_engines_take_for_true(text, streams):
    async def check():
        engine = Engine(tokens=2)
        async with fleet([engine], ask_usage=False) as (router, client, base):
            async with client.post(base + "/v1/completions", json={"model": "m", "prompt": "a", "stream": text}) as got:
                assert got.status == 200  # the stub streams for any text that is not empty
            await becomes(lambda: is_empty(router))
            assert router.fleet.endings == {"finished": 1}
        assert read_ask(json.dumps({"stream": text}).encode(), chat=False).streams is streams

    run(check())
