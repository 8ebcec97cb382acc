"""Endpoints: those of clients, and those of operators and gateways.

The doors to clients: paths that generate, those that an engine answers at once, `/v1/models`, and who may come in.

Endpoints of operators and of gateways: health, metrics, workers, routing tables, the shadow, and advice.

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
import hmac
import json
import logging
import secrets
from contextlib import nullcontext
from typing import Any

import msgspec
from aiohttp import web

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.kinds import whole
from lbopt.serving.router.ask import Ask, Refusal, as_json, over_budget, read_ask, refuse, slow_body
from lbopt.serving.router.carry import carry, pass_on
from lbopt.serving.router.clients import ClientConnection, OverBudgetError, Share
from lbopt.serving.router.endpoint import Endpoint
from lbopt.serving.router.fleet_file import WorkerAddress, refuse_outside, refuse_same, worker_of
from lbopt.serving.router.forward import headers_for_engine
from lbopt.serving.router.job import ADVICE, RETRY_AFTER, SAID, Stop
from lbopt.serving.router.service import Router
from lbopt.serving.scrape import MOST_SEQUENCES, MOST_TOKENS, count_of
from lbopt.serving.state import Health, WorkerMirror

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
        raise Refusal("", 403, f"no {called} token is set: this door is closed")
    if not any(allowed(request, token) for token in tokens):
        raise Refusal("", 401, f"the {called} token is missing or wrong")


def enter_as_client(request: web.Request) -> None:
    """Refuse one who does not bring the key of clients, where there is one."""
    if not allowed(request, request.app[ROUTER].options.api_key):
        raise Refusal("key", 401, "the API key is missing or wrong")


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
    """List the models, each as an engine of it describes it."""
    enter_as_client(request)
    router = request.app[ROUTER]
    cards = dict(
        zip(router.fleet.pools, await asyncio.gather(*map(router.poller.card, router.fleet.pools)), strict=True)
    )
    plain = {"object": "model", "created": 0, "owned_by": "lbopt"}
    data = [{"id": name} | (cards[model] or plain) | {"id": name} for name, model in router.models.items()]
    return as_json({"object": "list", "data": data})


#: Paths whose requests take a place, and those that any engine of the model answers at once.
GENERATING = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages")
PASSING = (
    *("/tokenize", "/detokenize", "/v1/messages/count_tokens", "/v1/embeddings", "/pooling", "/classify", "/score"),
    *("/v1/score", "/rerank", "/v1/rerank", "/v2/rerank"),
)


async def completions(request: web.Request) -> web.StreamResponse:
    """Answer a path that generates."""
    enter_as_client(request)
    router, chat = request.app[ROUTER], request.path != GENERATING[0]
    with router.budget.share() as share:
        ask, body = await _asked_by_client(request, share, chat=chat)
        if router.signatures is not None:
            prompt = _prompt_of(ask)
            ask.experts = router.signatures.of_request(request.headers, prompt, router.model_of(ask.model), chat=chat)
        if router.prefill is None:
            ask.data = {}  # nothing of it is needed beside the bytes
        job = router.admit(ask, body, request.path_qs, headers_for_engine(request.headers), chat=chat)
        job.share = share
        return await carry(router, job, request)


async def passes(request: web.Request) -> web.StreamResponse:
    """Answer a path that generates nothing: by an engine of the model, without a place."""
    enter_as_client(request)
    router = request.app[ROUTER]
    with router.budget.share() as share:
        ask, body = None, b""
        if request.method != "GET":
            ask, body = await _asked_by_client(request, share, chat=True)
        model = next(iter(router.fleet.pools)) if ask is None else router.known_model(ask.model)
        return await pass_on(router, request, model, body, share)


async def _asked_by_client(request: web.Request, share: Share, *, chat: bool) -> tuple[Ask, bytes]:
    """Return a request as it is read, and its bytes.

    Raises
    ------
    Refusal
        Where it is none.
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
    return ask, body


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
    raise Refusal("body_bytes", 413, f"the body has more than {most:,} bytes")


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
    except web.HTTPNotFound as error:
        if (path := request.path.rstrip("/")) in GENERATING + PASSING:  # as engines have it
            query = request.rel_url.raw_query_string
            return web.Response(status=307, headers={"Location": f"{path}?{query}" if query else path})
        return refuse(error.status, f"{request.method} {error.reason}".lower())
    except web.HTTPException as error:
        return refuse(error.status, f"{request.method} {error.reason}".lower())
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        _log.exception("a request failed in the router")
        return refuse(500, f"the router failed: {type(error).__name__}")
    finally:
        connection.end()


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
        "running": worker.seated,
        "queued": worker.bound - worker.seated,
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
    """Return the worker that an operator names: by its group where several groups have one of that name."""
    enter(request, "admin")
    router = request.app[ROUTER]
    group, name = request.query.get("group", ""), request.match_info["name"]
    found = [w for w in router.endpoints if w.name == name and group in ("", w.group.name) and w in w.group.workers]
    if len(found) != 1:
        what = "there is no such worker" if not found else f"{len(found)} groups have a worker of this name"
        raise Refusal("", 404, f"{what}; name its group by ?group=")
    return found[0]


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
    choices, prompts = (whole(name, data.get(name, 1), 1, MOST_SEQUENCES) for name in ("n", "prompts"))
    if model is not None and not isinstance(model, str):
        raise InputError(f"model is {shown(model)}; expected a text")
    if tokens is not None or size is None:
        size = count_of(tokens)
        if not size:
            raise InputError(
                f"prompt_tokens is {shown(tokens)}; expected a whole number, 1 to {MOST_TOKENS:,}, or prompt_bytes"
            )
    elif type(size) is not int or not 0 <= size < _MOST_BYTES:
        raise InputError(f"prompt_bytes is {shown(size)}; expected the bytes of the prompt's text")
    return Ask(model, True, size, tokens is not None, False, None, choices, prompts)


