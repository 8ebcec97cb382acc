"""The doors to operators and gateways: health, metrics, workers, what the shadow saw, and advice without forwarding.

`/workers` needs the admin token, always: without one it is closed. An address that is added must lie in the ranges of
the fleet file. `POST /route` decides where a request goes and leaves the way there to a gateway, which reports tokens
and endings; a request of which nothing is heard for `idle_seconds` counts as failed.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.readers.faults import LARGEST_TOKENS
from lbopt.serving.router.answers import as_json, refuse
from lbopt.serving.router.ask import Ask
from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.fleet_file import WorkerAddress, refuse_outside, refuse_same, worker_of
from lbopt.serving.router.handlers import ROUTER, allowed
from lbopt.serving.router.job import ADVICE, Job, Stop
from lbopt.serving.router.service import SAID, Refusal, Router
from lbopt.serving.state import Health

ADVISED = web.AppKey("advised", dict[str, Job])
_LARGEST = 2**16


async def health(request: web.Request) -> web.Response:
    """Say that the process lives."""
    return web.Response(text="ok\n")


async def ready(request: web.Request) -> web.Response:
    """Say whether requests are taken: rules compiled, a worker up, not about to end."""
    router = request.app[ROUTER]
    if router.is_ready:
        return web.Response(text="ready\n")
    if router.is_draining:
        why = "the router ends"
    elif not router.has_compiled:
        why = "the rule's kernels are being compiled"
    else:
        why = "no worker is up"
    return web.Response(status=503, text=why + "\n")


async def metrics(request: web.Request) -> web.Response:
    """Answer Prometheus."""
    text = request.app[ROUTER].metrics.text()
    return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


async def shadow(request: web.Request) -> web.Response:
    """Lay the course of the shadow beside the real one."""
    router = request.app[ROUTER]
    if router.shadow is None:
        return refuse(404, "no shadow decides; start with --shadow", "invalid_request_error")
    router.shadow.advance()
    return as_json(router.shadow.summary())


def _closed(request: web.Request) -> web.Response | None:
    """Return the refusal of one who may not touch workers."""
    token = request.app[ROUTER].options.admin_token
    if token is None:
        return refuse(403, "no admin token is set: this door is closed", "permission_error")
    if not allowed(request, token):
        return refuse(401, "the admin token is missing or wrong", "permission_error")
    return None


def describe(endpoint: Endpoint) -> dict[str, Any]:
    """Return a worker as plain data."""
    mirror = endpoint.mirror
    return {
        "group": mirror.group.name,
        "name": mirror.name,
        "url": endpoint.address.url,
        "rank": endpoint.address.rank,
        "health": mirror.health.value,
        "slots": mirror.slots,
        "running": len(mirror.running),
        "queued": len(mirror.queue),
        "tokens": mirror.load,
        "drift_requests": endpoint.drift_requests,
        "drift_tokens": endpoint.drift_tokens,
    }


async def list_workers(request: web.Request) -> web.Response:
    """List the workers."""
    if (closed := _closed(request)) is not None:
        return closed
    router = request.app[ROUTER]
    found = [describe(e) for w, e in router.endpoints.items() if w in w.group.workers]
    pools = {model: len(pool) for model, pool in router.fleet.pools.items()}
    return as_json({"workers": found, "pools": pools})


async def _document(request: web.Request) -> dict[str, Any]:
    """Return the small JSON object that a request brings."""
    async with asyncio.timeout(request.app[ROUTER].options.body_seconds):
        text = await request.content.read(_LARGEST)
        while not request.content.at_eof() and len(text) < _LARGEST:
            text += await request.content.read(_LARGEST)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"the body is {shown(data)}; expected a JSON object")
    return data


async def add_worker(request: web.Request) -> web.Response:
    """Add a worker to a group, or let one that drains take requests again."""
    if (closed := _closed(request)) is not None:
        return closed
    router = request.app[ROUTER]
    try:
        data = await _document(request)
        group = data.pop("group", next(iter(router.groups)) if len(router.groups) == 1 else None)
        if not isinstance(group, str) or group not in router.groups:
            raise InputError(f"group is {shown(group)}; expected one of {', '.join(router.groups)}")
        address = worker_of(data, 0, f"group '{group}'")
        refuse_outside(address.url, router.plan, f"worker '{address.name}'")
        found = router.fleet.worker(group, address.name)
        if found is not None:
            endpoint = router.endpoints[found]
            if (endpoint.address.url, endpoint.address.rank) != (address.url, address.rank):
                raise InputError(f"group '{group}' has a worker '{address.name}' at another address already")
            endpoint.retired = False
            if found.health is Health.DRAINING:
                router.worker_up(endpoint)
            return as_json(describe(endpoint))
        held = [(e.address, f"worker '{w.name}'") for w, e in router.endpoints.items() if w in w.group.workers]
        held += [(WorkerAddress(p.name, p.url, None), f"prefiller '{p.name}'") for p in router.plan.prefillers]
        refuse_same([*held, (address, f"worker '{address.name}'")], "the fleet")
    except InputError as error:
        return refuse(400, str(error), "invalid_request_error")
    except TimeoutError:
        return refuse(408, "the body took longer than body_seconds to arrive", "timeout")
    endpoint = router.add_worker(group, address)
    await router.poller.look_at_all()
    return as_json(describe(endpoint), 201)


def _named(request: web.Request) -> Endpoint | None:
    router = request.app[ROUTER]
    group, name = request.query.get("group", ""), request.match_info["name"]
    if not group and len(router.groups) == 1:
        group = next(iter(router.groups))
    found = router.fleet.worker(group, name) if group in router.groups else None
    return None if found is None else router.endpoints.get(found)


async def drain_worker(request: web.Request) -> web.Response:
    """Let a worker take nothing new."""
    if (closed := _closed(request)) is not None:
        return closed
    if (endpoint := _named(request)) is None:
        return refuse(404, "there is no such worker; name its group by ?group=", "invalid_request_error")
    endpoint.retired = True
    request.app[ROUTER].fleet.draining(endpoint.mirror)
    return as_json(describe(endpoint))


async def remove_worker(request: web.Request) -> web.Response:
    """Let a worker end what it has and then be gone."""
    if (closed := _closed(request)) is not None:
        return closed
    if (endpoint := _named(request)) is None:
        return refuse(404, "there is no such worker; name its group by ?group=", "invalid_request_error")
    request.app[ROUTER].remove_worker(endpoint)
    return as_json(describe(endpoint))


# -- advice


async def route(request: web.Request) -> web.Response:
    """Decide where a request goes: waits in the pool for a place, and answers with the worker."""
    router = request.app[ROUTER]
    if not allowed(request, router.options.api_key):
        return refuse(401, "the API key is missing or wrong", "invalid_request_error", code="invalid_api_key")
    try:
        data = await _document(request)
        tokens, model = data.get("prompt_tokens"), data.get("model")
        if type(tokens) is not int or not 0 < tokens <= LARGEST_TOKENS:
            raise InputError(f"prompt_tokens is {shown(tokens)}; expected a whole number, 1 to {LARGEST_TOKENS:,}")
        if model is not None and not isinstance(model, str):
            raise InputError(f"model is {shown(model)}; expected a text")
    except InputError as error:
        return refuse(400, str(error), "invalid_request_error")
    except TimeoutError:
        return refuse(408, "the body took longer than body_seconds to arrive", "timeout")
    ask = Ask(model, True, tokens, True, False, None, {})
    try:
        job = router.admit(ask, b"", ADVICE, {}, chat=False)
    except Refusal as refusal:
        router.metrics.refused[refusal.why] += 1
        return refusal.answer
    router.fleet.prefilled(job.tracker, router.now())
    router.dispatcher.wake()
    job.reason = Stop.EXPIRED
    try:
        async with asyncio.timeout(router.options.ttl) as job.deadline:
            worker = await job.placed
    except BaseException as error:
        router.jobs.discard(job)
        if isinstance(error, TimeoutError):
            router.fleet.expired(job.tracker, router.now())
            status, why, kind = SAID[job.reason]
            return refuse(status, why, kind, retry_after=5)
        router.fleet.cancelled(job.tracker, router.now())
        raise
    router.metrics.note_wait(job.tracker)
    endpoint = router.endpoints[worker]
    request.app[ADVISED][job.key] = job
    _watch(request.app, job)
    answer = {"id": job.key, "group": worker.group.name, "worker": worker.name}
    return as_json(answer | {"url": endpoint.address.url, "rank": endpoint.address.rank})


def _watch(app: web.Application, job: Job) -> None:
    """Count a request as failed of which nothing has been heard for too long."""
    router = app[ROUTER]
    loop = asyncio.get_running_loop()
    seen = job.tracker.produced

    def look() -> None:
        nonlocal seen
        if job.tracker.has_ended or app[ADVISED].get(job.key) is not job:
            _forget(app, job)
        elif job.tracker.produced == seen:
            router.failed(job)
            _forget(app, job)
        else:
            seen = job.tracker.produced
            loop.call_later(router.options.idle_seconds, look)

    loop.call_later(router.options.idle_seconds, look)


def _forget(app: web.Application, job: Job) -> None:
    app[ADVISED].pop(job.key, None)
    app[ROUTER].jobs.discard(job)


async def report(request: web.Request) -> web.Response:
    """Take in what a gateway tells of a request: tokens that were made, and how it ended."""
    router: Router = request.app[ROUTER]
    if not allowed(request, router.options.api_key):
        return refuse(401, "the API key is missing or wrong", "invalid_request_error", code="invalid_api_key")
    job = request.app[ADVISED].get(request.match_info["id"])
    if job is None:
        return refuse(404, "there is no such request; it may have ended", "invalid_request_error")
    try:
        data = await _document(request)
        tokens, ending = data.get("tokens", 0), data.get("ending")
        if type(tokens) is not int or not 0 <= tokens < 2**40:
            raise InputError(f"tokens is {shown(tokens)}; expected how many were made since the last report")
        if ending not in (None, "finished", "cancelled", "failed"):
            raise InputError(f"ending is {shown(ending)}; expected finished, cancelled or failed")
    except InputError as error:
        return refuse(400, str(error), "invalid_request_error")
    except TimeoutError:
        return refuse(408, "the body took longer than body_seconds to arrive", "timeout")
    attempt = job.tracker.attempt
    if tokens:
        router.fleet.first_chunk(job.tracker, router.now(), attempt)
        router.fleet.tokens(job.tracker, tokens, attempt)
    if ending == "finished":
        router.finished(job, attempt)
    elif ending is not None:
        router.failed(job)
    if job.tracker.has_ended:
        _forget(request.app, job)
    router.dispatcher.wake()
    return as_json({"ended": job.tracker.has_ended})
