"""The doors to operators: health, metrics, workers, routing tables, what the shadow saw.

`/workers` and `/locality/reload` need the admin token, always: without one they are closed. An address that is added
must lie in the ranges of the fleet file.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.router.answers import Refusal, as_json, refuse
from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.fleet_file import WorkerAddress, refuse_outside, refuse_same, worker_of
from lbopt.serving.router.handlers import ROUTER, document, enter
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
