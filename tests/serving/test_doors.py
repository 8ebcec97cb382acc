"""Who may come in, what is refused, what is never written down, and what mutated requests do: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random

import pytest
from aiohttp import web
from serving.engines import Engine, becomes, fleet, is_empty, plan_for, run, stream

from lbopt.cli.from_config import settled
from lbopt.exceptions import InputError
from lbopt.serving.router import run as running
from lbopt.serving.router.fleet_file import fleet_of, read_fleet
from lbopt.serving.router.options import RouterOptions, options_from


def test_the_api_key_is_asked_for_and_passed_on():
    """Without it 401; with it the engine sees it, too."""

    async def check():
        engine = Engine()
        async with fleet([engine], api_key="client-key-1") as (_, client, base):
            assert (await stream(client, base))[0] == 401
            async with client.get(base + "/v1/models") as answer:
                assert answer.status == 401
            client.headers["Authorization"] = "Bearer client-key-1"
            assert (await stream(client, base))[0] == 200
            assert engine.requests[0][1]["Authorization"] == "Bearer client-key-1"
            async with client.get(base + "/v1/models") as answer:
                assert [model["id"] for model in (await answer.json())["data"]] == ["m"]

    run(check())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not valid JSON"),
        (b"[1]", "JSON object"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not UTF-8"),
        ('{"model": "m"}'.encode("utf-16-le"), "not UTF-8"),
        ('{"model": "m"}'.encode("utf-32"), "not UTF-8"),
        (b'{"model": 3}', "model is 3"),
        (b'{"model": "m", "stream": "maybe"}', "stream is 'maybe'"),
        (b"[" * 100_000, "JSON object"),
    ],
)
def test_what_is_no_request_is_refused_in_one_sentence(body, words):
    """400, and no engine is asked."""

    async def check():
        engine = Engine()
        async with fleet([engine]) as (_, client, base), client.post(base + "/v1/completions", data=body) as answer:
            assert answer.status == 400
            assert words in (await answer.json())["error"]["message"]
            assert engine.requests == []

    run(check())


def test_limits_of_size_and_time():
    """A large body, a large header, a body that does not come, a connection that says nothing."""

    async def check(monkeypatch):
        monkeypatch.setattr(running, "HEAD_SECONDS", 0.2)
        engine = Engine()
        limits = {"body_bytes": 2048, "header_bytes": 2048, "body_seconds": 0.2}
        async with fleet([engine], **limits) as (_router, client, base):
            assert (await stream(client, base, prompt="x" * 5000))[0] == 413
            async with client.get(base + "/health", headers={"X-Long": "x" * 5000}) as answer:
                assert answer.status == 400
            host, port = base[7:].split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
            assert b"408" in await reader.readline()
            writer.close()
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /he")
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 3) == b""
            writer.close()
            assert (await stream(client, base))[0] == 200, "connections that work stay"
            async with client.post(base + "/v1/completions", data=b"x", headers={"Content-Encoding": "gzip"}) as answer:
                assert answer.status in (400, 415)
            async with client.get(base + "/nothing") as answer:
                assert answer.status == 404
                assert "error" in await answer.json()

    with pytest.MonkeyPatch.context() as monkeypatch:
        run(check(monkeypatch))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "not valid HTTP"),
        (b"GET / HTTP/9.9\r\n\r\n", "not valid HTTP"),
        (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n", "not valid HTTP"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", "not valid HTTP"),
        (b"GET /health HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", "not valid HTTP"),
    ],
)
def test_what_is_no_http_is_told_so_in_the_form_of_the_api(head, words):
    """The same JSON as for all other errors, one sentence, and the connection closes."""

    async def check():
        async with fleet([Engine()]) as (_, _, base):
            host, port = base[7:].split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(head)
            answer = await asyncio.wait_for(reader.read(), 3)
            writer.close()
            top, _, body = answer.partition(b"\r\n\r\n")
            assert b" 400 " in top.splitlines()[0]
            assert b"application/json" in top
            error = json.loads(body)["error"]
            assert error["type"] == "BadRequestError"
            assert words in error["message"]
            assert "\n" not in error["message"]

    run(check())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"group": "x"}, "group is 'x'; expected a table below a line"),
        ({"group": ["http://a:1"]}, "expected a table below a line"),
        ({"group": {"model": "m"}}, "a single table .group.; write ..group.."),
        ({"group": [{"model": "m", "slots": 1, "workers": ["http://a:1"]}], "prefiller": {}}, "write ..prefiller.."),
    ],
)
def test_a_table_that_is_written_in_another_way_is_explained(data, words):
    with pytest.raises(InputError, match=words):
        fleet_of(data)


async def raw(base, data):
    """What comes back for bytes on a connection of their own, until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


