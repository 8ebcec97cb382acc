"""The reaper: ends what lasts too long, a few times a second.

A timer for each chunk would cost more than all that the router does with it, so limits are looked at here: waits in the
pool, engines that send nothing, clients that do not read, requests that take too long.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from lbopt.serving.router.job import Job, Stop
from lbopt.serving.signals import repeat
from lbopt.serving.state import Stage

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router

_log = logging.getLogger(__name__)

_PERIOD, _PERIOD_OF_SHADOW = 0.25, 0.05


async def reap(router: Router) -> None:
    """Look at all requests, again and again."""
    options = router.options
    shortest = min(options.ttl, options.slow_client_seconds, options.idle_seconds, options.request_seconds)
    period = min(_PERIOD if router.shadow is None else _PERIOD_OF_SHADOW, shortest / 4)
    await repeat(partial(look, router), period, "requests")


async def look(router: Router) -> None:
    """Stop what has passed a limit, and take the measures of the barrier."""
    now, options = router.now(), router.options
    for pool in router.fleet.pools.values():
        for tracker in pool.overdue(now, options.ttl):
            if isinstance(tracker.payload, Job):
                tracker.payload.stop(Stop.EXPIRED)
    for job in list(router.jobs):
        if now > job.limit:
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
