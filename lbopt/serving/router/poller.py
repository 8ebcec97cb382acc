"""Looks after the engines: whether they answer, and what their metrics say. Metrics reconcile only, they never decide.

Each address is asked once a period for `/metrics`; an engine without metrics is asked for `/health`. A metric that
cannot be read says nothing about a worker, and makes a prefiller count as full.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.process import repeat
from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.job import Job
from lbopt.serving.scrape import LARGEST_SCRAPE, Reading, of_rank, read_metrics
from lbopt.serving.state import Health, Prefiller, WorkerMirror
from lbopt.serving.usage import count_of

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router

#: Seconds that an unused connection to an engine is kept: less than uvicorn keeps it, which is 5.
KEPT = 4.0
#: Bytes of metrics above which they are read beside the event loop.
_LARGE = 2**16


class _Tokenized(msgspec.Struct, gc=False):
    """What is read of an answer of `/tokenize`, which may list a million tokens."""

    count: int


_read_count = msgspec.json.Decoder(_Tokenized).decode


class Poller:
    """Looks at every engine now and then."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._wires = Wires(KEPT, router.options.connect_seconds)  # not those of requests, which tell of faults

    async def run(self) -> None:
        """Look, again and again."""
        await repeat(self.look_at_all, self._router.options.poll_seconds, "engines")

    def close(self) -> None:
        """Close what is open to engines."""
        self._wires.close()

    async def look_at_all(self) -> None:
        """Look at every address once, all at the same time."""
        router = self._router
        by_url: dict[str, list[Endpoint]] = {}
        for worker, endpoint in list(router.endpoints.items()):
            if endpoint.retired and worker.bound == 0 and worker not in worker.group.workers:
                del router.endpoints[worker]  # it was removed, and has ended what it had
            elif endpoint.address.url:
                by_url.setdefault(endpoint.address.url, []).append(endpoint)
            else:
                self._note(endpoint, {})  # its gateway says whether it is there
        for endpoint in () if router.prefill is None else router.prefill.endpoints:
            by_url.setdefault(endpoint.address.url, []).append(endpoint)
        await asyncio.gather(*(self._look(url, endpoints) for url, endpoints in by_url.items()))
        if router.prefill is not None:
            router.prefill.room.set()

    async def _look(self, url: str, endpoints: list[Endpoint]) -> None:
        readings = await self.readings(url)
        for endpoint in endpoints:
            self._note(endpoint, readings)

    def _note(self, endpoint: Endpoint, readings: dict[int | None, Reading] | None) -> None:
        """Note what an engine said, or that it gave no answer."""
        router, mirror = self._router, endpoint.mirror
        if readings is None:
            endpoint.breaker.fail(router.now())
            if endpoint.breaker.is_open(endpoint.last_heard) and mirror.health is not Health.DOWN:
                router.down(endpoint)
        else:
            endpoint.breaker.succeed()
            if mirror.health is Health.DOWN and not endpoint.retired:
                router.up(endpoint)
        reading = of_rank(readings or {}, endpoint.address.rank)
        if isinstance(mirror, Prefiller):
            mirror.read(reading.share)
        elif readings is not None:
            _reconcile(endpoint, mirror, reading, router.now())

    async def readings(self, url: str) -> dict[int | None, Reading] | None:
        """Return what an engine's metrics say; None where it gives no answer at all."""
        try:
            status, data = await self._get(url, "/metrics")
            if status == 200:
                return await asyncio.to_thread(read_metrics, data) if len(data) > _LARGE else read_metrics(data)
            status, _ = await self._get(url, "/health")
        except OSError:
            return None
        return {} if status < 500 else None

    async def _get(self, url: str, path: str) -> tuple[int, bytes]:
        options = self._router.options
        request = request_head(url, path, {}, 0, "GET")
        head, data = await self._wires.fetch(url, request, seconds=options.poll_timeout, most=LARGEST_SCRAPE)
        return head.status, data

    async def tokenize(self, job: Job) -> int | None:
        """Ask an engine of the job's model for the tokens of its prompt; None where none can say."""
        router = self._router
        up = [
            endpoint
            for worker, endpoint in router.endpoints.items()
            if worker.is_open and worker.group.pool is job.tracker.pool
        ]
        if not up:
            return None
        endpoint = up[job.tracker.number % len(up)]
        seconds = min(0.5, router.options.poll_timeout)
        request = request_head(endpoint.address.url, "/tokenize", job.headers | endpoint.headers(), len(job.body))
        try:
            head, data = await self._wires.fetch(
                endpoint.address.url, request, job.body, seconds=seconds, most=LARGEST_SCRAPE
            )
            return count_of(_read_count(data).count) or None if head.status == 200 else None
        except (OSError, msgspec.DecodeError, RecursionError):
            return None


def _reconcile(endpoint: Endpoint, mirror: WorkerMirror, reading: Reading, now: float) -> None:
    """Note by how much the mirror of a worker differs from what the engine says."""
    if reading.running is not None:
        endpoint.read_at = now
        endpoint.drift_requests = reading.running + (reading.waiting or 0) - mirror.bound
    if reading.share is not None and endpoint.kv_capacity is not None:
        endpoint.drift_tokens = round(reading.share * endpoint.kv_capacity) - mirror.load
