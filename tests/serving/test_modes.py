"""Prefill and decode apart, shadow, advice, workers that come and go, and rules that take their time."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from serving.engines import QUICK, Engine, becomes, compiled, fleet, is_empty, run, stream

from lbopt.exceptions import InputError
from lbopt.serving.router.fleet_file import fleet_of
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.prefill import Mooncake
from lbopt.serving.router.run import Server
from lbopt.serving.router.service import Router

TOKEN = "admin-token-1"


def prefiller(**more):
    engine = Engine(prompt_tokens=40, **more)
    engine.handoff = True
    return engine


def test_a_prompt_is_computed_first_and_its_blocks_are_held_until_the_first_chunk():
    """The probe asks for one token; the decode engine gets the client's bytes and what the prefiller handed over."""

    async def check():
        decode, pre = Engine(tokens=20, delay=0.01), prefiller()
        async with fleet([decode], prefillers=[pre]) as (router, client, base):
            decode.faults = [None]
            task = asyncio.create_task(stream(client, base, max_tokens=20))
            await becomes(lambda: len(pre.requests) == 1)
            held = router.fleet.prefillers[pre.url[7:]]
            await becomes(lambda: any(t.produced for t in router.fleet.live.values()))
            assert held.blocks == 0, "the first chunk frees them"
            tracker = next(iter(router.fleet.live.values()))
            assert tracker.prompt == 40
            status, data = await task
            assert status == 200
            assert data.endswith(b"[DONE]\n\n")
            probe = json.loads(pre.requests[0][2])
            assert (probe["stream"], probe["max_tokens"], probe["min_tokens"]) == (False, 1, 1)
            assert probe["kv_transfer_params"]["do_remote_decode"] is True
            sent = decode.requests[0][2]
            assert (
                b'{"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":[1,2,3],'
                in b"{" + sent.partition(b"},")[2]
            )
            assert sent.endswith(b'"max_tokens": 20}')
            await becomes(lambda: is_empty(router))

    run(check())


def test_blocks_are_held_while_a_request_waits_and_come_back_when_the_client_goes():
    """The pool keeps what was handed over; a cancelled request gives it back."""

    async def check():
        decode, pre = Engine(tokens=500, delay=0.01), prefiller()
        async with fleet([decode], slots=1, prefillers=[pre]) as (router, client, base):
            first = asyncio.create_task(stream(client, base))
            await becomes(lambda: decode.running == 1)
            second = asyncio.create_task(stream(client, base))
            held = router.fleet.prefillers[pre.url[7:]]
            await becomes(lambda: held.blocks == 3)
            second.cancel()
            await becomes(lambda: held.blocks == 0)
            first.cancel()
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_prefiller_that_cannot_be_read_counts_as_full():
    """No prompt is sent to it; when its metrics are back the prompt goes."""

    async def check():
        decode, pre = Engine(), prefiller()
        pre.metrics = False
        async with fleet([decode], prefillers=[pre]) as (router, client, base):
            task = asyncio.create_task(stream(client, base))
            await asyncio.sleep(0.2)
            assert pre.requests == []
            pre.metrics, pre.share = True, 0.95
            await asyncio.sleep(0.15)
            assert pre.requests == [], "above the threshold"
            pre.share = 0.2
            assert (await task)[0] == 200
            await becomes(lambda: is_empty(router))

    run(check())


