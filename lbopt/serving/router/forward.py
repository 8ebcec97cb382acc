"""One attempt to have a request answered by one engine; what the engine sends goes to the client byte for byte.

Before the first byte to the client an attempt may fail and be made again elsewhere; after it never. A stream that the
engine breaks off ends with an event that says so. Of the headers those are left out that belong to one connection.

What one stream tells the state as it passes: its first chunk, its tokens, its prompt tokens, its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TYPE_CHECKING, Any

from aiohttp import web

from lbopt.serving.http_client import request_head
from lbopt.serving.http_wire import Head, Wire
from lbopt.serving.router.ask import error_of, read_answer, refuse, with_field
from lbopt.serving.router.clients import OverBudgetError
from lbopt.serving.router.endpoint import Endpoint, asked_rest
from lbopt.serving.router.events import EventCounter, code_of
from lbopt.serving.router.job import Job
from lbopt.serving.router.signatures import HEADER, KEY_HEADER
from lbopt.serving.scrape import Usage, usage_of

if TYPE_CHECKING:
    from multidict import CIMultiDictProxy

    from lbopt.serving.router.service import Router

#: Headers of one connection, or such that the router sets itself.
_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade"),
        *("transfer-encoding", "content-length", "accept-encoding", "expect", "host", "date", "server"),
    )
)
#: The rank is the router's to name.
_NOT_TO_ENGINES = _HOP | {"x-data-parallel-rank", HEADER.lower(), KEY_HEADER.lower()}
#: What an engine says of experts is for the router.
_NOT_TO_CLIENTS = _HOP | {HEADER.lower()}
#: Answers of an engine, or of what stands before it, after which the same engine may take the request later.
_LATER = frozenset({408, 429, 500, 502, 503, 504, 529})
#: Answers of an engine that may be dead.
OF_ENGINE = frozenset({500, 502, 503})
#: Answers that find fault with the request: one other engine is asked whether it finds so, too.
OF_REQUEST = frozenset({400, 413, 422})
#: Bytes that a client has not taken yet, above which the engine is not read: where transports say that they are full.
_MOST_UNSENT = 2**16
#: Seconds in which an engine has to end its answer behind ``[DONE]``; then its connection is closed.
_LONGEST_END = 1.0
#: What an answer of a completion or chat, a response or messages has.
_ANSWERS = (b'"choices"', b'"output"', b'"content"')
#: Largest answer that is not a stream, bytes.
LARGEST_ANSWER = 256 * 2**20
#: Bytes of one that are written at once.
_PIECE = 2**18


class ClientGone(Exception):
    """The client's connection broke while its answer was written; the engine is not to blame."""


class Result(Enum):
    """How an attempt ended."""

    ANSWERED = "answered"
    AGAIN = "again"  #: nothing has reached the client: another attempt may be made
    RECOMPUTED = "recomputed"  #: the engine pre-empted the request; it has joined the pool again
    BROKEN = "broken"  #: the client has a part of the answer, and no more will come


