"""The doors to clients: `/v1/completions`, `/v1/chat/completions`, `/v1/models`, and who may come in."""

from __future__ import annotations

import asyncio
import hmac
import logging

from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.serving.router.answers import as_json, refuse
from lbopt.serving.router.ask import Ask, read_ask
from lbopt.serving.router.forward import headers_for_engine
from lbopt.serving.router.service import Refusal, Router

_log = logging.getLogger(__name__)

#: Bytes of a body above which it is read beside the event loop.
_LARGE = 2**17

ROUTER = web.AppKey("router", Router)
#: Held by who reads a large body.
READING = web.AppKey("reading", asyncio.Lock)
#: Connections that have not sent the head of a request yet.
SILENT = web.AppKey("silent", set[object])


def allowed(request: web.Request, key: str | None) -> bool:
    """Return whether a request brings the key; compared in a time that does not depend on it."""
    if key is None:
        return True
    given = request.headers.get("Authorization", "")
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), f"Bearer {key}".encode())


async def completions(request: web.Request) -> web.StreamResponse:
    """Answer `/v1/completions`."""
    return await _answer(request, chat=False)


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """Answer `/v1/chat/completions`."""
    return await _answer(request, chat=True)


async def models(request: web.Request) -> web.StreamResponse:
    """List the models."""
    router = request.app[ROUTER]
    if not allowed(request, router.options.api_key):
        return refuse(401, "the API key is missing or wrong", "invalid_request_error", code="invalid_api_key")
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "lbopt"} for name in router.models]
    return as_json({"object": "list", "data": data})


async def _answer(request: web.Request, *, chat: bool) -> web.StreamResponse:
    router = request.app[ROUTER]
    options = router.options
    if not allowed(request, options.api_key):
        router.metrics.refused["key"] += 1
        return refuse(401, "the API key is missing or wrong", "invalid_request_error", code="invalid_api_key")
    try:
        async with asyncio.timeout(options.body_seconds):
            body = await request.read()
    except TimeoutError:
        router.metrics.refused["slow_body"] += 1
        return refuse(408, "the body took longer than body_seconds to arrive", "timeout")
    except web.HTTPRequestEntityTooLarge:
        router.metrics.refused["body_bytes"] += 1
        message = f"the body has more than {options.body_bytes:,} bytes"
        return refuse(413, message, "invalid_request_error", code="request_too_large")
    try:
        ask = await _read(request.app, body, chat=chat)
    except InputError as error:
        router.metrics.refused["body"] += 1
        return refuse(400, str(error), "invalid_request_error")
    if router.signatures is not None:
        ask.experts = router.signatures.of_request(request.headers, ask.data, router.model_of(ask.model), chat=chat)
    if router.prefill is None:
        ask.data = {}  # nothing of it is needed beside the bytes
    headers = headers_for_engine(request.headers)
    try:
        query = request.rel_url.raw_query_string
        path = request.path + ("?" + query if query else "")
        job = router.admit(ask, body, path, headers, chat=chat)
    except Refusal as refusal:
        router.metrics.refused[refusal.why] += 1
        return refusal.answer
    return await router.carrier.carry(job, request)


def _unfit(request: web.Request) -> str | None:
    """Return why a body is not read; None where it is.

    A page of any site can have a browser post here, in the name of who sits before it, but not with JSON as its type.
    """
    codings = ",".join(request.headers.getall("Content-Encoding", ())).split(",")
    if any(coding.strip().lower() not in ("", "identity") for coding in codings):
        return "the body is compressed; send it as it is"
    is_from_page = "Origin" in request.headers or request.headers.get("Sec-Fetch-Site", "none") != "none"
    if is_from_page and request.content_type != "application/json":
        return "a web page sent the body; its type must be application/json"
    return None


async def _read(app: web.Application, body: bytes, *, chat: bool) -> Ask:
    """Read a body; a large one beside the event loop, one at a time, since parts of that stop the interpreter."""
    router = app[ROUTER]
    is_whole = any(user is not None for user in (router.prefill, router.prefixes, router.signatures))

    def read() -> Ask:
        ask = read_ask(body, chat=chat, whole=is_whole)
        if router.prefixes is not None:
            ask.prefix = router.prefixes.of(ask.data, router.model_of(ask.model) or "", chat=chat)
        return ask

    if len(body) <= _LARGE:
        return read()
    async with app[READING]:
        return await asyncio.to_thread(read)


@web.middleware
async def sentences(request: web.Request, handler: web.Handler) -> web.StreamResponse:  # type: ignore[name-defined]
    """Turn every refusal of HTTP into an error of the API, and what goes wrong here into one that says so."""
    request.app[SILENT].discard(request.protocol)
    if request.body_exists and (why := _unfit(request)) is not None:
        return refuse(415, why, "invalid_request_error")
    try:
        answer: web.StreamResponse = await handler(request)
        return answer
    except web.HTTPException as error:
        return refuse(error.status, f"{request.method} {error.reason}".lower(), "invalid_request_error")
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        _log.exception("a request failed in the router")
        return refuse(500, f"the router failed: {type(error).__name__}", "internal_error")
