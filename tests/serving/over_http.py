"""One run end to end on a virtual clock: load generator, router, mock fleet and record, over HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lbopt.serving.load.config import LoadConfig
from lbopt.serving.load.generator import LoadRun
from lbopt.serving.mock.fleet import MockFleet, StepLog
from lbopt.serving.mock.setting import MockSetting
from lbopt.serving.process import quiet
from lbopt.serving.router.fleet_file import fleet_of
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.run import Server
from lbopt.serving.router.service import Router
from tools.virtual_clock import run_virtual


class Course(NamedTuple):
    """What was seen: rows of the record, steps of the engines, ends as clients saw them, and endings."""

    decisions: list
    outcomes: list
    loads: np.ndarray
    seconds: np.ndarray
    ends: np.ndarray
    errors: list


class GivenLoad(LoadRun):
    """The load generator with given requests at given times."""

    def __init__(self, trace, times, url):
        super().__init__(LoadConfig(urls=(url,), requests=1, timeout="100000s"))
        self.trace = trace
        self._times = times


def over_http(trace, times, folder: Path, *, policy, law, workers, slots, training=None, **options):
    """Send the requests of `trace` at `times` through a router that decides by `policy`, and return the course."""

    async def main():
        setting = MockSetting(workers=workers, slots=slots, step_time=law, served_model_name="m")
        fleet = MockFleet(setting)
        log = StepLog(fleet)
        await fleet.start()
        plan = fleet_of({"group": [{"name": "g", "model": "m", "slots": slots, "workers": fleet.urls}]})
        given = {"port": 0, "poll_seconds": 600.0, "record": str(folder), "ttl": 86400.0, "idle_seconds": 86400.0}
        given |= {"policy": policy, "decide": "step", "age_bound": 0.0, "tokenize": True, "max_waiting": 10**5}
        given |= {"request_seconds": 604800.0, "step_seconds": 60.0, "slow_client_seconds": 3600.0}
        router = Router(plan, RouterOptions(**given | options), training)
        server = Server(router)
        await server.start()
        while not router.is_ready:
            await asyncio.sleep(0)
        await quiet()
        assert asyncio.get_running_loop().time() == 0.0
        result = await GivenLoad(trace, times, f"http://127.0.0.1:{server.port}").run()
        assert not router.fleet.live and router.metrics.retries == 0
        assert router.dispatcher.late_decisions == router.dispatcher.failed_decisions == 0
        await server.stop(0.0)
        await fleet.stop()
        return result, [step for _, _, step in log.rows]

    result, steps = run_virtual(main())
    rows = [
        json.loads(line)
        for path in [*sorted(folder.glob("decisions-*.jsonl")), folder / "decisions.jsonl"]
        for line in path.read_text().splitlines()
    ]
    outcomes = sorted((row for row in rows if row["kind"] == "outcome"), key=lambda row: row["request"])
    return Course(
        decisions=[row for row in rows if row["kind"] == "decision"],
        outcomes=outcomes,
        loads=np.array([step.loads for step in steps]),
        seconds=np.array([step.seconds for step in steps]),
        ends=np.array([one.end for one in result.outcomes]),
        errors=[one.error for one in result.outcomes if one.error],
    )
