"""`POST /route`: decides where a request goes and leaves the way there to a gateway, which reports what becomes of it.

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
from lbopt.serving.router.answers import as_json, refuse
from lbopt.serving.router.ask import Ask
from lbopt.serving.router.handlers import ROUTER, document, enter
from lbopt.serving.router.job import ADVICE, SAID, Stop
from lbopt.serving.usage import MOST_TOKENS, count_of

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