def test_nixl_asks_without_min_tokens_and_goes_on_where_nothing_is_handed_over():
    """vLLM's prefiller takes no min_tokens; without blocks the decode engine computes the prompt."""

    async def check():
        decode, pre = Engine(), prefiller()

        def plan():
            group = {"name": "g", "model": "m", "slots": 2, "workers": [decode.url]}
            return fleet_of({"group": [group], "prefiller": [{"model": "m", "url": pre.url, "connector": "nixl"}]})

        async with fleet([decode], prefillers=[pre], plan=plan) as (router, client, base):
            assert (await stream(client, base, min_tokens=3, max_tokens=9))[0] == 200
            probe, sent = json.loads(pre.requests[0][2]), json.loads(decode.requests[0][2])
            assert "min_tokens" not in probe
            assert (probe["max_tokens"], probe["stream"]) == (1, False)
            assert probe["kv_transfer_params"]["do_remote_decode"] is True
            assert (sent["min_tokens"], sent["max_tokens"]) == (3, 9)
            assert sent["kv_transfer_params"]["remote_block_ids"] == [1, 2, 3]
            pre.handoff = False
            status, data = await stream(client, base)
            assert (status, data.endswith(b"[DONE]\n\n")) == (200, True)
            assert "kv_transfer_params" not in json.loads(decode.requests[1][2])
            assert len(pre.requests) == 2, "no other attempt is made"
            await becomes(lambda: is_empty(router))

    run(check())


def test_the_client_is_told_that_a_prefiller_does_not_answer():
    """It took the prompt and is silent; where none takes prompts at all, that is said."""

    async def check():
        decode, pre = Engine(), prefiller()
        pre.faults = ["freeze"]
        async with fleet([decode], prefillers=[pre], ttl=0.4, failures=1) as (router, client, base):
            status, data = await stream(client, base)
            assert status == 504
            assert b"the prefiller that took the prompt did not answer" in data
            assert router.metrics.stopped["prefiller"] == 1
            assert not router.fleet.prefillers[pre.url[7:]].holders
            pre.metrics = False
            await asyncio.sleep(0.2)
            status, data = await stream(client, base)
            assert status == 503
            assert b"no prefiller took the prompt within ttl" in data
            await becomes(lambda: is_empty(router))

    run(check())


@pytest.mark.parametrize("fault", ["reset", 503])
def test_a_prefiller_that_fails_is_asked_again_or_another_is(fault):
    """The client sees nothing of it."""

    async def check():
        decode, pres = Engine(), [prefiller(), prefiller()]
        async with fleet([decode], prefillers=pres, failures=9) as (router, client, base):
            pres[0].faults = [fault] * 2
            pres[1].faults = [fault]
            status, data = await stream(client, base)
            assert status == 200
            assert data.endswith(b"[DONE]\n\n")
            pres[0].faults, pres[1].faults = [400], [400]
            status, _ = await stream(client, base)
            assert status == 400, "an answer about the request is passed on"
            await becomes(lambda: is_empty(router))

    run(check())


@pytest.mark.parametrize("fault", ["reset", 500, 429, 401, 404, 400])
def test_a_bad_prefiller_of_two_fails_nobody(fault):
    """It holds nothing, so it would be chosen again and again: another try is made at the other one."""

    async def check():
        decode, bad, good = Engine(), prefiller(), prefiller()
        async with fleet([decode], prefillers=[bad, good], retries=1, failures=99, retry_seconds=1.0) as (
            router,
            client,
            base,
        ):
            bad.faults = [fault] * 100
            for _ in range(10):
                assert (await stream(client, base))[0] == 200
            assert (len(good.requests), len(decode.requests)) == (10, 10)
            assert len(bad.requests) <= 3, "it rests"
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_pre_empted_request_goes_on_elsewhere():
    """What was generated joins the prompt, the limit shrinks, the client sees one stream without the break."""

    async def check():
        decode, pre = Engine(tokens=6), prefiller()
        async with fleet([decode], prefillers=[pre]) as (router, client, base):
            decode.recompute_at = 2
            status, data = await stream(client, base, max_tokens=6)
            assert status == 200
            assert b"recomputed" not in data
            assert data.count(b"[DONE]") == 1
            again = json.loads(decode.requests[1][2])
            assert again["prompt"] == "hello theret0 t1 "
            assert again["max_tokens"] == 4
            assert "kv_transfer_params" not in again
            assert data.count(b'"text": "') == 2 + 4
            assert router.fleet.recomputations == 1
            decode.recompute_at = 1
            body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 5}
            async with client.post(base + "/v1/chat/completions", json=body) as answer:
                await answer.read()
            chat = json.loads(decode.requests[-1][2])
            assert chat["messages"] == [*body["messages"], {"role": "assistant", "content": "t0 "}]
            assert chat["continue_final_message"] is True
            assert chat["add_generation_prompt"] is False
            await becomes(lambda: is_empty(router))

    run(check())


