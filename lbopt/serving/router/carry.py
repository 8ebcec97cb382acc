"""The life of an admitted request: prefill where that is a hop of its own, the pool, a place, attempts, and one end.

Every way out of `carry` ends the request in the state, so that slots and blocks come back whatever
happens: an answer, an engine that goes, a client that goes, a limit, the end of the router.

A request that an engine pre-empted, made ready to go on elsewhere: what was generated becomes part of its prompt.

The text joins the prompt of a completion. In a chat it becomes the last message, of the assistant, which the engine is
asked to continue; where the client's last message was such a one already, the text joins it. The limit of tokens is
reduced by what was generated. A body is written anew here, the only case in which the router does that.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from lbopt.serving.http_client import request_head
from lbopt.serving.router.ask import read_fields, refuse
from lbopt.serving.router.clients import OverBudgetError, Share
from lbopt.serving.router.endpoint import delay
from lbopt.serving.router.forward import (
    LARGEST_ANSWER,
    OF_ENGINE,
    Attempt,
    ClientGone,
    Result,
    end_with_error,
    headers_for_client,
    headers_for_engine,
    is_of_request,
)
from lbopt.serving.router.job import RETRY_AFTER, SAID, Job, Stop
from lbopt.serving.state import Stage

if TYPE_CHECKING:
    from lbopt.serving.router.service import Router


async def carry(router: Router, job: Job, request: web.Request) -> web.StreamResponse:
    """Bring a request to its end, whatever happens; returns the answer to the client."""
    tracker = job.tracker
    try:
        while True:
            job.reason = Stop.LIMIT
            try:
                async with asyncio.timeout(None) as job.deadline:
                    answer = await _try(router, job, request)
            except TimeoutError:
                reason, job.heard_at = job.reason, 0.0
                if reason is Stop.DOWN and not tracker.has_ended and job.begun is None:
                    continue  # it is in the pool again
                if reason is Stop.SILENT and _silent(router, job):
                    continue
                return await _stopped(router, job, request)
            if answer is not None:
                return answer
    except (asyncio.CancelledError, ClientGone) as gone:
        if not tracker.has_ended:
            router.fleet.cancelled(tracker, router.now())
        if isinstance(gone, ClientGone) and job.begun is not None:
            return job.begun  # type: ignore[no-any-return]
        raise
    finally:
        if not tracker.has_ended:
            router.failed(job)
        router.jobs.discard(job)
        tracker.payload = None  # a cycle less: what is left is freed at once, and the garbage collector has a rest
        router.dispatcher.wake()


async def _try(router: Router, job: Job, request: web.Request) -> web.StreamResponse | None:
    """Make one attempt, from wherever the request is; None = another one is to be made."""
    tracker, options = job.tracker, router.options
    if tracker.stage is Stage.ARRIVED:
        if "kv_transfer_params" in job.extra and tracker.prefiller is None:
            del job.extra["kv_transfer_params"]  # its blocks were given back: the prompt is computed again
            tracker.ticket = -1
        if tracker.ticket >= 0:
            job.retries += 1
            if not router.finds_untried(job):
                await asyncio.sleep(delay(job.retries, options.retry_seconds, options.retry_cap))
                job.tried.clear()  # those may take it by now
            job.renew()
            router.fleet.resumed(tracker)
        else:
            if router.prefill is not None and tracker.pool.model in router.prefill.models:
                refused = await router.prefill.run(job)
                if refused is not None:
                    router.failed(job, rejected=is_of_request(refused.status))
                    return refused
            else:
                await _tokenize(router, job)
                router.fleet.prefilled(tracker, router.now())
        router.dispatcher.wake()
    worker = await job.placed
    endpoint = router.endpoints.get(worker)
    attempt = tracker.attempt
    assert endpoint is not None
    router.metrics.note_wait(tracker)
    made = Attempt(router, job, endpoint, request)
    result = await made.make()
    if result is Result.ANSWERED:
        return made.answer
    if result is Result.RECOMPUTED:
        if not tracker.has_ended:
            return None
        if job.begun is None:
            return refuse(502, f"{made.why}, which cannot be continued")
        await end_with_error(job.begun, f"{made.why}, which cannot be continued")
        return job.begun  # type: ignore[no-any-return]
    if result is Result.AGAIN and not tracker.has_ended:
        if tracker.attempt != attempt or tracker.stage not in (Stage.RUNNING, Stage.QUEUED):
            return None  # its worker went down meanwhile: it is in the pool again
        if router.may_retry(job) and router.fleet.withdrawn(tracker, attempt):
            router.metrics.retries += 1
            job.text.clear()
            return None
    router.failed(job)
    return refuse(502, made.why) if job.begun is None else made.answer


async def pass_on(router: Router, request: web.Request, model: str, body: bytes, share: Share) -> web.Response:
    """Return what an engine of a model answers to a request that generates nothing; if it fails, another."""
    answer = refuse(*SAID[Stop.NO_WORKER], retry_after=RETRY_AFTER)
    for endpoint in router.addressed(model)[: router.options.retries + 1]:
        url, headers = endpoint.address.url, headers_for_engine(request.headers) | endpoint.headers()
        head = request_head(url, request.path_qs, headers, len(body), request.method)
        try:
            told, data = await router.wires.fetch(
                url, head, body, seconds=router.options.idle_seconds, most=LARGEST_ANSWER, hold=share.take
            )
        except OverBudgetError:
            return router.over_budget()
        except OSError as fault:
            router.note_fault(endpoint)
            answer = refuse(502, f"{endpoint.called} gave no answer: {type(fault).__name__}")
            continue
        answer = web.Response(status=told.status, body=data, headers=headers_for_client(told.headers))
        if told.status not in OF_ENGINE:
            break
        router.poller.suspect(endpoint)
    return answer


def _silent(router: Router, job: Job) -> bool:
    """Note that an engine has sent nothing for too long; True where another attempt is to be made."""
    tracker = job.tracker
    if tracker.worker is not None and tracker.worker in router.endpoints:
        job.tried[tracker.worker] = 0.0
        router.note_fault(router.endpoints[tracker.worker])
    again = job.begun is None and router.may_retry(job)
    if again and router.fleet.withdrawn(tracker, tracker.attempt):
        router.metrics.retries += 1
    return again and not tracker.has_ended


async def _tokenize(router: Router, job: Job) -> None:
    """Ask an engine for the length of the prompt, where the operator wants that."""
    if router.options.tokenize and job.tracker.estimated:
        count = await router.poller.tokenize(job)
        if count is not None:
            router.fleet.corrected(job.tracker, count * job.ask.choices)


async def _stopped(router: Router, job: Job, request: web.Request) -> web.StreamResponse:
    """End a request that was interrupted."""
    status, why = SAID[job.reason]
    if not job.tracker.has_ended:
        fleet, overdue = router.fleet, job.reason in (Stop.EXPIRED, Stop.NO_PREFILLER, Stop.PREFILLER)
        (fleet.expired if overdue else fleet.failed)(job.tracker, router.now())
    router.metrics.stopped[job.reason.value] += 1
    if job.begun is None:
        return refuse(status, why, retry_after=RETRY_AFTER if status == 503 else None)
    if job.reason is Stop.SLOW_CLIENT or job.begun.content_length is not None:  # a whole answer takes no event
        if request.transport is not None:
            request.transport.abort()
    else:
        try:
            async with asyncio.timeout(1.0):
                await end_with_error(job.begun, why, status)
        except TimeoutError:
            pass
    return job.begun  # type: ignore[no-any-return]


def continued(job: Job) -> bool:
    """Change a job so that its next attempt goes on; False where that cannot be done.

    Several answers at once, and prompts in tokens, cannot be continued from text.
    """
    try:
        data: dict[str, Any] = {name: json.loads(bytes(value)) for name, value in job.ask.data.items()}
    except ValueError:  # a number has too many digits
        return False
    text = "".join(job.text)
    made = job.tracker.generated
    if data.get("n") not in (None, 1) or data.get("best_of") not in (None, 1):
        return False
    if job.chat:
        messages = data.get("messages")
        if not isinstance(messages, list) or (made > 0 and not text):
            return False  # tools were called, or something else than text was generated
        messages = list(messages)
        last = messages[-1] if messages else None
        goes_on = data.get("continue_final_message") is True and isinstance(last, dict)
        if goes_on and isinstance(last, dict) and isinstance(last.get("content"), str):
            messages[-1] = {**last, "content": last["content"] + text}
        elif text:
            messages.append({"role": "assistant", "content": text})
        data["messages"] = messages
        if text:
            data["continue_final_message"], data["add_generation_prompt"] = True, False
    else:
        if not isinstance(data.get("prompt"), str):
            return False
        data["prompt"] += text
    for name in ("max_tokens", "max_completion_tokens", "min_tokens"):
        if isinstance(data.get(name), int) and not isinstance(data[name], bool):
            data[name] = max(1 if name != "min_tokens" else 0, data[name] - made)
    data.pop("kv_transfer_params", None)
    job.extra.pop("kv_transfer_params", None)
    job.text.clear()
    job.body = json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    job.ask.data = read_fields(job.body)
    return True
