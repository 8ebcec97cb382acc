"""The router over real sockets: answers pass untouched, slots are kept, and every request ends in the state."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run, stream

from lbopt.serving.router.job import Job
from lbopt.serving.state import RequestTracker


def test_a_stream_passes_byte_for_byte():
    """The client gets what the engine sent, torn apart or not, and the state is empty afterwards."""

    async def check():
        engine = Engine(tokens=5)
        async with fleet([engine]) as (router, client, base):
            status, whole = await stream(client, base)
            engine.cut_at = 7
            _, torn = await stream(client, base)
            expected = b"".join(engine._event(n, False, {}) for n in range(5)) + b"data: [DONE]\n\n"
            assert status == 200
            assert whole == torn == expected
            await becomes(lambda: is_empty(router))
            assert router.metrics.tokens == 10

    run(check())


def test_an_answer_that_is_no_stream_passes_byte_for_byte():
    """Unknown fields and headers stay; the request is the client's bytes."""

    async def check():
        engine = Engine()
        async with fleet([engine]) as (router, client, base):
            body = b'{ "model":"m",  "prompt":"a\\u00e9",\n "x_unknown": {"deep": [1, 2.50]}, "max_tokens": 3 }'
            async with client.post(base + "/v1/completions", data=body, headers={"X-Mine": "1"}) as answer:
                data = json.loads(await answer.read())
                assert answer.headers["X-Engine"] == "yes"
            assert data["weird"] == [1.0, "\u00e9"]
            _, headers, seen = engine.requests[0]
            assert seen == body
            assert headers["X-Mine"] == "1"
            await becomes(lambda: is_empty(router))
            assert router.metrics.tokens == 3

    run(check())


def test_requests_wait_in_the_pool_until_a_slot_is_free():
    """Two slots a worker: no engine ever sees three requests, and all are served."""

    async def check():
        engines = [Engine(delay=0.002), Engine(delay=0.002)]
        async with fleet(engines) as (router, client, base):
            answers = await asyncio.gather(*(stream(client, base) for _ in range(24)))
            assert all(status == 200 and data.endswith(b"[DONE]\n\n") for status, data in answers)
            assert [engine.most for engine in engines] == [2, 2]
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_full_queue_refuses_with_a_time_to_come_back():
    """429 with Retry-After; those that wait are served."""

    async def check():
        engine = Engine(delay=0.05)
        async with fleet([engine], slots=1, max_waiting=2) as (router, client, base):
            tasks = [asyncio.create_task(stream(client, base)) for _ in range(8)]
            statuses = sorted([(await task)[0] for task in tasks])
            assert statuses.count(200) == 3
            assert statuses.count(429) == 5
            async with client.post(base + "/v1/completions", json={"model": "other", "prompt": ""}) as answer:
                assert answer.status == 404
                assert (await answer.json())["error"]["type"] == "NotFoundError"
            assert router.metrics.refused == {"queue_full": 5, "model": 1}

    run(check())


def test_a_request_expires_in_the_pool():
    """After `ttl` it is refused, and its place is free."""

    async def check():
        engine = Engine(tokens=100, delay=0.02)
        async with fleet([engine], slots=1, ttl=0.2) as (router, client, base):
            first = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 1)
            status, data = await stream(client, base)
            assert status == 503
            assert b"ttl" in data
            assert router.fleet.endings["expired"] == 1
            assert (await first)[0] == 200
            await becomes(lambda: is_empty(router))

    run(check())


def test_a_client_that_goes_frees_its_slot_in_every_state():
    """In the pool, before the first chunk, and in the middle of a stream."""

    async def check():
        engine = Engine(tokens=1000, delay=0.01)
        async with fleet([engine], slots=1) as (router, client, base):
            running = asyncio.create_task(stream(client, base))
            await becomes(lambda: any(t.produced > 2 for t in router.fleet.live.values()))
            waiting = asyncio.create_task(stream(client, base))
            await becomes(lambda: len(router.fleet.pools["m"]) == 1)
            waiting.cancel()
            await becomes(lambda: len(router.fleet.pools["m"]) == 0)
            running.cancel()
            await becomes(lambda: is_empty(router))
            await becomes(lambda: engine.disconnects == 1)
            engine.faults = ["freeze"]
            silent = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 1)
            silent.cancel()
            await becomes(lambda: is_empty(router))
            assert router.fleet.endings["cancelled"] == 3

    run(check())


