"""One request from its intended time to the end of its answer, and what its events say, parsed later.

All streams of a barrier group get their tokens at the same moment: 576 of them on 8 workers of 72 slots. What a client
does for each of them until the last one is read delays the next request by that much. So while tokens come in, a piece
of a stream is only noted with its time. What the pieces say is read when the answer has ended, a millisecond at a time
between other things (`Reader`), so that it delays no request. An event has the time of the piece that ends it.
"""

from __future__ import annotations

import asyncio
import json
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from lbopt.serving.http_client import Wires, request_head
from lbopt.serving.http_wire import BadAnswer, CutShort, Wire
from lbopt.serving.scrape import count_of, stream_events

#: Kinds of errors; ``status-NNN`` for any other HTTP status than 200 joins them.
CONNECT, RESET, TRUNCATED, TIMEOUT, RECOMPUTED, BAD_ANSWER = (
    "connect",
    "reset",
    "truncated",
    "timeout",
    "recomputed",
    "bad-answer",
)
#: Not an error: the run was ended before the answer.
UNFINISHED = "unfinished"

#: s for which a connection may be used again: servers close idle ones, and a request that meets this moment looks like
#: an error.
IDLE = 2.0
#: Bytes of one answer, in pieces and chunks of any size.
_LARGEST_ANSWER = 2**27
#: s for which events are read before other things get their turn.
_TURN = 0.001


@dataclass(slots=True)
class Outcome:
    """What became of one request; times in s from the start of the run, None where it did not come so far.

    Parameters
    ----------
    number, url
        Place in the trace, and where it was sent.
    intended, sent
        When it was to be sent, and when it was.
    first, last, end
        First and last event with tokens, and the end of the answer.
    prompt_tokens, tokens, events
        As `usage` says, or one token an event where there is none; events with tokens.
    error
        Empty where all went well.
    """

    number: int
    url: str
    intended: float
    sent: float | None = None
    first: float | None = None
    last: float | None = None
    end: float | None = None
    prompt_tokens: int | None = None
    tokens: int = 0
    events: int = 0
    error: str = ""


@dataclass(slots=True)
class Response:
    """An answer while it comes in: its status, 0 until it is known, and pieces of its body with their times, s."""

    status: int = 0
    content_type: str = ""
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    size: int = 0

    async def fill(self, wire: Wire, request: bytes, body: bytes = b"") -> None:
        """Send a request and note what comes until the answer has ended.

        Raises
        ------
        ConnectionError
            Where it breaks off.
        """
        now = asyncio.get_running_loop().time

        def note(piece: bytes, _frame: bytes) -> None:
            self.pieces.append((now(), piece))
            self.size += len(piece)
            if self.size > _LARGEST_ANSWER:
                raise BadAnswer("it is too long")

        head = await wire.ask(request, body, note)
        self.status, self.content_type = head.status, head.get("content-type").lower()
        await wire.wait()

    @property
    def body(self) -> bytes:
        """All of the body that has come."""
        return b"".join(piece for _, piece in self.pieces)


class Exchange:
    """Sends requests, and has what comes back read.

    Parameters
    ----------
    path
        Of every request.
    headers
        Of every request.
    begun
        s of the loop's clock at which the run began.
    limit
        s, how long an answer may take from the intended time on.
    """

    def __init__(self, path: str, headers: dict[str, str], begun: float, limit: float) -> None:
        self._path = path
        self._headers = headers
        self._begun = begun
        self._limit = limit
        self.wires = Wires(IDLE)
        self.reader = Reader(begun)

    async def run(self, outcome: Outcome, body: bytes) -> None:
        """Send `body` and fill the outcome, but for what is read later."""
        loop, response = asyncio.get_running_loop(), Response()
        outcome.error = UNFINISHED
        try:
            async with asyncio.timeout_at(self._begun + outcome.intended + self._limit):
                await self._send(outcome, body, response)
            outcome.error = ""
        except TimeoutError:  # is an OSError, too
            outcome.error = TIMEOUT
        except CutShort:
            outcome.error = TRUNCATED if response.status else RESET
        except BadAnswer:
            outcome.error = BAD_ANSWER
        except OSError:
            outcome.error = outcome.error if outcome.error == CONNECT else RESET
        finally:
            outcome.end = loop.time() - self._begun
            self.reader.put(outcome, response)

    async def _send(self, outcome: Outcome, body: bytes, response: Response) -> None:
        request = request_head(outcome.url, self._path, self._headers, len(body))
        outcome.sent = asyncio.get_running_loop().time() - self._begun
        try:
            wire = await self.wires.open(outcome.url)
        except OSError:
            outcome.error = CONNECT
            raise
        try:
            await response.fill(wire, request, body)
        finally:
            self.wires.give_back(wire)


