"""Engines that lie, refuse, or break off: they cost a request another attempt at most, and nobody else anything."""

from __future__ import annotations

import asyncio
import json

import pytest
from serving.engines import ROUTE_TOKEN, Engine, becomes, fleet, is_empty, plan_for, run, stream

from lbopt.serving.router.ask import PromptEstimate
from lbopt.serving.router.endpoint import Rest, asked_rest
from lbopt.serving.router.fleet_file import fleet_of
from lbopt.serving.state import Health


class Raw:
    """An engine that answers each POST with the bytes of `answers` in turn, and each GET with 404."""

    def __init__(self, *answers):
        self.answers, self.count, self.url = answers, 0, ""

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self):
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST"):
                size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(size)
                answer = self.answers[self.count % len(self.answers)]
                self.count += 1
            else:
                answer = status(404)
            writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def status(code, *lines, body=b'{"error":{"message":"no"}}'):
    head = "".join(f"{line}\r\n" for line in lines)
    return f"HTTP/1.1 {code} X\r\n{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def events(*pieces):
    """A stream, whole unless a piece is None: then the connection breaks there."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece is not None]
    return head + b"".join(chunks) + (b"" if None in pieces else b"0\r\n\r\n")


ONE = b'data: {"id":"x","choices":[{"index":0,"text":"a"}]}\n\n'
DONE = b"data: [DONE]\n\n"
HUGE = 10**30


@pytest.mark.parametrize("streams", [True, False])
def test_one_answer_stops_nobody(streams):
    """It says 10^30 prompt tokens; requests of this model and of another go on, and the estimate is as it was."""
    usage = b'{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}' % (HUGE, HUGE)
    lie = events(ONE, b"data: " + usage + b"\n\n", DONE) if streams else status(200, body=usage)

    async def check():
        liar, other = Raw(lie), Engine()
        groups = [{"name": n, "model": n, "slots": 2} for n in ("m", "other")]

        def plan():
            pairs = zip(groups, (liar, other), strict=True)
            return fleet_of({"group": [group | {"workers": [engine.url]} for group, engine in pairs]})

        async with fleet([liar, other], plan=plan) as (router, client, base):
            for _ in range(3):
                body = {"model": "m", "prompt": "hello there", "stream": streams}
                async with client.post(base + "/v1/completions", json=body) as answer:
                    assert answer.status == 200
                    await answer.read()
                status, data = await stream(client, base, model="other")
                assert (status, data[-14:]) == (200, DONE)
            assert router.estimates["m"].tokens(11) < 10
            assert not router.dispatcher.failed_rounds
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_round_that_fails_stops_nobody():
    """A rule or its sight breaks: requests go by load, those of other models by their rule, and health says so."""

    async def check():
        first, second, other = Engine(), Engine(), Engine()
        groups = [
            {"name": "m", "model": "m", "slots": 2, "workers": []},
            {"name": "other", "model": "other", "slots": 2, "workers": []},
        ]

        def plan():
            groups[0]["workers"], groups[1]["workers"] = [first.url, second.url], [other.url]
            return fleet_of({"group": groups})

        async with fleet([first, second, other], plan=plan) as (router, client, base):
            see = router.dispatcher.rules["m"].see
            router.dispatcher.rules["m"].see = lambda *_args, **_more: 1 // 0
            for name in ("m", "other", "m"):
                assert (await stream(client, base, model=name))[0] == 200
            assert router.dispatcher.failed_rounds
            async with client.get(base + "/health") as answer:
                said = await answer.text()
            assert answer.status == 200
            assert "rounds for model 'm' fail" in said and "ZeroDivisionError" in said and "other" not in said
            router.dispatcher.rules["m"].see = see
            assert (await stream(client, base))[0] == 200
            async with client.get(base + "/health") as answer:
                assert await answer.text() == "ok\n"
            await becomes(lambda: is_empty(router))

    run(check())


def test_where_a_rule_cannot_bind_the_fallback_rule_does():
    """One request after another: by load all would go to the first worker."""

    async def check():
        engines = [Raw(events(ONE, DONE)), Raw(events(ONE, DONE))]
        async with fleet(engines, policy="round-robin", fallback="round-robin") as (router, client, base):
            router.dispatcher.rules["g"].bind = lambda _sight: 1 // 0
            for _ in range(4):
                assert await stream(client, base) == (200, ONE + DONE)
            assert [engine.count for engine in engines] == [2, 2]
            assert router.dispatcher.failed_decisions == 4
            await becomes(lambda: is_empty(router))

    run(check())


def test_an_estimate_is_moved_within_bounds_by_one_that_lies():
    """Every third answer counts sixteen million tokens for eleven bytes; a true change is followed."""
    estimate = PromptEstimate()
    for number in range(300):
        estimate.learn(11, 2**24 if number % 3 == 0 else 7)
    assert estimate.tokens(11) < 2**14
    for _ in range(2000):
        estimate.learn(11, 7)
    assert estimate.tokens(11) < 20
    for _ in range(2000):
        estimate.learn(400, 12_000)
    assert 11_900 < estimate.tokens(400) < 12_100, "tools and pictures are not in its bytes"


REFUSALS = {
    "500": status(500),
    "503": status(503),
    "404": status(404),
    "401": status(401),
    "400": status(400),
    "204": status(204, body=b""),
    "307": status(307, "Location: http://127.0.0.1:1/"),
    "529": status(529),
    "a page": status(200, "Content-Type: text/html", body=b"<html>sign in</html>"),
    "nothing": status(200, "Content-Type: application/json", body=b"{}"),
    "only done": events(DONE),
    "429": status(429),
    "429 with Retry-After": status(429, "Retry-After: 1"),
    "error event": events(b'data: {"error":{"message":"dead","code":500}}\n\n', DONE),
    "no stream": events(),
    "reset": b"",
    "garbage": b"\x00\x01 what is this?\r\n\r\n",
}


@pytest.mark.some(12)
@pytest.mark.parametrize("kind", [*REFUSALS, "every other time"])
@pytest.mark.parametrize("policy", ["auto", "round-robin"])
def test_a_bad_engine_of_three_fails_nobody(kind, policy):
    """Sixty requests, twelve at once, one engine of three that refuses: all are answered, and it gets few of them."""
    good = events(ONE, ONE, DONE)

    async def check():
        bad = Raw(status(500), good) if kind == "every other time" else Raw(REFUSALS[kind])
        engines = [bad, Raw(good), Raw(good)]
        async with fleet(engines, slots=4, policy=policy, retry_seconds=0.05, retry_cap=2.0) as (router, client, base):
            gate = asyncio.Semaphore(12)

            async def one():
                async with gate:
                    return await stream(client, base)

            answers = await asyncio.gather(*(one() for _ in range(60)))
            assert [(code, data) for code, data in answers if (code, data) != (200, ONE + ONE + DONE)] == []
            await becomes(lambda: is_empty(router))
            if kind != "every other time":
                assert bad.count <= 30
            assert router.metrics.retries >= 1

    run(check())


def test_a_refusal_of_everybody_is_passed_on_and_sends_nobody_to_rest():
    """A request that every engine refuses is to blame itself; the client gets what the last one said."""

    async def check():
        engines = [Raw(status(500)), Raw(status(500)), Raw(status(500))]
        async with fleet(engines) as (router, client, base):
            for _ in range(4):
                code, data = await stream(client, base)
                assert (code, data) == (500, b'{"error":{"message":"no"}}')
            assert sum(engine.count for engine in engines) == 4 * (1 + router.options.retries)
            assert all(w.health is Health.UP for w in router.fleet.groups["g"].workers)
            await becomes(lambda: is_empty(router))

    run(check())


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (status(400), (400, b'{"error":{"message":"no"}}', 2)),
        (status(401), (401, b'{"error":{"message":"no"}}', 3)),
        (status(200, body=b'{"error":{"message":"no"}}'), (200, b'{"error":{"message":"no"}}', 3)),
        (status(200, body=b"<html>"), (502, b"sent no answer", 3)),
        (status(307), (502, b"answered 307", 3)),
        (events(DONE), (502, b"sent no answer", 3)),
    ],
)
def test_what_all_say_reaches_the_client(answer, seen):
    """A fault that is found with the request is heard from two engines, others from all; nobody rests."""
    code, words, attempts = seen

    async def check():
        engines = [Raw(answer), Raw(answer), Raw(answer)]
        async with fleet(engines, retries=9) as (router, client, base):
            told, data = await stream(client, base)
            assert told == code
            assert words in data
            assert sum(engine.count for engine in engines) == attempts
            assert all(w.health is Health.UP for w in router.fleet.groups["g"].workers)
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_rest_ends_and_the_last_worker_never_rests():
    """What it runs goes on; it is up again after its Retry-After; where the others go down it is up at once."""

    async def check():
        bad, good = Engine(tokens=40, delay=0.02), Engine()
        options = {"policy": "round-robin", "poll_seconds": 30.0, "retry_seconds": 0.3}
        async with fleet([bad, good], slots=2, **options) as (router, client, base):
            running = asyncio.create_task(stream(client, base))
            await becomes(lambda: bad.running == 1)
            mirror, other = router.fleet.groups["g"].workers
            assert (await stream(client, base))[0] == 200
            bad.faults = [429]
            assert (await stream(client, base))[0] == 200
            assert mirror.health is Health.RESTING
            assert not router.fleet.resting(other), "the last one"
            await becomes(lambda: mirror.health is Health.UP)
            assert router.fleet.resting(mirror)
            router.down(router.endpoints[other])
            assert mirror.health is Health.UP
            status, data = await running
            assert (status, data[-14:]) == (200, DONE)

    run(check())


@pytest.mark.parametrize("kind", ["a page", "401", "500", "503", "reset"])
def test_who_rests_is_woken_where_all_others_refuse(kind):
    """A rests and is well again, B refuses now: the request is answered by A at once."""
    good = events(ONE, DONE)

    async def check():
        first, second = Raw(status(429, "Retry-After: 60"), good), Raw(good, REFUSALS[kind])
        async with fleet([first, second], policy="round-robin") as (router, client, base):
            assert await stream(client, base) == (200, ONE + DONE)
            assert router.fleet.groups["g"].workers[0].health is Health.RESTING
            assert await stream(client, base) == (200, ONE + DONE)
            assert (first.count, second.count) == (2, 2)
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_rest_is_as_long_as_asked_and_bounded():
    rest = Rest(0.05, 2.0)
    assert [rest.refuse(0.0) for _ in range(8)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert rest.refuse(7.0) == 7.0
    assert rest.refuse(1e12) == Rest.LONGEST
    rest.end()
    assert rest.refuse(0.0) == 0.05
    for text, seconds in [("3", 3.0), ("9" * 400, 999999999.0), ("-1", 0.0), ("soon", 0.0), ("", 0.0), ("1e9", 0.0)]:
        assert asked_rest(text, "") == seconds
    dates = [f"Wed, 21 Oct 2015 07:28:{second} GMT" for second in ("00", "09", "09 -0000")]
    assert [asked_rest(dates[1], date) for date in (*dates, "", "yesterday")] == [9.0, 0.0, 0.0, 0.0, 0.0]
    assert asked_rest(dates[0], dates[1]) == 0.0


@pytest.mark.some(16)
@pytest.mark.parametrize("cut", range(1, len(ONE)))
def test_half_an_event_never_reaches_a_client(cut):
    """The connection breaks within the second event: the client sees the first, and an event that says so."""
    clients = pytest.importorskip("openai")

    async def check():
        engine = Raw(events(ONE, ONE[:cut], None))
        async with fleet([engine], failures=50) as (router, client, base):
            _, data = await stream(client, base)
            assert data.startswith(ONE)
            _, error = [json.loads(e[6:]) for e in data.split(b"\n\n") if e]
            assert "not whole" in error["error"]["message"]
            if cut == 24:  # a strict client
                asked = clients.AsyncOpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
                texts = []
                with pytest.raises(clients.APIError, match="not whole"):
                    async for chunk in await asked.completions.create(model="m", prompt="x", stream=True):
                        texts += [chunk.choices[0].text]
                assert texts == ["a"]
                await asked.close()
            await becomes(lambda: is_empty(router))

    run(check())


def test_an_engine_that_breaks_off_every_stream_gets_few():
    """One client after another: it holds nothing and looks idle, and rests longer after each."""
    broken, good = events(ONE, None), events(ONE, ONE, DONE)

    async def check():
        bad = Raw(broken)
        rests = {"retry_seconds": 0.5, "retry_cap": 2.0}
        async with fleet([bad, Raw(good), Raw(good)], slots=4, **rests) as (router, client, base):
            begun = router.now()
            answers = [await stream(client, base) for _ in range(60)]
            told = [data for _, data in answers if b"not whole" in data]
            assert bad.count == len(told) <= 4 + (router.now() - begun) / rests["retry_cap"]
            assert sum(data == ONE + ONE + DONE for _, data in answers) == 60 - len(told)
            await becomes(lambda: is_empty(router))

    run(check())


def test_what_goes_on_behind_done_is_cut_off():
    """The answer is whole; the engine goes on for ever, and its connection is closed."""

    async def check():
        engine = Raw(events(ONE, DONE, ONE * 50, ONE * 50, None))
        async with fleet([engine]) as (router, client, base):
            assert await stream(client, base) == (200, ONE + DONE)
            assert router.fleet.endings == {"finished": 1}
            await becomes(lambda: is_empty(router))

    run(check())


def test_an_answer_ends_with_done_whatever_the_engine_does_then():
    """It keeps the connection open and says nothing more: the client is not kept for that."""

    async def check():
        engine = Engine(tokens=2)
        engine.stays = 60.0
        async with fleet([engine], idle_seconds=10) as (router, client, base):
            status, data = await stream(client, base)
            assert (status, data[-14:]) == (200, DONE)
            assert router.fleet.endings == {"finished": 1}
            await becomes(lambda: is_empty(router))

    run(check(), 8)


# -- the door of gateways


@pytest.mark.parametrize("is_advised", [True, False])
def test_route_is_for_gateways_and_advised_groups(is_advised):
    """No token: closed. The clients' key, another token: 401. A group that is forwarded here: 404. Ids are random."""

    async def check():
        options = {"api_key": "client-key", "route_token": ROUTE_TOKEN, "admin_token": "admin-token"}
        plan = lambda: plan_for([engine], advised=is_advised)  # noqa: E731
        engine = Engine()
        async with fleet([engine], plan=plan, **options) as (router, client, base):

            async def ask(path, token, **body):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                async with client.post(base + path, json=body, headers=headers) as answer:
                    return answer.status, await answer.json()

            for token in (None, "client-key", "gateway-toke"):
                assert (await ask("/route", token, prompt_tokens=5))[0] == 401
                assert (await ask("/route/x", token))[0] == 401
            for token in (ROUTE_TOKEN, "admin-token"):
                code, said = await ask("/route", token, prompt_tokens=5)
                assert code == (200 if is_advised else 404)
                if is_advised:
                    assert len(said["id"]) >= 20
                    assert (await ask(f"/route/{said['id']}", token, tokens=2**25))[0] == 400
                    assert (await ask(f"/route/{said['id']}", token, ending="finished"))[0] == 200
            assert not router.fleet.live

    run(check())


def test_route_is_closed_without_a_token():
    async def check():
        async with fleet([Engine()], plan=None, advised=True, route_token=None) as (_, client, base):
            for path in ("/route", "/route/x"):
                async with client.post(base + path, json={"prompt_tokens": 5}) as answer:
                    assert answer.status == 403
                    assert "closed" in (await answer.json())["error"]["message"]

    run(check())


def test_text_that_is_kept_has_an_end(monkeypatch):
    """Where an engine may pre-empt, its text is kept for another one: no engine fills the memory with it."""
    monkeypatch.setattr("lbopt.serving.router.events.LONGEST_TEXT", 5000)

    async def check():
        decode, before = Engine(tokens=100_000, delay=0.0005), Engine()
        before.handoff = True
        async with fleet([decode], prefillers=[before]) as (router, client, base):
            _, data = await stream(client, base)
            assert b"not whole" in data
            assert 5000 < len(data) < 10**7
            await becomes(lambda: is_empty(router))

    run(check())
