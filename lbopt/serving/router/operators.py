"""Endpoints of operators and of gateways: health, metrics, workers, routing tables, the shadow, and advice.

`/workers` and `/locality/reload` need the admin token, always: without one they are closed. An address that is added
must lie in the ranges of the fleet file.

`POST /route`: decides where a request goes and leaves the way there to a gateway, which reports what becomes of it.

The door is for gateways alone: it needs their token or the operator's, and places requests of *advised* groups only.
What is reported of a request counts for that request; no estimate of others is learned from it.

A request waits in the pool like any other; the answer names its worker. From then on the gateway reports
(`POST /route/ID`) tokens that were made, the prompt tokens that the engine counted, and once how the request ended. One
of which nothing is heard for `idle_seconds` counts as failed, so that a gateway that dies leaks no slot. Workers of an
advised group need no address: a gateway names them and takes them away. For a rule that goes by experts a
gateway may say what the prompt did to them (`experts`), and a key by which requests like it are known (`locality_key`).
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.router.answers import Refusal, as_json, refuse
from lbopt.serving.router.ask import Ask
from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.fleet_file import WorkerAddress, refuse_outside, refuse_same, worker_of
from lbopt.serving.router.handlers import ROUTER, document, enter
from lbopt.serving.router.job import ADVICE, SAID, Stop
from lbopt.serving.scrape import MOST_TOKENS, count_of
from lbopt.serving.state import Health, WorkerMirror


async def health(request: web.Request) -> web.Response:
    """Say that the process lives, and for which models no rule decides because its rounds fail."""
    faults = request.app[ROUTER].dispatcher.faults
    lines = [f"rounds for model '{model}' fail, requests are placed by load: {why}\n" for model, why in faults.items()]
    return web.Response(text="ok\n" + "".join(lines))


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
        return refuse(404, "no shadow decides; start with --shadow")
    router.shadow.advance()
    return as_json(router.shadow.summary())


def describe(worker: WorkerMirror) -> dict[str, Any]:
    """Return a worker as plain data."""
    endpoint: Endpoint = worker.payload
    return {
        "group": worker.group.name,
        "name": worker.name,
        "url": endpoint.address.url,
        "rank": endpoint.address.rank,
        "health": worker.health.value,
        "slots": worker.slots,
        "running": len(worker.running),
        "queued": len(worker.queue),
        "tokens": worker.load,
        "drift_requests": endpoint.drift_requests,
        "drift_tokens": endpoint.drift_tokens,
    }


async def list_workers(request: web.Request) -> web.Response:
    """List the workers."""
    enter(request, "admin")
    router = request.app[ROUTER]
    found = [describe(worker) for worker in router.endpoints if worker in worker.group.workers]
    pools = {model: len(pool) for model, pool in router.fleet.pools.items()}
    return as_json({"workers": found, "pools": pools})


async def add_worker(request: web.Request) -> web.Response:
    """Add a worker to a group, or let one that drains take requests again."""
    enter(request, "admin")
    router = request.app[ROUTER]
    data = await document(request)
    group = data.pop("group", next(iter(router.groups)) if len(router.groups) == 1 else None)
    if not isinstance(group, str) or group not in router.groups:
        raise InputError(f"group is {shown(group)}; expected one of {', '.join(router.groups)}")
    address = worker_of(data, 0, f"group '{group}'", is_advised=router.groups[group].advised)
    if address.url:
        refuse_outside(address.url, router.plan, f"worker '{address.name}'")
    found = router.fleet.worker(group, address.name)
    if found is not None:
        endpoint = router.endpoints[found]
        if (endpoint.address.url, endpoint.address.rank) != (address.url, address.rank):
            raise InputError(f"group '{group}' has a worker '{address.name}' at another address already")
        endpoint.retired = False
        if found.health is Health.DRAINING:
            router.up(endpoint)
        return as_json(describe(found))
    held = [(e.address, f"worker '{w.name}'") for w, e in router.endpoints.items() if w in w.group.workers]
    held += [(WorkerAddress(p.name, p.url, None), f"prefiller '{p.name}'") for p in router.plan.prefillers]
    refuse_same([*held, (address, f"worker '{address.name}'")], "the fleet")
    worker = router.add_worker(group, address)
    await router.poller.look_at_all()
    return as_json(describe(worker), 201)


def _named(request: web.Request) -> WorkerMirror:
    """Return the worker that an operator names."""
    enter(request, "admin")
    router = request.app[ROUTER]
    group, name = request.query.get("group", ""), request.match_info["name"]
    if not group and len(router.groups) == 1:
        group = next(iter(router.groups))
    found = router.fleet.worker(group, name) if group in router.groups else None
    if found is None or found not in router.endpoints:
        raise Refusal("", 404, "there is no such worker; name its group by ?group=")
    return found


async def reload_locality(request: web.Request) -> web.Response:
    """Read the files of routing tables anew and decide by them; all of them, or none where one is refused."""
    enter(request, "admin")
    signatures = request.app[ROUTER].signatures
    if signatures is None:
        return refuse(404, "no rule goes by experts; start with --policy eldr:table=FILE")
    rules = [rule for of_model in signatures.rules.values() for rule in of_model]
    fresh = [await asyncio.to_thread(rule.prepare) for rule in rules]
    for rule, prepared in zip(rules, fresh, strict=True):
        rule.check(prepared)
    for rule, prepared in zip(rules, fresh, strict=True):
        rule.exchange(prepared)
    signatures.forget()
    return as_json({"tables": [rule.table_id for rule in rules]})


async def drain_worker(request: web.Request) -> web.Response:
    """Let a worker take nothing new."""
    worker = _named(request)
    request.app[ROUTER].retire(worker, leave=False)
    return as_json(describe(worker))


async def remove_worker(request: web.Request) -> web.Response:
    """Let a worker end what it has and then be gone."""
    worker = _named(request)
    request.app[ROUTER].retire(worker, leave=True)
    return as_json(describe(worker))


_MOST_BYTES = 4 * MOST_TOKENS


def _asked(data: dict[str, Any]) -> Ask:
    """Return the request that a gateway describes: its model and the length of its prompt, in tokens or in bytes."""
    model, tokens, size = data.get("model"), data.get("prompt_tokens"), data.get("prompt_bytes")
    if model is not None and not isinstance(model, str):
        raise InputError(f"model is {shown(model)}; expected a text")
    if tokens is None and size is not None:
        if type(size) is not int or not 0 <= size < _MOST_BYTES:
            raise InputError(f"prompt_bytes is {shown(size)}; expected the bytes of the prompt's text")
        return Ask(model, True, size, False, False, None, {})
    count = count_of(tokens)
    if not count:
        raise InputError(
            f"prompt_tokens is {shown(tokens)}; expected a whole number, 1 to {MOST_TOKENS:,}, or prompt_bytes"
        )
    return Ask(model, True, count, True, False, None, {})


async def route(request: web.Request) -> web.Response:
    """Decide where a request goes: waits in the pool for a place, and answers with the worker."""
    enter(request, "route", "admin")
    router, data = request.app[ROUTER], await document(request)
    ask = _asked(data)
    if router.signatures is not None:
        ask.experts = router.signatures.of_gateway(data, router.model_of(ask.model))
    job = router.admit(ask, b"", ADVICE, {}, chat=False)
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
    job.key = secrets.token_urlsafe(16)  # who reports of a request has been told of it
    router.advised[job.key] = job
    job.heard_at = router.now()
    answer = {"id": job.key, "group": worker.group.name, "worker": worker.name}
    return as_json(answer | {"url": endpoint.address.url or None, "rank": endpoint.address.rank})


async def report(request: web.Request) -> web.Response:
    """Take in what a gateway tells of a request: tokens that were made, prompt tokens, and how it ended."""
    enter(request, "route", "admin")
    router = request.app[ROUTER]
    job = router.advised.get(request.match_info["id"])
    if job is None:
        return refuse(404, "there is no such request; it may have ended")
    data = await document(request)
    tokens, prompt, ending = data.get("tokens", 0), data.get("prompt_tokens"), data.get("ending")
    if count_of(tokens) is None:
        raise InputError(f"tokens is {shown(tokens)}; expected how many were made since the last report")
    if prompt is not None and not count_of(prompt):
        raise InputError(f"prompt_tokens is {shown(prompt)}; expected what the engine counted")
    if ending not in (None, "finished", "cancelled", "failed"):
        raise InputError(f"ending is {shown(ending)}; expected finished, cancelled or failed")
    attempt, now = job.tracker.attempt, router.now()
    job.heard_at = now
    if prompt is not None:
        router.counted(job, prompt, learns=False)
    if tokens:
        router.fleet.first_chunk(job.tracker, now, attempt)
        router.fleet.tokens(job.tracker, tokens, attempt)
    if ending == "finished":
        router.finished(job, attempt)
    elif ending is not None:
        router.failed(job)
    if job.tracker.has_ended:
        router.forget(job)
    router.dispatcher.wake()
    return as_json({"ended": job.tracker.has_ended})