def headers_for_engine(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """Return the client's headers that go to the engine; those that come repeatedly as one with all values."""
    dropped = _NOT_TO_ENGINES | _named_by(headers.items())
    kept: dict[str, str] = {}
    for lower, name in {name.lower(): name for name in headers}.items():
        if lower not in dropped:
            kept[name] = ("; " if lower == "cookie" else ", ").join(headers.getall(name))
    kept["Accept-Encoding"] = "identity"  # events are read as they pass
    return kept


def headers_for_client(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the engine's headers that go to the client, in their order."""
    dropped = _NOT_TO_CLIENTS | _named_by(headers)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _named_by(headers: Iterable[tuple[str, str]]) -> set[str]:
    """Return the headers that `Connection` says to belong to one connection."""
    values = [value for name, value in headers if name.lower() == "connection"]
    return {name.strip(" \t").lower() for value in values for name in value.split(",")}


def asks_usage(router: Router, job: Job, endpoint: Endpoint) -> bool:
    """Return whether the router asks for usage of a stream for which its client has not: by default engines of vLLM."""
    asks = router.options.ask_usage
    is_open = job.ask.streams and not job.ask.wants_usage and job.path.startswith(("/v1/completions", "/v1/chat/"))
    return is_open and (endpoint.address.url in router.poller.of_vllm if asks is None else asks)


def body_for_engine(job: Job, *, ask_usage: bool) -> bytes:
    """Return the client's bytes, with the fields that this hop adds: see `ask.with_field`."""
    body = job.body
    for name, value in job.extra.items():
        body = with_field(body, name, value)
    if ask_usage:
        body = with_field(body, "stream_options", {"include_usage": True, "continuous_usage_stats": True})
    return body


def is_of_request(status: int) -> bool:
    """Return whether a status finds fault with the request: another try would get the same."""
    return 400 <= status < 500 and status not in _LATER


def _told(body: bytes) -> dict[str, Any]:
    """Return what an answer that is not a stream tells of tokens and errors."""
    if not any(b'"usage"' in part for part in (body[-4096:], body[:4096])) and b'"error"' not in body:
        return {}
    try:
        return read_answer(body)
    except (ValueError, RecursionError):
        return {}


class _Answer(web.StreamResponse):
    """What the client gets; its head goes together with the first bytes of its body."""

    _send_headers_immediately = False


class Attempt:
    """One attempt of a job at an endpoint.

    Parameters
    ----------
    router
        Whose state is told of what happens.
    job, endpoint
        The request and the engine.
    request
        The client's.
    """

    __slots__ = ("_attempt", "_endpoint", "_job", "_request", "_router", "answer", "why")

    def __init__(self, router: Router, job: Job, endpoint: Endpoint, request: web.Request) -> None:
        self._router = router
        self._job = job
        self._endpoint = endpoint
        self._request = request
        self._attempt = job.tracker.attempt
        self.answer: web.StreamResponse | None = None  # what the client gets
        self.why = ""

    async def make(self) -> Result:
        """Send the request and pass on the answer."""
        router, job, endpoint = self._router, self._job, self._endpoint
        body = body_for_engine(job, ask_usage=asks_usage(router, job, endpoint))
        request = request_head(endpoint.address.url, job.path, job.headers | endpoint.headers(), len(body))
        job.heard_at = router.now()
        wire: Wire | None = None
        try:
            wire, head = await router.wires.ask(endpoint.address.url, request, body)
            body = b""  # the job holds it as long as it may be sent again
            if head.status != 200 and self._is_refused(f"answered {head.status}", head):
                return Result.AGAIN
            if router.signatures is not None and head.status == 200:
                router.signatures.heard(job, head.get(HEADER.lower()))
            if head.status == 200 and head.get("content-type").lower().startswith("text/event-stream"):
                return await self._stream(wire, head)
            return await self._whole(wire, head)
        except OSError as fault:
            return self._fault(f"gave no answer: {type(fault).__name__}")
        finally:
            job.heard_at = 0.0
            if wire is not None:
                router.wires.give_back(wire)

    def _is_refused(self, why: str, head: Head, status: int = 0) -> bool:
        """Note that the engine refuses what another one may take; returns whether another attempt is to be made.

        Parameters
        ----------
        why, head
            What the engine did, and the head of its answer.
        status
            The status that would have said so; 0 = that of the head does.
        """
        router, job, status = self._router, self._job, status or head.status
        self.why = f"{self._endpoint.called} {why}"
        job.tried[self._endpoint.mirror] = asked_rest(head.get("retry-after"), head.get("date"))
        if status in OF_ENGINE:
            router.poller.suspect(self._endpoint)
        if job.begun is not None or not router.may_retry(job):
            return False
        if status in OF_REQUEST and len(job.tried) > 1:
            return False
        return status in _LATER or router.finds_untried(job)

    def _taken(self) -> None:
        """Note that the engine took the request."""
        self._endpoint.last_heard = self._router.now()
        self._router.taken(self._endpoint, self._job.tried)
        self._job.tried.clear()

    def _fault(self, why: str) -> Result:
        """Note a fault of the engine or of the connection to it."""
        router, job = self._router, self._job
        self.why = f"{self._endpoint.called} {why}"
        job.tried[self._endpoint.mirror] = 0.0
        router.note_fault(self._endpoint)
        return Result.AGAIN if job.begun is None else Result.BROKEN

    async def _whole(self, wire: Wire, head: Head) -> Result:
        """Pass on an answer that is not a stream."""
        router, job = self._router, self._job
        if job.begun is not None:
            return await self._broken(f"answered {head.status}")
        body = await self._collected(wire)
        if body is None:
            router.failed(job)
            return Result.ANSWERED
        told = _told(body) if head.status == 200 else {}
        error = told.get("error")
        why = "sent no answer" if error is None else "answered with an error"
        if head.status == 200 and error is None and any(name in body for name in _ANSWERS):
            self._taken()
            self._count(usage_of(told))
            router.finished(job, self._attempt)
        elif head.status == 200 and self._is_refused(why, head, code_of(error)):
            return Result.AGAIN
        else:
            router.failed(job, rejected=is_of_request(code_of(error) or head.status))
            if head.status < 400 and (head.status >= 300 or error is None):
                self.answer = refuse(502, self.why)
                return Result.ANSWERED
        job.heard_at = 0.0
        self.answer = answer = await self._begin(head, len(body))
        for begin in range(0, len(body), _PIECE):
            await self._write(answer, body[begin : begin + _PIECE])
        await self._write(answer, b"", is_last=True)
        return Result.ANSWERED

    async def _collected(self, wire: Wire) -> bytes | None:
        """Return a whole answer; None where it is too large, and the client is told so."""
        router, job = self._router, self._job
        parts: list[bytes] = []
        with router.budget.share() as share:
            while chunk := await wire.piece():
                if not parts:
                    router.fleet.first_chunk(job.tracker, router.now(), self._attempt)
                job.heard_at = router.now()
                parts.append(chunk)
                try:
                    share.take(len(chunk))
                except OverBudgetError:
                    self.answer = router.over_budget()
                    return None
                if share.held > LARGEST_ANSWER:
                    self.why = f"{self._endpoint.called} sent an answer of more than {LARGEST_ANSWER:,} bytes"
                    self.answer = refuse(502, self.why)
                    return None
            if job.share is not None:
                job.share.add(share)
        return b"".join(parts)

    def _count(self, usage: Usage) -> None:
        if usage.prompt is not None:
            self._router.counted(self._job, usage.prompt)
        if usage.made:
            self._router.fleet.tokens(self._job.tracker, usage.made, self._attempt)

    async def _stream(self, wire: Wire, head: Head) -> Result:
        """Pass on a stream of events as it comes, and count its tokens."""
        router, job = self._router, self._job
        flow = Flow(router, job, self._endpoint, self._attempt)
        answer = job.begun
        try:
            while data := await wire.piece():
                data = flow.take(data)
                code = flow.counter.error
                if answer is None and code and self._is_refused("answered with an error", head, code):
                    return Result.AGAIN
                if answer is None and flow.counter.is_empty:
                    if self._is_refused("sent no answer", head):
                        return Result.AGAIN
                    router.failed(job)
                    self.answer = refuse(502, self.why)
                    return Result.ANSWERED
                if data:
                    if answer is None:
                        answer = await self._begin(head)
                        if not flow.counter.error:
                            self._taken()
                    await self._write(answer, data)
                if flow.is_over:
                    break
                if answer is not None and answer.headers.get("Transfer-Encoding") == "chunked":
                    await self._pour(wire, flow)
                    break
        except OSError as fault:
            if not flow.counter.done:
                return await self._broken(f"gave no answer: {type(fault).__name__}")
        if flow.goes_elsewhere:
            return self._recomputed()
        if flow.counter.missed:
            self._endpoint.note_missed(flow.counter.missed, flow.counter.tokens)
        rest = flow.counter.take_rest()
        if not (flow.counter.done or flow.counter.finished or flow.counter.error):
            return await self._broken("ended its stream before the answer was whole")
        if flow.counter.error:
            router.failed(job, rejected=is_of_request(flow.counter.error))
            if flow.counter.error in OF_ENGINE:
                router.poller.suspect(self._endpoint)
        else:
            router.finished(job, self._attempt)
        if answer is None:
            answer = await self._begin(head)
        await self._write(answer, rest, is_last=True)
        self.answer = answer
        return Result.ANSWERED

    async def _broken(self, why: str) -> Result:
        """Note that a stream broke off; where the client has a part of it, tell the client."""
        result = self._fault(why)
        if result is Result.BROKEN:
            self._router.let_rest(self._endpoint)
            self.answer = answer = self._job.begun
            await end_with_error(answer, self.why)
        return result

    async def _pour(self, wire: Wire, flow: Flow) -> None:
        """Let the chunks of the engine go straight to the client's connection, until the stream ends.

        The client is sent chunks of HTTP, as `write` of aiohttp would send them. Where the client does not read, the
        engine is not read either.
        """
        request, job = self._request, self._job
        transport = request.transport
        if transport is None:
            raise ClientGone
        write, num_unsent, is_closing = transport.write, transport.get_write_buffer_size, transport.is_closing

        take, counter = flow.take, flow.counter

        def sink(data: bytes, frame: bytes) -> None:
            passed = take(data)
            if passed:
                if is_closing():
                    wire.nudge()
                    return
                write(frame if frame and passed is data else b"%x\r\n%b\r\n" % (len(passed), passed))
                if num_unsent() > _MOST_UNSENT:
                    wire.pause()
                    wire.nudge()
            if counter.done or counter.recomputed or counter.is_endless:  # who is woken looks whether it is the end
                wire.nudge()

        wire.pour(sink)
        while not (wire.is_done or flow.is_over):
            if flow.counter.done:  # the client has all; only the connection is awaited
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LONGEST_END):
                        await wire.wait()
                return
            await wire.wait()
            if is_closing():
                raise ClientGone
            if wire.is_paused:
                job.write_began = self._router.now()
                await request.writer.drain()
                job.write_began, job.heard_at = 0.0, self._router.now()
                wire.resume()
        if not flow.is_over:
            await wire.wait()  # raises where the stream broke off

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Note that the client is written to, who alone is to blame where that fails."""
        self._job.write_began = self._router.now()
        try:
            yield
        except OSError as fault:
            raise ClientGone from fault
        self._job.write_began = 0.0

    async def _write(self, answer: web.StreamResponse, data: bytes, *, is_last: bool = False) -> None:
        """Write to the client."""
        with self._writing():
            if data:
                await answer.write(data)
            if is_last:
                await answer.write_eof()

    async def _begin(self, head: Head, size: int | None = None) -> web.StreamResponse:
        """Send the headers, of an answer of `size` bytes or of a stream: from here on there is no other attempt."""
        job = self._job
        job.begun = answer = _Answer(status=head.status, headers=headers_for_client(head.headers))
        answer.content_length = size
        with self._writing():
            await answer.prepare(self._request)
        if job.share is not None and not job.ask.data:  # which are bytes of the same body
            job.share.give(len(job.body))
        job.body = b""  # no other attempt will need it
        return answer

    def _recomputed(self) -> Result:
        """Let a request that the engine pre-empted wait in the pool again."""
        self.why = f"{self._endpoint.called} pre-empted the request"
        self._router.recomputed(self._job, self._attempt)
        return Result.RECOMPUTED


async def end_with_error(answer: web.StreamResponse, why: str, status: int = 502) -> None:
    """End a stream that has begun with an event that says why, behind an empty line: a long event may have no end."""
    with suppress(ConnectionError, RuntimeError):  # the client has gone
        await answer.write(b"\n\ndata: " + error_of(status, f"{why}; the answer is not whole") + b"\n\n")
        await answer.write_eof()


class Flow:
    """One stream of one attempt.

    Parameters
    ----------
    router
        Whose state is told.
    job, endpoint, attempt
        The request, the engine, and the number of the dispatch.
    """

    __slots__ = (
        "_attempt",
        "_endpoint",
        "_fleet",
        "_goes_on",
        "_has_begun",
        "_job",
        "_now",
        "_router",
        "_wakes",
        "counter",
    )

    def __init__(self, router: Router, job: Job, endpoint: Endpoint, attempt: int) -> None:
        self._router, self._job, self._endpoint, self._attempt = router, job, endpoint, attempt
        self._now = asyncio.get_running_loop().time  # what `Router.now` returns, with a call less for each chunk
        self._fleet = router.fleet
        self._has_begun = False
        self._goes_on = False
        self._wakes = router.dispatcher.step_ends is not None
        self.counter = EventCounter(
            job.text if router.keeps_text else None,
            sequences=job.tracker.sequences,
            without_usage=asks_usage(router, job, endpoint),
        )

    @property
    def goes_elsewhere(self) -> bool:
        """Whether the engine has pre-empted the request and gave it back."""
        return self.counter.recomputed and self._router.keeps_text

    @property
    def is_over(self) -> bool:
        """Whether nothing more is awaited of the engine: it gave the request back, or goes on and on."""
        return self._goes_on or self.goes_elsewhere or self.counter.is_endless

    def take(self, data: bytes) -> bytes:
        """Take in bytes, tell the state what they say, and return those that go to the client."""
        counter, job, fleet = self.counter, self._job, self._fleet
        job.heard_at = now = self._now()
        before, self._goes_on = counter.tokens, counter.done
        data = counter.take(data)
        if not counter.error:
            self._endpoint.last_heard = now
        tracker, count = job.tracker, counter.tokens - before
        if not self._has_begun:
            self._has_begun = True
            fleet.first_chunk(tracker, now, self._attempt)
        if count:
            fleet.tokens(tracker, count, self._attempt)
            if self._wakes:
                self._router.dispatcher.wake()  # a step may have ended
        if counter.prompt_tokens is not None and tracker.estimated:
            self._router.counted(job, counter.prompt_tokens)
        if counter.done and not (counter.error or counter.is_empty):
            self._router.finished(job, self._attempt)
        return data