def _told(key: str | None, endpoint: Endpoint) -> web.Response:
    """Return where a request goes; `key` is what it is called, None where it takes no place."""
    worker, address = endpoint.mirror, endpoint.address
    assert isinstance(worker, WorkerMirror)
    answer = {"id": key, "group": worker.group.name, "worker": worker.name}
    return as_json(answer | {"url": address.url or None, "rank": address.rank})


async def route(request: web.Request) -> web.Response:
    """Decide where a request goes: waits in the pool for a place, and answers with the worker."""
    enter(request, "route", "admin")
    router, data = request.app[ROUTER], await document(request)
    if data.get("place") is False:  # it generates nothing
        name = data.get("model")
        found = router.addressed(next(iter(router.fleet.pools)) if name is None else router.known_model(str(name)))
        return _told(None, found[0]) if found else refuse(*SAID[Stop.NO_WORKER], retry_after=RETRY_AFTER)
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
            status, why = SAID[job.reason]
            return refuse(status, why, retry_after=RETRY_AFTER)
        router.fleet.cancelled(job.tracker, router.now())
        raise
    router.metrics.note_wait(job.tracker)
    job.key = secrets.token_urlsafe(16)  # who reports of a request has been told of it
    router.advised[job.key] = job
    job.heard_at = router.now()
    return _told(job.key, router.endpoints[worker])


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
    if ending not in (None, "finished", "cancelled", "rejected", "failed"):
        raise InputError(f"ending is {shown(ending)}; expected finished, cancelled, rejected or failed")
    attempt, now = job.tracker.attempt, router.now()
    job.heard_at = now
    if prompt is not None:
        router.counted(job, prompt, learns=False)
    if tokens:
        router.fleet.first_chunk(job.tracker, now, attempt)
        router.fleet.tokens(job.tracker, tokens, attempt)
    if ending == "finished":
        router.finished(job, attempt)
    elif ending == "cancelled":
        router.fleet.cancelled(job.tracker, now)
    elif ending is not None:
        router.failed(job, rejected=ending == "rejected")
    if job.tracker.has_ended:
        router.forget(job)
    router.dispatcher.wake()
    return as_json({"ended": job.tracker.has_ended})
