"""Many requests: nothing of one that has ended stays."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter

import pytest
from serving.engines import Engine, becomes, fleet, is_empty, run, stream

from lbopt.serving.http_wire import Wire
from lbopt.serving.router.forward import Attempt, Flow
from lbopt.serving.router.job import Job
from lbopt.serving.state import RequestTracker


@pytest.mark.slow
def test_no_object_of_a_request_stays(tmp_path):
    """After 4,000 requests that finish, fail, are cancelled or refused, 12,000 more leave no object behind."""

    async def check():
        engines = [Engine(tokens=2) for _ in range(2)]
        options = {"shadow": "jsq", "policy": "auto", "record": str(tmp_path), "failures": 10**3, "max_waiting": 30}
        async with fleet(engines, slots=8, **options) as (router, client, base):

            async def some(count):
                gate = asyncio.Semaphore(60)

                async def one(n):
                    async with gate:
                        if n % 50 == 0:
                            engines[0].faults = ["reset", 500, "cut"]
                        task = asyncio.create_task(stream(client, base, prompt="x" * (n % 700)))
                        if n % 31 == 0:
                            await asyncio.sleep(0.001)
                            task.cancel()
                        await asyncio.gather(task, return_exceptions=True)

                await asyncio.gather(*(one(n) for n in range(count)))
                for engine in engines:
                    engine.requests.clear()
                await becomes(lambda: is_empty(router) and not router.shadow.fleet.live)
                await asyncio.sleep(1.2)  # the record is written, and timers of the reaper have passed
                gc.collect()
                kinds = (RequestTracker, Job, Attempt, Flow, Wire)
                return Counter(type(o).__name__ for o in gc.get_objects() if isinstance(o, kinds))

            await some(4000)
            after = await some(12_000)
            await becomes(lambda: not router.shadow.fleet.live)
            assert not router.shadow._twins
            assert not router.shadow._outputs
            assert after.total() < 200, "objects stay"  # connections that wait for the next request are among them

    logging.disable(logging.CRITICAL)  # pytest keeps every line
    try:
        run(check(), limit=300)
    finally:
        logging.disable(logging.NOTSET)