def test_what_mooncake_hands_over():
    """Blocks of several cache groups are added up; an answer without parameters hands nothing over."""
    connector = Mooncake()
    assert connector.handoff({"kv_transfer_params": None}) is None
    assert connector.blocks({"remote_block_ids": [[1, 2], [3]]}) == 3
    assert connector.blocks({"remote_block_ids": None}) == 0


def test_a_shadow_decides_beside_the_router():
    """Requests go round robin; the shadow's books balance better, and its numbers are served."""

    async def check():
        engines = [Engine(tokens=1000, delay=0.01) for _ in range(2)]
        options = {"shadow": "round-robin", "policy": "jsq-load", "slots": 8}
        async with fleet(engines, **options) as (router, client, base):
            tasks = [
                asyncio.create_task(stream(client, base, prompt=[1] * size, max_tokens=30))
                for size in (4000, 10, 4000, 10, 4000, 10, 4000, 10)
            ]
            await becomes(lambda: sum(engine.running for engine in engines) == 8)
            first, second = (len(e.requests) for e in engines)
            assert (first, second) == (4, 4)
            assert router.fleet.groups["g"].imbalance > 10_000
            assert router.shadow.fleet.groups["g"].imbalance < 5000
            await asyncio.gather(*tasks)
            async with client.get(base + "/shadow") as answer:
                seen = await answer.json()
            assert seen["forwards"]["rule"] == "round-robin"
            assert seen["forwards"]["idle_share_at_barrier"] > 2 * seen["shadow"]["idle_share_at_barrier"]
            assert seen["placements_different"] > 0
            assert (seen["shadow"]["placed"], seen["forwards"]["placed"]) == (8, 8)
            assert not router.shadow.fleet.live
            assert all(w.bound == 0 for w in router.shadow.fleet.groups["g"].workers)

    run(check())


def test_advice_without_forwarding():
    """A gateway asks where to go, and reports tokens and the end; silence counts as an end."""

    async def check():
        engines = [Engine(), Engine()]
        async with fleet(engines, slots=1, idle_seconds=0.4, advised=True) as (router, client, base):

            async def post(path, **body):
                async with client.post(base + path, json=body) as answer:
                    return answer.status, await answer.json()

            _, one = await post("/route", prompt_tokens=100)
            _, two = await post("/route", model="m", prompt_tokens=50)
            assert {one["url"], two["url"]} == {engine.url for engine in engines}
            waiting = asyncio.create_task(post("/route", prompt_tokens=9))
            await becomes(lambda: len(router.fleet.pools["m"]) == 1)
            assert await post(f"/route/{one['id']}", tokens=5) == (200, {"ended": False})
            worker = router.fleet.worker("g", one["worker"])
            assert worker.load == 105
            assert await post(f"/route/{one['id']}", tokens=1, ending="finished") == (200, {"ended": True})
            assert (await post(f"/route/{one['id']}", tokens=1))[0] == 404
            _, three = await waiting
            assert three["worker"] == one["worker"]
            assert (await post("/route", prompt_tokens=-1))[0] == 400
            assert (await post("/route", prompt_tokens="many"))[0] == 400
            await becomes(lambda: is_empty(router))  # nobody reports on two and three any more
            assert router.fleet.endings == {"finished": 1, "failed": 2}
            assert engines[0].requests == engines[1].requests == []

    run(check())


