"""A client's request on its way through the router: what its handler waits for, and what stops it.

A timer for each chunk would cost more than all that the router does with it, so limits are looked at a few times a
second, of all requests at once (`reap`): waits in the pool, engines and gateways that send nothing, clients that do not
read, requests that take too long.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from lbopt.serving.process import repeat
from lbopt.serving.router.ask import Ask
from lbopt.serving.router.clients import Share
from lbopt.serving.state import Engine, RequestTracker, Stage, WorkerMirror

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router

_log = logging.getLogger(__name__)

#: Seconds between two looks at all requests, without a shadow and with one.
_PERIOD, _PERIOD_OF_SHADOW = 0.25, 0.05

#: The path of requests that a gateway forwards itself.
ADVICE = "/route"


class Stop(StrEnum):
    """Why a handler is interrupted."""

    LIMIT = "limit"  #: the request took longer than any may
    NO_WORKER = "no-worker"  #: no worker of its model is up, and it has none
    EXPIRED = "expired"  #: it waited in the pool longer than it may
    NO_PREFILLER = "no-prefiller"  #: no prefiller took its prompt in that time
    PREFILLER = "prefiller"  #: the prefiller that took its prompt does not answer
    SILENT = "silent"  #: its worker sends nothing
    DOWN = "down"  #: its worker went down
    SLOW_CLIENT = "slow-client"  #: the client does not read its answer
    DRAIN = "drain"  #: the router ends


#: What a client is told of each reason: status, message.
SAID = {
    Stop.LIMIT: (504, "the request took longer than request_seconds"),
    Stop.NO_WORKER: (503, "no worker of this model is up"),
    Stop.EXPIRED: (503, "the request waited in the pool longer than ttl"),
    Stop.NO_PREFILLER: (503, "no prefiller took the prompt within ttl: all are full or silent"),
    Stop.PREFILLER: (504, "the prefiller that took the prompt did not answer within ttl"),
    Stop.SILENT: (504, "the worker sent nothing for idle_seconds"),
    Stop.DOWN: (502, "the worker went down while it answered"),
    Stop.SLOW_CLIENT: (408, "the client left its answer unread longer than slow_client_seconds"),
    Stop.DRAIN: (503, "the router ends"),
}
#: Seconds after which a client may try again that was told 503.
RETRY_AFTER = 2


@dataclass(slots=True, eq=False, repr=False)
class Job:
    """One request.

    Parameters
    ----------
    tracker
        Its place in the state.
    ask, body, path
        What the client sent: as read, as bytes, and to which path.
    headers
        Headers for the engine.
    chat
        Whether it is a chat.
    """

    tracker: RequestTracker
    ask: Ask
    body: bytes
    path: str
    headers: dict[str, str]
    chat: bool = field(kw_only=True)
    key: str = ""
    limit: float = 0.0
    retries: int = 0
    share: Share | None = None  # of the bytes that the router may hold; None where it holds none
    begun: Any = None  # the answer to the client, once its first byte is on the way
    text: list[str] = field(default_factory=list)  # what was generated, where an engine may ask for it again
    extra: dict[str, Any] = field(default_factory=dict)  # fields that this hop adds
    reason: Stop = Stop.LIMIT
    deadline: asyncio.Timeout | None = None
    write_began: float = 0.0
    heard_at: float = 0.0  # when the engine was last heard, or the gateway; 0 = it is not waited for
    tried: dict[Engine, float] = field(default_factory=dict)  # those that did not take it, and their Retry-After, s
    placed: asyncio.Future[WorkerMirror] = field(init=False)

    def __post_init__(self) -> None:
        self.renew()
        self.tracker.payload = self

    def place(self, worker: WorkerMirror) -> None:
        """Tell the handler where the request goes."""
        if not self.placed.done():
            self.placed.set_result(worker)

    def renew(self) -> None:
        """Wait for another place."""
        self.placed = asyncio.get_running_loop().create_future()

    def stop(self, reason: Stop) -> None:
        """Interrupt the handler; between two attempts, and at its end, there is nothing to interrupt."""
        deadline = self.deadline
        if deadline is None or deadline.expired():
            return
        with suppress(RuntimeError):  # the handler has left it
            deadline.reschedule(asyncio.get_running_loop().time())
            self.reason = reason


async def reap(router: Router) -> None:
    """Look at all requests, again and again."""
    options = router.options
    shortest = min(options.ttl, options.slow_client_seconds, options.idle_seconds, options.request_seconds)
    period = min(_PERIOD if router.shadow is None else _PERIOD_OF_SHADOW, shortest / 4)
    await repeat(partial(look, router), period, "requests")


async def look(router: Router) -> None:
    """Stop what has passed a limit, and take the measures of the barrier."""
    now, options = router.now(), router.options
    without = {model for model in router.fleet.pools if not router.has_worker(model)}
    for pool in router.fleet.pools.values():
        for tracker in pool.overdue(now, options.ttl):
            if isinstance(tracker.payload, Job):
                tracker.payload.stop(Stop.EXPIRED)
    for job in list(router.jobs):
        if job.key in router.advised:
            if job.tracker.has_ended or now - job.heard_at > options.idle_seconds:
                router.forget(job)
        elif job.tracker.stage in (Stage.ARRIVED, Stage.WAITING) and job.tracker.pool.model in without:
            job.stop(Stop.NO_WORKER)
        elif now > job.limit:
            job.stop(Stop.LIMIT)
        elif job.write_began:
            if now - job.write_began > options.slow_client_seconds:
                job.stop(Stop.SLOW_CLIENT)
        elif job.heard_at:
            if now - job.heard_at > options.idle_seconds:
                job.stop(Stop.SILENT)
        elif job.tracker.ticket < 0 and now - job.tracker.arrived_at > options.ttl:  # not in the pool yet
            job.stop(_why_not_pooled(job))
    router.metrics.sample_barrier(now)
    if router.shadow is not None:
        router.shadow.advance()


def _why_not_pooled(job: Job) -> Stop:
    """Return why a request did not get into the pool in time."""
    tracker = job.tracker
    if tracker.stage is Stage.PREFILLING and tracker.prefiller is not None:
        _log.warning("prefiller %s does not answer", tracker.prefiller.name)
        return Stop.PREFILLER
    return Stop.NO_PREFILLER
