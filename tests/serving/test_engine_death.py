"""An engine dies behind its HTTP server, as vLLM's does: an error in the stream, 500, metrics that go on."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from serving.engines import Engine, becomes, fleet, is_empty, run
from serving.engines import stream as plain
from serving.fleet import ask, on_router, post, stream
from serving.test_hostile_engines import DONE, ONE, Raw, events, status

from lbopt.serving.mock.setting import make_fault
from lbopt.serving.state import Health


def test_a_dead_engine_costs_its_streams_alone():
    """They end with its error and count as failed; all others are answered elsewhere, and it is down at once."""

    async def use(router, engines, session, base):
        dead, _ = (group.workers[0] for group in router.fleet.groups.values())
        running = [asyncio.create_task(stream(session, base, ask(200))) for _ in range(4)]
        whole = [asyncio.create_task(post(session, base, ask(200))) for _ in range(4)]
        await asyncio.sleep(0.5)
        engines.plan(make_fault("dead:worker=0"))
        await asyncio.sleep(0.001)
        begun = router.now()
        later = []
        while dead.health is not Health.DOWN:
            later.append(await stream(session, base, ask(2)))
        seconds = router.now() - begun
        answers = [await task for task in running]
        assert [code for code, _ in [await task for task in whole]] == [200] * 4
        assert {end for _, end in later} == {"done"}
        return answers, dict(router.fleet.endings), len(later), seconds

    answers, endings, later, seconds = on_router(use, groups=True, slots=16)
    broken = [events for events, _ in answers if "error" in events[-1][1]]
    assert [events[-1][1]["error"]["code"] for events in broken] == [500] * len(broken)
    assert broken
    assert endings == {"failed": len(broken), "finished": 8 - len(broken) + later}
    assert seconds < 1.0, "before three looks in turn"


def test_where_no_worker_is_left_all_are_told_so_at_once():
    """Those that wait in the pool as those that come: 503, a reason, and when to come back."""

    async def use(router, engines, session, base):
        asked = [asyncio.create_task(session.post(base + "/v1/completions", json=ask(300))) for _ in range(6)]
        await asyncio.sleep(0.5)
        assert len(router.fleet.pools["m"]) == 4
        for worker in (0, 1):
            engines.plan(make_fault(f"dead:worker={worker}"))
        begun = router.now()
        asked += [asyncio.create_task(session.post(base + "/v1/completions", json=ask(300)))]
        answers = [await task for task in asked]
        seconds = router.now() - begun
        answers += [await session.post(base + "/v1/completions", json=ask(300))]
        assert router.now() - begun < seconds + 0.01
        return [
            (a.status, a.headers.get("Retry-After"), (await a.json())["error"]["message"]) for a in answers
        ], seconds

    answers, seconds = on_router(use, slots=1)
    assert answers[2:] == [(503, "2", "no worker of this model is up")] * 6
    assert {code for code, _, _ in answers[:2]} <= {500, 502, 503}
    assert seconds < 3.5


def test_an_engine_that_comes_back_is_asked_again():
    async def use(router, engines, session, base):
        engines.plan(make_fault("dead:worker=0,for=5s"))
        await asyncio.sleep(4)
        assert not router.has_worker()
        await asyncio.sleep(3)
        return (await stream(session, base, ask(3)))[1]

    assert on_router(use, workers=1) == "done"


ERROR = b'{"error":{"message":"dead","type":"InternalServerError","param":null,"code":500}}'
ABORT = b'data: {"choices":[{"index":0,"text":"","finish_reason":"abort"}]}\n\n'


@pytest.mark.parametrize(
    "answer",
    [
        events(ONE, b"data: " + ERROR + b"\n\n", DONE),
        events(b"data: " + ERROR + b"\n\n" + DONE),
        events(b"event: error\ndata: " + ERROR + b"\n\n"),
        events(ONE, ABORT, DONE),
        status(200, body=ERROR),
        status(200, body=b'{"choices":[],' + ERROR[1:]),
    ],
)
def test_an_error_is_no_answer_whatever_its_status(answer):
    """In an event or in a body with status 200, with `[DONE]` behind it or not: another engine is asked."""

    async def check():
        bad, good = Raw(answer), Engine(tokens=2)
        async with fleet([bad], retries=0) as (router, client, base):
            await plain(client, base)
            await becomes(lambda: is_empty(router))
            assert router.fleet.endings == {"failed": 1}
        bad = Raw(answer)
        async with fleet([bad, good], policy="round-robin") as (router, client, base):
            assert [(await plain(client, base))[1][-14:] for _ in range(3)] == [DONE] * 3
            assert router.fleet.endings == {"finished": 3}

    run(check())


def test_an_answer_500_closes_no_breaker_and_metrics_do_not_either():
    """Its health says 503 while its metrics say 200: three looks in turn, or three that requests ask for."""

    class Dead(Engine):
        async def _health(self, request):
            return web.Response(status=200 if self.is_healthy else 503)

        async def _metrics(self, request):
            return web.Response(text="vllm:num_requests_running 0\n")

    async def check():
        engine = Dead()
        async with fleet([engine], poll_seconds=30.0, retries=2) as (router, client, base):
            engine.is_healthy = False
            engine.faults = [500] * 9
            assert (await plain(client, base))[0] in (500, 503)
            await becomes(lambda: not router.has_worker())

    run(check())