def test_a_gateway_may_know_the_bytes_of_a_prompt_alone():
    """What is reported of a request counts for that request; nothing of others is learned from it."""

    async def check():
        async with fleet([Engine()], slots=4, advised=True) as (router, client, base):

            async def post(path, **body):
                async with client.post(base + path, json=body) as answer:
                    return answer.status, await answer.json()

            for _ in range(3):
                _, one = await post("/route", prompt_bytes=1000)
                await post(f"/route/{one['id']}", prompt_tokens=500, tokens=3)
                assert router.fleet.worker("g", one["worker"]).load == 503
                await post(f"/route/{one['id']}", ending="finished")
            await post("/route", prompt_bytes=1000)
            assert 200 < router.fleet.worker("g", one["worker"]).load < 300, "a quarter of a token a byte"
            assert (await post("/route", prompt_bytes=-1))[0] == 400
            assert (await post("/route"))[0] == 400
            assert (await post(f"/route/{one['id']}", prompt_tokens=0))[0] == 404

    run(check())


def test_a_report_without_tokens_is_a_sign_of_life():
    """Only silence ends a request."""

    async def check():
        async with fleet([Engine()], idle_seconds=0.3, advised=True) as (router, client, base):
            async with client.post(base + "/route", json={"prompt_tokens": 5}) as answer:
                name = (await answer.json())["id"]
            for _ in range(6):
                await asyncio.sleep(0.1)
                async with client.post(base + f"/route/{name}", json={}) as answer:
                    assert await answer.json() == {"ended": False}
            await becomes(lambda: is_empty(router), 2)

    run(check())


def test_workers_of_an_advised_group_have_names_and_no_addresses():
    """A gateway names them; requests that would have to be forwarded are refused."""

    async def check():
        plan = fleet_of({"group": [{"name": "g", "model": "m", "slots": 1, "advised": True, "workers": []}]})
        head = {"Authorization": f"Bearer {TOKEN}"}
        router = Router(plan, RouterOptions(**QUICK, admin_token=TOKEN))
        server = Server(router)
        await server.start()
        base = f"http://127.0.0.1:{server.port}"
        async with aiohttp.ClientSession() as client:

            async def call(method, path, **body):
                async with client.request(method, base + path, headers=head, json=body or None) as answer:
                    return answer.status, await answer.json()

            await compiled(router)
            await becomes(lambda: router.dispatcher.is_ready)
            assert (await call("POST", "/route", prompt_tokens=5))[0] == 503, "nobody is there yet"
            assert (await call("POST", "/workers", url="http://8.8.8.8:1"))[0] == 400
            for name in ("r0", "r1", "r1"):
                status, seen = await call("POST", "/workers", name=name)
                assert (status in (200, 201), seen["health"]) == (True, "up")
            one, two = [(await call("POST", "/route", prompt_tokens=5))[1] for _ in range(2)]
            assert {one["worker"], two["worker"]} == {"r0", "r1"}
            assert one["url"] is None
            assert (await call("POST", "/v1/completions", model="m", prompt="x"))[0] == 404
            assert (await call("DELETE", f"/workers/{one['worker']}"))[0] == 200
            await call("POST", f"/route/{one['id']}", ending="finished")
            assert [w["name"] for w in (await call("GET", "/workers"))[1]["workers"]] == [two["worker"]]
        await server.stop(0.0)

    run(check())


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ({"advised": "yes"}, "advised is 'yes'; expected true or false"),
        ({"advised": True, "workers": [{"rank": 1}]}, "name of worker 0 is None"),
        ({"advised": True, "workers": [{"name": "a", "key": "b"}]}, "has the key 'key'"),
    ],
)
def test_an_advised_group_is_told_what_it_needs(group, words):
    with pytest.raises(InputError, match=words):
        fleet_of({"group": [{"model": "m", "slots": 1} | group]})