class Reader:
    """Reads what answers say, a little at a time.

    Parameters
    ----------
    begun
        s of the loop's clock at which the run began.
    """

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._todo: deque[Iterator[None]] = deque()
        self._work = asyncio.Event()

    def put(self, outcome: Outcome, response: Response) -> None:
        """Have the answer to a request read."""
        self._todo.append(self._read(outcome, response))
        self._work.set()

    async def run(self) -> None:
        """Read for ever, in turns with everything else."""
        while True:
            until = time.perf_counter() + _TURN
            while self._todo and time.perf_counter() < until:
                self._go_on()
            if self._todo:
                await asyncio.sleep(0)
            else:
                self._work.clear()
                await self._work.wait()

    def finish(self) -> None:
        """Read all that is left."""
        while self._todo:
            self._go_on()

    def _go_on(self) -> None:
        if next(self._todo[0], self) is self:
            self._todo.popleft()

    def _read(self, outcome: Outcome, response: Response) -> Iterator[None]:
        """Read one answer, an event at a time."""
        if response.status not in (0, 200):
            outcome.error = outcome.error or f"status-{response.status}"
        if response.status != 200:
            return
        try:
            if response.content_type.startswith("text/event-stream"):
                yield from self._read_events(outcome, response)
            elif not outcome.error:
                self._read_body(json.loads(response.body), outcome)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            outcome.error = outcome.error or BAD_ANSWER

    def _read_events(self, outcome: Outcome, response: Response) -> Iterator[None]:
        ends, ended = list(accumulate(len(piece) for _, piece in response.pieces)), False
        for end, data in stream_events(response.body):
            if data == b"[DONE]":
                ended = True
            else:
                when = response.pieces[bisect_left(ends, end)][0]  # of the piece that its last byte came in
                self._read_event(json.loads(data.decode()), outcome, when - self._begun)
            yield
        if not ended and not outcome.error:
            outcome.error = TRUNCATED

    def _read_event(self, event: dict[str, Any], outcome: Outcome, now: float) -> None:
        if "error" in event:
            outcome.error = outcome.error or BAD_ANSWER
        usage = event.get("usage")
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            if choice.get("text") or delta.get("content") or delta.get("tool_calls"):
                if outcome.first is None:
                    outcome.first = now
                outcome.last = now
                outcome.events += 1
                outcome.tokens += 1
            if choice.get("stop_reason") == RECOMPUTED:
                outcome.error = RECOMPUTED
        if usage:
            outcome.tokens, outcome.prompt_tokens = _counts(usage)

    def _read_body(self, answer: dict[str, Any], outcome: Outcome) -> None:
        outcome.tokens, outcome.prompt_tokens = _counts(answer["usage"])
        if answer["choices"][0].get("stop_reason") == RECOMPUTED:
            outcome.error = RECOMPUTED


def _counts(usage: dict[str, Any]) -> tuple[int, int]:
    """Return tokens of the answer and of the prompt; a ValueError says that they cannot be."""
    made, prompt = count_of(usage["completion_tokens"]), count_of(usage["prompt_tokens"])
    if made is None or prompt is None:
        raise ValueError("no count of tokens")
    return made, prompt
