"""The doors to clients: `/v1/completions`, `/v1/chat/completions`, `/v1/models`, and who may come in."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from contextlib import nullcontext
from typing import Any

import msgspec
from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.serving.router.answers import Refusal, as_json, over_budget, refuse, slow_body
from lbopt.serving.router.ask import Ask, read_ask
from lbopt.serving.router.carry import carry
from lbopt.serving.router.clients import ClientConnection, OverBudgetError, Share
from lbopt.serving.router.forward import headers_for_engine
from lbopt.serving.router.job import Job
from lbopt.serving.router.service import Router

_log = logging.getLogger(__name__)

#: Bytes of a body above which it is read beside the event loop, and above which one waits for the other.
_LARGE = 2**17
_HUGE = 2**20
#: Bytes of the JSON of gateways and operators.
_LARGEST = 2**16
#: The fields of which a prompt is made.
_OF_PROMPT = ("prompt", "messages", "tools", "functions")

ROUTER = web.AppKey("router", Router)
#: Held by who reads a huge body.
READING = web.AppKey("reading", asyncio.Lock)


def allowed(request: web.Request, key: str | None) -> bool:
    """Return whether a request brings the key; compared in a time that does not depend on it."""
    if key is None:
        return True
    given = request.headers.get("Authorization", "")
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), f"Bearer {key}".encode())


def enter(request: web.Request, *names: str) -> None:
    """Refuse one who brings none of an endpoint's tokens, which are named; where none is set, it is closed.

    Raises
    ------
    Refusal
        With 401 or 403.
    """
    options, called = request.app[ROUTER].options, " or ".join(names)
    tokens = [token for name in names if (token := getattr(options, f"{name}_token")) is not None]
    if not tokens:
        raise Refusal("", 403, f"no {called} token is set: this door is closed", "permission_error")
    if not any(allowed(request, token) for token in tokens):
        raise Refusal("", 401, f"the {called} token is missing or wrong", "permission_error")


def enter_as_client(request: web.Request, why: str = "") -> None:
    """Refuse one who does not bring the key of clients, where there is one."""
    if not allowed(request, request.app[ROUTER].options.api_key):
        raise Refusal(why, 401, "the API key is missing or wrong", code="invalid_api_key")


async def document(request: web.Request) -> dict[str, Any]:
    """Return the small JSON object that a request brings.

    Raises
    ------
    InputError
        Where it is none.
    Refusal
        Where it takes too long to arrive.
    """
    text = b""
    try:
        async with asyncio.timeout(request.app[ROUTER].options.body_seconds):
            while not request.content.at_eof() and len(text) < _LARGEST:
                text += await request.content.read(_LARGEST)
    except TimeoutError:
        raise slow_body() from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"the body is {shown(data)}; expected a JSON object")
    return data


async def models(request: web.Request) -> web.StreamResponse:
    """List the models."""
    enter_as_client(request)
    models = request.app[ROUTER].models
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "lbopt"} for name in models]
    return as_json({"object": "list", "data": data})


async def completions(request: web.Request) -> web.StreamResponse:
    """Answer `/v1/completions` and `/v1/chat/completions`."""
    enter_as_client(request, "key")
    router = request.app[ROUTER]
    with router.budget.share() as share:
        job = await _admitted(request, share, chat=request.path.endswith("/chat/completions"))
        return await carry(router, job, request)


async def _admitted(request: web.Request, share: Share, *, chat: bool) -> Job:
    """Read a request and make it known.

    Raises
    ------
    Refusal
        Where it is not taken.
    """
    router = request.app[ROUTER]
    try:
        async with asyncio.timeout(None if request.content.is_eof() else router.options.body_seconds):
            body = await _body(request, share)
        ask = await _read(request.app, body, chat=chat)
    except TimeoutError:
        raise slow_body("slow_body") from None
    except OverBudgetError:
        raise over_budget() from None
    except InputError as error:
        raise Refusal("body", 400, str(error)) from None
    if router.signatures is not None:
        prompt = _prompt_of(ask)
        ask.experts = router.signatures.of_request(request.headers, prompt, router.model_of(ask.model), chat=chat)
    if router.prefill is None:
        ask.data = {}  # nothing of it is needed beside the bytes
    query = request.rel_url.raw_query_string
    path = request.path + ("?" + query if query else "")
    job = router.admit(ask, body, path, headers_for_engine(request.headers), chat=chat)
    job.share = share
    return job


async def _body(request: web.Request, share: Share) -> bytes:
    """Return the body, counted as it comes."""
    most = request.app[ROUTER].options.body_bytes
    parts: list[bytes] = []
    if (request.content_length or 0) <= most:
        while part := await request.content.readany():
            parts.append(part)
            share.take(len(part))
            if share.held > most:
                break
        else:
            return b"".join(parts)
    raise Refusal("body_bytes", 413, f"the body has more than {most:,} bytes", code="request_too_large")


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
    """Read a body; a large one beside the event loop, huge ones one at a time, since parts of that stop all threads."""
    router = app[ROUTER]
    is_whole = any(user is not None for user in (router.prefill, router.prefixes, router.signatures))

    def read() -> Ask:
        ask = read_ask(body, chat=chat, whole=is_whole)
        if router.prefixes is not None:
            ask.prefix = router.prefixes.of(_prompt_of(ask), router.model_of(ask.model) or "", chat=chat)
        return ask

    if len(body) <= _LARGE:
        return read()
    async with app[READING] if len(body) > _HUGE else nullcontext():
        return await asyncio.to_thread(read)


def _prompt_of(ask: Ask) -> dict[str, Any]:
    """Return the fields of which the prompt is made; none where a number in them is beyond all bounds."""
    try:
        return {name: msgspec.json.decode(ask.data[name]) for name in _OF_PROMPT if name in ask.data}
    except msgspec.DecodeError:
        return {}


@web.middleware
async def sentences(request: web.Request, handler: web.Handler) -> web.StreamResponse:  # type: ignore[name-defined]
    """Turn every refusal of HTTP into an error of the API, and what goes wrong here into one that says so."""
    connection = request.protocol
    assert isinstance(connection, ClientConnection)
    refused = connection.begin(request)
    if refused is None and request.body_exists and (why := _unfit(request)) is not None:
        refused = refuse(415, why)
    try:
        answer: web.StreamResponse = await handler(request) if refused is None else refused
        if connection.is_spare:
            answer.force_close()
        return answer
    except Refusal as refusal:
        if refusal.why:
            request.app[ROUTER].metrics.refused[refusal.why] += 1
        return refusal.answer
    except InputError as error:
        return refuse(400, str(error))
    except web.HTTPException as error:
        return refuse(error.status, f"{request.method} {error.reason}".lower())
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        _log.exception("a request failed in the router")
        return refuse(500, f"the router failed: {type(error).__name__}", "internal_error")
    finally:
        connection.end()