def test_workers_come_and_go():
    """The door needs the token; addresses outside the ranges are refused; a drained worker ends what it has."""

    async def check():
        first, second = Engine(tokens=50, delay=0.01), await Engine(tokens=50, delay=0.01).start()
        head = {"Authorization": f"Bearer {TOKEN}"}
        async with fleet([first], slots=1, admin_token=TOKEN) as (router, client, base):

            async def call(method, path, headers=head, **body):
                async with client.request(method, base + path, headers=headers, json=body or None) as answer:
                    return answer.status, await answer.json()

            assert (await call("GET", "/workers", {}))[0] == 401
            assert (await call("POST", "/workers", {"Authorization": "Bearer wrong"}, url=second.url))[0] == 401
            for url in ("http://8.8.8.8:80", "http://example.com", "ftp://127.0.0.1", "http://u:p@127.0.0.1", 7):
                assert (await call("POST", "/workers", url=url))[0] == 400
            assert (await call("POST", "/workers", url=second.url, group="none"))[0] == 400
            status, seen = await call("POST", "/workers", url=second.url)
            assert (status, seen["health"]) == (201, "up")
            tasks = [asyncio.create_task(stream(client, base)) for _ in range(2)]
            await becomes(lambda: first.running == second.running == 1)
            status, seen = await call("DELETE", f"/workers/{second.url[7:]}")
            assert (status, seen["health"]) == (200, "draining")
            assert [data.endswith(b"[DONE]\n\n") for _, data in await asyncio.gather(*tasks)] == [True, True]
            _, seen = await call("GET", "/workers")
            assert [worker["url"] for worker in seen["workers"]] == [first.url]
            assert (await call("POST", f"/workers/{first.url[7:]}/drain"))[0] == 200
            assert (await stream(client, base))[0] == 503
            await asyncio.sleep(0.15)
            assert not router.has_worker(), "a look at its health does not bring it back"
            assert (await call("POST", "/workers", url=first.url))[0] == 200
            assert (await stream(client, base))[0] == 200
            assert (await call("DELETE", "/workers/nobody"))[0] == 404
        async with fleet([Engine()]) as (_, client, base), client.get(base + "/workers") as answer:
            assert answer.status == 403, "without a token the door is closed"
        await second.stop()

    run(check())


def test_a_rule_in_python_has_a_deadline(tmp_path):
    """A slow rule, and one that raises, leave the decision to the fall-back rule; a good one decides."""
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import time\nimport numpy as np\n"
        "def slow(seen):\n    time.sleep(0.5)\n    return np.full(seen.sizes.size, -1)\n"
        "def broken(seen):\n    raise ValueError('no')\n"
        "def last(seen):\n    choice = np.full(seen.sizes.size, -1)\n"
        "    choice[: min(1, seen.free_slots[-1])] = len(seen.loads) - 1\n    return choice\n"
    )

    async def check(name):
        engines = [Engine(), Engine()]
        async with fleet(engines, policy=f"{rules}:{name}", decision_seconds=0.05, age_bound=0) as (
            router,
            client,
            base,
        ):
            for _ in range(4):
                assert (await stream(client, base))[0] == 200
            await becomes(lambda: is_empty(router))
            return router.dispatcher, [len(engine.requests) for engine in engines]

    dispatcher, _ = run(check("slow"))
    assert dispatcher.late_decisions >= 4
    dispatcher, _ = run(check("broken"))
    assert dispatcher.failed_decisions >= 4
    dispatcher, counts = run(check("last"))
    assert dispatcher.late_decisions == 0
    assert counts == [0, 4]


@pytest.mark.parametrize("policy", ["bf-io", "br-0-bypass", "jsq", "vllm", "br-0", "max-min"])
def test_any_rule_serves(policy):
    """Pooled and on arrival, compiled and in Python."""

    async def check():
        engines = [Engine(tokens=3, delay=0.003) for _ in range(3)]
        async with fleet(engines, slots=2, policy=policy) as (router, client, base):
            answers = await asyncio.gather(*(stream(client, base, prompt=[1] * (9 * n + 1)) for n in range(18)))
            assert all(data.endswith(b"[DONE]\n\n") for _, data in answers)
            await becomes(lambda: is_empty(router))
            most = 2 + 2 if policy == "br-0-bypass" else 2
            if policy in ("bf-io", "br-0", "max-min", "br-0-bypass"):
                assert max(engine.most for engine in engines) <= most

    run(check())
