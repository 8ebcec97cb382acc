"""The open loop: every request is sent at its own time, whatever has become of those before it.

A closed loop waits for an answer before it sends the next request, so a slow server is sent fewer requests and looks
better than it is (*coordinated omission*). Here latency counts from the time at which a request was to be sent, so
what the generator itself is late by is part of it. That lag is reported, and a comparison is void where its P99
exceeds `LARGEST_LAG`. Between requests a probe notes by how much the loop is late, since a late loop also reads
tokens late.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

from lbopt.exceptions import InputError
from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.http_wire import BadAnswer
from lbopt.serving.load.client import UNFINISHED, Exchange, Outcome
from lbopt.serving.load.config import Bodies, LoadConfig
from lbopt.serving.load.result import LoadResult
from lbopt.serving.process import is_virtual, sleep_until

#: s between two probes of the loop.
_PROBE = 0.05

#: s, how long the name of the model is waited for.
_PATIENCE = 30
#: Bytes of a list of models that are read.
_LARGEST_LIST = 2**24

Progress = Callable[[int, int], None]


class LoadRun:
    """One run.

    Parameters
    ----------
    config
        What is sent.
    progress
        Called with (requests ended, requests in all).
    """

    def __init__(self, config: LoadConfig, progress: Progress | None = None) -> None:
        self.config = config
        self.trace = config.open_trace()
        self._times = config.times(self.trace).tolist()
        self._urls = config.origins
        self._progress = progress
        self._stopped = asyncio.Event()
        self._outcomes: list[Outcome] = []
        self._ended = 0
        self._delays: list[float] = []

    def stop(self) -> None:
        """Send nothing more, and wait for nothing more: `run` returns what was measured."""
        self._stopped.set()

    async def run(self) -> LoadResult:
        """Send all requests, wait for all answers, and return what was measured."""
        loop, config = asyncio.get_running_loop(), self.config
        headers = {"Content-Type": "application/json"}
        if config.api_key:
            headers["Authorization"] = f"Bearer {config.api_key}"
        model = config.model or await _ask_model(self._urls[0], headers)
        bodies = Bodies(self.trace, config, model)
        path = "/v1/chat/completions" if config.chat else "/v1/completions"
        begun, cpu = loop.time(), time.process_time()
        exchange = Exchange(path, headers, begun, config.limit)
        beside = [loop.create_task(exchange.reader.run())]
        if not is_virtual(loop):
            beside.append(loop.create_task(self._probe()))
        sending = loop.create_task(self._send_all(exchange, bodies, begun))
        stopping = loop.create_task(self._stopped.wait())
        try:
            await asyncio.wait([sending, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, stopping, *beside):
                task.cancel()
            await asyncio.gather(sending, stopping, *beside, return_exceptions=True)
            exchange.wires.close()
        if sending.done() and not sending.cancelled() and (error := sending.exception()) is not None:
            raise error
        exchange.reader.finish()
        seconds = loop.time() - begun
        used = None if is_virtual(loop) else time.process_time() - cpu
        return LoadResult(
            config=config,
            trace=self.trace.name,
            planned=len(self.trace),
            outcomes=tuple(self._outcomes),
            delays=tuple(self._delays),
            seconds=seconds,
            cpu_seconds=used,
            interrupted=self._stopped.is_set(),
        )

    async def _send_all(self, exchange: Exchange, bodies: Bodies, begun: float) -> None:
        async with asyncio.TaskGroup() as group:
            for number, intended in enumerate(self._times):
                await sleep_until(begun + intended)
                outcome = Outcome(number, self._urls[number % len(self._urls)], intended)
                self._outcomes.append(outcome)
                group.create_task(self._send(exchange, outcome, bodies.of(number)))

    async def _send(self, exchange: Exchange, outcome: Outcome, body: bytes) -> None:
        await exchange.run(outcome, body)
        self._ended += 1
        if self._progress is not None and outcome.error != UNFINISHED:
            self._progress(self._ended, len(self.trace))

    async def _probe(self) -> None:
        """Note by how much timers are late."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _PROBE
            await sleep_until(due)
            self._delays.append(loop.time() - due)


async def run_load(config: LoadConfig, progress: Progress | None = None) -> LoadResult:
    """Send the requests of a configuration on the running loop, virtual or not, and return what was measured."""
    return await LoadRun(config, progress).run()


async def _ask_model(url: str, headers: dict[str, str]) -> str:
    """Return the name of the first model that a server lists."""
    path, wires = "/v1/models", Wires(0.0)
    where = url + path
    try:
        request = request_head(url, path, headers, 0, "GET")
        head, body = await wires.fetch(url, request, seconds=_PATIENCE, most=_LARGEST_LIST)
    except TimeoutError:
        raise InputError(f"{where} does not answer within {_PATIENCE} s; is the server up?") from None
    except BadAnswer:
        raise InputError(f"{where} does not answer in HTTP; is this the server's address?") from None
    except OSError as error:
        raise InputError(f"{where} cannot be reached: {error.strerror or error}") from None
    finally:
        wires.close()
    if head.status != 200:
        raise InputError(f"{where} answers with status {head.status}; give --model")
    try:
        return str(json.loads(body)["data"][0]["id"])
    except (ValueError, LookupError, TypeError):
        raise InputError(f"{where} does not list a model; give --model") from None