def test_usage_is_asked_for_and_kept_from_clients_that_did_not():
    """`ask_usage` adds `stream_options` behind the first brace; the event that holds usage alone is left out."""

    async def check():
        engine = Engine(tokens=3, prompt_tokens=11)
        async with fleet([engine], ask_usage=True) as (router, client, base):
            _, data = await stream(client, base)
            assert b'"choices": []' not in data
            assert data.count(b"data: ") == 4
            assert engine.requests[0][2].startswith(
                b'{"stream_options":{"include_usage":true,"continuous_usage_stats":true},"model"'
            )
            assert b"usage" not in data
            _, data = await stream(client, base, stream_options={"include_usage": True})
            assert b'"choices": []' in data
            assert b"continuous" not in engine.requests[1][2]
            assert router.estimates["m"].points == 2

    run(check())


def test_prompt_tokens_are_learned_from_usage():
    """After some answers the estimate is what the engine counts, and the load is corrected while a request runs."""

    async def check():
        engine = Engine(tokens=30, delay=0.005, prompt_tokens=50, continuous=True)
        async with fleet([engine], slots=8) as (router, client, base):
            task = asyncio.create_task(stream(client, base))
            await becomes(lambda: any(t.produced for t in router.fleet.live.values()))
            tracker = next(iter(router.fleet.live.values()))
            assert tracker.prompt == 50
            assert tracker.worker.load == 50 + tracker.generated
            await task
            await asyncio.gather(*(stream(client, base) for _ in range(20)))
            assert abs(router.estimates["m"].tokens(len("hello there")) - 50) <= 10

    run(check())


def test_an_engine_may_be_asked_for_the_length():
    """`tokenize` takes the load from the engine before the request is placed."""

    async def check():
        engine = Engine(tokens=50, delay=0.005)
        async with fleet([engine], tokenize=True) as (router, client, base):
            task = asyncio.create_task(stream(client, base))
            await becomes(lambda: engine.running == 1)
            assert next(iter(router.fleet.live.values())).prompt == 4321
            await task

    run(check())


def test_ranks_of_one_endpoint_are_named_by_the_header():
    """Each rank has slots of its own, and the engine is told which one is meant."""

    async def check():
        engine = Engine(delay=0.01)
        from lbopt.serving.router.fleet_file import fleet_of

        def plan():
            return fleet_of({"group": [{"model": "m", "slots": 1, "endpoint": engine.url, "ranks": 3}]})

        async with fleet([engine], plan=plan) as (_, client, base):
            await asyncio.gather(*(stream(client, base) for _ in range(6)))
            ranks = [headers["X-Data-Parallel-Rank"] for _, headers, _ in engine.requests]
            assert sorted(ranks) == ["0", "0", "1", "1", "2", "2"]
            client.headers["x-data-parallel-rank"] = "9"
            await stream(client, base)
            assert [v for n, v in engine.requests[-1][1].items() if n.lower() == "x-data-parallel-rank"] in (
                ["0"],
                ["1"],
                ["2"],
            )

    run(check())


def test_the_age_bound_places_the_oldest_first():
    """A rule that never takes the largest request has to, once it is overdue."""

    async def check():
        engine = Engine(tokens=4, delay=0.01, continuous=False)
        async with fleet([engine], slots=1, policy="br-0", age_bound=0.15) as (router, client, base):
            order = []

            async def ask(name, size):
                await stream(client, base, prompt=[1] * size)
                order.append(name)

            tasks = [asyncio.create_task(ask("first", 5))]
            await becomes(lambda: engine.running == 1)
            tasks.append(asyncio.create_task(ask("large", 5000)))
            await asyncio.sleep(0)
            tasks += [asyncio.create_task(ask(f"small{n}", 5)) for n in range(12)]
            await asyncio.gather(*tasks)
            assert order.index("large") < len(order) - 2
            assert is_empty(router)

    run(check())


def held():
    """The requests that are in memory, by their identity."""
    return {id(thing) for thing in gc.get_objects() if isinstance(thing, Job | RequestTracker)}


@pytest.mark.more
def test_an_ended_request_leaves_nothing_to_the_garbage_collector():
    """It is freed when it ends: cycles would have the collector look at all that runs, some milliseconds each time."""

    async def check():
        async with fleet([Engine(tokens=3)]) as (router, client, base):
            gc.collect()
            others = held()  # of routers of other tests, which aiohttp remembers
            gc.disable()
            try:
                for _ in range(5):
                    assert (await stream(client, base))[0] == 200
                await becomes(lambda: is_empty(router))
                await becomes(lambda: held() <= others)
            finally:
                gc.enable()

    run(check())