def post(body, *headers, path="/v1/completions", length=True):
    """The bytes of a request, after which the connection closes."""
    lines = [b"POST " + path.encode() + b" HTTP/1.1", b"Host: x", *headers]
    if length:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


ASK = json.dumps({"model": "m", "prompt": "hello"}).encode()
CLOSE = b"Connection: close"


def test_headers_of_one_connection_stay_and_repeated_ones_pass_in_both_directions():
    """Those that `Connection` names, in any case and in several lines, are dropped; of others every value passes."""
    odd = web.Response(text='{"choices":[{}]}', content_type="application/json")
    odd.headers.extend([("X-A", "1"), ("x-a", "2"), ("X-Hop", "no"), ("Connection", "keep-alive, x-HOP")])
    odd.headers.extend([("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])

    class Odd(Engine):
        async def _carry_out(self, request, ask):
            return odd

    async def check():
        engine = Odd()
        async with fleet([engine]) as (_, _, base):
            sent = [b"X-A: 1", b"x-a: 2", b"X-Hop: no", b"Connection: X-hOP, \tx-other", b"X-Other: no", CLOSE]
            answer = await raw(base, post(ASK, *sent, b"Cookie: a=1", b"Cookie: b=2"))
        seen = {name.lower(): value for name, value in engine.requests[0][1].items()}
        assert (seen["x-a"], seen["cookie"]) == ("1, 2", "a=1; b=2")
        assert not {"x-hop", "x-other"} & set(seen)
        lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
        assert [line for line in lines if line.lower().startswith((b"x-", b"set-"))] == [
            *(b"X-A: 1", b"x-a: 2"),
            *(b"Set-Cookie: a=1", b"Set-Cookie: b=2"),
        ]

    run(check())


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (post(ASK, CLOSE, b"Content-Encoding: identity", b"Content-Encoding: gzip"), 415),
        (post(ASK, CLOSE, b"Content-Encoding: gzip", b"Content-Encoding: identity"), 415),
        (post(ASK, CLOSE, b"Content-Encoding: identity, br"), 415),
        (post(ASK, CLOSE, b"Content-Encoding: identity"), 200),
        (post(b"{}", CLOSE, b"Content-Encoding: identity", b"Content-Encoding: gzip", path="/route"), 415),
        (post(ASK, CLOSE, b"Origin: http://evil.example", b"Content-Type: text/plain"), 415),
        (post(ASK, CLOSE, b"Origin: null"), 415),
        (post(ASK, CLOSE, b"Sec-Fetch-Site: cross-site", b"Content-Type: application/x-www-form-urlencoded"), 415),
        (post(ASK, CLOSE, b"Sec-Fetch-Site: same-site", b"Content-Type: multipart/form-data; boundary=x"), 415),
        (post(b"{}", CLOSE, b"Origin: http://evil.example", b"Content-Type: text/plain", path="/route"), 415),
        (post(ASK, CLOSE, b"Origin: http://page.example", b"Content-Type: application/json; charset=utf-8"), 200),
        (post(ASK, CLOSE, b"Content-Type: application/x-www-form-urlencoded"), 200),
        (post(ASK[:-1] + b',"kv_transfer_params":{"remote_host":"x"}}', CLOSE), 400),
        (post(ASK[:-1] + b',"kv\\u005ftransfer_params":null}', CLOSE), 400),
        *(
            (post(size + b"\r\n" + ASK + b"\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", length=False), 400)
            for size in (b"0x1f", b"+1f", b"1_f", b" 1f", b"-1f", b"\x0b1f")
        ),
        (post(ASK, CLOSE, b"Transfer-Encoding: gzip, chunked", length=False), 400),
    ],
)
def test_requests_that_say_more_than_they_may(data, status):
    """Two codings, a page of another site, another's blocks, sizes of chunks that are none: no engine is asked."""

    async def check():
        engine = Engine()
        async with fleet([engine], body_seconds=0.5) as (_, _, base):
            answer = await raw(base, data)
            assert b" %d " % status in answer.partition(b"\r\n")[0]
            assert (b'"error"' in answer) is (status != 200)
            assert len(engine.requests) == (status == 200)

    run(check())


@pytest.mark.parametrize("count", [400, pytest.param(5000, marks=pytest.mark.slow)])
def test_mutated_requests_crash_nothing(count):
    """Damaged bytes on a raw connection: an answer or a closed connection, never 500, and all slots are free."""

    async def check():
        engine = Engine(tokens=1)
        rng = random.Random(11)
        body = json.dumps({"model": "m", "prompt": "hello", "stream": True, "max_tokens": 1}).encode()
        whole = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
        whole += b"%d\r\n\r\n" % len(body) + body
        async with fleet([engine], slots=50, body_seconds=0.3, max_waiting=100) as (router, client, base):
            host, port = base[7:].split(":")
            gate = asyncio.Semaphore(40)

            async def one(data):
                async with gate:
                    reader, writer = await asyncio.open_connection(host, int(port))
                    try:
                        writer.write(data)
                        if rng.random() < 0.5:
                            writer.write_eof()
                        return await asyncio.wait_for(reader.read(65536), 1.0)
                    except (TimeoutError, ConnectionError):
                        return b""
                    finally:
                        writer.close()

            answers = await asyncio.gather(*(one(mutated(whole, rng)) for _ in range(count)))
            assert not [a for a in answers if b" 500 " in a[:20]]
            assert any(b" 200 " in a[:20] for a in answers)
            assert any(b" 400 " in a[:20] for a in answers)
            assert (await stream(client, base))[0] == 200
            await becomes(lambda: is_empty(router))

    run(check(), limit=120)


def mutated(data, rng):
    """Bytes with a few of them changed, dropped, doubled or cut off."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data))
        kind = rng.randrange(5)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = data[at : at + rng.randrange(1, 30)]
        elif kind == 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(4))
        else:
            del data[max(1, at) :]
        if not data:
            data = bytearray(b"x")
    return bytes(data)


def test_prompts_are_never_in_logs_or_records(tmp_path, caplog):
    """Neither where a request is served nor where it fails."""
    secret = "the-secret-of-the-client"

    async def check():
        engine = Engine()
        with caplog.at_level(logging.DEBUG):
            async with fleet([engine], record=str(tmp_path), failures=2, retries=1) as (_, client, base):
                await stream(client, base, prompt=secret)
                engine.faults = ["reset", "reset", "reset", 400]
                await stream(client, base, prompt=secret)
                await stream(client, base, prompt=secret)
                async with client.post(base + "/v1/completions", data=b'{"prompt": "' + secret.encode()) as answer:
                    await answer.read()
                async with client.get(base + "/metrics") as answer:
                    assert secret not in await answer.text()

    run(check())
    assert secret not in caplog.text
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert '"kind":"outcome"' in written
    assert secret not in written


def test_metrics_tell_of_the_barrier():
    """Imbalance, idle share, pool, waits, stages, endings."""

    async def check():
        engines = [Engine(tokens=80, delay=0.01), Engine(tokens=80, delay=0.01)]
        async with fleet(engines, slots=1, policy="jsq-load") as (_, client, base):
            tasks = [asyncio.create_task(stream(client, base, prompt=[1] * n)) for n in (900, 100, 50)]
            await becomes(lambda: all(engine.running for engine in engines))
            await asyncio.sleep(0.3)
            async with client.get(base + "/metrics") as answer:
                text = await answer.text()
            await asyncio.gather(*tasks)
            values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
            assert float(values['lbopt_imbalance_tokens{group="g"}']) > 700
            assert float(values['lbopt_pool_requests{model="m"}']) == 1
            assert float(values['lbopt_barrier_idle_seconds_total{group="g"}']) > 0
            assert float(values[f'lbopt_worker_running{{group="g",worker="{engines[0].url[7:]}"}}']) == 1
            assert 'lbopt_dispatch_seconds_count{stage="decide"}' in values
            assert float(values["lbopt_output_tokens_total"]) > 0

    run(check())


def test_options_come_from_three_places():
    """The fleet file, named options, and --set, later ones first; keys from nowhere but the environment."""
    given = {"policy": "br-0", "port": None} | settled([RouterOptions], ["ttl=7", "ask_usage=yes"])
    options = options_from({"ttl": 5, "policy": "jsq"}, given)
    assert (options.ttl, options.policy, options.ask_usage, options.port) == (7.0, "br-0", True, 8000)
    for table, settings in (
        ({"api_key": "12345678"}, []),
        ({"tll": 5}, []),
        ({"ttl": "5"}, []),
        ({"ttl": True}, []),
        ({}, ["ttl"]),
        ({}, ["ttl=x"]),
        ({}, ["api_key=12345678"]),
        ({}, ["ask_usage=maybe"]),
        ({}, ["ttl=0"]),
        *(({}, [f"{name}={'1' * digits}"]) for name in ("ttl", "port", "seed") for digits in (401, 5000)),
    ):
        with pytest.raises(InputError):
            options_from(table, settled([RouterOptions], settings))
    assert "secret" not in repr(RouterOptions(api_key="secret-key", admin_token="secret-token"))


GROUP = {"model": "m", "slots": 2, "workers": ["http://127.0.0.1:1"]}
OTHER = {"name": "b", "model": "n", "slots": 2}
GOOD = {"group": [GROUP]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"group": []}, "no [[group]]"),
        ({"group": 3}, "group is 3"),
        ({"groups": []}, "key 'groups'"),
        ({"group": [{"model": "m", "slots": 2}]}, "no worker"),
        ({"group": [{"slots": 2, "workers": ["http://a:1"]}]}, "has the model None"),
        ({"group": [{"model": "m", "slots": 0, "workers": ["http://a:1"]}]}, "slots"),
        ({"group": [{"model": "m", "slots": True, "workers": ["http://a:1"]}]}, "slots"),
        ({"group": [{"model": "m", "slots": 2, "workers": ["a:1"]}]}, "http://host:port"),
        ({"group": [{"model": "m", "slots": 2, "workers": ["http://a:99999"]}]}, "http://host:port"),
        ({"group": [{"model": "m", "slots": 2, "workers": ["http://a:1", "http://a:1"]}]}, "twice"),
        ({"group": [{"model": "m", "slots": 2, "ranks": 2}]}, "no endpoint"),
        ({"group": [{"model": "m", "slots": 2, "endpoint": "http://a:1", "ranks": 0}]}, "ranks"),
        ({"group": [{"model": "m", "slots": 2, "workers": ["http://a:1/v1"]}]}, "leave out /v1"),
        ({"group": [GROUP | {"name": "a"}, GROUP | {"name": "b"}]}, "one engine"),
        (
            {"group": [GROUP, {"name": "b", "model": "n", "slots": 2, "endpoint": "http://127.0.0.1:1", "ranks": 2}]},
            "one engine",
        ),
        (
            {"group": [GROUP, {"name": "b", "model": "n", "slots": 2, "aliases": ["m"], "workers": ["http://a:1"]}]},
            "one name",
        ),
        ({"prefiller": [{"model": "m", "url": "http://127.0.0.1:1"}]}, "one engine"),
        ({"prefiller": [{"model": "x", "url": "http://a:1"}]}, "for model 'x'"),
        ({"prefiller": [{"model": "m", "url": "http://a:1", "threshold": 2}]}, "threshold"),
        ({"allowed": ["10.0.0.0/99"]}, "allowed"),
        ({"router": 3}, "router is 3"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_in_one_sentence(change, words):
    """The message names the thing and the value."""
    with pytest.raises(InputError, match=words.replace("[", r"\[").replace("]", r"\]")):
        fleet_of(GOOD | change)


def test_an_address_of_six_groups_needs_no_name():
    """The name that it gets has no brackets."""
    plan = fleet_of({"group": [GROUP | {"workers": ["http://[::1]:21000"]}]})
    assert plan.groups[0].workers[0].name == "ip6-::1:21000"


def test_nothing_of_a_malformed_request_is_logged(caplog):
    """aiohttp would print the bytes that it could not read, which may be a prompt or a key."""

    async def check():
        async with fleet([Engine()]) as (router, _, base):
            for text in (
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nSECRETWORD\r\n",
                b"GET / HTTP/1.1\r\nAuthorization: Bearer SECRETWORD\x01\r\n\r\n",
            ):
                reader, writer = await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))
                writer.write(text)
                assert b"400" in await reader.read(100)
                writer.close()
            assert is_empty(router)

    with caplog.at_level(logging.DEBUG):
        run(check())
    assert "SECRETWORD" not in caplog.text
    assert "Traceback" not in caplog.text


def test_a_fleet_file(tmp_path):
    """Addresses, ranks of one endpoint, tables of workers, aliases."""
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[router]\nttl = 9\n[[group]]\nname = "a"\nmodel = "m"\naliases = ["n"]\nslots = 4\n'
        'endpoint = "http://10.0.0.1:8000/"\nranks = 2\n'
        '[[group]]\nname = "b"\nmodel = "m"\nslots = 4\n[[group.worker]]\nurl = "http://10.0.0.2:8000"\nname = "w"\n'
    )
    plan = read_fleet(path)
    assert [(w.name, w.url, w.rank) for w in plan.groups[0].workers] == [
        ("10.0.0.1:8000/0", "http://10.0.0.1:8000", 0),
        ("10.0.0.1:8000/1", "http://10.0.0.1:8000", 1),
    ]
    assert plan.groups[1].workers[0].name == "w"
    assert plan.options == {"ttl": 9}
    with pytest.raises(InputError, match="nowhere"):
        read_fleet(tmp_path / "nowhere.toml")
    assert plan_for([type("E", (), {"url": "http://127.0.0.1:5"})]).groups[0].slots == 2
