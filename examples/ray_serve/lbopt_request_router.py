"""A request router for Ray Serve that asks `lbopt serve` which replica gets a request.

The replicas of a deployment are the workers of an advised group of the fleet file:

    [[group]]
    name = "decode"
    model = "deepseek-v3"
    slots = 72          # max_ongoing_requests of the deployment
    advised = true
    workers = []        # this router names them

    LBOPT_ADMIN_TOKEN=... lbopt serve --fleet fleet.toml --policy auto --port 8000

and the deployment names this class:

    RequestRouterConfig(
        request_router_class="lbopt_request_router.LbOptRequestRouter",
        request_router_kwargs={"url": "http://127.0.0.1:8000", "admin_token": "...", "model": "deepseek-v3"},
    )

Each handle and each proxy has a router of its own; they share the pool of `lbopt serve`. Where it does not answer, a
request goes to the replica with the fewest requests, so a lost router costs balance and no request.

Interface: `ray.serve.request_router.RequestRouter`, which Ray calls alpha; tried with Ray 2.60.0.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import aiohttp
from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

_log = logging.getLogger("ray.serve")

#: Seconds between two signs of life of a request, and after which a lost router is asked again.
SIGN_OF_LIFE, AGAIN = 15.0, 5.0

#: Requests of one handle or proxy that may wait in the pool of `lbopt serve`.
MOST_ASKING = 1024


class _Placed:
    """A request that the router has placed."""

    def __init__(self, name: str, worker: str) -> None:
        self.name = name
        self.worker = worker
        self.begun = time.monotonic()
        self.reported = 0
        self.tries = 0
        self.prompt: int | None = None


class LbOptRequestRouter(RequestRouter):
    """The router; see the module for its place.

    Parameters
    ----------
    url
        Of `lbopt serve`.
    admin_token
        Its LBOPT_ADMIN_TOKEN, with which replicas are named to it and places are asked for.
    model, group
        Of the fleet file; None where it has one.
    tokens_per_second
        Tokens that a request makes a second. Ray does not show a router what a replica streams, so loads grow by
        this pace until the request ends; 0 = a request counts with its prompt alone.
    """

    def initialize_state(
        self,
        url: str,
        admin_token: str,
        model: str | None = None,
        group: str | None = None,
        tokens_per_second: float = 0.0,
    ) -> None:
        """Take in the arguments of the deployment's configuration."""
        self._base = url.rstrip("/")
        self._model, self._group = model, group
        self._admin = {"Authorization": f"Bearer {admin_token}"}
        self._pace = tokens_per_second
        self._session: aiohttp.ClientSession | None = None
        self._placed: dict[str, _Placed] = {}
        self._named: set[str] = set()
        self._naming = asyncio.Lock()
        self._lost_until = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- what Ray calls

    @property
    def max_num_routing_tasks(self) -> int:
        """Requests that ask at once; Ray's own number, two a replica, would hide the others from the rule."""
        return MOST_ASKING

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Return the replica that the router names, alone; those with room where it does not answer."""
        if pending_request is None:
            return [self.select_available_replicas(candidate_replicas)]
        pending_request.routing_context.should_backoff = True
        by_name = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        key = pending_request.metadata.internal_request_id
        placed = self._placed.get(key)
        if placed is not None and (placed.worker not in by_name or placed.tries > 3):
            self._end(key, "failed")  # its replica has gone, or is full with requests of others
            placed = None
        if placed is None:
            placed = await self._ask(key, pending_request, set(by_name))
        if placed is None or placed.worker not in by_name:
            return [self.select_available_replicas(candidate_replicas) or candidate_replicas]
        placed.tries += 1
        return [[by_name[placed.worker]]]

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Report the end of a request."""
        self._end(internal_request_id, "finished")

    def on_replica_actor_died(self, replica_id: ReplicaID) -> None:
        """Take a replica away at once, before the controller says so."""
        super().on_replica_actor_died(replica_id)
        self._later(self._take_away(replica_id.unique_id))

    # -- what a deployment may say better

    def prompt_bytes(self, pending_request: PendingRequest) -> int:
        """Return the bytes of a request's text: of texts in its arguments, also within `prompt` and `messages`."""
        return _bytes_of([*pending_request.args, *pending_request.kwargs.values()], 4) or 1

    # -- within

    async def _ask(self, key: str, pending: PendingRequest, names: set[str]) -> _Placed | None:
        if time.monotonic() < self._lost_until:
            return None
        try:
            await self._name(names)
            asked: dict[str, Any] = {"prompt_bytes": self.prompt_bytes(pending)}
            if self._model is not None:
                asked["model"] = self._model
            async with self._http().post(f"{self._base}/route", json=asked, headers=self._admin) as answer:
                told = await answer.json()
                if answer.status != 200:
                    _log.warning("lbopt serve placed no request: %s", told.get("error", {}).get("message"))
                    return None
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            _log.warning("lbopt serve does not answer (%s); replicas are taken by their queues", type(error).__name__)
            self._lost_until = time.monotonic() + AGAIN
            return None
        except asyncio.CancelledError:  # the client has gone; the router sees the connection close
            raise
        placed = self._placed[key] = _Placed(told["id"], told["worker"])
        self._later(self._watch(key, placed))
        pending.future.add_done_callback(lambda future: self._end(key, "cancelled") if future.cancelled() else None)
        return placed

    async def _watch(self, key: str, placed: _Placed) -> None:
        """Report that a request runs, and by how much it has grown at the pace that was given."""
        period = min(SIGN_OF_LIFE, 32 / self._pace) if self._pace else SIGN_OF_LIFE
        while self._placed.get(key) is placed:
            await asyncio.sleep(period)
            if self._placed.get(key) is placed:
                await self._report(placed, {})

    def _end(self, key: str, ending: str) -> None:
        placed = self._placed.pop(key, None)
        if placed is not None:
            self._later(self._report(placed, {"ending": ending}))

    async def _report(self, placed: _Placed, report: dict[str, Any]) -> None:
        grown = int((time.monotonic() - placed.begun) * self._pace)
        report["tokens"], placed.reported = max(0, grown - placed.reported), max(grown, placed.reported)
        try:
            url = f"{self._base}/route/{placed.name}"
            async with self._http().post(url, json=report, headers=self._admin) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            _log.warning("lbopt serve did not take a report (%s)", type(error).__name__)

    async def _name(self, names: set[str]) -> None:
        """Let the workers of the group be the replicas of the deployment."""
        if names == self._named:
            return
        async with self._naming:
            for name in sorted(names - self._named):
                body = {"name": name} | ({"group": self._group} if self._group else {})
                async with self._http().post(f"{self._base}/workers", json=body, headers=self._admin) as answer:
                    if answer.status >= 400:
                        told = (await answer.json())["error"]["message"]
                        raise ValueError(f"replica {name} was not taken as a worker: {told}")
                self._named.add(name)
            for name in sorted(self._named - names):
                await self._take_away(name)

    async def _take_away(self, name: str) -> None:
        self._named.discard(name)
        query = {"group": self._group} if self._group else {}
        try:
            url = f"{self._base}/workers/{name}"
            async with self._http().delete(url, params=query, headers=self._admin) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError):
            _log.warning("lbopt serve was not told that replica %s has gone", name)

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=2.0),
                connector=aiohttp.TCPConnector(limit=0),  # a request that waits holds its connection
            )
        return self._session

    def _later(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _bytes_of(value: Any, depth: int) -> int:
    """Return the bytes of all text in plain data and in models of requests."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if depth == 0:
        return 0
    if isinstance(value, dict):
        wanted = [value[name] for name in ("prompt", "messages", "content", "text") if name in value]
        return sum(_bytes_of(part, depth - 1) for part in wanted or value.values())
    if isinstance(value, list | tuple):
        return sum(_bytes_of(part, depth - 1) for part in value)
    found = [getattr(value, name) for name in ("prompt", "messages", "content") if hasattr(value, name)]
    return sum(_bytes_of(part, depth - 1) for part in found)
